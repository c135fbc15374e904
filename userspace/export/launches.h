/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which calls launched something, and what the model no longer has of them: it keeps the outermost call only,
 * so of a launch inside another call the entry and the correlation id are left, both with the operation.
 */
#ifndef WHYIDLE_EXPORT_LAUNCHES_H
#define WHYIDLE_EXPORT_LAUNCHES_H

#include "model/model.h"

struct launches {
	const struct model *model;
	uint8_t **launched;      /* for each thread a bit for each call, NULL: none */
	struct index_map nested; /* launches inside other calls that launches_take_nested gave out */
};

/* Returns 0 or -ENOMEM; launches_free in either case. */
int launches_find(struct launches *launches, const struct model *model);
void launches_free(struct launches *launches);

/* True if an operation carries the correlation id of this call. */
bool launches_has(const struct launches *launches, uint32_t thread, size_t call);

/* The outermost call that the operation was launched in, NULL if not known. */
const struct call *op_launch_call(const struct model *model, const struct gpu_op *op);

/*
 * 1 if the operation was launched inside another call and this is the first one with its correlation id, else
 * 0 or -ENOMEM. The writer then makes a call of op->launch_ns with that id, so that readers find the launch.
 */
int launches_take_nested(struct launches *launches, const struct gpu_op *op);

#endif
