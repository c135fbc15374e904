/* SPDX-License-Identifier: GPL-2.0-only */
#include "attribute/owner.h"

#include <stdlib.h>

#include "base/number.h"

/* attribution.md section 1: gaps are attributed one by one from the larger of 20 µs and five launch floors.
 */
#define THRESHOLD_MIN_NS  20000
#define THRESHOLD_FLOORS  5
#define FLOOR_PERCENTILE  10
#define FLOOR_MIN_SAMPLES 20
#define FLOOR_DEFAULT_NS  5000 /* until there are enough samples: a usual launch-to-start latency */
#define FLOOR_SAMPLES_MAX 4096
#define FLOOR_MAX_NS      50000

/* Host time between two launches of one thread up to which the thread "runs from launch to launch". */
#define LAUNCH_RUN_NS 100000

/* A call that submits and is still inside after this long is doing something else: loading code, say. */
#define SUBMIT_LONG_NS 1000000

/* CUPTI takes the end of an operation and of the call that waited for it from different places. */
#define SYNC_SLACK_NS 20000

static const struct call *op_call(const struct model *model, const struct gpu_op *op)
{
	if (op->launch_thread == MODEL_NONE)
		return NULL;
	return &model->threads.items[op->launch_thread].calls.items[op->launch_call];
}

enum launch_time gap_launch_time(const struct model *model, const struct device *device,
                                 const struct gap *gap)
{
	const struct gpu_op *op;

	if (gap->ended_by == MODEL_NONE)
		return LAUNCH_UNKNOWN;
	op = &device->ops.items[gap->ended_by];
	if (!op_call(model, op))
		return LAUNCH_UNKNOWN;
	return op->launch_ns <= gap->start_ns ? LAUNCH_QUEUED : LAUNCH_LATE;
}

void launch_floor_measure(struct launch_floor *floor, const struct model *model, const struct device *device,
                          const struct gap_list *gaps)
{
	uint64_t samples[FLOOR_SAMPLES_MAX];
	size_t count = 0, step = gaps->count / FLOOR_SAMPLES_MAX + 1;

	for (size_t i = 0; i < gaps->count && count < FLOOR_SAMPLES_MAX; i += step) {
		const struct gap *gap = &gaps->items[i];
		const struct gpu_op *op;

		if (gap_launch_time(model, device, gap) != LAUNCH_LATE)
			continue;
		op = &device->ops.items[gap->ended_by];
		if (op->start_ns > op_call(model, op)->enter_ns)
			samples[count++] = op->start_ns - op_call(model, op)->enter_ns;
	}
	floor->submit_ns = FLOOR_DEFAULT_NS;
	if (count >= FLOOR_MIN_SAMPLES) {
		qsort(samples, count, sizeof(*samples), compare_unsigned);
		floor->submit_ns = earlier(samples[count * FLOOR_PERCENTILE / 100], FLOOR_MAX_NS);
	}
	floor->threshold_ns = later(THRESHOLD_MIN_NS, THRESHOLD_FLOORS * floor->submit_ns);
}

/* Everything about a gap that the rules ask for. */
struct owner {
	struct walk *walk;
	const struct model *model;
	const struct device *device;
	const struct gpu_op *op, *before; /* before may be NULL */
	const struct call *launch;
	const struct thread *thread;
	const struct launch_floor *floor;
	bool edge; /* the gap begins at the edge of the window, not where an operation ended */
};

/* The synchronising call of a launching thread of the process that was waiting when the GPU fell idle. */
static const struct call *draining_call(const struct owner *owner, uint64_t at_ns)
{
	const struct model *model = owner->model;

	const uint32_t *caller;

	array_for_each (caller, &model->callers) {
		const struct thread *thread = &model->threads.items[*caller];
		const struct call *call;

		if (thread->process != owner->thread->process)
			continue;
		call = thread_call_at(thread, at_ns);
		if (!call && at_ns > SYNC_SLACK_NS)
			call = thread_call_at(thread, at_ns - SYNC_SLACK_NS);
		if (call && (call->class == CUDA_SYNC || call->class == CUDA_COPY) && call != owner->launch)
			return call;
	}
	return NULL;
}

/* The launch that ended the gap is a graph's, and had operations running before the gap. */
static bool is_inside_graph(const struct owner *owner, uint64_t from_ns)
{
	return owner->launch->class == CUDA_GRAPH_LAUNCH && owner->launch->first_op_ns < from_ns;
}

/* Work was queued and the GPU, free of other processes that are looked at apart, did not take it. */
static void blame_untaken(struct owner *owner, uint64_t from_ns, uint64_t to_ns)
{
	enum cause_code code = CAUSE_DEVICE_DEPENDENCY;
	enum confidence confidence = CONFIDENCE_LOW;

	if (to_ns - from_ns <= owner->floor->threshold_ns) {
		code = CAUSE_DEVICE_FLOOR;
		confidence = CONFIDENCE_HIGH;
	} else if (is_inside_graph(owner, from_ns)) {
		/* A graph runs on without the host: work that was not recorded is likelier than none. */
		code = CAUSE_UNKNOWN_LOST;
	} else if (owner->model->source != MODEL_SESSION) {
		/* Nothing in an imported trace says what a stream waited for: no guess is called a cause. */
		code = CAUSE_UNKNOWN_UNTRACED;
	} else if (owner->before && owner->before->process != owner->op->process) {
		code = CAUSE_DEVICE_OTHER_PROCESS;
	} else if (owner->op->kind == OP_MEMCPY || (owner->before && owner->before->kind == OP_MEMCPY)) {
		code = CAUSE_DEVICE_COPY;
	} else if (owner->before && owner->before->stream != owner->op->stream) {
		confidence = CONFIDENCE_MEDIUM;
	}
	walk_device(owner->walk, from_ns, to_ns, code, confidence);
}

/* Work was queued: where a process that the report leaves out had the GPU, that held it back. */
static void blame_queued(struct owner *owner, uint64_t from_ns, uint64_t to_ns)
{
	const struct span *others = owner->device->others.items;
	size_t count = owner->device->others.count;

	for (size_t at = span_after(others, count, from_ns); at < count && others[at].start_ns < to_ns;
	     at++) {
		uint64_t start = later(others[at].start_ns, from_ns);
		uint64_t end = earlier(others[at].end_ns, to_ns);

		if (start > from_ns)
			blame_untaken(owner, from_ns, start);
		if (end > start)
			walk_device(owner->walk, start, end, CAUSE_DEVICE_OTHER_PROCESS, CONFIDENCE_HIGH);
		from_ns = later(from_ns, end);
	}
	if (from_ns < to_ns)
		blame_untaken(owner, from_ns, to_ns);
}

/* The launching call itself, from its entry (or the gap's start) to the start of the operation. */
static void blame_submit(struct owner *owner, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ready = later(from_ns, to_ns - earlier(to_ns - from_ns, owner->floor->submit_ns));
	uint64_t inside = later(from_ns, earlier(owner->launch->exit_ns, ready));

	/* What is over the usual latency is the host's while it is still in the call, else the device's. */
	if (inside - from_ns > owner->floor->threshold_ns)
		walk_blame(owner->walk, from_ns, inside);
	else if (inside > from_ns)
		walk_device(owner->walk, from_ns, inside, CAUSE_DEVICE_FLOOR, CONFIDENCE_HIGH);
	if (ready > inside)
		blame_queued(owner, inside, ready);
	if (to_ns > ready)
		walk_device(owner->walk, ready, to_ns, CAUSE_DEVICE_FLOOR, CONFIDENCE_HIGH);
}

/* A run of launches with little in between: the host cannot keep up, however fast each is. */
static bool is_launch_run(const struct owner *owner, uint64_t from_ns, uint64_t to_ns)
{
	const struct call *previous = owner->before ? op_call(owner->model, owner->before) : NULL;

	if (owner->edge || !previous || owner->before->launch_thread != owner->op->launch_thread ||
	    to_ns - from_ns > LAUNCH_RUN_NS + owner->floor->threshold_ns)
		return false;
	if (owner->launch->class != CUDA_LAUNCH && owner->launch->class != CUDA_MEMSET &&
	    owner->launch->class != CUDA_COPY)
		return false;
	return owner->launch->enter_ns <= previous->exit_ns + LAUNCH_RUN_NS;
}

/* Running, the thread was launching; where it was kept from that, that is to blame. */
static void blame_launch_run(struct owner *owner, uint64_t from_ns, uint64_t to_ns,
                             enum confidence confidence)
{
	uint64_t inside = later(from_ns, earlier(owner->launch->exit_ns, to_ns));

	if (!thread_ran(owner->thread, from_ns, inside)) {
		owner->walk->launching = true;
		walk_blame(owner->walk, from_ns, inside);
		owner->walk->launching = false;
		from_ns = inside;
	}
	walk_launcher(owner->walk, from_ns, to_ns, CAUSE_HOST_LAUNCH_BOUND, confidence,
	              owner->launch->function);
}

static void blame_late(struct owner *owner, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t enter = later(from_ns, earlier(owner->launch->enter_ns, to_ns));
	const struct call *drain = draining_call(owner, from_ns);

	if (!drain && is_launch_run(owner, from_ns, to_ns)) {
		blame_launch_run(owner, from_ns, to_ns, CONFIDENCE_HIGH);
		return;
	}
	owner->walk->drained = drain != NULL;
	walk_blame(owner->walk, from_ns, enter);
	if (to_ns > enter)
		blame_submit(owner, enter, to_ns);
}

/* An operation that runs for less time than the host needs in the call that launches it. */
static bool is_shorter_than_launch(const struct owner *owner, const struct gpu_op *op)
{
	const struct call *launch = op_call(owner->model, op);

	return launch && launch->exit_known && !op->graph &&
	       (launch->class == CUDA_LAUNCH || launch->class == CUDA_MEMSET) &&
	       op->end_ns - op->start_ns < launch->exit_ns - launch->enter_ns;
}

/*
 * Each launch costs the GPU itself a moment, however early it was queued. Next to an operation that is not
 * worth a launch of its own, that moment is the price of launching.
 */
static bool is_beside_short(const struct owner *owner)
{
	return !owner->edge && owner->before->launch_thread == owner->op->launch_thread &&
	       (is_shorter_than_launch(owner, owner->op) || is_shorter_than_launch(owner, owner->before));
}

static void blame_known(struct owner *owner, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t enter = owner->launch->enter_ns;

	if (enter > from_ns) {
		blame_late(owner, from_ns, to_ns);
		return;
	}
	/* In flight when the gap began: launched a moment too late for the GPU to go straight on. */
	if (enter + owner->floor->submit_ns > from_ns && to_ns - from_ns <= owner->floor->threshold_ns &&
	    is_launch_run(owner, from_ns, to_ns) && owner->launch->class == CUDA_LAUNCH) {
		blame_launch_run(owner, from_ns, to_ns, CONFIDENCE_MEDIUM);
		return;
	}
	if (to_ns - from_ns <= owner->floor->threshold_ns && owner->launch->exit_ns <= from_ns &&
	    is_beside_short(owner)) {
		walk_launcher(owner->walk, from_ns, to_ns, CAUSE_HOST_LAUNCH_BOUND, CONFIDENCE_MEDIUM,
		              owner->launch->function);
		return;
	}
	if (owner->launch->exit_ns > from_ns &&
	    (owner->launch->class == CUDA_COPY || owner->launch->exit_ns - from_ns > SUBMIT_LONG_NS ||
	     !thread_ran(owner->thread, from_ns, earlier(owner->launch->exit_ns, to_ns)))) {
		/* The call is still feeding the GPU piece by piece, or has not submitted yet. */
		uint64_t inside = earlier(owner->launch->exit_ns, to_ns);

		walk_blame(owner->walk, from_ns, inside);
		if (to_ns > inside)
			blame_queued(owner, inside, to_ns);
		return;
	}
	blame_queued(owner, from_ns, to_ns);
}

static void blame_recorded(struct walk *walk, const struct model *model, const struct device *device,
                           const struct gap *gap, const struct launch_floor *floor, uint64_t from_ns,
                           uint64_t to_ns)
{
	struct owner owner = {
	    .walk = walk,
	    .model = model,
	    .device = device,
	    .floor = floor,
	    .before = gap->before == MODEL_NONE ? NULL : &device->ops.items[gap->before],
	};

	owner.edge =
	    from_ns != gap->start_ns || gap->before == MODEL_NONE || owner.before->end_ns != gap->start_ns;
	if (gap->ended_by == MODEL_NONE) {
		walk_begin(walk, model, MODEL_NONE, false);
		walk_device(walk, from_ns, to_ns, CAUSE_EXTERNAL_NO_WORK, CONFIDENCE_MEDIUM);
		return;
	}
	owner.op = &device->ops.items[gap->ended_by];
	owner.launch = op_call(model, owner.op);
	walk_begin(walk, model, owner.op->launch_thread, false);
	if (model->clock_error_ns > to_ns - from_ns) {
		walk_device(walk, from_ns, to_ns, CAUSE_UNKNOWN_CLOCK, CONFIDENCE_LOW);
		return;
	}
	if (!owner.launch) {
		walk_device(walk, from_ns, to_ns, CAUSE_UNKNOWN_UNTRACED, CONFIDENCE_LOW);
		return;
	}
	owner.thread = &model->threads.items[owner.op->launch_thread];
	if (owner.thread->tracked || !model->has_sched)
		blame_known(&owner, from_ns, to_ns);
	else if (owner.launch->enter_ns <= from_ns)
		blame_queued(&owner, from_ns, to_ns);
	else
		walk_device(walk, from_ns, to_ns, unrecorded_cause(model), CONFIDENCE_LOW);
}

void gap_blame(struct walk *walk, const struct model *model, uint32_t device_index, const struct gap *gap,
               const struct launch_floor *floor)
{
	const struct device *device = &model->devices.items[device_index];
	const struct span *holes = model->gpu_holes.items;
	size_t count = model->gpu_holes.count;
	uint64_t cursor = gap->start_ns;

	/* Where records of the GPU are missing it may have been busy: nothing is claimed for that stretch. */
	for (size_t at = span_after(holes, count, cursor); at < count && holes[at].start_ns < gap->end_ns;
	     at++) {
		uint64_t start = later(holes[at].start_ns, cursor);
		uint64_t end = earlier(holes[at].end_ns, gap->end_ns);

		if (start > cursor)
			blame_recorded(walk, model, device, gap, floor, cursor, start);
		walk_begin(walk, model, MODEL_NONE, false);
		walk_device(walk, start, end, CAUSE_UNKNOWN_LOST, CONFIDENCE_LOW);
		cursor = end;
	}
	if (cursor < gap->end_ns)
		blame_recorded(walk, model, device, gap, floor, cursor, gap->end_ns);
}
