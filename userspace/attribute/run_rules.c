/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a thread on the CPU is blamed for: CUPTI's own cost, the class of the CUDA call it is in, or the code
 * it runs, split by the cpu-clock samples in it.
 */
#include "attribute/detail.h"
#include "attribute/thread_state.h"
#include "base/number.h"

/* A synchronising call that is still not back this long after the GPU fell idle waits for something else. */
#define SYNC_RETURN_NS 500000

/* A sample says nothing of what is more than two periods away. */
#define SAMPLE_REACH 2

/* How many scopes around a moment are looked at: nesting is far less deep than this. */
#define SCOPE_DEPTH 4096

enum cause_code call_cause(const struct call *call)
{
	switch (call->class) {
	case CUDA_ALLOC:
	case CUDA_HOST_ALLOC:
		return CAUSE_HOST_CUDA_ALLOC;
	case CUDA_MODULE:
		return CAUSE_HOST_COMPILE;
	case CUDA_COPY:
		return call->pageable ? CAUSE_HOST_PAGEABLE_COPY : CAUSE_HOST_CUDA_API;
	case CUDA_SYNC:
		return CAUSE_DEVICE_FLOOR;
	default:
		return CAUSE_HOST_CUDA_API;
	}
}

void sync_outlasts(struct leaf *leaf)
{
	if (leaf->end_ns - leaf->start_ns <= SYNC_RETURN_NS) {
		leaf->role = ROLE_DEVICE;
		return;
	}
	leaf->code = CAUSE_HOST_CUDA_API;
	leaf->confidence = CONFIDENCE_LOW;
}

static void run_call(struct walk *walk, uint32_t thread, const struct call *call, uint64_t from_ns,
                     uint64_t to_ns)
{
	struct leaf leaf = walk_leaf(walk, thread, from_ns, to_ns, call_cause(call), CONFIDENCE_HIGH);

	leaf.function = call->function;
	if (leaf.code == CAUSE_DEVICE_FLOOR)
		sync_outlasts(&leaf);
	walk_emit(walk, leaf);
}

static enum cause_code code_cause(const struct walk *walk, uint32_t thread)
{
	/* After a synchronisation the GPU has nothing queued, so the launcher's own code is what it waits
	 * for. */
	if (walk->drained && thread_role(walk->model, walk->launcher, thread) == ROLE_LAUNCHER)
		return CAUSE_HOST_SYNC_THEN_SERIAL;
	return CAUSE_HOST_USER_CODE;
}

static bool is_collecting(const struct model *model, const struct sample *sample)
{
	return sample->ustack != MODEL_NONE && model->stacks.items[sample->ustack].collecting;
}

static void run_sampled(struct walk *walk, uint32_t thread, const struct sample *sample, uint64_t from_ns,
                        uint64_t to_ns)
{
	struct leaf leaf = walk_leaf(walk, thread, from_ns, to_ns, code_cause(walk, thread), CONFIDENCE_HIGH);

	if (sample)
		leaf_take_stack(&leaf, walk->model, sample->ustack);
	switch (sample ? sample->kind : SAMPLE_USER) {
	case SAMPLE_FAULT:
		leaf.code = CAUSE_MEMORY_MINOR_FAULT;
		break;
	case SAMPLE_RECLAIM:
		leaf.code = CAUSE_MEMORY_RECLAIM;
		break;
	case SAMPLE_IRQ:
		leaf.code = CAUSE_SCHED_IRQ;
		leaf.confidence = CONFIDENCE_MEDIUM;
		break;
	case SAMPLE_SYSCALL:
		leaf.syscall = sample->syscall;
		break;
	default:
		if (sample && is_collecting(walk->model, sample))
			leaf.code = CAUSE_HOST_GC;
		break;
	}
	walk_emit(walk, leaf);
}

/* Innermost scope of each kind that covers `time`, string ids; 0 if there is none. */
static void scopes_at(const struct thread *thread, uint64_t time_ns, uint32_t *python, uint32_t *named)
{
	size_t low = 0, high = thread->scopes.count;
	uint32_t at;

	*python = *named = 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->scopes.items[middle].start_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	at = low ? (uint32_t)low - 1 : MODEL_NONE;
	for (size_t steps = 0; at != MODEL_NONE && steps < SCOPE_DEPTH && !(*python && *named); steps++) {
		const struct scope *scope = &thread->scopes.items[at];
		uint32_t *slot = scope->kind == SCOPE_PYTHON ? python : named;

		if (scope->end_ns > time_ns && !*slot)
			*slot = scope->name;
		at = scope->outer;
	}
}

/* What ran is not known: at most that the queue had been drained, and what was open in its middle. */
static void run_unscheduled(struct walk *walk, uint32_t index, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread *thread = &walk->model->threads.items[index];
	struct leaf leaf = walk_leaf(walk, index, from_ns, to_ns, CAUSE_UNKNOWN_NO_SCHED, CONFIDENCE_LOW);

	if (walk->drained && leaf.role == ROLE_LAUNCHER) {
		leaf.code = CAUSE_HOST_SYNC_THEN_SERIAL;
		leaf.confidence = CONFIDENCE_MEDIUM;
	}
	scopes_at(thread, from_ns + (to_ns - from_ns) / 2, &leaf.python, &leaf.function);
	walk_emit(walk, leaf);
}

/* What a sample tells of a stretch nearby that has none: page faults and reclaim, which come in storms, and
 * collections. */
static const struct sample *speaks_for(const struct walk *walk, const struct sample *sample, uint64_t time_ns)
{
	uint64_t distance = sample->time_ns > time_ns ? sample->time_ns - time_ns : time_ns - sample->time_ns;
	bool collecting = is_collecting(walk->model, sample);

	return distance <= SAMPLE_REACH * walk->model->sample_period_ns &&
	               (sample->kind == SAMPLE_FAULT || sample->kind == SAMPLE_RECLAIM || collecting)
	           ? sample
	           : NULL;
}

/*
 * A stretch without a sample, shorter than the sampling period: half of it goes by the sample before, half by
 * the one after, so that over many such stretches each kind gets its share. `next`: index of the first sample
 * after it.
 */
static void run_between_samples(struct walk *walk, uint32_t index, size_t next, uint64_t from_ns,
                                uint64_t to_ns)
{
	const struct thread *thread = &walk->model->threads.items[index];
	uint64_t middle = from_ns + (to_ns - from_ns) / 2;
	const struct sample *before = next ? &thread->samples.items[next - 1] : NULL;
	const struct sample *after = next < thread->samples.count ? &thread->samples.items[next] : NULL;
	enum confidence confidence = walk->confidence;

	before = before ? speaks_for(walk, before, from_ns) : NULL;
	after = after ? speaks_for(walk, after, to_ns) : NULL;
	if (before == after) { /* neither */
		run_sampled(walk, index, NULL, from_ns, to_ns);
		return;
	}
	if (walk->confidence > CONFIDENCE_MEDIUM)
		walk->confidence = CONFIDENCE_MEDIUM;
	run_sampled(walk, index, before, from_ns, middle);
	run_sampled(walk, index, after, middle, to_ns);
	walk->confidence = confidence;
}

/* Each sample stands for the time up to half-way to its neighbours. */
static void run_code(struct walk *walk, uint32_t index, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread *thread = &walk->model->threads.items[index];
	size_t low = 0, high = thread->samples.count;
	uint64_t cursor = from_ns;

	if (!thread->tracked) {
		run_unscheduled(walk, index, from_ns, to_ns);
		return;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->samples.items[middle].time_ns >= from_ns)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == thread->samples.count || thread->samples.items[low].time_ns >= to_ns) {
		run_between_samples(walk, index, low, from_ns, to_ns);
		return;
	}
	while (low < thread->samples.count && thread->samples.items[low].time_ns < to_ns) {
		const struct sample *sample = &thread->samples.items[low++];
		uint64_t until = to_ns;

		if (low < thread->samples.count && thread->samples.items[low].time_ns < to_ns)
			until = sample->time_ns + (thread->samples.items[low].time_ns - sample->time_ns) / 2;
		run_sampled(walk, index, sample, cursor, until);
		cursor = until;
	}
	if (cursor < to_ns)
		run_sampled(walk, index, NULL, cursor, to_ns);
}

static void run_calls(struct walk *walk, uint32_t index, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread *thread = &walk->model->threads.items[index];
	size_t low = 0, high = thread->calls.count;
	uint64_t cursor = from_ns;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->calls.items[middle].exit_ns > from_ns)
			high = middle;
		else
			low = middle + 1;
	}
	for (; low < thread->calls.count && thread->calls.items[low].enter_ns < to_ns; low++) {
		const struct call *call = &thread->calls.items[low];
		uint64_t enter = later(call->enter_ns, cursor);
		uint64_t exit = earlier(call->exit_ns, to_ns);

		if (exit <= enter)
			continue;
		if (enter > cursor)
			run_code(walk, index, cursor, enter);
		run_call(walk, index, call, enter, exit);
		cursor = exit;
	}
	if (cursor < to_ns)
		run_code(walk, index, cursor, to_ns);
}

void walk_running(struct walk *walk, uint32_t index, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread *thread = &walk->model->threads.items[index];
	uint64_t cursor = from_ns;
	const struct overhead *span;
	size_t low = 0, high = thread->overhead.count;

	if (walk->launching && index == walk->launcher) {
		walk_emit(walk,
		          walk_leaf(walk, index, from_ns, to_ns, CAUSE_HOST_LAUNCH_BOUND, CONFIDENCE_HIGH));
		return;
	}
	/* Spans of one thread do not overlap, so ends are ordered as starts are. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->overhead.items[middle].end_ns > from_ns)
			high = middle;
		else
			low = middle + 1;
	}
	for (; low < thread->overhead.count; low++) {
		uint64_t start, end;

		span = &thread->overhead.items[low];
		if (span->start_ns >= to_ns)
			break;
		start = later(span->start_ns, cursor);
		end = earlier(span->end_ns, to_ns);
		if (end <= start)
			continue;
		if (start > cursor)
			run_calls(walk, index, cursor, start);
		walk_emit(walk, walk_leaf(walk, index, start, end,
		                          span->loading ? CAUSE_HOST_COMPILE : CAUSE_TOOL_OVERHEAD,
		                          CONFIDENCE_HIGH));
		cursor = end;
	}
	if (cursor < to_ns)
		run_calls(walk, index, cursor, to_ns);
}
