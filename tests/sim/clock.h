/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_SIM_CLOCK_H
#define WHYIDLE_SIM_CLOCK_H

#include <stdint.h>
#include <time.h>

/* A clock in ns. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec time = {0};

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000ULL + (uint64_t)time.tv_nsec;
}

#endif
