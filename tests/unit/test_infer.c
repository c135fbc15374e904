/* SPDX-License-Identifier: GPL-2.0-only */
/* The timeline that is inferred from CUDA calls: what waits show, and how long work is taken to last. */
#include <criterion/criterion.h>
#include <string.h>

#include "timeline.h"

#define STEP (10 * MS)
#define LATE (20 * US) /* a wait for what is over long since: its whole length */

static struct timeline timeline;
static uint32_t thread;
static uint64_t now;
static uint64_t work; /* of what is submitted; 0: not known */

static void begin(void)
{
	timeline_begin(&timeline);
	work = 1;
	thread = timeline_process(&timeline, 100, 0, "train");
	now = 5 * MS;
}

static void end(void)
{
	timeline_end(&timeline);
}

TestSuite(infer, .init = begin, .fini = end);

/* A probed call of the thread at `now`, which goes on to its return. object 0: not known. */
static void call(const char *function, uint64_t length, uint64_t object)
{
	struct thread *owner = &timeline.model.threads.items[thread];
	struct call *added, *before;

	timeline_call(&timeline, thread, function, now, now + length, 0);
	added = &owner->calls.items[owner->calls.count - 1];
	/* A session has each name once, and names are told apart by their ids. */
	array_for_each (before, &owner->calls) {
		if (!strcmp(model_string(&timeline.model, before->function), function)) {
			added->function = before->function;
			break;
		}
	}
	added->probed = true;
	added->arguments = CALL_HAS_STREAM | (object ? CALL_HAS_OBJECT : 0) | (work ? CALL_HAS_WORK : 0);
	added->work = work;
	added->stream = 7;
	added->object = object;
	now += length;
}

static void launch(uint64_t function)
{
	call("cudaLaunchKernel", 5 * US, function);
}

static void wait_for(uint64_t length)
{
	call("cudaStreamSynchronize", length, 0);
}

/* `count` steps of one launch each, which are waited for when the next step begins. */
static void late_steps(int count, uint64_t function)
{
	for (int i = 0; i < count; i++) {
		uint64_t start = now;

		launch(function);
		now = start + STEP;
		wait_for(LATE);
	}
}

static double idle_share(void)
{
	const struct device_report *device;

	device = timeline_analyse(&timeline);
	cr_assert(timeline.model.inferred && timeline.model.devices.items[0].inferred);
	return (double)device->idle_ns / (device->window_end_ns - device->window_start_ns);
}

/* Not as an argument of an assertion: that may take it twice. */
static void expect_idle(double expected, double tolerance)
{
	double share = idle_share();

	cr_assert_float_eq(share, expected, tolerance, "%g, not %g", share, expected);
}

static void expect_idle_below(double limit)
{
	double share = idle_share();

	cr_assert_lt(share, limit);
}

static void expect_idle_above(double limit)
{
	double share = idle_share();

	cr_assert_gt(share, limit);
}

static bool said(const char *words)
{
	const uint32_t *line;

	array_for_each (line, &timeline.model.degraded) {
		if (strstr(model_string(&timeline.model, *line), words))
			return true;
	}
	return false;
}

Test(infer, idle_from_a_return_to_the_next_launch)
{
	for (int i = 0; i < 10; i++) {
		launch(1);
		wait_for(4 * MS);
		now += 6 * MS - 5 * US;
	}
	expect_idle(54.0 / 94, 0.01);
	cr_assert(said("0.054 s are certain") && said("0.000 s estimated"));
}

/* Two processes by turns: what is idle for one is not for the GPU, and one line tells of both. */
Test(infer, idle_time_of_two_processes_is_that_of_both)
{
	uint32_t threads[2] = {thread, timeline_process(&timeline, 200, 0, "eval")};
	struct model *model = &timeline.model;

	for (int i = 0; i < 2; i++)
		model->processes.items[model->threads.items[threads[i]].process].comm =
		    model->threads.items[threads[i]].comm;
	for (int i = 0; i < 20; i++) {
		thread = threads[i & 1];
		launch(1);
		wait_for(4 * MS);
		now += 1 * MS - 5 * US;
	}
	expect_idle(19.0 / 99, 0.01);
	cr_assert(said("GPU times of train (100), eval (200) are inferred"));
	cr_assert(said("0.019 s are certain") && said("0.000 s estimated"));
}

Test(infer, late_waits_alone_show_nothing)
{
	late_steps(20, 1);
	expect_idle_below(0.01);
	cr_assert(said("0.000 s estimated"));
}

Test(infer, a_wait_at_once_for_the_same_work_bounds_late_ones)
{
	launch(1);
	wait_for(2 * MS);
	late_steps(20, 1);
	expect_idle(152.0 / 194, 0.01);
	cr_assert(said("0.000 s are certain") && said("0.152 s estimated"));
}

Test(infer, other_work_bounds_nothing)
{
	launch(2);
	wait_for(2 * MS);
	late_steps(20, 1);
	expect_idle_below(0.01);
}

/* One function launched with a small grid, and then with one whose length nobody saw. */
Test(infer, another_grid_bounds_nothing)
{
	launch(1);
	wait_for(2 * MS);
	work = 2;
	late_steps(20, 1);
	expect_idle_below(0.01);
	cr_assert(said("0.000 s estimated"));
}

Test(infer, the_same_grid_among_others_bounds_late_ones)
{
	launch(1);
	wait_for(2 * MS);
	work = 2;
	launch(1);
	wait_for(8 * MS);
	late_steps(20, 1);
	expect_idle(38.0 / 200, 0.02);
}

Test(infer, a_launch_of_unknown_size_bounds_nothing)
{
	work = 0;
	launch(1);
	wait_for(2 * MS);
	late_steps(20, 1);
	expect_idle_below(0.01);
}

/* A graph is taken to launch the same each time. */
Test(infer, a_graph_needs_no_size)
{
	work = 0;
	call("cudaGraphLaunch", 5 * US, 1);
	wait_for(2 * MS);
	for (int i = 0; i < 20; i++) {
		uint64_t start = now;

		call("cudaGraphLaunch", 5 * US, 1);
		now = start + STEP;
		wait_for(LATE);
	}
	expect_idle(152.0 / 194, 0.01);
}

/* A copy that was measured with the launch does not bound a larger one. */
Test(infer, a_larger_copy_is_not_the_same)
{
	call("cudaMemcpyAsync", 5 * US, 1);
	launch(1);
	wait_for(2 * MS);
	for (int i = 0; i < 20; i++) {
		uint64_t start = now;

		work = 1000;
		call("cudaMemcpyAsync", 5 * US, 1);
		work = 1;
		launch(1);
		now = start + STEP;
		wait_for(LATE);
	}
	expect_idle_below(0.02);
}

Test(infer, ten_steps_in_one_go_bound_one_by_a_tenth)
{
	for (int i = 0; i < 10; i++)
		launch(1);
	wait_for(20 * MS);
	late_steps(20, 1);
	expect_idle(160.0 / 220, 0.03);
}

/* Half as many launches more are not the same work. */
Test(infer, work_with_much_more_in_it_bounds_nothing)
{
	launch(1);
	launch(2);
	wait_for(2 * MS);
	late_steps(20, 1);
	expect_idle_below(0.01);
}

Test(infer, copies_that_were_not_measured_last_to_their_wait)
{
	launch(1);
	wait_for(2 * MS);
	for (int i = 0; i < 20; i++) {
		uint64_t start = now;

		call("cudaMemcpyAsync", 5 * US, 1);
		launch(1);
		now = start + STEP;
		wait_for(LATE);
	}
	expect_idle_below(0.02);
}

/* The first wait saw the function with little to do; the others that were held up show that it takes longer.
 */
Test(infer, held_up_waits_that_show_more_take_the_estimate_back)
{
	launch(1);
	wait_for(1 * MS);
	for (int i = 0; i < 10; i++) {
		late_steps(2, 1);
		launch(1);
		wait_for(i % 2 ? 9 * MS : 5 * MS);
	}
	/* 9 ms, the most that was seen, and not 1: of 250 ms in steps that were seen late 20 are left. */
	expect_idle_below(0.1);
}

/* One wait in ten that returns late (no CPU) is no such evidence. */
Test(infer, a_single_late_return_does_not)
{
	for (int i = 0; i < 20; i++) {
		late_steps(2, 1);
		launch(1);
		wait_for(i == 7 ? 9 * MS : 2 * MS);
	}
	expect_idle_above(0.6);
}

/* ---- queries ---- */

static void query(const char *function, uint64_t object, int32_t result)
{
	struct thread *owner = &timeline.model.threads.items[thread];
	struct call *added;

	call(function, 2 * US, object);
	added = &owner->calls.items[owner->calls.count - 1];
	added->arguments |= CALL_HAS_RESULT;
	added->result = result;
}

#define READY     0
#define NOT_READY 600

Test(infer, idle_from_ready_to_the_next_launch)
{
	for (int i = 0; i < 10; i++) {
		launch(1);
		call("cudaEventRecord", 2 * US, 5);
		now += 4 * MS;
		query("cudaEventQuery", 5, READY);
		now += 6 * MS - 9 * US;
	}
	/* The last operation ends at the last query. */
	expect_idle(54.0 / 94, 0.01);
	cr_assert(said("0.054 s are certain") && said("0.000 s estimated"));
}

Test(infer, a_stream_that_is_ready)
{
	for (int i = 0; i < 10; i++) {
		launch(1);
		now += 4 * MS;
		query("cuStreamQuery", 0, READY);
		now += 6 * MS - 7 * US;
	}
	expect_idle(54.0 / 94, 0.01);
}

Test(infer, not_ready_ends_nothing)
{
	for (int i = 0; i < 10; i++) {
		launch(1);
		call("cudaEventRecord", 2 * US, 5);
		now += 4 * MS;
		query("cudaEventQuery", 5, NOT_READY);
		now += 6 * MS;
	}
	expect_idle_below(0.01);
}

/* Neither an error nor an unknown result says anything, nor a query about an event that nobody recorded. */
Test(infer, other_results_of_a_query_show_nothing)
{
	for (int i = 0; i < 10; i++) {
		launch(1);
		call("cudaEventRecord", 2 * US, 5);
		now += 4 * MS;
		query("cudaEventQuery", 5, 700);
		query("cudaEventQuery", 6, READY);
		call("cudaEventQuery", 2 * US, 5);
		now += 6 * MS;
	}
	expect_idle_below(0.01);
}

Test(infer, a_synchronisation_that_failed_shows_nothing)
{
	for (int i = 0; i < 10; i++) {
		launch(1);
		now += 4 * MS;
		query("cudaStreamSynchronize", 0, 700);
		now += 6 * MS;
	}
	expect_idle_below(0.01);
}

/* An event stands for what came before it: what was launched behind it goes on. */
Test(infer, ready_covers_what_was_before_the_event)
{
	for (int i = 0; i < 10; i++) {
		launch(1);
		call("cudaEventRecord", 2 * US, 5);
		launch(1);
		now += 4 * MS;
		query("cudaEventQuery", 5, READY);
		now += 6 * MS;
	}
	expect_idle_below(0.01);
}

/* Another thread records the event anew while it is asked for: the answer may be about what was before. */
Test(infer, an_event_that_is_recorded_anew_meanwhile_shows_nothing)
{
	uint32_t asking = thread, other = timeline_thread(&timeline, 100, 101, "other");

	for (int i = 0; i < 10; i++) {
		launch(1);
		now += 4 * MS;
		query("cudaEventQuery", 5, READY);
		now -= 1 * US;
		thread = other;
		call("cudaEventRecord", 0, 5);
		thread = asking;
		now += 6 * MS;
	}
	expect_idle_below(0.01);
}

/* One look showed the function short; that others were not over for longer takes the estimate back. */
Test(infer, not_ready_is_held_against_estimates)
{
	launch(1);
	wait_for(1 * MS);
	for (int i = 0; i < 20; i++) {
		uint64_t start = now;

		launch(1);
		call("cudaEventRecord", 2 * US, 5);
		query("cudaEventQuery", 5, NOT_READY);
		now = start + 9 * MS;
		query("cudaEventQuery", 5, NOT_READY);
		now = start + STEP;
		wait_for(LATE);
	}
	expect_idle_below(0.12);
}

/* The same without the queries is taken for idle. */
Test(infer, without_queries_the_estimate_stays)
{
	launch(1);
	wait_for(1 * MS);
	late_steps(20, 1);
	expect_idle_above(0.8);
}

/* A query that took long for want of a CPU has not waited for the GPU. */
Test(infer, a_slow_query_is_no_wait)
{
	launch(1);
	wait_for(1 * MS);
	for (int i = 0; i < 20; i++) {
		launch(1);
		now += 1 * MS;
		query("cudaStreamQuery", 0, READY);
		timeline.model.threads.items[thread]
		    .calls.items[timeline.model.threads.items[thread].calls.count - 1]
		    .exit_ns += 8 * MS;
		now += 9 * MS;
	}
	expect_idle_above(0.8);
}

/* ---- default streams ---- */

/* What the last call gave as its stream. */
static void on_stream(uint64_t stream)
{
	struct thread *owner = &timeline.model.threads.items[thread];

	owner->calls.items[owner->calls.count - 1].stream = stream;
}

/* A launch of one thread that nobody waits for, and steps of another one; idle is left only where all is
 * over. */
static void two_threads(const char *launches, const char *waits, uint64_t stream)
{
	uint32_t first = thread, second = timeline_thread(&timeline, 100, 101, "other");

	call(launches, 5 * US, 1);
	on_stream(stream);
	thread = second;
	for (int i = 0; i < 10; i++) {
		call(launches, 5 * US, 1);
		on_stream(stream);
		call(waits, 4 * MS, 0);
		on_stream(stream);
		now += 6 * MS;
	}
	thread = first;
}

Test(infer, a_threads_own_default_stream_is_not_the_others)
{
	two_threads("cudaLaunchKernel", "cudaStreamSynchronize", 2);
	expect_idle_below(0.01);
}

Test(infer, functions_of_per_thread_streams_mean_them_by_zero)
{
	two_threads("cudaLaunchKernel_ptsz", "cudaStreamSynchronize_ptsz", 0);
	expect_idle_below(0.01);
}

Test(infer, the_legacy_stream_has_two_names)
{
	uint32_t first = thread;

	two_threads("cudaLaunchKernel", "cudaStreamSynchronize", 0);
	timeline.model.threads.items[first].calls.items[0].stream = 1;
	expect_idle_above(0.5);
}
