// SPDX-License-Identifier: GPL-2.0-only
/* What replay takes for a dependency, edge by edge (docs/attribution.md, "Gain"). */
#include <linux/futex.h>

#include "attribute/replay_graph.h"
#include "gap_fixture.h"

#define THREADS_MOST 8

static struct replay_graph graph;

static void teardown(void)
{
	replay_graph_free(&graph);
	gap_teardown();
}

TestSuite(replay_graph, .init = gap_setup, .fini = teardown);

/* Of all that the timeline holds; every thread takes part. Once a test, as the last thing that is done to the
 * line. */
static void make_graph(void)
{
	const struct device *device = &line.model.devices.items[0];
	bool seen[THREADS_MOST];
	struct replay_threads threads = {seen};
	struct gap_list gaps = {0};
	struct launch_floor floor;
	struct error error = {0};

	memset(seen, true, sizeof(seen));
	cr_assert_leq(line.model.threads.count, THREADS_MOST);
	cr_assert_eq(model_finish(&line.model, &error), 0);
	cr_assert_eq(gap_list_make(&gaps, device, 0, 40 * MS), 0);
	launch_floor_measure(&floor, &line.model, device, &gaps);
	cr_assert_eq(floor.submit_ns, 5 * US);
	cr_assert_eq(replay_graph_make(&graph, &line.model, 0, 0, 40 * MS, &floor, &threads), 0);
	gap_list_free(&gaps);
}

/* A kernel in a stream; `submit_ns` from the entry of its call to its start. */
static void kernel(uint32_t stream, uint64_t start, uint64_t end, uint64_t submit_ns)
{
	struct device *device = &line.model.devices.items[0];

	timeline_kernel(&line, main_thread, start - submit_ns, start, end);
	device->ops.items[device->ops.count - 1].stream = stream;
}

/* The operation that starts at a time. */
static const struct replay_op *op_at(uint64_t start)
{
	const struct replay_op *op;

	array_for_each (op, &graph.ops) {
		if (op->start_ns == start)
			return op;
	}
	cr_assert(false, "no operation starts at %lu", start);
	return NULL;
}

static const struct replay_op *previous_of(const struct replay_op *op)
{
	return op->previous == MODEL_NONE ? NULL : &graph.ops.items[op->previous];
}

/* Time of the launch event of an operation, 0 if there is none. */
static uint64_t launch_of(const struct replay_op *op)
{
	const struct replay_event *event;

	array_for_each (event, &graph.events) {
		if (event->kind == REPLAY_LAUNCH && event->item == op->launch)
			return event->time_ns;
	}
	return 0;
}

/* The wait of a thread that ended at a time, NULL if it depends on no other. */
static const struct replay_wait *wait_at(uint32_t thread, uint64_t wake)
{
	const struct replay_event *event;

	array_for_each (event, &graph.events) {
		if (event->kind == REPLAY_WAIT && event->time_ns == wake &&
		    graph.slots.items[event->slot].thread == thread)
			return &graph.waits.items[event->item];
	}
	return NULL;
}

static uint32_t waker_of(uint32_t thread, uint64_t wake)
{
	const struct replay_wait *wait = wait_at(thread, wake);

	return wait ? graph.slots.items[wait->waker].thread : MODEL_NONE;
}

/* Start of the operation that a call which is back at a time waited for, 0 if it waited for none. */
static uint64_t awaited_by(uint64_t exit)
{
	const struct replay_sync *sync;

	array_for_each (sync, &graph.syncs) {
		if (sync->exit_ns == exit)
			return graph.ops.items[sync->op].start_ns;
	}
	return 0;
}

/* ---- operations ---- */

Test(replay_graph, an_operation_follows_its_launch_by_the_floor_or_less)
{
	kernel(7, 20 * MS, 21 * MS, 5 * US);
	kernel(8, 22 * MS, 23 * MS, 3 * US);
	kernel(9, 24 * MS, 25 * MS, 100 * US);
	make_graph();
	cr_assert_eq(op_at(20 * MS)->submit_ns, 5 * US);
	cr_assert_eq(op_at(20 * MS)->residual_ns, 0);
	cr_assert_eq(op_at(22 * MS)->submit_ns, 3 * US);
	cr_assert_eq(op_at(24 * MS)->submit_ns, 5 * US);
	cr_assert_eq(op_at(24 * MS)->residual_ns, 95 * US, "what nothing explains");
	cr_assert_eq(launch_of(op_at(24 * MS)), 24 * MS - 100 * US);
}

Test(replay_graph, an_operation_follows_the_one_before_it_in_its_stream)
{
	kernel(7, 20 * MS, 21 * MS, 5 * US);
	kernel(8, 22 * MS, 23 * MS, 5 * US);
	kernel(7, 24 * MS, 25 * MS, 5 * US);
	make_graph();
	cr_assert_eq(previous_of(op_at(24 * MS)), op_at(20 * MS));
	cr_assert_null(previous_of(op_at(22 * MS)));
	cr_assert_eq(previous_of(op_at(20 * MS)), op_at(1 * MS));
}

/* Three that were queued came 1, 3 and 4 µs after the one before: 3 is usual, and more than that is not
 * explained. */
Test(replay_graph, queued_operations_follow_each_other_as_they_usually_do)
{
	kernel(7, 20 * MS, 21 * MS, 1 * MS);
	kernel(7, 21 * MS + 1 * US, 22 * MS, 1900 * US);
	kernel(7, 22 * MS + 3 * US, 23 * MS, 2800 * US);
	kernel(7, 23 * MS + 4 * US, 24 * MS, 3700 * US);
	make_graph();
	cr_assert_eq(op_at(21 * MS + 1 * US)->between_ns, 1 * US, "or less if it was less");
	cr_assert_eq(op_at(22 * MS + 3 * US)->between_ns, 3 * US);
	cr_assert_eq(op_at(23 * MS + 4 * US)->between_ns, 3 * US);
	cr_assert_eq(op_at(23 * MS + 4 * US)->residual_ns, 1 * US);
}

/* For the driver's lock, say: it had not submitted before. */
Test(replay_graph, a_call_submits_after_its_last_wait)
{
	uint32_t correlation = line.correlation++;

	timeline_call(&line, main_thread, "cudaLaunchKernel", 11 * MS, 19 * MS, correlation);
	timeline_futex(&line, main_thread, 12 * MS, 18 * MS, 18 * MS, other_thread(101), 0x1000);
	timeline_op(&line, MAIN, 18 * MS + 5 * US, 20 * MS, correlation);
	make_graph();
	cr_assert_eq(launch_of(op_at(18 * MS + 5 * US)), 18 * MS);
}

/* Queued, and begun just after the end of another stream's operation. */
static void behind_another_stream(uint64_t lag_ns, uint64_t submit_ns)
{
	kernel(8, 20 * MS, 21 * MS, 5 * US);
	kernel(9, 21 * MS + lag_ns, 22 * MS, submit_ns);
	make_graph();
}

Test(replay_graph, an_operation_that_begins_as_another_ends_probably_waited_for_it)
{
	behind_another_stream(5 * US, 500 * US);
	cr_assert_eq(op_at(21 * MS + 5 * US)->inferred, op_at(20 * MS) - graph.ops.items);
	cr_assert_eq(op_at(21 * MS + 5 * US)->lag_ns, 5 * US);
	cr_assert_eq(op_at(21 * MS + 5 * US)->residual_ns, 0);
}

Test(replay_graph, an_operation_that_begins_later_did_not_wait_for_another)
{
	behind_another_stream(5 * US + 1, 500 * US);
	cr_assert_eq(op_at(21 * MS + 5 * US + 1)->inferred, MODEL_NONE);
	cr_assert_eq(op_at(21 * MS + 5 * US + 1)->residual_ns, 495 * US);
}

Test(replay_graph, an_operation_that_its_launch_explains_did_not_wait_for_another)
{
	behind_another_stream(1 * US, 6500);
	cr_assert_eq(op_at(21 * MS + 1 * US)->inferred, MODEL_NONE);
}

/* ---- calls that wait for operations ---- */

static void synchronises(const char *function, uint64_t enter, uint64_t exit)
{
	kernel(7, 20 * MS, 25 * MS, 5 * US);
	timeline_call(&line, main_thread, function, enter, exit, 0);
	make_graph();
}

Test(replay_graph, a_synchronisation_waits_for_what_ended_last)
{
	synchronises("cudaStreamSynchronize", 21 * MS, 25 * MS + 10 * US);
	cr_assert_eq(awaited_by(25 * MS + 10 * US), 20 * MS);
}

/* The ends of a call and of an operation come from different clocks' readings. */
Test(replay_graph, a_synchronisation_may_seem_to_be_back_first)
{
	synchronises("cudaStreamSynchronize", 21 * MS, 25 * MS - 19 * US);
	cr_assert_eq(awaited_by(25 * MS - 19 * US), 20 * MS);
}

Test(replay_graph, a_copy_that_is_back_first_did_not_wait)
{
	synchronises("cudaMemcpyAsync", 21 * MS, 25 * MS - 19 * US);
	cr_assert_eq(awaited_by(25 * MS - 19 * US), 0);
}

Test(replay_graph, a_synchronisation_that_is_late_waited_for_something_else)
{
	synchronises("cudaStreamSynchronize", 21 * MS, 25500 * US + 1);
	cr_assert_eq(awaited_by(25500 * US + 1), 0);
}

Test(replay_graph, a_synchronisation_does_not_wait_for_what_is_over)
{
	synchronises("cudaStreamSynchronize", 25 * MS + 1, 25 * MS + 100 * US);
	cr_assert_eq(awaited_by(25 * MS + 100 * US), 0);
}

Test(replay_graph, a_launch_waits_for_no_operation)
{
	synchronises("cudaLaunchKernel", 21 * MS, 25 * MS + 10 * US);
	cr_assert_eq(awaited_by(25 * MS + 10 * US), 0);
}

/* ---- threads ---- */

Test(replay_graph, a_thread_follows_the_one_that_woke_it)
{
	uint32_t other = other_thread(101);

	timeline_futex(&line, main_thread, 11 * MS, 15 * MS, 15 * MS, other, 0x1000);
	timeline_sleep(&line, main_thread, 16 * MS, 17 * MS);
	end_gap();
	make_graph();
	cr_assert_eq(waker_of(main_thread, 15 * MS), other);
	cr_assert_eq(wait_at(main_thread, 15 * MS)->out_ns, 11 * MS);
	cr_assert_not(wait_at(main_thread, 15 * MS)->lock);
	cr_assert_eq(waker_of(main_thread, 17 * MS), MODEL_NONE, "a sleep is its own");
}

Test(replay_graph, a_thread_follows_whoever_let_its_lock_go)
{
	uint32_t other = other_thread(101);

	wait_for_lock_at(main_thread, 11 * MS, 15 * MS, other, 0x2000);
	end_gap();
	make_graph();
	cr_assert_eq(waker_of(main_thread, 15 * MS), other);
	cr_assert(wait_at(main_thread, 15 * MS)->lock);
}

/* What the driver waits for there is no edge of the program. */
Test(replay_graph, a_wait_inside_a_call_is_the_threads_own)
{
	timeline_call(&line, main_thread, "cudaMalloc", 11 * MS, 16 * MS, 0);
	timeline_futex(&line, main_thread, 12 * MS, 15 * MS, 15 * MS, other_thread(101), 0x1000);
	end_gap();
	make_graph();
	cr_assert_eq(waker_of(main_thread, 15 * MS), MODEL_NONE);
}

/* In a process that does not launch, whoever had the interpreter lock was the one that made the data. */
Test(replay_graph, the_interpreter_lock_of_a_worker_leads_to_its_holder)
{
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0");
	uint32_t feeder = timeline_thread(&line, WORKER, 201, "feeder");

	other_thread(101); /* runs all the time */
	timeline_blocked(&line, feeder, 10 * MS, 15 * MS, 15 * MS, "futex_do_wait", MODEL_NONE,
	                 "hrtimer_wakeup");
	timeline_blocked(&line, main_thread, 10 * MS, 15 * MS, 15 * MS, "futex_do_wait", MODEL_NONE,
	                 "hrtimer_wakeup");
	end_gap();
	make_graph();
	cr_assert_eq(waker_of(feeder, 15 * MS), worker);
	cr_assert_eq(waker_of(main_thread, 15 * MS), MODEL_NONE, "the launcher's is the launcher's");
}

Test(replay_graph, a_thread_follows_whoever_made_it)
{
	uint32_t thread = other_thread(101), child = timeline_process(&line, WORKER, MAIN, "child");

	line.model.threads.items[thread].start_ns = 12 * MS;
	line.model.threads.items[child].start_ns = 13 * MS;
	end_gap();
	make_graph();
	cr_assert_eq(waker_of(thread, 12 * MS), main_thread);
	cr_assert_eq(waker_of(child, 13 * MS), main_thread);
}
