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

int gap_list_make(struct gap_list *gaps, const struct device *device, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t covered = from_ns;
	uint32_t before = MODEL_NONE;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < device->ops.count; i++) {
		const struct gpu_op *op = &device->ops.items[i];

		if (op->start_ns > covered)
			rc = gap_list_add(gaps, covered, earlier(op->start_ns, to_ns), i, before);
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
	uint64_t covered = from_ns, busy = 0;
	const struct gpu_op *op;

	array_for_each (op, &device->ops) {
		uint64_t start = later(op->start_ns, covered);
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
