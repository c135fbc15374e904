// SPDX-License-Identifier: GPL-2.0-only
#include "model/fed_copies.h"

/* CUpti_ActivityMemoryKind, cupti_activity.h */
#define MEMORY_PAGEABLE 1
#define MEMORY_PINNED   2

#define COPY_KINDS  16 /* more than CUPTI has */
#define LEAST_BYTES (1u << 20)
/* PCI Express 5.0 with 16 lanes, the fastest link over which copies are staged. */
#define LINK_BYTES_PER_NS 64.0

bool is_pageable_copy(const struct gpu_op *op)
{
	return op->kind == OP_MEMCPY &&
	       (op->source_kind == MEMORY_PAGEABLE || op->target_kind == MEMORY_PAGEABLE);
}

static bool is_large_copy(const struct gpu_op *op)
{
	return op->kind == OP_MEMCPY && op->bytes >= LEAST_BYTES && op->copy_kind < COPY_KINDS &&
	       op->end_ns > op->start_ns;
}

void mark_fed_copies(struct device *device)
{
	double fastest[COPY_KINDS] = {0}, rate;
	struct gpu_op *op;

	array_for_each (op, &device->ops) {
		if (!is_large_copy(op) ||
		    (op->source_kind != MEMORY_PINNED && op->target_kind != MEMORY_PINNED))
			continue;
		rate = (double)op->bytes / (double)(op->end_ns - op->start_ns);
		if (rate > fastest[op->copy_kind])
			fastest[op->copy_kind] = rate;
	}
	array_for_each (op, &device->ops) {
		double took = (double)(op->end_ns - op->start_ns), needed;

		if (!is_large_copy(op) || !is_pageable_copy(op))
			continue;
		rate = fastest[op->copy_kind] > 0 ? fastest[op->copy_kind] : LINK_BYTES_PER_NS;
		needed = (double)op->bytes / rate;
		op->fed_ns = needed < took ? (uint64_t)(took - needed) : 0;
	}
}
