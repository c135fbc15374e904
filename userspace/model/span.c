/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/span.h"

int span_compare(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

size_t span_after(const struct span *spans, size_t count, uint64_t time_ns)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans[middle].end_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
