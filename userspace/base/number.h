/* SPDX-License-Identifier: GPL-2.0-only */
/* Comparing unsigned numbers, times most of all. */
#ifndef WHYIDLE_BASE_NUMBER_H
#define WHYIDLE_BASE_NUMBER_H

#include <stdint.h>

static inline uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* For qsort over uint64_t, the least first. */
static inline int compare_unsigned(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

#endif
