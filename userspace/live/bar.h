/* SPDX-License-Identifier: GPL-2.0-only */
/* A bar that shows shares as numbers of cells. */
#ifndef WHYIDLE_LIVE_BAR_H
#define WHYIDLE_LIVE_BAR_H

#include <stddef.h>
#include <stdint.h>

/*
 * Shares `cells` out to parts of the whole (the sum of all `parts`), in their order and without gaps: each
 * part ends at the cell that is nearest to where it ends. So all cells are given, and no part gets one more
 * or less than its share would be. An empty whole gives none.
 */
void bar_share(unsigned *result, const uint64_t *parts, size_t count, unsigned cells);

#endif
