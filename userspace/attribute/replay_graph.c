/* SPDX-License-Identifier: GPL-2.0-only */
#include "attribute/replay_graph.h"

#include <errno.h>

#include "attribute/thread_state.h"
#include "base/number.h"

/* A synchronising call that returns longer than this after the last operation had ended waited for something
 * else. */
#define SYNC_LAG_NS 500000
/* CUPTI takes the end of an operation and of the call that waited for it from different places. */
#define SYNC_SLACK_NS 20000
/* An operation that begins within this time after the end of one in another stream probably waited for it. */
#define INFERRED_LAG_NS 5000
/* Below this an unexplained delay is the GPU's own. */
#define RESIDUAL_MIN_NS 2000
/* Usual time between two operations of a stream that are both queued, until it is measured. */
#define BETWEEN_DEFAULT_NS 1000
#define BETWEEN_MAX_NS     20000
#define BETWEEN_SAMPLES    4096
/* Streams that are looked at for inferred edges. */
#define STREAMS_MAX 64

static int add_event(struct replay_graph *graph, uint64_t time_ns, enum replay_event_kind kind, uint32_t slot,
                     uint32_t item)
{
	struct replay_event *event = array_add(&graph->events);

	if (!event)
		return -ENOMEM;
	*event = (struct replay_event){time_ns, kind, slot, item};
	return 0;
}

/* ---- threads ---- */

static int add_slot(struct replay_graph *graph, uint32_t thread, bool launcher)
{
	struct replay_slot *slot;

	if (graph->slot_of_thread[thread] != MODEL_NONE) {
		graph->slots.items[graph->slot_of_thread[thread]].launcher |= launcher;
		return 0;
	}
	slot = array_add(&graph->slots);
	if (!slot)
		return -ENOMEM;
	slot->thread = thread;
	slot->launcher = launcher;
	graph->slot_of_thread[thread] = graph->slots.count - 1;
	return 0;
}

static int choose_threads(struct replay_graph *graph, const struct replay_threads *threads)
{
	const struct model *model = graph->model;
	const struct gpu_op *op;
	int rc = 0;

	graph->slot_of_thread = malloc((model->threads.count + 1) * sizeof(*graph->slot_of_thread));
	if (!graph->slot_of_thread)
		return -ENOMEM;
	for (size_t i = 0; i < model->threads.count; i++)
		graph->slot_of_thread[i] = MODEL_NONE;
	array_for_each (op, &graph->device->ops) {
		if (!rc && op->launch_thread != MODEL_NONE)
			rc = add_slot(graph, op->launch_thread, true);
	}
	for (uint32_t i = 0; !rc && i < model->threads.count; i++) {
		if (threads->seen[i])
			rc = add_slot(graph, i, false);
	}
	return rc;
}

static bool launches(const struct replay_graph *graph, uint32_t process)
{
	return graph->model->processes.items[process].launches > 0;
}

/*
 * The thread that a wait of `index` was for, MODEL_NONE if the wait is time of the thread's own. The same
 * rules as in wait_rules.c: the interpreter lock of a process that does not launch leads to its holder.
 */
static uint32_t awaited_thread(const struct replay_graph *graph, uint32_t index, const struct wait *wait,
                               const struct offcpu *last)
{
	const struct thread *thread = &graph->model->threads.items[index];

	if (thread_call_at(thread, wait->first->out_ns))
		return MODEL_NONE;
	if (wait->interpreter_lock && !launches(graph, thread->process))
		return interpreter_lock_holder(graph->model, index, last, wait->first->out_ns, last->wake_ns);
	/* Whoever lets a lock go wakes the one that waits for it. */
	return wait_leads_on(wait, last) || (offcpu_is_lock(last) && last->wake == WAKE_KIND_TASK)
	           ? model_waker(graph->model, last)
	           : MODEL_NONE;
}

static int add_wait(struct replay_graph *graph, uint32_t slot, uint32_t waker,
                    const struct replay_wait *times)
{
	uint32_t waker_slot = waker == MODEL_NONE ? MODEL_NONE : graph->slot_of_thread[waker];
	struct replay_wait *item;

	if (waker_slot == MODEL_NONE || waker_slot == slot)
		return 0;
	item = array_add(&graph->waits);
	if (!item)
		return -ENOMEM;
	*item = *times;
	item->waker = waker_slot;
	return add_event(graph, times->wake_ns, REPLAY_WAIT, slot, graph->waits.count - 1);
}

/* The main thread of whoever made a thread. Which of its threads did is not recorded. */
static uint32_t maker_of(const struct replay_graph *graph, const struct thread *thread)
{
	const struct model *model = graph->model;
	uint32_t process = thread->process;

	if (thread->tid == thread->pid)
		process = model->processes.items[process].parent;
	return process == MODEL_NONE
	           ? MODEL_NONE
	           : model_thread_at(model, model->processes.items[process].pid, thread->start_ns);
}

/* Waits of a thread for others that take part; the first is for being made. */
static int add_waits(struct replay_graph *graph, uint32_t slot)
{
	uint32_t index = graph->slots.items[slot].thread;
	const struct thread *thread = &graph->model->threads.items[index];
	size_t at = thread_offcpu_after(thread, graph->from_ns);
	uint64_t start = thread->start_ns;
	int rc = 0;

	if (start > graph->from_ns && start < graph->to_ns)
		rc = add_wait(graph, slot, maker_of(graph, thread),
		              &(struct replay_wait){.out_ns = start, .wake_ns = start});
	while (!rc && at < thread->offcpu.count && thread->offcpu.items[at].out_ns < graph->to_ns) {
		/* Who woke it for nothing is nobody it waits for, however late that was noticed. */
		struct wait wait = wait_merge(graph->model, thread, at, UINT64_MAX);
		const struct offcpu *last = &thread->offcpu.items[wait.last];

		at = wait.last + 1;
		if (last->wake == WAKE_KIND_NETWORK && !graph->slots.items[slot].launcher &&
		    add_event(graph, last->wake_ns, REPLAY_HEARD, slot, 0))
			return -ENOMEM;
		rc = add_wait(graph, slot, awaited_thread(graph, index, &wait, last),
		              &(struct replay_wait){.out_ns = wait.first->out_ns,
		                                    .wake_ns = last->wake_ns,
		                                    .lock = offcpu_is_lock(last) ? last->args[0] : 0});
	}
	return rc;
}

/* ---- operations ---- */

struct ending {
	uint64_t end_ns;
	uint32_t op;
};

static int compare_ending(const void *a, const void *b)
{
	const struct ending *x = a, *y = b;

	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* The operation that ended last by `time`, MODEL_NONE. */
static uint32_t last_ended(const struct ending *endings, size_t count, uint64_t time_ns)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (endings[middle].end_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low ? endings[low - 1].op : MODEL_NONE;
}

/* The last operation of each stream so far. */
struct streams {
	size_t count;
	struct {
		uint64_t key;
		uint32_t op;
	} items[STREAMS_MAX];
};

static uint64_t stream_key(const struct gpu_op *op)
{
	const uint64_t fields[] = {op->process, op->context, op->stream};

	return hash_bytes(fields, sizeof(fields));
}

static uint32_t *stream_slot(struct streams *streams, uint64_t key)
{
	for (size_t i = 0; i < streams->count; i++) {
		if (streams->items[i].key == key)
			return &streams->items[i].op;
	}
	if (streams->count == STREAMS_MAX)
		return NULL;
	streams->items[streams->count].key = key;
	streams->items[streams->count].op = MODEL_NONE;
	return &streams->items[streams->count++].op;
}

/* The usual time between two operations of a stream of which the second was queued long before. */
static uint64_t measure_between(const struct device *device, const struct launch_floor *floor)
{
	uint64_t samples[BETWEEN_SAMPLES];
	size_t count = 0, step = device->ops.count / BETWEEN_SAMPLES + 1;

	for (size_t i = step; i < device->ops.count && count < BETWEEN_SAMPLES; i += step) {
		const struct gpu_op *op = &device->ops.items[i], *before = op - 1;

		if (op->stream == before->stream && op->context == before->context && op->launch_ns &&
		    op->launch_ns + floor->submit_ns < before->end_ns && op->start_ns >= before->end_ns &&
		    op->start_ns - before->end_ns <= BETWEEN_MAX_NS)
			samples[count++] = op->start_ns - before->end_ns;
	}
	if (!count)
		return BETWEEN_DEFAULT_NS;
	qsort(samples, count, sizeof(*samples), compare_unsigned);
	return samples[count / 2];
}

/* Names the operation of another stream that this one began just after, if nothing else explains its start.
 */
static void infer_edge(const struct replay_graph *graph, const struct streams *streams, uint32_t own,
                       struct replay_op *op, uint64_t ready_ns)
{
	if (op->start_ns <= ready_ns + RESIDUAL_MIN_NS)
		return;
	for (size_t i = 0; i < streams->count; i++) {
		uint32_t other = streams->items[i].op;
		uint64_t end;

		if (other == MODEL_NONE || other == own)
			continue;
		end = graph->ops.items[other].end_ns;
		if (end > op->start_ns || op->start_ns - end > INFERRED_LAG_NS || end < ready_ns)
			continue;
		if (op->inferred == MODEL_NONE || end > graph->ops.items[op->inferred].end_ns) {
			op->inferred = other;
			op->lag_ns = (uint32_t)(op->start_ns - end);
		}
	}
}

static void link_op(const struct replay_graph *graph, struct streams *streams, struct replay_op *op,
                    uint64_t submit_ns, uint64_t between_ns, uint64_t launch_ns)
{
	uint32_t *slot = stream_slot(streams, stream_key(&graph->device->ops.items[op->device_op]));
	uint64_t ready = 0;

	op->previous = slot ? *slot : MODEL_NONE;
	op->inferred = MODEL_NONE;
	if (op->launch != MODEL_NONE && launch_ns <= op->start_ns) {
		op->submit_ns = (uint32_t)earlier(submit_ns, op->start_ns - launch_ns);
		ready = launch_ns + op->submit_ns;
	} else {
		op->launch = MODEL_NONE;
	}
	if (op->previous != MODEL_NONE) {
		uint64_t end = graph->ops.items[op->previous].end_ns;

		op->between_ns = end < op->start_ns ? (uint32_t)earlier(between_ns, op->start_ns - end) : 0;
		ready = later(ready, earlier(end + op->between_ns, op->start_ns));
	}
	infer_edge(graph, streams, op->previous, op, ready);
	if (op->inferred != MODEL_NONE)
		ready = op->start_ns;
	op->residual_ns = op->start_ns - ready;
	if (slot)
		*slot = (uint32_t)(op - graph->ops.items);
}

/* When a call can have submitted at the earliest: after the last wait in it before its first operation began,
 * for the driver's lock, say. */
static uint64_t submit_time(const struct thread *thread, const struct call *call)
{
	uint64_t until = earlier(call->exit_ns, call->first_op_ns);
	size_t at = thread_offcpu_after(thread, until);

	/* The last one that ended by then; earlier ones need no look. */
	return at ? later(call->enter_ns, thread->offcpu.items[at - 1].in_ns) : call->enter_ns;
}

/* launches: for each slot, index of the launch event of its first call in the window, by call. */
static int add_ops(struct replay_graph *graph, const struct launch_floor *floor, uint32_t *const *launches)
{
	uint64_t between_ns = measure_between(graph->device, floor);
	struct streams streams = {0};

	for (uint32_t i = 0; i < graph->device->ops.count; i++) {
		const struct gpu_op *op = &graph->device->ops.items[i];
		uint64_t launch_ns = 0;
		struct replay_op *item;

		if (op->end_ns < graph->from_ns || op->start_ns > graph->to_ns)
			continue;
		item = array_add(&graph->ops);
		if (!item)
			return -ENOMEM;
		*item = (struct replay_op){
		    .start_ns = op_busy_from(op), .end_ns = op->end_ns, .launch = MODEL_NONE, .device_op = i};
		if (op->launch_thread != MODEL_NONE) {
			const struct thread *thread = &graph->model->threads.items[op->launch_thread];

			const struct call *call = &thread->calls.items[op->launch_call];
			uint32_t slot = graph->slot_of_thread[op->launch_thread];

			item->launch = launches[slot][op->launch_call];
			launch_ns = submit_time(thread, call);
			/* The host feeds the GPU piece by piece from within the call: this piece was ready
			 * now. */
			if (call->class == CUDA_COPY && call->pageable && item->launch != MODEL_NONE &&
			    launch_ns + floor->submit_ns < item->start_ns &&
			    call->exit_ns >= item->start_ns) {
				item->launch = graph->launch_count++;
				launch_ns = item->start_ns;
				if (add_event(graph, launch_ns, REPLAY_LAUNCH, slot, item->launch))
					return -ENOMEM;
			}
		}
		link_op(graph, &streams, item, floor->submit_ns, between_ns, launch_ns);
		if (add_event(graph, item->start_ns, REPLAY_OP, 0, graph->ops.count - 1))
			return -ENOMEM;
	}
	return 0;
}

/* ---- calls ---- */

/* Marks the calls of a launching thread that launched operations, and gives each a number. */
static int add_launches(struct replay_graph *graph, uint32_t slot, uint32_t *numbers)
{
	const struct thread *thread = &graph->model->threads.items[graph->slots.items[slot].thread];

	for (size_t i = 0; i < thread->calls.count; i++) {
		const struct call *call = &thread->calls.items[i];

		numbers[i] = MODEL_NONE;
		if (call->first_op_ns == UINT64_MAX || call->enter_ns < graph->from_ns ||
		    call->enter_ns > graph->to_ns)
			continue;
		numbers[i] = graph->launch_count++;
		if (add_event(graph, submit_time(thread, call), REPLAY_LAUNCH, slot, numbers[i]))
			return -ENOMEM;
	}
	return 0;
}

/*
 * The operation that a call waited for, MODEL_NONE if it did not wait for any: the one that ended last when
 * the call came back. A copy only waits if it came back after it.
 */
static uint32_t awaited_op(const struct replay_graph *graph, const struct call *call,
                           const struct ending *endings)
{
	uint32_t op = MODEL_NONE;

	if ((call->class != CUDA_SYNC && call->class != CUDA_COPY) || !call->exit_known)
		return MODEL_NONE;
	if (call->class == CUDA_SYNC)
		op = last_ended(endings, graph->ops.count, call->exit_ns + SYNC_SLACK_NS);
	if (op == MODEL_NONE || graph->ops.items[op].start_ns >= call->exit_ns)
		op = last_ended(endings, graph->ops.count, call->exit_ns);
	if (op == MODEL_NONE || graph->ops.items[op].end_ns <= call->enter_ns ||
	    graph->ops.items[op].end_ns + SYNC_LAG_NS < call->exit_ns)
		return MODEL_NONE;
	return op;
}

static int add_syncs(struct replay_graph *graph, uint32_t slot, const struct ending *endings)
{
	const struct thread *thread = &graph->model->threads.items[graph->slots.items[slot].thread];
	const struct call *call;

	array_for_each (call, &thread->calls) {
		uint32_t op = awaited_op(graph, call, endings);
		struct replay_sync *item;

		if (op == MODEL_NONE || call->enter_ns < graph->from_ns || call->exit_ns > graph->to_ns)
			continue;
		item = array_add(&graph->syncs);
		if (!item || add_event(graph, call->exit_ns, REPLAY_SYNC, slot, graph->syncs.count - 1))
			return -ENOMEM;
		*item = (struct replay_sync){call->enter_ns, call->exit_ns, op};
	}
	return 0;
}

static int add_calls_and_ops(struct replay_graph *graph, const struct launch_floor *floor)
{
	uint32_t **launches = calloc(graph->slots.count + 1, sizeof(*launches));
	struct ending *endings = NULL;
	int rc = launches ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < graph->slots.count; i++) {
		const struct thread *thread = &graph->model->threads.items[graph->slots.items[i].thread];

		if (!graph->slots.items[i].launcher)
			continue;
		launches[i] = malloc((thread->calls.count + 1) * sizeof(**launches));
		rc = launches[i] ? add_launches(graph, i, launches[i]) : -ENOMEM;
	}
	if (!rc)
		rc = add_ops(graph, floor, launches);
	if (!rc) {
		endings = malloc((graph->ops.count + 1) * sizeof(*endings));
		rc = endings ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; !rc && i < graph->ops.count; i++)
		endings[i] = (struct ending){graph->ops.items[i].end_ns, i};
	if (!rc)
		qsort_items(endings, graph->ops.count, sizeof(*endings), compare_ending);
	for (uint32_t i = 0; !rc && i < graph->slots.count; i++) {
		if (graph->slots.items[i].launcher)
			rc = add_syncs(graph, i, endings);
	}
	for (size_t i = 0; launches && i < graph->slots.count; i++)
		free(launches[i]);
	free(launches);
	free(endings);
	return rc;
}

static int compare_event(const void *a, const void *b)
{
	const struct replay_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

int replay_graph_make(struct replay_graph *graph, const struct model *model, uint32_t device,
                      uint64_t from_ns, uint64_t to_ns, const struct launch_floor *floor,
                      const struct replay_threads *threads)
{
	int rc;

	*graph = (struct replay_graph){
	    .model = model, .device = &model->devices.items[device], .from_ns = from_ns, .to_ns = to_ns};
	rc = choose_threads(graph, threads);
	for (uint32_t i = 0; !rc && i < graph->slots.count; i++)
		rc = add_waits(graph, i);
	if (!rc)
		rc = add_calls_and_ops(graph, floor);
	if (!rc)
		array_sort(&graph->events, compare_event);
	return rc;
}

void replay_graph_free(struct replay_graph *graph)
{
	struct replay_slot *slot;

	array_for_each (slot, &graph->slots)
		array_free(&slot->states);
	array_free(&graph->slots);
	array_free(&graph->events);
	array_free(&graph->syncs);
	array_free(&graph->waits);
	array_free(&graph->ops);
	free(graph->slot_of_thread);
}

/* ---- a thread's own time ---- */

struct classify {
	struct replay_leaves *states;
	bool failed;
};

static void keep_state(void *context, const struct leaf *leaf)
{
	struct classify *classify = context;
	struct replay_leaves *states = classify->states;
	struct replay_leaf *last = states->count ? &states->items[states->count - 1] : NULL;

	if (last && last->code == leaf->code && last->end_ns == leaf->start_ns) {
		last->end_ns = leaf->end_ns;
		return;
	}
	last = array_add(states);
	if (!last) {
		classify->failed = true;
		return;
	}
	*last = (struct replay_leaf){.start_ns = leaf->start_ns,
	                             .end_ns = leaf->end_ns,
	                             .thread = leaf->thread,
	                             .holder = MODEL_NONE,
	                             .op = MODEL_NONE,
	                             .code = (uint8_t)leaf->code};
}

int replay_slot_classify(const struct replay_graph *graph, struct replay_slot *slot)
{
	struct classify classify = {.states = &slot->states};
	struct walk walk = {.leaf = keep_state, .context = &classify, .alone = true};

	if (slot->classified)
		return 0;
	walk_begin(&walk, graph->model, slot->thread, false);
	walk_blame(&walk, graph->from_ns, graph->to_ns);
	slot->classified = true;
	return classify.failed ? -ENOMEM : 0;
}
