/* SPDX-License-Identifier: GPL-2.0-only */
#include "attribute/replay.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/replay_graph.h"
#include "base/number.h"

#define CAUSES_MOST 5    /* replayed a device */
#define CAUSE_SHARE 0.01 /* of the idle time that a cause must have to be replayed */
#define LOCK_SHARE  0.05 /* of a cause that waits for a lock must have for its holders to matter */
#define SEGMENTS    64   /* of the window, for the error of the unchanged replay */
#define SEGMENT_OPS 8    /* least operations in one */
/* Of a gain: what else changes when a cause is gone. Such that nine in ten of the plants of docs/proof.md lie
 * in the range. */
#define ERROR_LEAST 0.075
#define GATE_STEP   0.05 /* attribution.md section 5: no gain is printed above these errors */
#define GATE_GAP    0.10
#define GATE_GAP_SHARE                                                                                       \
	0.01 /* an error of the gaps that is below this share of the window does not matter                  \
	      */

/* What is taken out of a thread's time: disjoint, by start. */
struct removal {
	struct {
		ARRAY(struct span)
	} spans;
};

/* Locks that a cause was waiting for, and how long. */
struct locks {
	struct index_map by_address; /* hash → index of items */
	struct {
		ARRAY(uint64_t)
	} items;           /* ns */
	uint64_t least_ns; /* of a lock that matters */
};

/* How far a thread, or the part of it that was run again, is ahead of what was recorded. */
struct progress {
	double shift_ns;   /* recorded time - new time */
	uint64_t until_ns; /* recorded time up to which removals are counted */
	size_t cursor;     /* in the removal */
};

/* One run of the graph. */
struct replay_run {
	const struct replay_graph *graph;
	const struct removal *removals; /* by slot, NULL: nothing is taken out */
	double fraction;                /* of each span that is taken out */
	bool keep_inferred, keep_residual;
	const struct locks *followed; /* a wait for one of them ends when its holder lets it go; for any other
	                                 lock it is the waiter's own time */
	struct progress *progress;    /* by slot */
	double recent_shift_ns;       /* of the thread that launched last */
	double *launched;             /* new time of each launch */
	double *starts, *ends;        /* new times of each operation */
};

/* ---- one run ---- */

/* Shift of a thread at a recorded time, with what is taken out up to then. */
static double shift_at(struct replay_run *run, uint32_t slot, uint64_t time_ns)
{
	struct progress *progress = &run->progress[slot];

	if (run->removals) {
		const struct removal *removal = &run->removals[slot];

		for (; progress->cursor < removal->spans.count; progress->cursor++) {
			const struct span *span = &removal->spans.items[progress->cursor];
			uint64_t from = later(span->start_ns, progress->until_ns);
			uint64_t to = earlier(span->end_ns, time_ns);

			if (span->start_ns >= time_ns)
				break;
			if (to > from)
				progress->shift_ns += run->fraction * (double)(to - from);
			if (span->end_ns > time_ns)
				break;
		}
	}
	progress->until_ns = later(progress->until_ns, time_ns);
	return progress->shift_ns;
}

static void run_sync(struct replay_run *run, const struct replay_event *event)
{
	const struct replay_sync *sync = &run->graph->syncs.items[event->item];
	struct progress *progress = &run->progress[event->slot];
	uint64_t end = run->graph->ops.items[sync->op].end_ns;
	double enter = (double)sync->enter_ns - shift_at(run, event->slot, sync->enter_ns);
	double ready = fmax(enter, run->ends[sync->op]);
	double rest = (double)sync->exit_ns - (double)later(sync->enter_ns, earlier(end, sync->exit_ns));

	progress->shift_ns = (double)sync->exit_ns - (ready + rest);
	progress->until_ns = later(progress->until_ns, sync->exit_ns);
}

static bool is_followed(const struct locks *locks, uint64_t lock)
{
	uint32_t at;

	return locks && index_map_get(&locks->by_address, hash_bytes(&lock, sizeof(lock)), &at) &&
	       locks->items.items[at] >= locks->least_ns;
}

static void run_wait(struct replay_run *run, const struct replay_event *event)
{
	const struct replay_wait *wait = &run->graph->waits.items[event->item];
	struct progress *progress = &run->progress[event->slot];
	double out, wake;

	if (wait->lock && !is_followed(run->followed, wait->lock))
		return;
	out = (double)wait->out_ns - shift_at(run, event->slot, wait->out_ns);
	wake = (double)wait->wake_ns - shift_at(run, wait->waker, wait->wake_ns);
	if (wait->out_ns == wait->wake_ns) /* it was made at that time */
		progress->shift_ns = (double)wait->wake_ns - wake;
	else
		progress->shift_ns = (double)wait->wake_ns - fmax(out, wake);
	/* What is taken out of this wait itself is its waker's. */
	progress->until_ns = later(progress->until_ns, wait->wake_ns);
}

/* Strictly it heard when it did; loosely it was an answer to what was launched last. */
static void run_heard(struct replay_run *run, const struct replay_event *event)
{
	double ahead = shift_at(run, event->slot, event->time_ns);

	if (!run->keep_residual)
		run->progress[event->slot].shift_ns = fmax(ahead, run->recent_shift_ns);
}

static void run_op(struct replay_run *run, uint32_t index)
{
	const struct replay_op *op = &run->graph->ops.items[index];
	bool inferred = run->keep_inferred && op->inferred != MODEL_NONE;
	double start = -INFINITY;

	if (op->launch != MODEL_NONE)
		start = run->launched[op->launch] + op->submit_ns;
	if (op->previous != MODEL_NONE)
		start = fmax(start, run->ends[op->previous] + op->between_ns);
	if (inferred)
		start = fmax(start, run->ends[op->inferred] + op->lag_ns);
	/* Its launch is not known: strictly it stays where it was, loosely it was launched with what was
	 * launched last. */
	if (op->launch == MODEL_NONE && !run->keep_residual)
		start = fmax(start, (double)op->start_ns - run->recent_shift_ns);
	else if (isinf(start))
		start = (double)op->start_ns;
	else if (run->keep_residual)
		start += (double)op->residual_ns;
	run->starts[index] = start;
	run->ends[index] = start + (double)(op->end_ns - op->start_ns);
}

static void run_graph(struct replay_run *run)
{
	const struct replay_event *event;

	run->recent_shift_ns = 0;
	memset(run->progress, 0, (run->graph->slots.count + 1) * sizeof(*run->progress));
	array_for_each (event, &run->graph->events) {
		switch (event->kind) {
		case REPLAY_LAUNCH:
			run->recent_shift_ns = shift_at(run, event->slot, event->time_ns);
			run->launched[event->item] = (double)event->time_ns - run->recent_shift_ns;
			break;
		case REPLAY_SYNC:
			run_sync(run, event);
			break;
		case REPLAY_WAIT:
			run_wait(run, event);
			break;
		case REPLAY_HEARD:
			run_heard(run, event);
			break;
		default:
			run_op(run, event->item);
			break;
		}
	}
}

/* From the start of the first operation to the end of the last. */
static double run_length(const struct replay_run *run)
{
	double first = INFINITY, last = -INFINITY;

	for (size_t i = 0; i < run->graph->ops.count; i++) {
		first = fmin(first, run->starts[i]);
		last = fmax(last, run->ends[i]);
	}
	return last - first;
}

/* ---- the unchanged graph ---- */

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* How far the unchanged replay misses the recorded times, over stretches of equally many operations. */
static void measure_error(const struct replay_run *run, struct replay_report *report)
{
	const struct replay_graph *graph = run->graph;
	size_t segments = graph->ops.count / SEGMENT_OPS, at = 0;
	double errors[SEGMENTS], new_from, recorded_from;
	double new_end = -INFINITY, recorded_end = 0, idle = 0, new_idle = 0;

	segments = segments < 1 ? 1 : segments > SEGMENTS ? SEGMENTS : segments;
	new_from = run->starts[0];
	recorded_from = (double)graph->ops.items[0].start_ns;
	recorded_end = recorded_from;
	new_end = new_from;
	for (size_t s = 0; s < segments; s++) {
		size_t to = graph->ops.count * (s + 1) / segments;

		for (; at < to; at++) {
			const struct replay_op *op = &graph->ops.items[at];

			idle += fmax(0, (double)op->start_ns - recorded_end);
			new_idle += fmax(0, run->starts[at] - new_end);
			recorded_end = fmax(recorded_end, (double)op->end_ns);
			new_end = fmax(new_end, run->ends[at]);
		}
		errors[s] = recorded_end > recorded_from
		                ? fabs((new_end - new_from) / (recorded_end - recorded_from) - 1)
		                : 0;
		new_from = new_end;
		recorded_from = recorded_end;
	}
	qsort(errors, segments, sizeof(*errors), compare_double);
	report->ran = true;
	report->error_median = errors[segments / 2];
	report->error_p95 = errors[(size_t)((double)(segments - 1) * 0.95 + 0.5)];
	report->gap_error = idle > 0 ? fabs(new_idle / idle - 1) : 0;
	report->accepted =
	    report->error_median <= GATE_STEP &&
	    (report->gap_error <= GATE_GAP ||
	     fabs(new_idle - idle) <= GATE_GAP_SHARE * (recorded_end - graph->ops.items[0].start_ns));
}

/* ---- a cause taken out ---- */

struct replay {
	struct replay_graph graph;
	struct replay_run run;
	struct removal *removals; /* by slot */
	struct locks locks;       /* of the cause that is taken out */
	const struct replay_leaves *leaves;
	double unchanged[2]; /* length without and with what is only inferred or not explained */
};

static int add_span(struct removal *removal, uint64_t start_ns, uint64_t end_ns)
{
	struct span *last = removal->spans.count ? &removal->spans.items[removal->spans.count - 1] : NULL;

	if (last && last->end_ns >= start_ns) {
		last->end_ns = later(last->end_ns, end_ns);
		return 0;
	}
	last = array_add(&removal->spans);
	if (!last)
		return -ENOMEM;
	*last = (struct span){start_ns, end_ns};
	return 0;
}

static int add_lock(struct locks *locks, const struct replay_leaf *leaf)
{
	uint64_t key = hash_bytes(&leaf->lock, sizeof(leaf->lock)), *ns;
	uint32_t at;

	if (index_map_get(&locks->by_address, key, &at)) {
		locks->items.items[at] += leaf->end_ns - leaf->start_ns;
		return 0;
	}
	ns = array_add(&locks->items);
	if (!ns)
		return -ENOMEM;
	*ns = leaf->end_ns - leaf->start_ns;
	return index_map_put(&locks->by_address, key, locks->items.count - 1);
}

static void forget_locks(struct locks *locks)
{
	index_map_free(&locks->by_address);
	array_free(&locks->items);
	*locks = (struct locks){0};
}

/*
 * A launcher's time is taken out where it kept the GPU waiting, for the rest of it is hidden behind the GPU's
 * work anyhow. Of other threads all the time that they spend in this way counts: what a worker does while the
 * GPU is busy makes it late the next time.
 */
static int choose_spans(struct replay *replay, const struct cause *cause)
{
	struct replay_graph *graph = &replay->graph;
	const struct replay_leaf *leaf;
	bool *whole = calloc(graph->slots.count + 1, sizeof(*whole));
	int rc = whole ? 0 : -ENOMEM;

	for (size_t i = 0; i < graph->slots.count; i++)
		replay->removals[i].spans.count = 0;
	forget_locks(&replay->locks);
	replay->locks.least_ns = (uint64_t)(LOCK_SHARE * (double)cause->ns);
	array_for_each (leaf, replay->leaves) {
		uint32_t slot, holder;

		if (rc || leaf->code != cause->code || leaf->role != cause->role ||
		    leaf->thread == MODEL_NONE)
			continue;
		if (leaf->lock)
			rc = add_lock(&replay->locks, leaf);
		slot = graph->slot_of_thread[leaf->thread];
		if (rc || slot == MODEL_NONE)
			continue;
		if (graph->slots.items[slot].launcher)
			rc = add_span(&replay->removals[slot], leaf->start_ns, leaf->end_ns);
		else
			whole[slot] = true;
		/* Nobody waits for a lock that was not held that long: the holder's time goes with the wait.
		 */
		holder = leaf->holder == MODEL_NONE ? MODEL_NONE : graph->slot_of_thread[leaf->holder];
		if (!rc && holder != MODEL_NONE && holder != slot)
			rc = add_span(&replay->removals[holder], leaf->start_ns, leaf->end_ns);
	}
	for (uint32_t i = 0; !rc && i < graph->slots.count; i++) {
		if (!whole[i])
			continue;
		replay->removals[i].spans.count = 0;
		rc = replay_slot_classify(graph, &graph->slots.items[i]);
		array_for_each (leaf, &graph->slots.items[i].states) {
			if (!rc && leaf->code == cause->code)
				rc = add_span(&replay->removals[i], leaf->start_ns, leaf->end_ns);
		}
	}
	free(whole);
	return rc;
}

/* Wall time that the device's work takes less, ns. `loose`: without what is only inferred or not explained.
 */
static double gain_of(struct replay *replay, double fraction, bool loose)
{
	struct replay_run *run = &replay->run;

	run->removals = replay->removals;
	run->fraction = fraction;
	run->keep_inferred = run->keep_residual = !loose;
	run_graph(run);
	return fmax(0, replay->unchanged[loose] - run_length(run));
}

/* The cause, other than the one taken out, of most of the idle time that the last run has left. */
static void find_next(const struct replay *replay, struct cause *cause)
{
	const struct replay_graph *graph = &replay->graph;
	static const uint64_t none[CAUSE_COUNT][ROLE_COUNT];
	double left[CAUSE_COUNT][ROLE_COUNT] = {0};
	double end = replay->run.starts[0], most = 0;
	size_t at = 0;

	for (size_t i = 0; i < graph->ops.count; i++) {
		uint64_t by_cause[CAUSE_COUNT][ROLE_COUNT], longest = 0;
		double gap = replay->run.starts[i] - end;
		int code = CAUSE_DEVICE_FLOOR, role = ROLE_DEVICE;

		end = fmax(end, replay->run.ends[i]);
		while (at < replay->leaves->count &&
		       replay->leaves->items[at].end_ns <= graph->ops.items[i].start_ns &&
		       replay->leaves->items[at].op != graph->ops.items[i].device_op)
			at++;
		if (gap <= 0)
			continue;
		memcpy(by_cause, none, sizeof(by_cause));
		for (size_t k = at; k < replay->leaves->count &&
		                    replay->leaves->items[k].op == graph->ops.items[i].device_op;
		     k++) {
			const struct replay_leaf *leaf = &replay->leaves->items[k];
			uint64_t *ns = &by_cause[leaf->code][leaf->role];

			*ns += leaf->end_ns - leaf->start_ns;
			if ((leaf->code != cause->code || leaf->role != cause->role) && *ns > longest) {
				longest = *ns;
				code = leaf->code;
				role = leaf->role;
			}
		}
		left[code][role] += gap;
	}
	for (int code = 0; code < CAUSE_COUNT; code++) {
		for (int role = 0; role < ROLE_COUNT; role++) {
			if (left[code][role] <= most)
				continue;
			most = left[code][role];
			cause->next_code = code;
			cause->next_role = role;
			cause->has_next = true;
		}
	}
}

/*
 * What samples divide among causes is as uncertain as a share that is counted: two standard deviations of it,
 * relative to the cause's time.
 */
static double sampling_error(const struct replay *replay, const struct cause *cause,
                             const struct device_report *report)
{
	static const enum cause_code divided[] = {CAUSE_HOST_USER_CODE, CAUSE_HOST_SYNC_THEN_SERIAL,
	                                          CAUSE_HOST_GC,        CAUSE_MEMORY_MINOR_FAULT,
	                                          CAUSE_MEMORY_RECLAIM, CAUSE_SCHED_IRQ};
	uint64_t period_ns = replay->graph.model->sample_period_ns, all_ns = 0;
	const struct cause *other;
	bool among = false;

	for (size_t i = 0; i < sizeof(divided) / sizeof(divided[0]); i++) {
		among |= cause->code == divided[i];
		array_for_each (other, &report->causes) {
			if (other->code == divided[i] && other->role == cause->role)
				all_ns += other->ns;
		}
	}
	if (!among || !period_ns)
		return 0;
	return 2 * sqrt((1 - (double)cause->ns / (double)all_ns) * (double)period_ns / (double)cause->ns);
}

static int replay_cause(struct replay *replay, struct cause *cause, const struct device_report *report)
{
	static const double fractions[CAUSE_CURVE] = {0.25, 0.5, 0.75, 1};
	double strict = 0, loose, low, high, margin;
	int rc = choose_spans(replay, cause);

	if (rc)
		return rc;
	/* Of other locks, who would hold one when is anybody's guess. */
	replay->run.followed = &replay->locks;
	loose = gain_of(replay, 1, true);
	for (int i = 0; i < CAUSE_CURVE; i++) {
		strict = gain_of(replay, fractions[i], false);
		cause->gain_curve_ns[i] = (uint64_t)fmin(strict, (double)cause->ns);
	}
	find_next(replay, cause); /* of the last run, in which all of it is taken out */
	margin = fmax(ERROR_LEAST, report->replay.error_median);
	margin = fmin(1, hypot(margin, sampling_error(replay, cause, report)));
	low = fmin(fmin(strict, loose), (double)cause->ns) * (1 - margin);
	high = fmin(fmax(strict, loose), (double)cause->ns) * (1 + margin);
	cause->gain_low_ns = (uint64_t)low;
	cause->gain_high_ns = (uint64_t)high;
	cause->replayed = true;
	return 0;
}

/* The device's own time and what is not known cannot be taken out of anything. */
static bool can_be_replayed(const struct cause *cause, uint64_t idle_ns)
{
	return cause->role != ROLE_DEVICE && !cause_is_unknown(cause->code) &&
	       cause->confidence != CONFIDENCE_LOW && (double)cause->ns >= CAUSE_SHARE * (double)idle_ns;
}

static int prepare(struct replay *replay)
{
	struct replay_run *run = &replay->run;
	const struct replay_graph *graph = &replay->graph;

	run->graph = graph;
	run->progress = calloc(graph->slots.count + 1, sizeof(*run->progress));
	run->launched = calloc(graph->launch_count + 1, sizeof(*run->launched));
	run->starts = calloc(graph->ops.count + 1, sizeof(*run->starts));
	run->ends = calloc(graph->ops.count + 1, sizeof(*run->ends));
	replay->removals = calloc(graph->slots.count + 1, sizeof(*replay->removals));
	return run->progress && run->launched && run->starts && run->ends && replay->removals ? 0 : -ENOMEM;
}

static void release(struct replay *replay)
{
	for (size_t i = 0; replay->removals && i < replay->graph.slots.count; i++)
		array_free(&replay->removals[i].spans);
	free(replay->removals);
	forget_locks(&replay->locks);
	free(replay->run.progress);
	free(replay->run.launched);
	free(replay->run.starts);
	free(replay->run.ends);
	replay_graph_free(&replay->graph);
}

/* Without anything taken out: strictly it is as recorded; what is told of the model is how well it does
 * loosely. */
static void replay_unchanged(struct replay *replay, struct replay_report *report)
{
	struct replay_run *run = &replay->run;

	run->removals = NULL;
	run->keep_inferred = run->keep_residual = true;
	run_graph(run);
	replay->unchanged[false] = run_length(run);
	run->keep_inferred = run->keep_residual = false;
	run_graph(run);
	replay->unchanged[true] = run_length(run);
	run->keep_inferred = true;
	run_graph(run);
	measure_error(run, report);
}

int replay_gains(struct device_report *report, const struct model *model, uint32_t device,
                 const struct launch_floor *floor, const struct replay_leaves *leaves,
                 const struct replay_threads *threads)
{
	struct replay replay = {.leaves = leaves};
	struct cause *cause;
	int rc = 0, done = 0;

	if (!model->has_sched || !report->idle_ns)
		return 0;
	rc = replay_graph_make(&replay.graph, model, device, report->window_start_ns, report->window_end_ns,
	                       floor, threads);
	if (!rc)
		rc = prepare(&replay);
	if (!rc && replay.graph.ops.count >= SEGMENT_OPS) {
		replay_unchanged(&replay, &report->replay);
		array_for_each (cause, &report->causes) {
			if (rc || !report->replay.accepted || done == CAUSES_MOST ||
			    !can_be_replayed(cause, report->idle_ns))
				continue;
			rc = replay_cause(&replay, cause, report);
			done++;
		}
	}
	release(&replay);
	return rc;
}
