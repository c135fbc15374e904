/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_BASE_MEDIAN_H
#define WHYIDLE_BASE_MEDIAN_H

#include <stddef.h>
#include <stdint.h>

/*
 * The value that would stand at `count` / 2 if `values` were sorted; `count` is not 0. The order of the
 * values changes. Takes time in proportion to `count` for nearly all inputs, and n log n for the worst.
 */
uint64_t median_unsigned(uint64_t *values, size_t count);

#endif
