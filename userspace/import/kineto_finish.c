/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of a Kineto import: what needs the whole file, because its events are in no order. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/kineto_loader.h"

int kineto_loader_degrade(struct kineto_loader *loader, const char *format, ...)
{
	uint32_t id, *slot;
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	id = model_add_string(loader->model, text, strlen(text));
	slot = id == MODEL_NONE ? NULL : array_add(&loader->model->degraded);
	if (!slot)
		return -ENOMEM;
	*slot = id;
	return 0;
}

static void name_threads(struct kineto_loader *loader)
{
	struct process *process;
	struct thread *thread;

	array_for_each (process, &loader->model->processes)
		index_map_get(&loader->processes, process->pid, &process->comm);
	array_for_each (thread, &loader->model->threads) {
		uint64_t key = kineto_thread_key(thread->pid, thread->tid);

		if (!index_map_get(&loader->thread_names, key, &thread->comm))
			thread->comm = loader->model->processes.items[thread->process].comm;
	}
}

/* Several devices of one name need not be told apart: the name is then also that of a device that is not
 * listed. */
static void name_devices(struct kineto_loader *loader)
{
	const struct kineto_property *property;
	uint32_t common = loader->properties.count ? loader->properties.items[0].name : 0;
	struct device *device;

	array_for_each (property, &loader->properties) {
		if (property->name != common)
			common = 0;
	}
	array_for_each (device, &loader->model->devices) {
		device->name = common;
		array_for_each (property, &loader->properties) {
			if (property->id.form == KINETO_ID_NUMBER && property->id.value == device->number)
				device->name = property->name;
		}
	}
}

static int compare_device(const void *a, const void *b)
{
	const struct device *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* The process whose calls are most, to which operations without a call are given. */
static uint32_t main_process(struct model *model, bool *several)
{
	uint32_t best = MODEL_NONE, only = MODEL_NONE;
	const struct thread *thread;
	size_t most = 0;

	*several = false;
	array_for_each (thread, &model->threads) {
		if (!thread->calls.count)
			continue;
		if (only != MODEL_NONE && only != thread->process)
			*several = true;
		only = thread->process;
		if (thread->calls.count > most) {
			most = thread->calls.count;
			best = thread->process;
		}
	}
	if (best != MODEL_NONE)
		return best;
	return model->processes.count ? 0 : model_get_process(model, 0);
}

/* Which process made the earliest call with a correlation id. */
struct owner {
	uint32_t process;
	uint64_t enter_ns;
};

struct owners {
	struct index_map by_correlation;
	struct {
		ARRAY(struct owner)
	} list;
};

/* NULL if no call has that id. */
static struct owner *owner_of(const struct owners *owners, uint32_t correlation)
{
	uint32_t index;

	if (!index_map_get(&owners->by_correlation, correlation, &index) || index >= owners->list.count)
		return NULL;
	return &owners->list.items[index];
}

static int note_owner(struct owners *owners, const struct call *call, uint32_t process)
{
	struct owner *owner = owner_of(owners, call->correlation);

	if (owner) {
		if (call->enter_ns < owner->enter_ns)
			*owner = (struct owner){process, call->enter_ns};
		return 0;
	}
	owner = array_add(&owners->list);
	if (!owner)
		return -ENOMEM;
	*owner = (struct owner){process, call->enter_ns};
	return index_map_put(&owners->by_correlation, call->correlation, (uint32_t)owners->list.count - 1);
}

static uint32_t find_owner(const struct owners *owners, uint32_t correlation, uint32_t otherwise)
{
	const struct owner *owner = correlation ? owner_of(owners, correlation) : NULL;

	return owner ? owner->process : otherwise;
}

static int find_owners(struct owners *owners, const struct model *model)
{
	const struct thread *thread;
	const struct call *call;

	array_for_each (thread, &model->threads) {
		array_for_each (call, &thread->calls) {
			if (call->correlation && note_owner(owners, call, thread->process))
				return -ENOMEM;
		}
	}
	return 0;
}

/* An operation belongs to the process that launched it: the file only has its device. */
static int give_to_processes(struct kineto_loader *loader)
{
	struct model *model = loader->model;
	struct owners owners = {0};
	bool several;
	uint32_t process = main_process(model, &several);
	struct device *device;
	struct gpu_op *op;
	struct sync *sync;
	int rc = process == MODEL_NONE ? -ENOMEM : 0;

	if (!rc && several)
		rc = find_owners(&owners, model);
	if (!rc) {
		array_for_each (device, &model->devices) {
			array_for_each (op, &device->ops)
				op->process = find_owner(&owners, op->correlation, process);
		}
		array_for_each (sync, &model->syncs)
			sync->process = find_owner(&owners, sync->correlation, process);
	}
	index_map_free(&owners.by_correlation);
	array_free(&owners.list);
	return rc;
}

/* An External id that several calls carry says nothing about which of them launched an operation. */
static void drop_ambiguous(struct kineto_loader *loader)
{
	struct device *device;
	struct gpu_op *op;
	uint32_t uses;

	if (!loader->externals.count)
		return;
	array_for_each (device, &loader->model->devices) {
		array_for_each (op, &device->ops) {
			if (index_map_get(&loader->externals, op->correlation, &uses) && uses > 1)
				op->correlation = 0;
		}
	}
}

static int compare_overhead(const void *a, const void *b)
{
	const struct kineto_overhead *x = a, *y = b;

	return (x->overhead.start_ns > y->overhead.start_ns) - (x->overhead.start_ns < y->overhead.start_ns);
}

/* First overhead that starts at `time` or later. */
static size_t first_from(const struct kineto_loader *loader, uint64_t time)
{
	size_t low = 0, high = loader->overheads.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (loader->overheads.items[middle].overhead.start_ns < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Code is loaded inside of the call that needs it: where one thread alone was in a call, it was that one. */
static int place_overheads(struct kineto_loader *loader)
{
	struct model *model = loader->model;
	struct kineto_overhead *pending;

	if (!loader->overheads.count)
		return 0;
	array_sort(&loader->overheads, compare_overhead);
	for (uint32_t i = 0; i < model->threads.count; i++) {
		const struct call *call;

		array_for_each (call, &model->threads.items[i].calls) {
			for (size_t k = first_from(loader, call->enter_ns); k < loader->overheads.count;
			     k++) {
				pending = &loader->overheads.items[k];
				if (pending->overhead.start_ns >= call->exit_ns)
					break;
				if (pending->overhead.end_ns <= call->exit_ns && pending->thread != i)
					pending->thread = pending->thread == MODEL_NONE ? i : KINETO_SEVERAL;
			}
		}
	}
	array_for_each (pending, &loader->overheads) {
		struct overhead *slot;

		if (pending->thread == MODEL_NONE || pending->thread == KINETO_SEVERAL)
			continue;
		slot = array_add(&model->threads.items[pending->thread].overhead);
		if (!slot)
			return -ENOMEM;
		*slot = pending->overhead;
	}
	return 0;
}

static uint64_t count_unlaunched(const struct model *model)
{
	const struct device *device;
	const struct gpu_op *op;
	uint64_t count = 0;

	array_for_each (device, &model->devices) {
		array_for_each (op, &device->ops)
			count += op->launch_thread == MODEL_NONE;
	}
	return count;
}

static int say_what_lacks(struct kineto_loader *loader)
{
	uint64_t unlaunched = count_unlaunched(loader->model);
	int rc = 0;

	if (!loader->ops)
		rc = kineto_loader_degrade(loader, "the trace holds no GPU operations: profile with "
		                                   "ProfilerActivity.CUDA while the GPU is used");
	if (!rc && loader->ops && !loader->calls)
		rc = kineto_loader_degrade(loader,
		                           "the trace holds no CUDA calls: what launched the operations "
		                           "is not known");
	else if (!rc && unlaunched)
		rc = kineto_loader_degrade(
		    loader,
		    "%" PRIu64 " of %" PRIu64 " GPU operations have no launch in the trace "
		    "(%s): the idle time before them stays unknown",
		    unlaunched, loader->ops,
		    loader->unlinkable == unlaunched ? "they carry no correlation id"
		                                     : "most were launched before it began");
	if (!rc && loader->ops && !loader->scopes)
		rc = kineto_loader_degrade(loader,
		                           "the trace holds no operators, annotations or Python functions: "
		                           "profile with ProfilerActivity.CPU and with_stack=True");
	if (!rc && loader->negative)
		rc = kineto_loader_degrade(loader,
		                           "%" PRIu64 " GPU operations have a negative duration, taken as 0",
		                           loader->negative);
	if (!rc && loader->unusable)
		rc = kineto_loader_degrade(loader, "%" PRIu64 " events without a usable time are left out",
		                           loader->unusable);
	return rc;
}

int kineto_loader_finish(struct kineto_loader *loader, struct error *error)
{
	struct model *model = loader->model;
	int rc;

	model->has_timeline = loader->ops > 0;
	model->start_ns = loader->first_ns;
	model->end_ns = loader->last_ns;
	model->rank = loader->rank;
	model->world_size = loader->world_size;
	model->summary.records = loader->events;
	index_map_free(&loader->names); /* not needed any more, and the rest needs memory */
	index_map_free(&loader->correlations);
	name_threads(loader);
	name_devices(loader);
	array_sort(&model->devices, compare_device);
	drop_ambiguous(loader);
	rc = give_to_processes(loader);
	if (!rc)
		rc = place_overheads(loader);
	if (rc)
		return error_no_memory(error);
	rc = model_finish(model, error);
	if (!rc && say_what_lacks(loader))
		rc = error_no_memory(error);
	return rc;
}
