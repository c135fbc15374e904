/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a writer keeps while its file cannot be written: the records that define things (threads, stacks,
 * devices …), so that what is written once there is room again can be understood. Events are counted and
 * dropped.
 */
#ifndef WHYIDLE_TRACE_BACKLOG_H
#define WHYIDLE_TRACE_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/layout.h"

#define BACKLOG_MAX_BYTES (16u << 20)

struct backlog {
	uint8_t *kept; /* whole records, one after the other */
	size_t kept_bytes, kept_capacity;
	uint64_t kept_records; /* RECORD_LOSS not counted: they tell of a loss, they are none */
	uint64_t dropped;      /* records */
	size_t dropped_bytes;
	struct record_span span; /* of the dropped events */
};

/*
 * Keeps or drops a record of record_size bytes with tail_size bytes after it that lie elsewhere. It is
 * dropped if it is an event, if the backlog is full or if memory ran out.
 */
void backlog_add(struct backlog *backlog, const void *record, size_t record_size, const void *tail,
                 size_t tail_size);

void backlog_free(struct backlog *backlog);

#endif
