// SPDX-License-Identifier: GPL-2.0-only
#include "base/median.h"

#include <stdlib.h>

#include "base/number.h"

#define SMALL 32 /* so few are sorted at once */

static uint64_t middle_of_three(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;

	return c < low ? low : c > high ? high : c;
}

uint64_t median_unsigned(uint64_t *values, size_t count)
{
	size_t wanted = count / 2, left = 0, right = count; /* it is in [left, right) */

	/* Rounds that take away little are not meant to happen: then sorting is faster. */
	for (int rounds = 64; right - left > SMALL && rounds; rounds--) {
		uint64_t pivot =
		    middle_of_three(values[left], values[left + (right - left) / 2], values[right - 1]);
		size_t low = left, high = right, at = left;

		/* Three parts: less, equal, greater. Equal values would else take a round each. */
		while (at < high) {
			uint64_t value = values[at];

			if (value < pivot) {
				values[at++] = values[low];
				values[low++] = value;
			} else if (value > pivot) {
				values[at] = values[--high];
				values[high] = value;
			} else {
				at++;
			}
		}
		if (wanted < low)
			right = low;
		else if (wanted >= high)
			left = high;
		else
			return pivot;
	}
	qsort(values + left, right - left, sizeof(*values), compare_unsigned);
	return values[wanted];
}
