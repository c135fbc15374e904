/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long work took that was over long before somebody looked. A loop that runs a step ahead waits for the
 * step before, which ended at an unknown time; a loop that launches slowly keeps its GPU idle between
 * launches, and the wait at its end does not show that.
 *
 * A wait bounds all work that it covers: that took no longer than from its first submission, or from the wait
 * before if that was held up (the GPU was busy until then), to the return. So the same work takes no longer
 * than the least of the bounds of all its kind. "The same" is told by the functions that were launched,
 * each with its grid, block and shared memory, and how often each: a shape. Two shapes are the same work at
 * different length if one, taken so many times that it has every launch of the other, has few more launches
 * (SPARE_LAUNCHES): ten steps that were launched in one go bound one step by a tenth. Copies that are not in
 * the other shape count from their submission on.
 *
 * That is an estimate, as a function can take longer with other arguments in the same grid. It is held
 * against what is known from below: while a wait was held up, the GPU was busy. Where one in ten of a shape's
 * waits shows clearly more than the bound, the work is not always of one length, and the most that any wait
 * has shown is taken instead (a wait that returned late, for want of a CPU, is one in many).
 *
 * Within the bound nothing is known but how large the launches are. Operations of a wait follow one another,
 * each after its submission, such that together they take the bound. Those that fill a GPU are all of one
 * length, smaller ones shorter in proportion, but no shorter than a tenth (SMALLEST_SHARE): few blocks can
 * work for long. After a wait that was held up the last one goes on until its return, after queries until the
 * last that said "not ready".
 */
#include "model/infer.h"

#include <errno.h>
#include <math.h>

#include "base/hash.h"
#include "base/number.h"

#define HELD_UP_NS     50000 /* a call that waits for nothing takes less, with probes at both ends */
#define SPARE_LAUNCHES 1.25
#define MAX_SHAPES     512 /* that others are compared with */
#define MIN_GAIN       0.98
#define BISECTIONS     24
#define CLEARLY_MORE   1.1
/* What fills a GPU: one block of 128 threads for each multiprocessor of an H100 or H200 (132), and copies that
 * take about as long as a launch. */
#define FULL_THREADS   16896.0
#define FULL_BYTES     1e6
#define SMALLEST_SHARE 0.1

struct kind_count {
	uint32_t kind, count;
};

/* Work of a wait, without its times. */
struct shape {
	uint32_t first, count; /* range of `counts`, by kind */
	uint32_t launches;
	uint64_t bound_ns; /* of its own waits alone */
	struct {
		ARRAY(uint64_t)
	} busy;                         /* known from below, one for each wait */
	uint64_t busy_ns, most_busy_ns; /* of nine in ten of these, of all */
	double whole_ns, launches_ns;   /* bound from all shapes, of all its work and without its copies */
};

struct learning {
	const struct model *model;
	struct inferred_work *work;
	struct index_map kind_of, shape_of;
	struct {
		ARRAY(bool)
	} kinds; /* launches, others are copies and the like */
	struct {
		ARRAY(struct kind_count)
	} counts;
	struct {
		ARRAY(struct shape)
	} shapes;
	struct {
		ARRAY(uint32_t)
	} shape_of_wait, scratch;
};

static struct gpu_op *op_of(const struct learning *run, const struct waited_work *wait, size_t number)
{
	return &run->work->ops.items[run->work->covered.items[wait->first + number]];
}

static bool is_launch(const struct gpu_op *op)
{
	return op->kind == OP_KERNEL || op->kind == OP_GRAPH;
}

/* MODEL_NONE: no memory. */
static uint32_t kind_of(struct learning *run, const struct gpu_op *op)
{
	const struct call *call = &run->model->threads.items[op->launch_thread].calls.items[op->launch_call];
	/* What does not say how much work it is, is like nothing else. */
	bool known = call->arguments & CALL_HAS_WORK || op->kind == OP_GRAPH;
	uint64_t about[4] = {call->function, call->arguments & CALL_HAS_OBJECT ? call->object : 0,
	                     call->arguments & CALL_HAS_WORK ? call->work : 0,
	                     known ? 0 : 1 + (uint64_t)(op - run->work->ops.items)};
	uint64_t key = hash_bytes(about, sizeof(about));
	uint32_t kind;
	bool *launch;

	if (index_map_get(&run->kind_of, key, &kind))
		return kind;
	launch = array_add(&run->kinds);
	if (!launch || index_map_put(&run->kind_of, key, run->kinds.count - 1))
		return MODEL_NONE;
	*launch = is_launch(op);
	return run->kinds.count - 1;
}

static int compare_kind(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Adds the counts of the sorted kinds in `scratch`. */
static int add_counts(struct learning *run)
{
	struct kind_count *last = NULL;
	const uint32_t *kind;

	array_for_each (kind, &run->scratch) {
		if (!last || last->kind != *kind) {
			last = array_add(&run->counts);
			if (!last)
				return -ENOMEM;
			last->kind = *kind;
		}
		last->count++;
	}
	return 0;
}

static int list_kinds(struct learning *run, const struct waited_work *wait)
{
	run->scratch.count = 0;
	for (size_t i = 0; i < wait->count; i++) {
		uint32_t kind = kind_of(run, op_of(run, wait, i)), *slot = array_add(&run->scratch);

		if (kind == MODEL_NONE || !slot)
			return -ENOMEM;
		*slot = kind;
	}
	array_sort(&run->scratch, compare_kind);
	return 0;
}

/* Index of the shape of a wait's work, MODEL_NONE: no memory. */
static uint32_t find_shape(struct learning *run, const struct waited_work *wait)
{
	uint32_t first = run->counts.count, found;
	struct shape *shape;
	uint64_t key;

	if (list_kinds(run, wait) || add_counts(run))
		return MODEL_NONE;
	key = hash_bytes(run->counts.items + first, (run->counts.count - first) * sizeof(struct kind_count));
	if (index_map_get(&run->shape_of, key, &found)) {
		run->counts.count = first;
		return found;
	}
	shape = array_add(&run->shapes);
	if (!shape || index_map_put(&run->shape_of, key, run->shapes.count - 1))
		return MODEL_NONE;
	shape->first = first;
	shape->count = run->counts.count - first;
	shape->bound_ns = UINT64_MAX;
	for (uint32_t i = first; i < run->counts.count; i++)
		shape->launches +=
		    run->kinds.items[run->counts.items[i].kind] ? run->counts.items[i].count : 0;
	return run->shapes.count - 1;
}

static bool held_up(const struct waited_work *wait)
{
	return !wait->asked && wait->until_ns - wait->entered_ns >= HELD_UP_NS;
}

/* The GPU was busy with a wait's work then, last; 0: not known. */
static uint64_t last_busy(const struct waited_work *wait)
{
	return held_up(wait) ? wait->until_ns : wait->still_unfinished_ns;
}

/* For how long it was at least, after `since`. */
static uint64_t surely_busy(const struct waited_work *wait, uint64_t since)
{
	uint64_t waited_from = later(wait->entered_ns, since), waited = 0, asked = 0;
	uint64_t asked_from = later(wait->unfinished_from_ns, since);

	if (held_up(wait) && wait->until_ns > waited_from)
		waited = wait->until_ns - waited_from;
	if (wait->unfinished_until_ns > asked_from)
		asked = wait->unfinished_until_ns - asked_from;
	return later(waited, asked);
}

static bool one_stream(const struct learning *run, const struct waited_work *a, const struct waited_work *b)
{
	uint32_t stream = op_of(run, a, 0)->stream;

	for (size_t i = 0; i < a->count; i++) {
		if (op_of(run, a, i)->stream != stream)
			return false;
	}
	for (size_t i = 0; i < b->count; i++) {
		if (op_of(run, b, i)->stream != stream)
			return false;
	}
	return true;
}

/* From when on the work of a wait can have run. */
static uint64_t begin_of(const struct learning *run, size_t number)
{
	const struct waited_work *wait = &run->work->waits.items[number], *before = wait - 1;
	uint64_t begin = op_of(run, wait, 0)->launch_ns;

	if (number && one_stream(run, before, wait))
		begin = later(begin, last_busy(before));
	return earlier(begin, wait->until_ns);
}

static int learn_wait(struct learning *run, size_t number)
{
	const struct waited_work *wait = &run->work->waits.items[number];
	uint32_t index = find_shape(run, wait), *slot = array_add(&run->shape_of_wait);
	uint64_t *busy;
	struct shape *shape;

	if (index == MODEL_NONE || !slot)
		return -ENOMEM;
	*slot = index;
	shape = &run->shapes.items[index];
	shape->bound_ns = earlier(shape->bound_ns, wait->until_ns - begin_of(run, number));
	busy = array_add(&shape->busy);
	if (!busy)
		return -ENOMEM;
	*busy = surely_busy(wait, number ? wait[-1].until_ns : 0);
	return 0;
}

/*
 * How many times `other` has to be taken to have every launch of `shape`; 0 if it is not the same work.
 * *copies: it then has its copies, too.
 */
static double times_of(const struct learning *run, const struct shape *shape, const struct shape *other,
                       bool *copies)
{
	const struct kind_count *all = run->counts.items, *one = all + shape->first,
	                        *end = one + shape->count;
	const struct kind_count *of = all + other->first, *of_end = of + other->count;
	double times = 0, for_copies = 0;

	for (; one < end; one++) {
		while (of < of_end && of->kind < one->kind)
			of++;
		if (of == of_end || of->kind != one->kind) {
			if (run->kinds.items[one->kind])
				return 0;
			for_copies = INFINITY;
		} else if (run->kinds.items[one->kind]) {
			times = fmax(times, (double)one->count / of->count);
		} else {
			for_copies = fmax(for_copies, (double)one->count / of->count);
		}
	}
	*copies = for_copies <= times * (1 + 1e-9);
	return times * other->launches <= SPARE_LAUNCHES * shape->launches ? times : 0;
}

/* A bound, or what the shape's own waits show where that is more. */
static double at_least_busy(const struct shape *shape, double bound)
{
	return shape->busy_ns > bound * CLEARLY_MORE ? shape->most_busy_ns : fmax(bound, shape->busy_ns);
}

/* Of a shape without launches nothing is known but what its own waits show: copies have any size. */
static void bound_shape(const struct learning *run, struct shape *shape)
{
	shape->whole_ns = shape->launches_ns = INFINITY;
	for (size_t i = 0; shape->launches && i < run->shapes.count && i < MAX_SHAPES; i++) {
		const struct shape *other = &run->shapes.items[i];
		bool copies = false;
		double times = times_of(run, shape, other, &copies), bound = times * other->bound_ns;

		if (times <= 0)
			continue;
		shape->launches_ns = fmin(shape->launches_ns, bound);
		if (copies)
			shape->whole_ns = fmin(shape->whole_ns, bound);
	}
	shape->launches_ns = at_least_busy(shape, shape->launches_ns);
	shape->whole_ns = at_least_busy(shape, shape->whole_ns);
}

static void bound_shapes(struct learning *run)
{
	struct shape *shape;

	array_for_each (shape, &run->shapes) {
		array_sort(&shape->busy, compare_unsigned);
		shape->busy_ns = shape->busy.items[(shape->busy.count - 1) * 9 / 10];
		shape->most_busy_ns = shape->busy.items[shape->busy.count - 1];
		shape->bound_ns = (uint64_t)at_least_busy(shape, (double)shape->bound_ns);
	}
	array_for_each (shape, &run->shapes)
		bound_shape(run, shape);
}

/* How long the work of a wait took at most. */
static double bound_of_wait(const struct learning *run, size_t number)
{
	const struct waited_work *wait = &run->work->waits.items[number];
	const struct shape *shape = &run->shapes.items[run->shape_of_wait.items[number]];
	double with_copies = shape->launches_ns;

	for (size_t i = 0; i < wait->count; i++) {
		const struct gpu_op *op = op_of(run, wait, i);

		if (!is_launch(op))
			with_copies += wait->until_ns - op->launch_ns;
	}
	return fmin(shape->whole_ns, with_copies);
}

/* How long an operation is of one that fills the GPU, by its size: 0 to 1. */
static double share_of(const struct learning *run, const struct gpu_op *op)
{
	const struct call *call = &run->model->threads.items[op->launch_thread].calls.items[op->launch_call];
	double share = 1;

	if (op->kind == OP_KERNEL && call->threads)
		share = call->threads / FULL_THREADS;
	else if (op->kind != OP_KERNEL && call->arguments & CALL_HAS_WORK)
		share = call->work / FULL_BYTES;
	return fmin(fmax(share, SMALLEST_SHARE), 1);
}

/*
 * Operations one after another, `length` for one that fills the GPU. Returns their time together; `keep`: as
 * the operations'.
 */
static double place(struct learning *run, const struct waited_work *wait, uint64_t begin, double length,
                    bool keep)
{
	double busy = 0, time = begin;

	for (size_t i = 0; i < wait->count; i++) {
		struct gpu_op *op = op_of(run, wait, i);
		double start = fmin(fmax(op->start_ns, time), wait->until_ns);

		time = fmin(start + length * share_of(run, op), wait->until_ns);
		if (i + 1 == wait->count)
			time = fmax(time, last_busy(wait));
		busy += time - start;
		if (keep) {
			op->start_ns = later(op->start_ns, (uint64_t)start);
			op->end_ns = later(op->start_ns, (uint64_t)time);
		}
	}
	return busy;
}

static void shorten(struct learning *run, size_t number)
{
	const struct waited_work *wait = &run->work->waits.items[number];
	uint64_t begin = begin_of(run, number);
	double bound = bound_of_wait(run, number), low = 0, high = bound / SMALLEST_SHARE;

	begin = earlier(later(begin, op_of(run, wait, 0)->start_ns), wait->until_ns);
	if (bound >= MIN_GAIN * (wait->until_ns - begin))
		return;
	for (int i = 0; i < BISECTIONS; i++) {
		double length = (low + high) / 2;

		if (place(run, wait, begin, length, false) < bound)
			low = length;
		else
			high = length;
	}
	place(run, wait, begin, high, true);
}

static void free_learning(struct learning *run)
{
	struct shape *shape;

	array_for_each (shape, &run->shapes)
		array_free(&shape->busy);
	array_free(&run->shapes);
	array_free(&run->kinds);
	array_free(&run->counts);
	array_free(&run->shape_of_wait);
	array_free(&run->scratch);
	index_map_free(&run->kind_of);
	index_map_free(&run->shape_of);
}

int infer_lengths(const struct model *model, struct inferred_work *work)
{
	struct learning run = {.model = model, .work = work};
	int rc = 0;

	for (size_t i = 0; !rc && i < work->waits.count; i++)
		rc = learn_wait(&run, i);
	if (!rc)
		bound_shapes(&run);
	for (size_t i = 0; !rc && i < work->waits.count; i++)
		shorten(&run, i);
	free_learning(&run);
	return rc;
}
