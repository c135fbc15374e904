// SPDX-License-Identifier: GPL-2.0-only
/* The walk: how far it goes, in which states a thread was, and whose time it is. */
#include <linux/futex.h>
#include <stdio.h>

#include "attribute/walk.h"
#include "gap_fixture.h"

TestSuite(walk, .init = gap_setup, .fini = gap_teardown);

/* ---- how far ---- */

Test(walk, a_knot_of_three_ends_where_it_closes)
{
	uint32_t one = other_thread(101), two = other_thread(102);

	timeline_futex(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, one, 0x1000);
	timeline_futex(&line, one, 9 * MS, 18 * MS, 18 * MS, two, 0x1008);
	timeline_futex(&line, two, 8 * MS, 17 * MS, 17 * MS, main_thread, 0x1010);
	end_gap();
	timeline_analyse(&line);
	/* It closes in the second thread, which is told: nobody outside is to blame. */
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD, 7 * MS);
	cr_assert_eq(cause_there(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD)->threads.items[0].tid, 102);
	cr_assert_eq(cause_there(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD)->confidence, CONFIDENCE_LOW);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 2 * MS);
}

/* Each of `count` threads, of which main is the first, waits for the next; the last one runs. */
static void chain_of(uint32_t count)
{
	uint32_t thread = main_thread;

	for (uint32_t i = 1; i < count; i++) {
		uint64_t wake = 19 * MS - i * 20 * US;
		uint32_t next = other_thread(MAIN + i);

		timeline_futex(&line, thread, 9 * MS, wake, wake, next, 0x1000 + 8 * i);
		thread = next;
	}
	end_gap();
	timeline_analyse(&line);
}

Test(walk, a_chain_of_sixteen_threads_is_followed_to_its_end)
{
	chain_of(16);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 9 * MS - 20 * US);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD, 0);
}

Test(walk, a_chain_ends_at_the_sixteenth_thread)
{
	chain_of(17);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD, 9 * MS - 16 * 20 * US);
	cr_assert_eq(cause_there(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD)->threads.items[0].tid, MAIN + 15);
}

/* ---- what was recorded ---- */

/* Main waits from 10 to 19 ms for the thread, or its twin. */
static uint32_t waited_for(void)
{
	uint32_t other = other_thread(101);

	timeline_futex(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, other, 0x1000);
	end_gap();
	return other;
}

Test(walk, a_thread_that_was_not_recorded_did_nothing_known)
{
	line.model.threads.items[waited_for()].tracked = false;
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD, 9 * MS);
}

/* The record of its birth may be what was lost. */
Test(walk, a_thread_that_was_not_recorded_may_be_lost)
{
	line.model.threads.items[waited_for()].tracked = false;
	timeline_lost(&line, RECORD_LOSS_BPF_RING, 1 * MS, 2 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_LOST, ROLE_THREAD, 9 * MS);
}

Test(walk, a_thread_is_not_blamed_for_what_was_before_its_birth)
{
	line.model.threads.items[waited_for()].start_ns = 14 * MS;
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD, 4 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 5 * MS);
}

Test(walk, what_a_thread_did_before_it_was_recorded_is_not_known)
{
	line.model.threads.items[waited_for()].tracked_from_ns = 13 * MS;
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_BEFORE_TRACE, ROLE_THREAD, 3 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 6 * MS);
}

/* Another thread has the number now; it did not live when main was woken. */
Test(walk, of_two_threads_with_one_number_the_older_one_is_found)
{
	uint32_t old = waited_for(), new = other_thread(101);

	line.model.threads.items[old].end_ns = 22 * MS;
	line.model.threads.items[new].start_ns = 22 * MS;
	timeline_sleep(&line, old, 10 * MS, 12 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 2 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 7 * MS);
}

/* A launching thread that is gone when the gap ends: the launch call was the last that is known of it. */
Test(walk, a_thread_is_not_blamed_for_what_was_after_its_end)
{
	line.model.threads.items[main_thread].end_ns = 14 * MS;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 4 * MS);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_LAUNCHER, 6 * MS - 5 * US);
}

/* ---- states ---- */

/* Of two that had its CPU while it was away, the one that took it at first kept it from running when it was
 * preempted, and the one that had it at last when it had been woken. */
Test(walk, who_had_the_cpu_depends_on_why_the_thread_left_it)
{
	uint32_t first = timeline_process(&line, 300, 0, "first");
	uint32_t last = timeline_process(&line, 400, 0, "last");
	struct offcpu *away = timeline_preempted(&line, main_thread, 11 * MS, 17 * MS, first);

	away->prev_tid = line.model.threads.items[last].tid;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 6 * MS);
	cr_assert_str_eq(timeline_top(&line)->detail.holder, "first (300)");

	gap_again();
	timeline_process(&line, 300, 0, "first");
	timeline_process(&line, 400, 0, "last");
	away = timeline_sleep(&line, main_thread, 11 * MS, 18 * MS);
	away->wake_ns = 12 * MS;
	away->next_tid = 300;
	away->prev_tid = 400;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 6 * MS);
	cr_assert_str_eq(timeline_top(&line)->detail.holder, "last (400)");
}

/* A wake on an idle CPU is part of the wait for a millisecond, and no longer. */
Test(walk, a_wake_takes_a_millisecond_at_most)
{
	timeline_sleep(&line, main_thread, 10 * MS, 13 * MS)->wake_ns = 12 * MS;
	timeline_sleep(&line, main_thread, 14 * MS, 17 * MS + 1)->wake_ns = 16 * MS;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 5 * MS);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 1 * MS + 1);
}

/* A quota that runs out while a thread was blocked keeps it from running after the wake, and not before. */
Test(walk, a_throttled_thread_is_throttled_only_while_it_is_ready)
{
	struct offcpu *sleep = timeline_sleep(&line, main_thread, 11 * MS, 18 * MS);

	sleep->wake_ns = 13 * MS;
	sleep->throttled = true;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 2 * MS);
	assert_ns(CAUSE_SCHED_THROTTLED, ROLE_LAUNCHER, 5 * MS);
}

/* ---- roles ---- */

Test(walk, a_workers_child_is_a_worker)
{
	uint32_t grandchild;

	timeline_process(&line, WORKER, MAIN, "loader");
	grandchild = timeline_process(&line, 300, WORKER, "decoder");
	timeline_pipe(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, grandchild);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_WORKER, 9 * MS);
}

Test(walk, a_parent_is_no_worker)
{
	uint32_t child = timeline_process(&line, WORKER, MAIN, "trainer");

	timeline_pipe(&line, child, 10 * MS, 19 * MS, 19 * MS, main_thread);
	timeline_kernel(&line, child, 20 * MS - 5 * US, 20 * MS, 21 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_PROCESS, 9 * MS);
}

/* Main waits for a thread that launched once, beside `launches` of main. */
static void waits_for_one_launch_in(uint32_t launches)
{
	uint32_t other = waited_for();

	for (uint32_t i = 2; i + 1 < launches; i++) /* two are the fixture's, one is the other's */
		timeline_call(&line, main_thread, "cudaLaunchKernel", 1 * MS + i * 10 * US,
		              1 * MS + i * 10 * US + 1 * US, 0);
	timeline_call(&line, other, "cudaLaunchKernel", 1 * MS, 1 * MS + 1 * US, 0);
	timeline_analyse(&line);
}

Test(walk, a_thread_with_more_than_a_hundredth_of_the_launches_is_a_launcher)
{
	waits_for_one_launch_in(99);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 0);
	gap_again();
	waits_for_one_launch_in(100);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 9 * MS);
}

/* The queue is empty: the launchers' own code is what the GPU waits for, and that of others is not. */
Test(walk, only_a_launchers_code_is_serial)
{
	timeline_call(&line, main_thread, "cudaStreamSynchronize", 2 * MS, 10 * MS, 0);
	waited_for();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 9 * MS);
	assert_ns(CAUSE_HOST_SYNC_THEN_SERIAL, ROLE_LAUNCHER, 1 * MS - 5 * US);
}

/* ---- how sure ---- */

static enum confidence confidence_of_thread(void)
{
	end_gap();
	timeline_analyse(&line);
	return cause_there(CAUSE_HOST_USER_CODE, ROLE_THREAD)->confidence;
}

Test(walk, a_wake_is_sure_if_it_is_about_the_same_word)
{
	timeline_futex(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, other_thread(101), 0x1000);
	cr_assert_eq(confidence_of_thread(), CONFIDENCE_HIGH);
	gap_again();
	timeline_futex(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, other_thread(101), 0x1000)
	    ->waker_args[0] = 0x2000;
	cr_assert_eq(confidence_of_thread(), CONFIDENCE_MEDIUM);
}

Test(walk, a_wake_is_sure_if_it_is_about_the_same_pipe)
{
	timeline_pipe(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, other_thread(101));
	cr_assert_eq(confidence_of_thread(), CONFIDENCE_HIGH);
	gap_again();
	timeline_pipe(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, other_thread(101))->waker_object = 78;
	cr_assert_eq(confidence_of_thread(), CONFIDENCE_MEDIUM);
}

Test(walk, a_wake_without_a_stack_is_not_sure)
{
	timeline_futex(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, other_thread(101), 0x1000)
	    ->waker_kstack = MODEL_NONE;
	cr_assert_eq(confidence_of_thread(), CONFIDENCE_LOW);
}

/* What lies behind an edge that is not sure is not sure either, and what lies beside it is. */
Test(walk, a_chain_is_as_sure_as_its_weakest_edge)
{
	uint32_t near = other_thread(101), far = timeline_process(&line, WORKER, MAIN, "loader");

	timeline_futex(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, near, 0x1000)->waker_args[0] = 0x2000;
	timeline_pipe(&line, near, 10 * MS, 18 * MS, 18 * MS, far);
	end_gap();
	timeline_analyse(&line);
	cr_assert_eq(cause_there(CAUSE_HOST_USER_CODE, ROLE_WORKER)->confidence, CONFIDENCE_MEDIUM);
	cr_assert_eq(cause_there(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER)->confidence, CONFIDENCE_HIGH);
}

/* ---- CPUs that the hypervisor takes away ---- */

Test(walk, stolen_time_is_not_the_code_that_had_the_cpu)
{
	timeline_stolen(&line, main_thread, 12 * MS, 15 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_STEAL, ROLE_LAUNCHER, 3 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, HOST_PART - 3 * MS);
	cr_assert_eq(cause_there(CAUSE_SCHED_STEAL, ROLE_LAUNCHER)->confidence, CONFIDENCE_HIGH);
}

Test(walk, stolen_time_counts_within_the_gap_only)
{
	timeline_stolen(&line, main_thread, 7 * MS, 11 * MS);
	timeline_stolen(&line, main_thread, 18 * MS, 30 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_STEAL, ROLE_LAUNCHER, 1 * MS + HOST_PART - 8 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 7 * MS);
}

Test(walk, time_stolen_from_who_was_waited_for_is_found_there)
{
	uint32_t other = waited_for();

	timeline_stolen(&line, other, 12 * MS, 14 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_STEAL, ROLE_THREAD, 2 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 7 * MS);
}

/* A thread that is off the CPU for reasons of its own lost nothing: a damaged file may say so. */
Test(walk, nothing_is_stolen_from_a_thread_that_is_blocked)
{
	timeline_sleep(&line, main_thread, 10 * MS, 19 * MS);
	timeline_stolen(&line, main_thread, 12 * MS, 15 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_STEAL, ROLE_LAUNCHER, 0);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 9 * MS);
}

/* An idle CPU was to take it, and came back late: what is left of the way is the wake's, so the wait's. */
Test(walk, an_idle_cpu_that_comes_back_late_was_stolen)
{
	struct offcpu *wait = timeline_blocked(&line, main_thread, 10 * MS, 14 * MS, 17 * MS, "do_nanosleep",
	                                       MODEL_NONE, "hrtimer_wakeup");

	wait->prev_tid = 0;
	timeline_stolen(&line, main_thread, 14 * MS + 100 * US, 17 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_STEAL, ROLE_LAUNCHER, 3 * MS - 100 * US);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 4 * MS + 100 * US);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 0);
}

/* As a damaged file may have them. */
Test(walk, stolen_times_that_overlap_count_once)
{
	timeline_stolen(&line, main_thread, 13 * MS, 16 * MS);
	timeline_stolen(&line, main_thread, 12 * MS, 14 * MS);
	timeline_stolen(&line, main_thread, 15 * MS, 14 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_STEAL, ROLE_LAUNCHER, 4 * MS);
}
