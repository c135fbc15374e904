// SPDX-License-Identifier: GPL-2.0-only
#include "attribute/rhythm.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/median.h"
#include "base/number.h"

#define RHYTHM_LEAST  6    /* intervals */
#define RHYTHM_SAMPLE 4096 /* intervals that are looked at */
#define PERIOD_MOST   1024
#define RHYTHM_CLEAR  0.6 /* mean difference of log2 that still counts as the same interval */

/* Of the operations from the first to the last mark of a rhythm, those in intervals of the usual number. */
#define REGULAR_SHARE 0.8
#define REGULAR_ALIKE 0.02 /* a difference of shares that decides nothing */
/* Of all operations. The rest is start-up, or work of another kind. */
#define COVERED_SHARE 0.5

/* What repeats faster is a part of a step, and too short to be measured one by one. */
#define STEP_SHORTEST_NS 100000

/* ---- of intervals ---- */

static double beat(uint64_t interval_ns)
{
	return log2((double)interval_ns / 1000 + 1);
}

double rhythm_difference(const uint64_t *intervals, size_t count, size_t period)
{
	double sum = 0;

	for (size_t i = 0; i + period < count; i++)
		sum += fabs(beat(intervals[i]) - beat(intervals[i + period]));
	return sum / (double)(count - period);
}

size_t rhythm_phase(const uint64_t *intervals, size_t count, size_t period)
{
	size_t best = 0;
	double most = -1;

	for (size_t at = 0; at < period; at++) {
		double sum = 0;
		size_t cycles = 0;

		for (size_t i = at; i < count; i += period) {
			sum += beat(intervals[i]);
			cycles++;
		}
		if (cycles && sum / (double)cycles > most + 1e-9) {
			most = sum / (double)cycles;
			best = at;
		}
	}
	return best;
}

size_t rhythm_find(const uint64_t *intervals, size_t count, size_t *phase)
{
	size_t most = count / 3 < PERIOD_MOST ? count / 3 : PERIOD_MOST;
	double least = HUGE_VAL;

	if (count > RHYTHM_SAMPLE)
		count = RHYTHM_SAMPLE;
	if (count < RHYTHM_LEAST)
		return 0;
	for (size_t period = 1; period <= most; period++) {
		double difference = rhythm_difference(intervals, count, period);

		least = difference < least ? difference : least;
	}
	if (least > RHYTHM_CLEAR)
		return 0;
	for (size_t period = 1; period <= most; period++) {
		/* A multiple of the period is as good by nature. */
		if (rhythm_difference(intervals, count, period) <= least * 1.25 + 0.05) {
			*phase = rhythm_phase(intervals, count, period);
			return period;
		}
	}
	return 0;
}

/* ---- of operations ---- */

/*
 * An operation that every step has once comes back after a constant number of operations. So each kind of
 * operation (kernels by name, copies by direction and size) is tried as the mark of a step: the intervals
 * between its appearances must hold the same number of operations, but for a few. Of those that pass, the
 * most regular ones count (a layer is less regular than a step, since a step ends in something else), of
 * these the shortest period, and of the marks with that period the one before which the GPU is idle longest:
 * there one step ends and the next begins.
 */
struct mark {
	uint32_t first, count; /* range of scan.at: places of this kind among the operations, in order */
	uint64_t usual;        /* operations in an interval */
	double regular;        /* share, see REGULAR_SHARE */
	uint64_t idle_ns;      /* median idle time before it */
};

struct scan {
	const struct model *model;
	const struct gpu_op *ops;
	size_t count;
	uint32_t *kind, *at;
	uint64_t *scratch, *idle; /* idle: time before each operation in which none ran */
	struct {
		ARRAY(struct mark)
	} marks;
	struct index_map hash_by_id;
	struct {
		ARRAY(uint64_t)
	} hashes;
	bool failed;
};

/* Hash of a name, which may be there under several ids; `hashes` keeps where the hash of an id is. */
static uint64_t name_hash(struct scan *scan, uint32_t id)
{
	const char *name = model_string(scan->model, id);
	uint64_t *slot;
	uint32_t at;

	if (index_map_get(&scan->hash_by_id, id, &at))
		return scan->hashes.items[at];
	slot = array_add(&scan->hashes);
	if (!slot || index_map_put(&scan->hash_by_id, id, (uint32_t)scan->hashes.count - 1))
		scan->failed = true;
	else
		*slot = hash_bytes(name, strlen(name));
	return slot ? *slot : 0;
}

static uint64_t kind_key(struct scan *scan, const struct gpu_op *op)
{
	bool copy = op->kind == OP_MEMCPY || op->kind == OP_MEMSET;
	const uint64_t fields[] = {op->kind, name_hash(scan, op->name), copy ? op->copy_kind : 0,
	                           copy ? op->bytes : 0};

	return hash_bytes(fields, sizeof(fields));
}

static int number_kinds(struct scan *scan)
{
	struct index_map seen = {0};
	uint64_t covered = scan->ops[0].start_ns;
	int rc = 0;

	for (size_t i = 0; !rc && i < scan->count; i++) {
		const struct gpu_op *op = &scan->ops[i];
		uint64_t key = kind_key(scan, op);

		scan->idle[i] = op->start_ns > covered ? op->start_ns - covered : 0;
		covered = later(covered, op->end_ns);
		if (!index_map_get(&seen, key, &scan->kind[i])) {
			scan->kind[i] = (uint32_t)scan->marks.count;
			if (!array_add(&scan->marks) || index_map_put(&seen, key, scan->kind[i]))
				rc = -ENOMEM;
		}
		if (!rc)
			scan->marks.items[scan->kind[i]].count++;
	}
	index_map_free(&seen);
	return scan->failed ? -ENOMEM : rc;
}

/* Sorts the places of all operations by kind. */
static void place_kinds(struct scan *scan)
{
	uint32_t next = 0;
	struct mark *mark;

	array_for_each (mark, &scan->marks) {
		mark->first = next;
		next += mark->count;
		mark->count = 0;
	}
	for (size_t i = 0; i < scan->count; i++) {
		mark = &scan->marks.items[scan->kind[i]];
		scan->at[mark->first + mark->count++] = (uint32_t)i;
	}
}

static bool is_usual(const struct mark *mark, uint64_t operations)
{
	uint64_t slack = (mark->usual + 5) / 10;

	return operations + slack >= mark->usual && operations <= mark->usual + slack;
}

static uint64_t interval_ops(const struct scan *scan, const struct mark *mark, uint32_t i)
{
	return scan->at[mark->first + i + 1] - scan->at[mark->first + i];
}

/* Fills in how regular a mark is; 0 if it cannot be one. */
static void judge(struct scan *scan, struct mark *mark)
{
	uint64_t covered = 0, all = 0;

	mark->regular = 0;
	if (mark->count < STEPS_LEAST + 1)
		return;
	for (uint32_t i = 0; i + 1 < mark->count; i++)
		scan->scratch[i] = interval_ops(scan, mark, i);
	mark->usual = median_unsigned(scan->scratch, mark->count - 1);
	for (uint32_t i = 0; i + 1 < mark->count; i++) {
		uint64_t operations = interval_ops(scan, mark, i);

		all += operations;
		covered += is_usual(mark, operations) ? operations : 0;
	}
	for (uint32_t i = 0; i + 1 < mark->count; i++)
		scan->scratch[i] = scan->ops[scan->at[mark->first + i + 1]].start_ns -
		                   scan->ops[scan->at[mark->first + i]].start_ns;
	if (median_unsigned(scan->scratch, mark->count - 1) < STEP_SHORTEST_NS ||
	    (double)covered < COVERED_SHARE * (double)scan->count ||
	    (double)covered < REGULAR_SHARE * (double)all)
		return;
	mark->regular = (double)covered / (double)all;
	for (uint32_t i = 0; i < mark->count; i++)
		scan->scratch[i] = scan->idle[scan->at[mark->first + i]];
	mark->idle_ns = median_unsigned(scan->scratch, mark->count);
}

static const struct mark *best_mark(struct scan *scan)
{
	const struct mark *best = NULL;
	struct mark *mark;
	double most = 0;

	array_for_each (mark, &scan->marks) {
		judge(scan, mark);
		most = mark->regular > most ? mark->regular : most;
	}
	array_for_each (mark, &scan->marks) {
		if (!mark->regular || mark->regular < most - REGULAR_ALIKE)
			continue;
		if (!best || mark->usual < best->usual ||
		    (mark->usual == best->usual && mark->idle_ns > best->idle_ns))
			best = mark;
	}
	return best;
}

static int add_step(struct steps *steps, uint64_t start_ns, uint64_t end_ns)
{
	struct step *step = array_add(&steps->list);

	if (!step)
		return -ENOMEM;
	*step = (struct step){start_ns, end_ns, steps->list.count};
	return 0;
}

/* Where names tell nothing apart, the times may. */
static int split_by_time(struct scan *scan, const struct mark *mark, struct steps *steps)
{
	size_t count = mark->count - 1, phase = 0, period;
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		scan->scratch[i] = scan->idle[scan->at[mark->first + i + 1]];
	period = rhythm_find(scan->scratch, count, &phase);
	steps->period_ops = mark->usual * (period ? period : 1);
	phase = period > 1 ? phase + 1 : 0;
	period = period > 1 ? period : 1;
	for (size_t i = phase; !rc && i + period <= count; i += period)
		rc = add_step(steps, scan->ops[scan->at[mark->first + i]].start_ns,
		              scan->ops[scan->at[mark->first + i + period]].start_ns);
	return rc;
}

static int split(struct scan *scan, const struct mark *mark, struct steps *steps)
{
	int rc = 0;

	if (mark->usual == 1)
		return split_by_time(scan, mark, steps);
	steps->period_ops = mark->usual;
	for (uint32_t i = 0; !rc && i + 1 < mark->count; i++) {
		const uint32_t *at = &scan->at[mark->first + i];

		if (is_usual(mark, interval_ops(scan, mark, i)))
			rc = add_step(steps, scan->ops[at[0]].start_ns, scan->ops[at[1]].start_ns);
	}
	return rc;
}

int rhythm_steps(struct steps *steps, const struct model *model, uint32_t device, uint64_t from_ns,
                 uint64_t to_ns)
{
	const struct device *source = &model->devices.items[device];
	struct scan scan = {.model = model};
	const struct mark *mark;
	size_t first = 0;
	int rc = 0;

	while (first < source->ops.count && source->ops.items[first].start_ns < from_ns)
		first++;
	while (first + scan.count < source->ops.count &&
	       source->ops.items[first + scan.count].start_ns <= to_ns)
		scan.count++;
	if (scan.count < STEPS_LEAST + 1)
		return 0;
	scan.ops = source->ops.items + first;
	scan.kind = calloc(scan.count, sizeof(*scan.kind));
	scan.at = calloc(scan.count, sizeof(*scan.at));
	scan.idle = calloc(scan.count, sizeof(*scan.idle));
	scan.scratch = calloc(scan.count, sizeof(*scan.scratch));
	if (!scan.kind || !scan.at || !scan.idle || !scan.scratch)
		rc = -ENOMEM;
	if (!rc)
		rc = number_kinds(&scan);
	if (!rc) {
		place_kinds(&scan);
		mark = best_mark(&scan);
		if (mark)
			rc = split(&scan, mark, steps);
	}
	free(scan.kind);
	free(scan.at);
	free(scan.idle);
	free(scan.scratch);
	array_free(&scan.marks);
	array_free(&scan.hashes);
	index_map_free(&scan.hash_by_id);
	return rc;
}
