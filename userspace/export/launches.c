// SPDX-License-Identifier: GPL-2.0-only
#include "export/launches.h"

#include <errno.h>
#include <stdlib.h>

const struct call *op_launch_call(const struct model *model, const struct gpu_op *op)
{
	if (op->launch_thread == MODEL_NONE)
		return NULL;
	return &model->threads.items[op->launch_thread].calls.items[op->launch_call];
}

static int mark(struct launches *launches, const struct gpu_op *op)
{
	const struct call *call = op_launch_call(launches->model, op);
	uint8_t **bits;

	if (!call || call->correlation != op->correlation)
		return 0;
	bits = &launches->launched[op->launch_thread];
	if (!*bits) {
		*bits = calloc(1, launches->model->threads.items[op->launch_thread].calls.count / 8 + 1);
		if (!*bits)
			return -ENOMEM;
	}
	(*bits)[op->launch_call / 8] |= (uint8_t)(1 << op->launch_call % 8);
	return 0;
}

int launches_find(struct launches *launches, const struct model *model)
{
	const struct device *device;
	const struct gpu_op *op;

	*launches = (struct launches){.model = model};
	launches->launched = calloc(model->threads.count + 1, sizeof(*launches->launched));
	if (!launches->launched)
		return -ENOMEM;
	array_for_each (device, &model->devices) {
		array_for_each (op, &device->ops) {
			if (mark(launches, op))
				return -ENOMEM;
		}
	}
	return 0;
}

void launches_free(struct launches *launches)
{
	for (size_t i = 0; launches->launched && i < launches->model->threads.count; i++)
		free(launches->launched[i]);
	free(launches->launched);
	index_map_free(&launches->nested);
	*launches = (struct launches){0};
}

bool launches_has(const struct launches *launches, uint32_t thread, size_t call)
{
	const uint8_t *bits = launches->launched[thread];

	return bits && bits[call / 8] >> call % 8 & 1;
}

int launches_take_nested(struct launches *launches, const struct gpu_op *op)
{
	const struct call *call = op_launch_call(launches->model, op);
	uint64_t key = (uint64_t)op->process << 32 | op->correlation;
	uint32_t value;

	if (!call || call->correlation == op->correlation)
		return 0;
	if (index_map_get(&launches->nested, key, &value))
		return 0;
	return index_map_put(&launches->nested, key, 1) ? -ENOMEM : 1;
}
