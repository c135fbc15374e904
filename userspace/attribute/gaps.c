/* SPDX-License-Identifier: GPL-2.0-only */
#include "attribute/gaps.h"

#include <errno.h>

#include "base/number.h"

int gap_list_add(struct gap_list *gaps, uint64_t start_ns, uint64_t end_ns, uint32_t ended_by,
                 uint32_t before)
{
	struct gap *gap = array_add(gaps);

	if (!gap)
		return -ENOMEM;
	*gap = (struct gap){start_ns, end_ns, ended_by, before};
	return 0;
}

#define PENDING_MOST 16 /* copies that are fed at a time: there are one or two copy engines a direction */

/* The operations of a device in the order in which they make it busy. */
struct sweep {
	const struct device *device;
	size_t next;
	uint32_t pending[PENDING_MOST]; /* begun, and still fed */
	size_t pending_count;
};

/* Index of pending of the one that is first to be busy. */
static size_t first_pending(const struct sweep *sweep)
{
	const struct gpu_op *ops = sweep->device->ops.items;
	size_t first = 0;

	for (size_t i = 1; i < sweep->pending_count; i++) {
		if (op_busy_from(&ops[sweep->pending[i]]) < op_busy_from(&ops[sweep->pending[first]]))
			first = i;
	}
	return first;
}

/* Index of the next operation, MODEL_NONE at the end. */
static uint32_t sweep_next(struct sweep *sweep)
{
	const struct device *device = sweep->device;

	for (; sweep->next < device->ops.count; sweep->next++) {
		const struct gpu_op *op = &device->ops.items[sweep->next];
		size_t first = sweep->pending_count ? first_pending(sweep) : 0;

		if (sweep->pending_count &&
		    op_busy_from(&device->ops.items[sweep->pending[first]]) <= op->start_ns)
			break;
		if (!op->fed_ns || sweep->pending_count == PENDING_MOST)
			return (uint32_t)sweep->next++;
		sweep->pending[sweep->pending_count++] = (uint32_t)sweep->next;
	}
	if (sweep->pending_count) {
		size_t first = first_pending(sweep);
		uint32_t index = sweep->pending[first];

		sweep->pending[first] = sweep->pending[--sweep->pending_count];
		return index;
	}
	return MODEL_NONE;
}

int gap_list_make(struct gap_list *gaps, const struct device *device, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t covered = from_ns;
	struct sweep sweep = {.device = device};
	uint32_t before = MODEL_NONE, i;
	int rc = 0;

	while (!rc && (i = sweep_next(&sweep)) != MODEL_NONE) {
		const struct gpu_op *op = &device->ops.items[i];

		if (op_busy_from(op) > covered)
			rc = gap_list_add(gaps, covered, earlier(op_busy_from(op), to_ns), i, before);
		if (op->end_ns >= covered) {
			covered = op->end_ns;
			before = i;
		}
		if (covered >= to_ns)
			return rc;
	}
	if (!rc && covered < to_ns)
		rc = gap_list_add(gaps, covered, to_ns, MODEL_NONE, before);
	return rc;
}

void gap_list_free(struct gap_list *gaps)
{
	array_free(gaps);
}

uint64_t busy_union(const struct device *device, uint64_t from_ns, uint64_t to_ns,
                    bool (*pick)(const struct gpu_op *op))
{
	struct sweep sweep = {.device = device};
	uint64_t covered = from_ns, busy = 0;
	uint32_t i;

	while ((i = sweep_next(&sweep)) != MODEL_NONE) {
		const struct gpu_op *op = &device->ops.items[i];
		uint64_t start = later(op_busy_from(op), covered);
		uint64_t end = earlier(op->end_ns, to_ns);

		if ((pick && !pick(op)) || end <= start)
			continue;
		busy += end - start;
		covered = end;
	}
	return busy;
}

bool op_is_compute(const struct gpu_op *op)
{
	return op->kind == OP_KERNEL && !op->collective;
}
