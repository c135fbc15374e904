/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Edges on synthetic timelines. A generator strings together scenes, in random order and with random lengths.
 * In each a thread or an operation depends on another one, or only looks as if it did; most have a twin that
 * differs in nothing else. What replay takes for a dependency is compared with what is one.
 *
 * With WHYIDLE_SYNTHETIC=FILE the counts are written there as JSON (make proof).
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/replay_graph.h"
#include "timeline.h"

#define TIMELINES 200
#define SCENES    100

struct edge {
	uint32_t from, to; /* threads, or operations */
	uint64_t time_ns;  /* of the wake, or start of the operation */
	bool device;
};

struct scene_count {
	uint64_t real, found,
	    used; /* edges there are, those of them that were found, all that were taken for one */
};

static struct timeline line;
static uint32_t main_thread, helper, bystander, worker, hog;
static uint64_t now_ns, random_state;
static struct {
	ARRAY(struct edge)
} truth;
static uint32_t scene_of_time[SCENES];
static uint64_t scene_start[SCENES + 1];

static uint64_t between(uint64_t low, uint64_t high)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return low + random_state % (high - low + 1);
}

static void depends(uint32_t to, uint32_t from, uint64_t time_ns, bool device)
{
	struct edge *edge = array_add(&truth);

	cr_assert(edge);
	*edge = (struct edge){from, to, time_ns, device};
}

static void launch(uint32_t stream, uint64_t enter_ns, uint64_t start_ns, uint64_t end_ns)
{
	timeline_kernel(&line, main_thread, enter_ns, start_ns, end_ns);
	line.model.devices.items[0].ops.items[line.model.devices.items[0].ops.count - 1].stream = stream;
}

/* ---- scenes: each goes on from now_ns and moves it ---- */

/* The launcher waits for another thread, which runs or sleeps meanwhile. */
static void handed_over(uint32_t to, uint32_t from, bool by_pipe)
{
	uint64_t out = now_ns, wake = out + between(150 * US, 3 * MS), in = wake + between(2 * US, 40 * US);

	if (between(0, 1))
		timeline_sleep(&line, from, out + 20 * US, wake - between(10 * US, 100 * US));
	if (by_pipe)
		timeline_pipe(&line, to, out, wake, in, from);
	else
		timeline_futex(&line, to, out, wake, in, from, 0x3000);
	depends(to, from, wake, false);
	now_ns = in;
}

static void thread_hands_over(void)
{
	handed_over(main_thread, helper, false);
}

static void worker_hands_over(void)
{
	handed_over(main_thread, worker, true);
}

/* Waits within waits: the helper hands over what the worker gave it. */
static void chain(void)
{
	uint64_t out = now_ns, first = out + between(200 * US, 2 * MS),
	         second = first + between(20 * US, 1 * MS);

	timeline_pipe(&line, helper, out + 5 * US, first, first + 5 * US, worker);
	timeline_futex(&line, main_thread, out, second, second + 5 * US, helper, 0x3000);
	depends(helper, worker, first, false);
	depends(main_thread, helper, second, false);
	now_ns = second + 5 * US;
}

/* Two wakes, `apart_ns` from one to the next wait. The first is a false one, or it is real: the launcher goes
 * on with it, in a CUDA call or without one. */
static void two_wakes(bool both_real, bool calls, uint64_t apart_ns)
{
	uint64_t out = now_ns, first = out + between(100 * US, 1 * MS), again = first + apart_ns;
	uint64_t second = again + between(100 * US, 1 * MS);

	timeline_futex(&line, main_thread, out, first, first + 2 * US, bystander, 0x3000);
	if (calls)
		timeline_call(&line, main_thread, "cudaStreamQuery", first + 3 * US, first + 4 * US, 0);
	if (both_real)
		depends(main_thread, bystander, first, false);
	timeline_futex(&line, main_thread, again, second, second + 2 * US, helper, 0x3000);
	depends(main_thread, helper, second, false);
	now_ns = second + 2 * US;
}

static void false_wake(void)
{
	two_wakes(false, false, between(8 * US, 40 * US));
}

/* It looks longer at what it was woken for before it goes back to sleep: no rule tells that from a real one.
 */
static void slow_false_wake(void)
{
	two_wakes(false, false, between(60 * US, 200 * US));
}

/* It needs no CUDA call and less time than most false wakes do: no rule tells that from a false one. */
static void quick_item(void)
{
	two_wakes(true, false, between(8 * US, 40 * US));
}

static void two_real_wakes(void)
{
	two_wakes(true, true, between(8 * US, 40 * US));
}

/* A poll that ends by its time-out, while somebody else happens to have the CPU of the interrupt. */
static void timed_out(void)
{
	uint64_t wake = now_ns + between(100 * US, 2 * MS);

	timeline_blocked(&line, main_thread, now_ns, wake, wake + 5 * US, "ep_poll", bystander,
	                 "hrtimer_wakeup");
	now_ns = wake + 5 * US;
}

/* Its twin: somebody writes in time. */
static void answered_in_time(void)
{
	uint64_t wake = now_ns + between(100 * US, 2 * MS);

	timeline_blocked(&line, main_thread, now_ns, wake, wake + 5 * US, "ep_poll", bystander,
	                 "anon_pipe_write");
	depends(main_thread, bystander, wake, false);
	now_ns = wake + 5 * US;
}

/* A disk that answers on top of a bystander. */
static void disk(void)
{
	uint64_t wake = now_ns + between(100 * US, 2 * MS);

	timeline_blocked(&line, main_thread, now_ns, wake, wake + 5 * US, "folio_wait_bit_common", bystander,
	                 "folio_wake_bit");
	now_ns = wake + 5 * US;
}

static void preempted(void)
{
	uint64_t in = now_ns + between(50 * US, 3 * MS);

	timeline_preempted(&line, main_thread, now_ns, in, hog);
	now_ns = in;
}

static void lock(void)
{
	uint64_t wake = now_ns + between(100 * US, 2 * MS);
	struct offcpu *wait = timeline_futex(&line, main_thread, now_ns, wake, wake + 5 * US, helper, 0x2000);

	wait->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
	wait->args[2] = 2;
	depends(main_thread, helper, wake, false);
	now_ns = wake + 5 * US;
}

/* An operation of one stream waits, queued, for one of another; or it begins when its launch lets it, at any
 * time after the other's end. */
static void two_streams(bool real)
{
	uint64_t first = now_ns + 10 * US, end = first + between(50 * US, 1 * MS);
	uint64_t start = end + between(900, 4000), enter = now_ns + 5 * US;

	if (!real) {
		start = end + between(0, 20 * US);
		enter = start - 5 * US;
	}
	launch(1, now_ns, first, end);
	launch(2, enter, start, start + between(20 * US, 500 * US));
	if (real)
		depends(line.model.devices.items[0].ops.count - 1, line.model.devices.items[0].ops.count - 2,
		        start, true);
	now_ns = line.model.devices.items[0].ops.items[line.model.devices.items[0].ops.count - 1].end_ns;
}

static void stream_waits(void)
{
	two_streams(true);
}

static void stream_is_late(void)
{
	two_streams(false);
}

/* A queued operation begins late for a reason that was not recorded, whatever the other stream did. */
static void stream_is_held_up(void)
{
	uint64_t end = now_ns + 10 * US + between(50 * US, 500 * US),
	         start = now_ns + 60 * US + between(0, 1 * MS);

	launch(1, now_ns, now_ns + 10 * US, end);
	launch(2, now_ns + 5 * US, start, start + 100 * US);
	now_ns = (start > end ? start : end) + 100 * US;
}

static const struct {
	const char *name;
	void (*play)(void);
} scenes[] = {
    {"thread_hands_over", thread_hands_over},
    {"worker_hands_over", worker_hands_over},
    {"chain", chain},
    {"false_wake", false_wake},
    {"slow_false_wake", slow_false_wake},
    {"quick_item", quick_item},
    {"two_real_wakes", two_real_wakes},
    {"timed_out", timed_out},
    {"answered_in_time", answered_in_time},
    {"disk", disk},
    {"preempted", preempted},
    {"lock", lock},
    {"stream_waits", stream_waits},
    {"stream_is_late", stream_is_late},
    {"stream_is_held_up", stream_is_held_up},
};

#define KINDS (sizeof(scenes) / sizeof(scenes[0]))

static void generate(uint64_t seed)
{
	random_state = seed * 0x9e3779b97f4a7c15ULL;
	timeline_begin(&line);
	main_thread = timeline_process(&line, 100, 0, "main");
	helper = timeline_thread(&line, 100, 101, "helper");
	bystander = timeline_thread(&line, 100, 102, "bystander");
	worker = timeline_process(&line, 200, 100, "worker");
	hog = timeline_process(&line, 300, 0, "hog");
	truth.count = 0;
	now_ns = 1 * MS;
	launch(1, now_ns, now_ns + 10 * US, now_ns + 20 * US);
	for (uint32_t i = 0; i < SCENES; i++) {
		now_ns += between(60 * US, 300 * US);
		scene_start[i] = now_ns;
		scene_of_time[i] = (uint32_t)between(0, KINDS - 1);
		scenes[scene_of_time[i]].play();
		/* Ends the gap, so that the window reaches to the end. */
		launch(1, now_ns + 60 * US, now_ns + 65 * US, now_ns + 90 * US);
		now_ns += 90 * US;
	}
	scene_start[SCENES] = now_ns;
}

static struct scene_count *count_of(struct scene_count *counts, uint64_t time_ns)
{
	uint32_t at = 0;

	while (at + 1 < SCENES && scene_start[at + 1] <= time_ns)
		at++;
	return &counts[scene_of_time[at]];
}

static bool is_real(uint32_t to, uint32_t from, uint64_t time_ns, bool device)
{
	const struct edge *edge;

	array_for_each (edge, &truth) {
		if (edge->to == to && edge->from == from && edge->time_ns == time_ns &&
		    edge->device == device)
			return true;
	}
	return false;
}

static void compare(struct scene_count *counts)
{
	const struct device *device = &line.model.devices.items[0];
	bool seen[5] = {true, true, true, true, true};
	struct replay_threads threads = {seen};
	struct launch_floor floor;
	struct replay_graph graph;
	struct gap_list gaps = {0};
	const struct edge *edge;

	cr_assert_eq(line.model.threads.count, sizeof(seen));
	cr_assert_eq(gap_list_make(&gaps, device, 0, now_ns), 0);
	launch_floor_measure(&floor, &line.model, device, &gaps);
	cr_assert_eq(replay_graph_make(&graph, &line.model, 0, 0, now_ns, &floor, &threads), 0);
	array_for_each (edge, &truth)
		count_of(counts, edge->time_ns)->real++;
	for (size_t i = 0; i < graph.events.count; i++) {
		const struct replay_event *event = &graph.events.items[i];
		const struct replay_op *op = &graph.ops.items[event->item];
		uint32_t to, from;

		if (event->kind == REPLAY_WAIT) {
			to = graph.slots.items[event->slot].thread;
			from = graph.slots.items[graph.waits.items[event->item].waker].thread;
		} else if (event->kind == REPLAY_OP && op->inferred != MODEL_NONE) {
			to = op->device_op;
			from = graph.ops.items[op->inferred].device_op;
		} else {
			continue;
		}
		count_of(counts, event->time_ns)->used++;
		count_of(counts, event->time_ns)->found +=
		    is_real(to, from, event->time_ns, event->kind == REPLAY_OP);
	}
	replay_graph_free(&graph);
	array_free(&gaps);
}

static void save(const struct scene_count *counts, const struct scene_count *sum)
{
	const char *path = getenv("WHYIDLE_SYNTHETIC");
	FILE *out = path ? fopen(path, "w") : NULL;

	if (!path)
		return;
	cr_assert(out, "%s cannot be written", path);
	fprintf(out,
	        "{\"timelines\": %d, \"real\": %" PRIu64 ", \"used\": %" PRIu64 ", \"found\": %" PRIu64
	        ", \"scenes\": {",
	        TIMELINES, sum->real, sum->used, sum->found);
	for (size_t i = 0; i < KINDS; i++)
		fprintf(out,
		        "%s\"%s\": {\"real\": %" PRIu64 ", \"used\": %" PRIu64 ", \"found\": %" PRIu64 "}",
		        i ? ", " : "", scenes[i].name, counts[i].real, counts[i].used, counts[i].found);
	fputs("}}\n", out);
	cr_assert_eq(fclose(out), 0);
}

Test(synthetic, edges_that_are_found_are_real_and_those_that_are_real_are_found)
{
	struct scene_count counts[KINDS] = {0}, sum = {0};

	for (uint64_t seed = 1; seed <= TIMELINES; seed++) {
		generate(seed);
		timeline_analyse(&line);
		compare(counts);
		timeline_end(&line);
	}
	for (size_t i = 0; i < KINDS; i++) {
		cr_log_info("%s: real %" PRIu64 " used %" PRIu64 " found %" PRIu64, scenes[i].name,
		            counts[i].real, counts[i].used, counts[i].found);
		sum.real += counts[i].real;
		sum.used += counts[i].used;
		sum.found += counts[i].found;
	}
	array_free(&truth);
	save(counts, &sum);
	cr_assert_gt(sum.real, TIMELINES * SCENES / 2);
	/* What no rule can tell is a tenth of the scenes. */
	cr_assert_geq((double)sum.found / (double)sum.used, 0.9, "%" PRIu64 " of %" PRIu64 " edges are real",
	              sum.found, sum.used);
	cr_assert_geq((double)sum.found / (double)sum.real, 0.9,
	              "%" PRIu64 " of %" PRIu64 " edges were found", sum.found, sum.real);
}
