// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>

#include "base/number.h"
#include "model/model.h"

static int add_other(struct device *device, const struct gpu_op *op)
{
	struct span *last = device->others.count ? &device->others.items[device->others.count - 1] : NULL;

	if (last && op->start_ns <= last->end_ns) {
		last->end_ns = later(last->end_ns, op->end_ns);
		return 0;
	}
	last = array_add(&device->others);
	if (!last)
		return -ENOMEM;
	*last = (struct span){op->start_ns, op->end_ns};
	return 0;
}

static int keep_ops(const struct model *model, struct device *device, uint32_t pid)
{
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; i < device->ops.count; i++) {
		const struct gpu_op *op = &device->ops.items[i];

		if (op->process != MODEL_NONE && model->processes.items[op->process].pid == pid)
			device->ops.items[kept++] = *op;
		else if (!rc)
			rc = add_other(device, op);
	}
	device->ops.count = kept;
	return rc;
}

int model_keep_process(struct model *model, uint32_t pid, struct error *error)
{
	struct device *device;
	uint32_t index;

	if (!index_map_get(&model->process_by_pid, pid, &index))
		return error_set(error, -ENOENT, "there is no process %u in it", pid);
	array_for_each (device, &model->devices) {
		if (keep_ops(model, device, pid))
			return error_no_memory(error);
	}
	return 0;
}
