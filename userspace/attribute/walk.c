/* SPDX-License-Identifier: GPL-2.0-only */
#include "attribute/walk.h"

#include "attribute/thread_state.h"
#include "base/number.h"

/*
 * Order of the questions, for each stretch of a thread: was it recorded at all; was it off the CPU, and then
 * blocked (who woke it: attribute/wait_rules.c) or runnable; else it ran: CUPTI's own cost, a CUDA call, or
 * code (attribute/run_rules.c).
 */

/*
 * A CPU that was idle takes a woken thread at once, but for the interrupt that tells it and its way out of
 * idleness: more than this is no wake latency. A tick later (1 to 4 ms) an idle CPU may also take what waited
 * for another one.
 */
#define WAKE_LATENCY_NS 1000000

void walk_begin(struct walk *walk, const struct model *model, uint32_t launcher, bool drained)
{
	walk->model = model;
	walk->launcher = launcher;
	walk->drained = drained;
	walk->launching = false;
	walk->depth = 0;
	walk->confidence = CONFIDENCE_HIGH;
	walk->last = (struct leaf){0};
	walk->lock_wait = NULL;
}

void walk_emit(struct walk *walk, struct leaf leaf)
{
	if (leaf.end_ns <= leaf.start_ns)
		return;
	if (leaf.confidence > walk->confidence)
		leaf.confidence = walk->confidence;
	if (leaf.confidence > CONFIDENCE_MEDIUM && !thread_role_certain(walk->model, leaf.thread, leaf.role))
		leaf.confidence = CONFIDENCE_MEDIUM;
	leaf.chain = walk->chain;
	leaf.depth = walk->depth;
	leaf.lock_wait = walk->lock_wait;
	leaf.lock_waiter = walk->lock_waiter;
	walk->last = leaf;
	walk->leaf(walk->context, &leaf);
}

/* The last leaf goes on until then. Whatever has been entered and left since is still in the chain. */
static void extend_last(struct walk *walk, uint64_t to_ns)
{
	walk->last.start_ns = walk->last.end_ns;
	walk->last.end_ns = to_ns;
	walk->leaf(walk->context, &walk->last);
}

struct leaf walk_leaf(const struct walk *walk, uint32_t thread, uint64_t from_ns, uint64_t to_ns,
                      enum cause_code code, enum confidence confidence)
{
	return (struct leaf){
	    .start_ns = from_ns,
	    .end_ns = to_ns,
	    .code = code,
	    .role = thread_role(walk->model, walk->launcher, thread),
	    .confidence = confidence,
	    .state = thread == MODEL_NONE ? LEAF_DEVICE : LEAF_RUNNING,
	    .thread = thread,
	    .holder = MODEL_NONE,
	    .stack = MODEL_NONE,
	    .syscall = -1,
	};
}

void walk_device(struct walk *walk, uint64_t from_ns, uint64_t to_ns, enum cause_code code,
                 enum confidence confidence)
{
	walk_emit(walk, walk_leaf(walk, MODEL_NONE, from_ns, to_ns, code, confidence));
}

void walk_launcher(struct walk *walk, uint64_t from_ns, uint64_t to_ns, enum cause_code code,
                   enum confidence confidence, uint32_t function)
{
	struct leaf leaf = walk_leaf(walk, walk->launcher, from_ns, to_ns, code, confidence);

	leaf.function = function;
	walk->chain[0] = walk->launcher;
	walk->depth = 1;
	walk_emit(walk, leaf);
	walk->depth = 0;
}

/* Whether a process that may use too few CPUs keeps itself from running, rather than being kept by another.
 */
static bool is_of_one_process(const struct model *model, uint32_t thread, uint32_t rival)
{
	return rival != MODEL_NONE &&
	       model->threads.items[thread].process == model->threads.items[rival].process;
}

static void blame_runnable(struct walk *walk, uint32_t thread, const struct offcpu *offcpu, uint64_t from_ns,
                           uint64_t to_ns)
{
	uint32_t holder_tid = offcpu->preempted ? offcpu->next_tid : offcpu->prev_tid;
	struct leaf leaf = walk_leaf(walk, thread, from_ns, to_ns, CAUSE_SCHED_CPU_CONTENTION,
	                             holder_tid ? CONFIDENCE_HIGH : CONFIDENCE_LOW);

	leaf.state = LEAF_RUNNABLE;
	if (offcpu->throttled) {
		/* Whoever had the CPU then is not why it did not run. */
		leaf.code = CAUSE_SCHED_THROTTLED;
		leaf.confidence = CONFIDENCE_HIGH;
		walk_emit(walk, leaf);
		return;
	}
	if (!holder_tid && offcpu->next_tid)
		holder_tid = offcpu->next_tid;
	leaf.holder = model_thread_at(walk->model, holder_tid, offcpu->in_ns);
	if (offcpu->bound && is_of_one_process(walk->model, thread, leaf.holder))
		leaf.code = CAUSE_SCHED_AFFINITY;
	walk_emit(walk, leaf);
}

static void blame_unknown(struct walk *walk, uint32_t thread, uint64_t from_ns, uint64_t to_ns,
                          enum cause_code code)
{
	walk_emit(walk, walk_leaf(walk, thread, from_ns, to_ns, code, CONFIDENCE_LOW));
}

/* The next part of [from, to] that was stolen; false if there is none. */
static bool next_stolen(const struct thread *thread, size_t *at, uint64_t from_ns, uint64_t to_ns,
                        struct span *part)
{
	const struct span *span;

	if (*at == thread->stolen.count || thread->stolen.items[*at].start_ns >= to_ns)
		return false;
	span = &thread->stolen.items[(*at)++];
	*part = (struct span){later(span->start_ns, from_ns), earlier(span->end_ns, to_ns)};
	return true;
}

/* It was woken and nobody else had the CPU that took it, or had it taken away from it. */
static bool is_wake_latency(const struct thread *thread, const struct offcpu *offcpu)
{
	uint64_t latency = offcpu->in_ns - offcpu->wake_ns;
	size_t at = span_after(thread->stolen.items, thread->stolen.count, offcpu->wake_ns);
	struct span part;

	while (next_stolen(thread, &at, offcpu->wake_ns, offcpu->in_ns, &part))
		latency -= part.end_ns - part.start_ns;
	return offcpu->woken && !offcpu->preempted && !offcpu->throttled && !offcpu->prev_tid &&
	       latency <= WAKE_LATENCY_NS;
}

/* What a part of a stretch is blamed for in which the hypervisor had not taken the thread's CPU. */
typedef void blame_part(struct walk *walk, uint32_t thread, const struct offcpu *offcpu, uint64_t from_ns,
                        uint64_t to_ns);

static void blame_running(struct walk *walk, uint32_t thread, const struct offcpu *offcpu, uint64_t from_ns,
                          uint64_t to_ns)
{
	(void)offcpu;
	walk_running(walk, thread, from_ns, to_ns);
}

/* What a wake takes is part of the wait: without the wait there is none. */
static void blame_wake(struct walk *walk, uint32_t thread, const struct offcpu *offcpu, uint64_t from_ns,
                       uint64_t to_ns)
{
	if (walk->last.end_ns == from_ns)
		extend_last(walk, to_ns);
	else
		blame_runnable(walk, thread, offcpu, from_ns, to_ns);
}

/* A stretch in which the thread had a CPU or was to have one at once, less what the hypervisor took of it. */
static void blame_unless_stolen(struct walk *walk, uint32_t index, const struct offcpu *offcpu,
                                uint64_t from_ns, uint64_t to_ns, blame_part *part)
{
	const struct thread *thread = &walk->model->threads.items[index];
	size_t at = span_after(thread->stolen.items, thread->stolen.count, from_ns);
	struct span stolen;

	while (next_stolen(thread, &at, from_ns, to_ns, &stolen)) {
		struct leaf leaf = walk_leaf(walk, index, stolen.start_ns, stolen.end_ns, CAUSE_SCHED_STEAL,
		                             CONFIDENCE_HIGH);

		if (stolen.start_ns > from_ns)
			part(walk, index, offcpu, from_ns, stolen.start_ns);
		leaf.state = LEAF_RUNNABLE;
		walk_emit(walk, leaf);
		from_ns = stolen.end_ns;
	}
	if (from_ns < to_ns)
		part(walk, index, offcpu, from_ns, to_ns);
}

/* The stretch in which the thread was on the CPU as far as records tell; `lost` says that they may be wrong.
 */
static void blame_between(struct walk *walk, uint32_t thread, uint64_t from_ns, uint64_t to_ns, bool lost)
{
	if (to_ns <= from_ns)
		return;
	if (lost)
		blame_unknown(walk, thread, from_ns, to_ns, CAUSE_UNKNOWN_LOST);
	else
		blame_unless_stolen(walk, thread, NULL, from_ns, to_ns, blame_running);
}

/* One wait, from the interval at `index` on: it takes in the false wakes that follow. Returns the next index.
 */
static size_t blame_wait(struct walk *walk, uint32_t index, size_t at, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread *thread = &walk->model->threads.items[index];
	struct wait wait = wait_merge(walk->model, thread, at, FALSE_WAKE_NS);
	const struct offcpu *last = &thread->offcpu.items[wait.last];
	uint64_t blocked_from = later(wait.first->out_ns, from_ns);
	uint64_t blocked_to = earlier(last->wake_ns, to_ns);

	if (blocked_to > blocked_from)
		walk_blocked(walk, index, &wait, blocked_from, blocked_to);
	blocked_from = later(last->wake_ns, from_ns);
	blocked_to = earlier(last->in_ns, to_ns);
	if (blocked_to <= blocked_from)
		return wait.last + 1;
	blame_unless_stolen(walk, index, last, blocked_from, blocked_to,
	                    is_wake_latency(thread, last) ? blame_wake : blame_runnable);
	return wait.last + 1;
}

enum cause_code unrecorded_cause(const struct model *model)
{
	if (!model->has_sched)
		return CAUSE_UNKNOWN_NO_SCHED;
	/* Its birth may be among what was lost. */
	return model->sched_lost_ns ? CAUSE_UNKNOWN_LOST : CAUSE_UNKNOWN_UNTRACED;
}

void walk_thread(struct walk *walk, uint32_t index, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread *thread = &walk->model->threads.items[index];
	uint64_t cursor = from_ns;
	size_t at;

	/* Without scheduler data calls and traced waits are still certain; walk_running says what is not. */
	if (!thread->tracked && walk->model->has_sched) {
		blame_unknown(walk, index, from_ns, to_ns, unrecorded_cause(walk->model));
		return;
	}
	if (cursor < thread->start_ns) {
		cursor = earlier(thread->start_ns, to_ns);
		blame_unknown(walk, index, from_ns, cursor, CAUSE_UNKNOWN_UNTRACED);
	} else if (cursor < thread->tracked_from_ns && walk->model->has_sched) {
		cursor = earlier(thread->tracked_from_ns, to_ns);
		blame_unknown(walk, index, from_ns, cursor, CAUSE_UNKNOWN_BEFORE_TRACE);
		if (cursor == to_ns)
			return;
	}
	at = thread_offcpu_after(thread, cursor);
	while (at < thread->offcpu.count && thread->offcpu.items[at].out_ns < to_ns) {
		const struct offcpu *offcpu = &thread->offcpu.items[at];

		blame_between(walk, index, cursor, offcpu->out_ns, offcpu->lost_before);
		at = blame_wait(walk, index, at, cursor, to_ns);
		cursor = later(cursor, earlier(thread->offcpu.items[at - 1].in_ns, to_ns));
	}
	if (cursor < to_ns && thread->end_ns < to_ns) {
		uint64_t end = later(cursor, thread->end_ns);

		blame_between(walk, index, cursor, end, thread->lost_at_end);
		blame_unknown(walk, index, end, to_ns, CAUSE_UNKNOWN_UNTRACED);
		return;
	}
	blame_between(walk, index, cursor, to_ns,
	              at < thread->offcpu.count ? thread->offcpu.items[at].lost_before : thread->lost_at_end);
}

bool walk_enter(struct walk *walk, uint32_t thread, uint64_t from_ns)
{
	if (walk->depth == WALK_DEPTH)
		return false;
	for (uint32_t i = 0; i < walk->depth; i++) {
		/* The same thread twice over the same time is a knot: nobody outside it is to blame. */
		if (walk->chain[i] == thread && walk->since[i] <= from_ns)
			return false;
	}
	walk->chain[walk->depth] = thread;
	walk->since[walk->depth++] = from_ns;
	return true;
}

void walk_leave(struct walk *walk)
{
	walk->depth--;
}

void walk_blame(struct walk *walk, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns <= from_ns)
		return;
	if (walk_enter(walk, walk->launcher, from_ns)) {
		walk_thread(walk, walk->launcher, from_ns, to_ns);
		walk_leave(walk);
	}
}
