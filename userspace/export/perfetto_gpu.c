// SPDX-License-Identifier: GPL-2.0-only
/* GPUs: why they were idle, what each stream did, how much ran and waited. */
#include <errno.h>
#include <stdio.h>

#include "attribute/gap_chains.h"
#include "export/contexts.h"
#include "export/kernel_name.h"
#include "export/launches.h"
#include "export/perfetto.h"

#define NAME_SIZE    128
#define FIRST_STREAM 16 /* in the order of a GPU's rows */

/* ---- arrows from launches ---- */

static int compare_flow(const void *a, const void *b)
{
	const struct perfetto_flow *x = a, *y = b;
	int order = (x->call > y->call) - (x->call < y->call);

	return order ? order : (x->flow > y->flow) - (x->flow < y->flow);
}

/* Flows are numbered by operation, over all devices, from 1. */
int perfetto_find_flows(struct perfetto *perfetto)
{
	const struct device *device;
	uint64_t flow = 0;

	array_for_each (device, &perfetto->model->devices) {
		const struct gpu_op *op;

		array_for_each (op, &device->ops) {
			struct perfetto_flow *slot;

			flow++;
			if (op->launch_thread == MODEL_NONE)
				continue;
			slot = array_add(&perfetto->flows);
			if (!slot)
				return -ENOMEM;
			*slot =
			    (struct perfetto_flow){(uint64_t)op->launch_thread << 32 | op->launch_call, flow};
		}
	}
	array_sort(&perfetto->flows, compare_flow);
	perfetto->wake_flows = flow + 1;
	return 0;
}

/* ---- streams ---- */

struct stream {
	uint32_t device, process, context, stream;
	uint32_t waits; /* synchronisations, not operations */
};

static void describe_lane(struct perfetto *perfetto, const struct stream *stream, uint64_t track)
{
	const struct model *model = perfetto->model;
	char name[NAME_SIZE];
	size_t mark;
	int used;

	if (stream->waits && stream->stream == UINT32_MAX)
		used = snprintf(name, sizeof(name), "context %u waits", stream->context);
	else
		used = snprintf(name, sizeof(name), "stream %u%s", stream->stream,
		                stream->waits ? " waits" : "");
	if (stream->process != MODEL_NONE && model->processes.count > 1)
		snprintf(name + used, sizeof(name) - (size_t)used, " of %u",
		         model->processes.items[stream->process].pid);
	mark = perfetto_track(perfetto, track, perfetto_gpu_track(perfetto, stream->device, TRACK_GPU), name);
	perfetto_track_order(perfetto, FIRST_STREAM + 2ULL * stream->stream + stream->waits);
	perfetto_track_end(perfetto, mark);
}

/* A row of the stream that is free at `start_ns`: what overlaps on one stream needs several. */
static uint64_t lane_for(struct perfetto *perfetto, const struct stream *stream, uint64_t start_ns,
                         uint64_t end_ns)
{
	uint64_t key = hash_bytes(stream, sizeof(*stream));
	uint32_t index = MODEL_NONE, last = MODEL_NONE;
	struct perfetto_lane *lane;

	index_map_get(&perfetto->lane_by_stream, key, &index);
	for (; index != MODEL_NONE; last = index, index = perfetto->lanes.items[index].next) {
		lane = &perfetto->lanes.items[index];
		if (lane->end_ns <= start_ns) {
			lane->end_ns = end_ns;
			return lane->track;
		}
	}
	index = (uint32_t)perfetto->lanes.count;
	lane = array_add(&perfetto->lanes);
	if (!lane || (last == MODEL_NONE && index_map_put(&perfetto->lane_by_stream, key, index))) {
		perfetto->failed = true;
		return 0;
	}
	*lane = (struct perfetto_lane){perfetto->next_track++, end_ns, MODEL_NONE};
	if (last != MODEL_NONE)
		perfetto->lanes.items[last].next = index;
	describe_lane(perfetto, stream, lane->track);
	return perfetto->lanes.items[index].track;
}

static const char *op_category(const struct gpu_op *op)
{
	return op->kind == OP_MEMCPY   ? "memcpy"
	       : op->kind == OP_MEMSET ? "memset"
	       : op->kind == OP_GRAPH  ? "graph"
	                               : "kernel";
}

static void put_operation(struct perfetto *perfetto, uint32_t device, const struct gpu_op *op, uint64_t flow)
{
	const struct stream stream = {device, op->process, op->context, op->stream, 0};
	uint64_t track = lane_for(perfetto, &stream, op->start_ns, op->end_ns), name;
	char title[COPY_NAME_SIZE];

	name = op->name ? perfetto_string_name(perfetto, op->name)
	                : perfetto_name(perfetto, op_title(title, perfetto->model, op));
	perfetto_slice(perfetto, track, op->start_ns, op_category(op), name);
	if (op->correlation)
		perfetto_number(perfetto, "correlation", op->correlation);
	if (op->kind == OP_MEMCPY || op->kind == OP_MEMSET)
		perfetto_number(perfetto, "bytes", op->bytes);
	if (op->graph)
		perfetto_number(perfetto, "graph", op->graph);
	if (op->launch_thread != MODEL_NONE)
		perfetto_flow(perfetto, flow, true);
	perfetto_commit(perfetto);
	perfetto_slice_end(perfetto, track, op->end_ns);
}

static void put_synchronisations(struct perfetto *perfetto)
{
	struct index_map device_by_context = {0};
	const struct sync *sync;

	if (contexts_map(&device_by_context, perfetto->model))
		perfetto->failed = true;
	array_for_each (sync, &perfetto->model->syncs) {
		struct stream stream = {0, sync->process, sync->context, sync->stream, 1};
		uint64_t track;

		if (sync->end_ns < sync->start_ns ||
		    !context_device(&device_by_context, sync->process, sync->context, &stream.device))
			continue;
		track = lane_for(perfetto, &stream, sync->start_ns, sync->end_ns);
		perfetto_slice(perfetto, track, sync->start_ns, "synchronisation",
		               perfetto_name(perfetto, sync_type_name(sync->type)));
		perfetto_commit(perfetto);
		perfetto_slice_end(perfetto, track, sync->end_ns);
	}
	index_map_free(&device_by_context);
}

/* ---- counters ---- */

struct change {
	uint64_t time_ns;
	int64_t by;
};

struct changes {
	ARRAY(struct change)
};

static int compare_change(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static void add_stretch(struct perfetto *perfetto, struct changes *changes, uint64_t from_ns, uint64_t to_ns)
{
	struct change *begin, *end;

	if (to_ns <= from_ns)
		return;
	begin = array_add(changes);
	if (begin)
		*begin = (struct change){from_ns, 1};
	end = array_add(changes);
	if (end)
		*end = (struct change){to_ns, -1};
	perfetto->failed |= !begin || !end;
}

/* What holds from each moment on at which it changes. */
static void put_changes(struct perfetto *perfetto, uint64_t track, struct changes *changes)
{
	int64_t value = 0, shown = 0;

	array_sort(changes, compare_change);
	for (size_t i = 0; i < changes->count; i++) {
		const struct change *change = &changes->items[i];

		value += change->by;
		if (value != shown && (i + 1 == changes->count || change[1].time_ns != change->time_ns)) {
			perfetto_counter(perfetto, track, change->time_ns, (uint64_t)value);
			shown = value;
		}
	}
	changes->count = 0;
}

static void put_counters(struct perfetto *perfetto, uint32_t index)
{
	const struct device *device = &perfetto->model->devices.items[index];
	struct changes changes = {0};
	const struct gpu_op *op;

	array_for_each (op, &device->ops)
		add_stretch(perfetto, &changes, op->start_ns, op->end_ns);
	put_changes(perfetto, perfetto_gpu_track(perfetto, index, TRACK_RUNNING), &changes);
	array_for_each (op, &device->ops) {
		if (op->launch_ns)
			add_stretch(perfetto, &changes, op->launch_ns, op->start_ns);
	}
	put_changes(perfetto, perfetto_gpu_track(perfetto, index, TRACK_QUEUED), &changes);
	array_free(&changes);
}

/* ---- gaps ---- */

static void begin_cause(struct perfetto *perfetto, uint64_t track, const char *category,
                        const struct leaf *leaf, uint64_t start_ns)
{
	char name[NAME_SIZE];

	snprintf(name, sizeof(name), "%s (%s)", cause_code_name(leaf->code), cause_role_name(leaf->role));
	perfetto_slice(perfetto, track, start_ns, category, perfetto_name(perfetto, name));
}

static void put_thread(struct perfetto *perfetto, const char *key, uint32_t index)
{
	const struct thread *thread;

	if (index == MODEL_NONE)
		return;
	thread = &perfetto->model->threads.items[index];
	perfetto_thread(perfetto, key, model_string(perfetto->model, thread->comm), thread->tid);
}

static void put_cause_arguments(struct perfetto *perfetto, const struct leaf *leaf)
{
	const struct model *model = perfetto->model;
	char chain[LEAF_CHAIN_SIZE];

	perfetto_word(perfetto, "code", cause_code_name(leaf->code));
	perfetto_word(perfetto, "role", cause_role_name(leaf->role));
	perfetto_word(perfetto, "confidence", confidence_name(leaf->confidence));
	perfetto_word(perfetto, "meaning", cause_code_meaning(leaf->code));
	perfetto_word(perfetto, "state", leaf_state_name(leaf->state));
	put_thread(perfetto, "thread", leaf->thread);
	put_thread(perfetto, "holder", leaf->holder);
	perfetto_word(perfetto, "syscall", syscall_name(leaf->syscall));
	perfetto_text(perfetto, "path", model_string(model, leaf->path));
	perfetto_text(perfetto, "function", model_string(model, leaf->function));
	perfetto_text(perfetto, "python", model_string(model, leaf->python));
	perfetto_text(perfetto, "chain", leaf_chain_text(chain, model, leaf));
}

static int put_gap(void *context, const struct gap_chain *chain)
{
	struct perfetto *perfetto = context;
	uint64_t track = perfetto_gpu_track(
	    perfetto, (uint32_t)(chain->device - perfetto->model->devices.items), TRACK_GAPS);
	char name[COPY_NAME_SIZE];

	begin_cause(perfetto, track, "gap", chain->largest, chain->gap->start_ns);
	perfetto_number(perfetto, "ns", chain->gap->end_ns - chain->gap->start_ns);
	perfetto_number(perfetto, "cause ns", chain->largest_ns);
	perfetto_word(perfetto, "launched", launch_time_name(chain->launched));
	if (chain->ended_by) {
		const struct call *call = op_launch_call(perfetto->model, chain->ended_by);

		perfetto_text(perfetto, "ended by", op_title(name, perfetto->model, chain->ended_by));
		if (call)
			perfetto_text(perfetto, "launch", model_string(perfetto->model, call->function));
	}
	put_cause_arguments(perfetto, chain->largest);
	perfetto_commit(perfetto);
	for (size_t i = 0; chain->count > 1 && i < chain->count; i++) {
		const struct leaf *leaf = &chain->leaves[i];

		begin_cause(perfetto, track, "cause", leaf, leaf->start_ns);
		put_cause_arguments(perfetto, leaf);
		perfetto_commit(perfetto);
		perfetto_slice_end(perfetto, track, leaf->end_ns);
	}
	perfetto_slice_end(perfetto, track, chain->gap->end_ns);
	return perfetto->failed ? -ENOMEM : perfetto->out->failure;
}

/* ---- all of it ---- */

static void describe_gpu(struct perfetto *perfetto, uint32_t index)
{
	static const char *const names[GPU_TRACKS] = {[TRACK_GAPS] = "why it was idle",
	                                              [TRACK_RUNNING] = "operations running",
	                                              [TRACK_QUEUED] = "operations queued"};
	const struct device *device = &perfetto->model->devices.items[index];
	uint64_t gpu = perfetto_gpu_track(perfetto, index, TRACK_GPU);
	char name[NAME_SIZE];
	size_t mark;

	snprintf(name, sizeof(name), "GPU %u%s%s", device->number, device->name ? ": " : "",
	         model_string(perfetto->model, device->name));
	mark = perfetto_track(perfetto, gpu, 0, name);
	perfetto_track_orders_children(perfetto);
	perfetto_track_end(perfetto, mark);
	for (uint32_t which = TRACK_GAPS; which < GPU_TRACKS; which++) {
		mark =
		    perfetto_track(perfetto, perfetto_gpu_track(perfetto, index, which), gpu, names[which]);
		perfetto_track_order(perfetto, which);
		if (which != TRACK_GAPS)
			perfetto_track_counts(perfetto);
		perfetto_track_end(perfetto, mark);
	}
}

void perfetto_gpus(struct perfetto *perfetto)
{
	const struct device_report *report;
	uint64_t flow = 0;

	for (uint32_t i = 0; i < perfetto->model->devices.count; i++) {
		const struct device *device = &perfetto->model->devices.items[i];
		const struct gpu_op *op;

		describe_gpu(perfetto, i);
		array_for_each (op, &device->ops) {
			put_operation(perfetto, i, op, ++flow);
			if (perfetto->failed || perfetto->out->failure)
				return;
		}
		put_counters(perfetto, i);
	}
	put_synchronisations(perfetto);
	array_for_each (report, &perfetto->analysis->devices)
		perfetto->failed |= gap_chains_visit(perfetto->model, report, put_gap, perfetto) == -ENOMEM;
}
