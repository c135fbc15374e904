/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What trace/ itself has to know of each record type: its size, where its times lie, what follows it.
 */
#ifndef WHYIDLE_TRACE_LAYOUT_H
#define WHYIDLE_TRACE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/record.h"

struct record_layout {
	const char *name;    /* "offcpu" */
	uint16_t size;       /* of the struct, without what follows */
	uint16_t start, end; /* offsets of its times in ns, 0 none */
	uint16_t tail_count; /* offset of the number of items that follow, 0 nothing follows */
	uint16_t tail_unit;  /* bytes of such an item */
	bool event;          /* one of many; others define what events refer to, and are worth keeping */
};

/* NULL for types that are not known. */
const struct record_layout *record_layout_find(uint16_t type);

/* Bytes of the items that follow the struct, padding not included, by the count in `record`, which has at
 * least layout->tail_count + 4 bytes. */
uint64_t record_layout_items(const struct record_layout *layout, const void *record);

/* A stretch of time; both 0: nothing yet. */
struct record_span {
	uint64_t start_ns, end_ns;
};

/* Extends the span by the times of an event; other records and times of 0 do not count. */
void record_span_add(struct record_span *span, const struct record_header *record);
void record_span_join(struct record_span *span, const struct record_span *other);

#endif
