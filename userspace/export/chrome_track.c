// SPDX-License-Identifier: GPL-2.0-only
/* Ids and tracks that are unique in the whole file, as the format wants them. */
#include <errno.h>
#include <stdlib.h>

#include "export/chrome.h"

static size_t slot_of(const struct model *model, uint32_t process)
{
	return process == MODEL_NONE ? model->processes.count : process;
}

static void see(uint64_t *most, uint32_t correlation)
{
	if (correlation > *most)
		*most = correlation;
}

/*
 * Correlation ids are unique within a process, the format has one space for all: each process that has any
 * gets a range behind those before it. With one process the ids stay what they are.
 */
int chrome_ids_make(struct chrome *chrome)
{
	const struct model *model = chrome->model;
	size_t count = model->processes.count + 1;
	const struct device *device;
	const struct thread *thread;
	uint64_t base = 0, *most;

	most = chrome->correlation_base = calloc(count, sizeof(*most));
	if (!most)
		return -ENOMEM;
	array_for_each (thread, &model->threads) {
		const struct call *call;

		array_for_each (call, &thread->calls)
			see(&most[slot_of(model, thread->process)], call->correlation);
	}
	array_for_each (device, &model->devices) {
		const struct gpu_op *op;

		array_for_each (op, &device->ops)
			see(&most[slot_of(model, op->process)], op->correlation);
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t ids = most[i];

		most[i] = base;
		base += ids;
	}
	return 0;
}

void chrome_ids_free(struct chrome *chrome)
{
	free(chrome->correlation_base);
	index_map_free(&chrome->track_by_key);
	array_free(&chrome->tracks);
}

uint64_t chrome_correlation(const struct chrome *chrome, uint32_t process, uint32_t correlation)
{
	return correlation ? chrome->correlation_base[slot_of(chrome->model, process)] + correlation : 0;
}

uint64_t chrome_gpu_pid(const struct chrome *chrome, uint32_t device)
{
	uint32_t number = chrome->model->devices.items[device].number, process;

	if (index_map_get(&chrome->model->process_by_pid, number, &process))
		return CHROME_GPU_PID + (uint64_t)number;
	return number;
}

/*
 * A stream's track has the stream's number, as Kineto does it, for the first who uses the number; others get
 * tracks of their own.
 */
int chrome_track_find(struct chrome *chrome, const struct chrome_track *wanted, uint64_t *tid)
{
	const uint32_t whole[] = {wanted->device, wanted->process, wanted->context, wanted->stream,
	                          wanted->waits};
	const uint32_t number[] = {wanted->device, wanted->stream};
	uint64_t key = hash_bytes(whole, sizeof(whole)), number_key = hash_bytes(number, sizeof(number));
	struct chrome_track *track;
	uint32_t index;

	if (index_map_get(&chrome->track_by_key, key, &index)) {
		*tid = chrome->tracks.items[index].tid;
		return 0;
	}
	index = (uint32_t)chrome->tracks.count;
	track = array_add(&chrome->tracks);
	if (!track || index_map_put(&chrome->track_by_key, key, index))
		return -ENOMEM;
	*track = *wanted;
	track->tid = CHROME_TRACK_TID + index;
	if (!wanted->waits && !index_map_get(&chrome->track_by_key, number_key, &index)) {
		if (index_map_put(&chrome->track_by_key, number_key, (uint32_t)chrome->tracks.count - 1))
			return -ENOMEM;
		track->tid = wanted->stream;
	}
	*tid = track->tid;
	return 0;
}
