/* SPDX-License-Identifier: GPL-2.0-only */
/* Stretches of time, in ns. */
#ifndef WHYIDLE_MODEL_SPAN_H
#define WHYIDLE_MODEL_SPAN_H

#include <stddef.h>
#include <stdint.h>

struct span {
	uint64_t start_ns, end_ns;
};

/* Orders by start, for qsort. */
int span_compare(const void *a, const void *b);

/* Index of the first of `count` disjoint spans in order that ends after `time`, count if none. */
size_t span_after(const struct span *spans, size_t count, uint64_t time_ns);

#endif
