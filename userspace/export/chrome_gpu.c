// SPDX-License-Identifier: GPL-2.0-only
/* Devices: their operations with the arrows from launches, synchronisations, and why they were idle. */
#include <errno.h>
#include <stdio.h>

#include "attribute/gap_chains.h"
#include "export/chrome.h"
#include "export/contexts.h"
#include "export/kernel_name.h"

#define NAME_SIZE 128

static const char *op_category(const struct gpu_op *op)
{
	return op->kind == OP_MEMCPY ? "gpu_memcpy" : op->kind == OP_MEMSET ? "gpu_memset" : "kernel";
}

/* The call inside another one that the model does not keep; see launches.h. */
static int put_nested_launch(struct chrome *chrome, const struct gpu_op *op, uint64_t id)
{
	const struct thread *thread;
	int rc = launches_take_nested(&chrome->launches, op);

	if (rc <= 0)
		return rc;
	thread = &chrome->model->threads.items[op->launch_thread];
	chrome_slice(chrome, "cuda_runtime",
	             model_string(chrome->model, op_launch_call(chrome->model, op)->function), thread->pid,
	             thread->tid, op->launch_ns, op->launch_ns);
	chrome_number(chrome, "correlation", id);
	chrome_string(chrome, "end", "not recorded");
	chrome_end(chrome);
	chrome_flow(chrome, true, id, thread->pid, thread->tid, op->launch_ns);
	return 0;
}

static int put_operation(struct chrome *chrome, uint32_t device, const struct gpu_op *op)
{
	const struct chrome_track wanted = {
	    .device = device, .process = op->process, .context = op->context, .stream = op->stream};
	uint64_t pid = chrome_gpu_pid(chrome, device), tid,
	         id = chrome_correlation(chrome, op->process, op->correlation);
	char name[COPY_NAME_SIZE];

	if (chrome_track_find(chrome, &wanted, &tid) || put_nested_launch(chrome, op, id))
		return -ENOMEM;
	chrome_slice(chrome, op_category(op), op_title(name, chrome->model, op), pid, tid, op->start_ns,
	             op->end_ns);
	chrome_number(chrome, "device", chrome->model->devices.items[device].number);
	chrome_number(chrome, "context", op->context);
	chrome_number(chrome, "stream", op->stream);
	if (id)
		chrome_number(chrome, "correlation", id);
	if (op->kind == OP_MEMCPY || op->kind == OP_MEMSET)
		chrome_number(chrome, "bytes", op->bytes);
	if (op->graph)
		chrome_number(chrome, "graph id", op->graph);
	if (op->process != MODEL_NONE)
		chrome_number(chrome, "pid", chrome->model->processes.items[op->process].pid);
	chrome_end(chrome);
	if (op->launch_thread != MODEL_NONE)
		chrome_flow(chrome, false, id, pid, tid, op->start_ns);
	return 0;
}

int chrome_operations(struct chrome *chrome)
{
	const struct model *model = chrome->model;

	for (uint32_t i = 0; i < model->devices.count; i++) {
		const struct gpu_op *op;

		array_for_each (op, &model->devices.items[i].ops) {
			if (put_operation(chrome, i, op))
				return -ENOMEM;
			if (chrome->out->failure)
				return chrome->out->failure;
		}
	}
	return 0;
}

static int put_synchronisation(struct chrome *chrome, uint32_t device, const struct sync *sync)
{
	const struct chrome_track wanted = {.device = device,
	                                    .process = sync->process,
	                                    .context = sync->context,
	                                    .stream = sync->stream,
	                                    .waits = true};
	uint64_t id = chrome_correlation(chrome, sync->process, sync->correlation), tid;

	if (chrome_track_find(chrome, &wanted, &tid))
		return -ENOMEM;
	chrome_slice(chrome, "cuda_sync", sync_type_name(sync->type), chrome_gpu_pid(chrome, device), tid,
	             sync->start_ns, sync->end_ns);
	chrome_number(chrome, "device", chrome->model->devices.items[device].number);
	chrome_number(chrome, "context", sync->context);
	if (sync->stream != UINT32_MAX)
		chrome_number(chrome, "stream", sync->stream);
	if (id)
		chrome_number(chrome, "correlation", id);
	chrome_end(chrome);
	return 0;
}

int chrome_synchronisations(struct chrome *chrome)
{
	struct index_map device_by_context = {0};
	const struct sync *sync;
	int rc = 0;

	if (!chrome->model->syncs.count)
		return 0;
	rc = contexts_map(&device_by_context, chrome->model);
	array_for_each (sync, &chrome->model->syncs) {
		uint32_t device;

		if (rc)
			break;
		if (sync->end_ns >= sync->start_ns &&
		    context_device(&device_by_context, sync->process, sync->context, &device))
			rc = put_synchronisation(chrome, device, sync);
	}
	index_map_free(&device_by_context);
	return rc;
}

static void put_cause_arguments(struct chrome *chrome, const struct leaf *leaf)
{
	const struct model *model = chrome->model;

	chrome_string(chrome, "code", cause_code_name(leaf->code));
	chrome_string(chrome, "role", cause_role_name(leaf->role));
	chrome_string(chrome, "confidence", confidence_name(leaf->confidence));
	chrome_string(chrome, "meaning", cause_code_meaning(leaf->code));
	chrome_string(chrome, "state", leaf_state_name(leaf->state));
	if (leaf->thread != MODEL_NONE) {
		const struct thread *thread = &model->threads.items[leaf->thread];

		chrome_thread(chrome, "thread", model_string(model, thread->comm), thread->tid);
		chrome_number(chrome, "pid", thread->pid);
	}
	if (leaf->holder != MODEL_NONE) {
		const struct thread *holder = &model->threads.items[leaf->holder];

		chrome_thread(chrome, "holder", model_string(model, holder->comm), holder->tid);
	}
	chrome_string(chrome, "syscall", syscall_name(leaf->syscall));
	chrome_string(chrome, "path", model_string(model, leaf->path));
	chrome_string(chrome, "function", model_string(model, leaf->function));
	chrome_string(chrome, "python", model_string(model, leaf->python));
}

static void put_chain(struct chrome *chrome, const struct leaf *leaf)
{
	char text[LEAF_CHAIN_SIZE];

	chrome_string(chrome, "chain", leaf_chain_text(text, chrome->model, leaf));
}

static void begin_cause(struct chrome *chrome, const char *category, const struct gap_chain *chain,
                        const struct leaf *leaf, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t device = (uint32_t)(chain->device - chrome->model->devices.items);
	char name[NAME_SIZE];

	snprintf(name, sizeof(name), "%s (%s)", cause_code_name(leaf->code), cause_role_name(leaf->role));
	chrome_slice(chrome, category, name, chrome_gpu_pid(chrome, device), CHROME_GAP_TID, start_ns,
	             end_ns);
}

static int put_gap(void *context, const struct gap_chain *chain)
{
	struct chrome *chrome = context;
	char name[COPY_NAME_SIZE];

	begin_cause(chrome, "whyidle_gap", chain, chain->largest, chain->gap->start_ns, chain->gap->end_ns);
	chrome_number(chrome, "ns", chain->gap->end_ns - chain->gap->start_ns);
	chrome_number(chrome, "cause ns", chain->largest_ns);
	chrome_string(chrome, "launched", launch_time_name(chain->launched));
	if (chain->ended_by) {
		const struct call *call = op_launch_call(chrome->model, chain->ended_by);

		chrome_string(chrome, "ended by", op_title(name, chrome->model, chain->ended_by));
		if (call)
			chrome_string(chrome, "launch", model_string(chrome->model, call->function));
	}
	put_cause_arguments(chrome, chain->largest);
	put_chain(chrome, chain->largest);
	chrome_end(chrome);
	for (size_t i = 0; chain->count > 1 && i < chain->count; i++) {
		const struct leaf *leaf = &chain->leaves[i];

		begin_cause(chrome, "whyidle_cause", chain, leaf, leaf->start_ns, leaf->end_ns);
		put_cause_arguments(chrome, leaf);
		put_chain(chrome, leaf);
		chrome_end(chrome);
	}
	return chrome->out->failure;
}

int chrome_gaps(struct chrome *chrome)
{
	const struct device_report *report;

	if (!chrome->analysis)
		return 0;
	array_for_each (report, &chrome->analysis->devices) {
		int rc = gap_chains_visit(chrome->model, report, put_gap, chrome);

		if (rc)
			return rc;
	}
	return 0;
}

static void name_track(struct chrome *chrome, const struct chrome_track *track)
{
	const struct model *model = chrome->model;
	char name[NAME_SIZE];
	int used = snprintf(name, sizeof(name), "stream %u ", track->stream);

	if (track->waits && track->stream == UINT32_MAX)
		used = snprintf(name, sizeof(name), "context %u ", track->context);
	if (track->waits)
		used += snprintf(name + used, sizeof(name) - (size_t)used, "waits ");
	if (track->tid >= CHROME_TRACK_TID && track->process != MODEL_NONE)
		snprintf(name + used, sizeof(name) - (size_t)used, "of %u",
		         model->processes.items[track->process].pid);
	chrome_thread_name(chrome, chrome_gpu_pid(chrome, track->device), track->tid, name, track->stream);
}

int chrome_gpu_names(struct chrome *chrome)
{
	const struct model *model = chrome->model;
	const struct chrome_track *track;

	for (uint32_t i = 0; i < model->devices.count; i++) {
		const struct device *device = &model->devices.items[i];
		char label[NAME_SIZE];

		snprintf(label, sizeof(label), "GPU %u", device->number);
		chrome_process_name(chrome, chrome_gpu_pid(chrome, i),
		                    device->name ? model_string(model, device->name) : label, label,
		                    CHROME_GPU_PID + (uint64_t)device->number);
		if (chrome->analysis)
			chrome_thread_name(chrome, chrome_gpu_pid(chrome, i), CHROME_GAP_TID,
			                   "why it was idle", 0);
	}
	array_for_each (track, &chrome->tracks)
		name_track(chrome, track);
	return 0;
}
