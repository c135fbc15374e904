/* SPDX-License-Identifier: GPL-2.0-only */
/* Gain by replay on timelines whose true gain is plain: twenty steps, of which one cause is taken out. */
#include <criterion/criterion.h>
#include <linux/futex.h>

#include "timeline.h"

#define MAIN   100
#define WORKER 200
#define STEPS  20

static struct timeline line;
static uint32_t main_thread, worker;

static void setup(void)
{
	timeline_begin(&line);
	main_thread = timeline_process(&line, MAIN, 0, "main");
	worker = timeline_process(&line, WORKER, MAIN, "worker");
}

static void teardown(void)
{
	timeline_end(&line);
}

TestSuite(replay, .init = setup, .fini = teardown);

static const struct cause *cause_of(enum cause_code code, enum cause_role role)
{
	const struct cause *cause;

	array_for_each (cause, &line.analysis.devices.items[0].causes) {
		if (cause->code == code && cause->role == role)
			return cause;
	}
	cr_assert(false, "%s@%s is not there", cause_code_name(code), cause_role_name(role));
	return NULL;
}

/* The gain is `expected`: its range, 7.5 % either way, has it within 2 % and 100 µs. */
static void assert_gain(const struct cause *cause, uint64_t expected)
{
	uint64_t slack = expected / 50 + 100 * US, margin = expected * 3 / 40;

	cr_assert(cause->replayed);
	cr_assert(cause->gain_low_ns + slack + margin >= expected && cause->gain_low_ns <= expected + slack,
	          "low gain %lu, expected %lu", cause->gain_low_ns, expected);
	cr_assert(cause->gain_high_ns + slack >= expected && cause->gain_high_ns <= expected + slack + margin,
	          "high gain %lu, expected %lu", cause->gain_high_ns, expected);
	cr_assert_leq(cause->gain_high_ns, cause->ns + cause->ns * 3 / 40);
}

Test(replay, a_sleep_of_the_launcher_is_gained_whole)
{
	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		timeline_kernel(&line, main_thread, t + 9 * MS, t + 9 * MS + 10 * US, t + 10 * MS);
		timeline_sleep(&line, main_thread, t + 500 * US, t + 8500 * US);
	}
	timeline_analyse(&line);
	cr_assert(line.analysis.devices.items[0].replay.accepted);
	/* The first sleep is before the first operation. */
	assert_gain(cause_of(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER), (STEPS - 1) * 8 * MS);
}

/* The host is one step ahead: what it does while the GPU works gives nothing when it is taken out. */
Test(replay, only_what_the_gpu_waited_for_is_gained)
{
	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		timeline_kernel(&line, main_thread, t, t + 10 * US, t + 7 * MS);
		/* 8.9 ms of sleep, of which 2 ms lie in the gap before the next launch. */
		timeline_sleep(&line, main_thread, t + 100 * US, t + 9 * MS);
	}
	timeline_analyse(&line);
	assert_gain(cause_of(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER), (STEPS - 1) * 2 * MS);
}

/*
 * The same steps. All of the gain is no more than the idle time, however much is taken out; a quarter of it
 * tells what was: a quarter of the 2 ms in each gap. A quarter of all 8.9 ms would close the gaps.
 */
Test(replay, of_a_launching_thread_only_what_stands_in_gaps_is_taken_out)
{
	const struct cause *cause;
	uint64_t whole = (STEPS - 1) * 2 * MS;

	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		timeline_kernel(&line, main_thread, t, t + 10 * US, t + 7 * MS);
		timeline_sleep(&line, main_thread, t + 100 * US, t + 9 * MS);
	}
	timeline_analyse(&line);
	cause = cause_of(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER);
	cr_assert(cause->replayed);
	for (uint64_t i = 0; i < CAUSE_CURVE; i++) {
		uint64_t expected = whole * (i + 1) / CAUSE_CURVE;

		cr_assert(cause->gain_curve_ns[i] + 100 * US >= expected &&
		              cause->gain_curve_ns[i] <= expected + 100 * US,
		          "%lu of 4 quarters gain %lu, expected %lu", i + 1, cause->gain_curve_ns[i],
		          expected);
	}
}

/* The worker sleeps 9 ms for each item; main waits for it. `asked`: it begins when main asks for the item. */
static void fed_by_worker(bool asked, uint64_t main_sleep_ns)
{
	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS + (asked ? main_sleep_ns : 0)) {
		uint64_t ask = t + 500 * US + (asked ? main_sleep_ns : 0), ready = ask + 9 * MS;

		timeline_kernel(&line, main_thread, t, t + 10 * US, t + 300 * US);
		if (main_sleep_ns)
			timeline_sleep(&line, main_thread, t + 400 * US, t + 400 * US + main_sleep_ns);
		if (asked && i)
			timeline_pipe(&line, worker, t, ask, ask, main_thread);
		timeline_sleep(&line, worker, ask + 10 * US, ready - 10 * US);
		timeline_pipe(&line, main_thread, t + 450 * US + main_sleep_ns, ready, ready, worker);
	}
}

Test(replay, the_time_of_a_worker_is_gained_where_the_launcher_waits_for_it)
{
	fed_by_worker(true, 0);
	timeline_analyse(&line);
	assert_gain(cause_of(CAUSE_WAIT_SLEEP, ROLE_WORKER), (STEPS - 1) * (9 * MS - 20 * US));
}

/* Twins: the launcher's own sleep counts if the worker begins after it, and not if the worker goes its own
 * pace. */
Test(replay, a_stall_before_a_request_is_gained)
{
	fed_by_worker(true, 3 * MS);
	timeline_analyse(&line);
	/* But for the first item, which nobody asked for. */
	assert_gain(cause_of(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER), (STEPS - 2) * 3 * MS);
}

Test(replay, a_stall_beside_a_worker_that_goes_its_own_pace_is_not_gained)
{
	const struct cause *cause;

	fed_by_worker(false, 3 * MS);
	timeline_analyse(&line);
	cause = cause_of(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER);
	cr_assert_gt(cause->ns, STEPS * 2 * MS, "it does stand in the gaps");
	cr_assert(cause->replayed);
	cr_assert_lt(cause->gain_high_ns, 4 * MS, "gain %lu", cause->gain_high_ns);
	cr_assert(cause->has_next);
	cr_assert_eq(cause->next_code, CAUSE_WAIT_SLEEP);
	cr_assert_eq(cause->next_role, ROLE_WORKER);
}

/* Between one wait for the worker and the next the launcher needs less time than a false wake would. */
Test(replay, waits_that_follow_each_other_closely_each_end_by_their_own_wake)
{
	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		timeline_kernel(&line, main_thread, t, t + 5 * US, t + 300 * US);
		timeline_sleep(&line, worker, t + 30 * US, t + 10 * MS - 30 * US);
		timeline_futex(&line, main_thread, t + 20 * US, t + 10 * MS - 20 * US, t + 10 * MS - 20 * US,
		               worker, 0x3000);
		if (i)
			timeline_futex(&line, worker, t - 10 * US, t + 10 * US, t + 10 * US, main_thread,
			               0x4000);
	}
	timeline_analyse(&line);
	assert_gain(cause_of(CAUSE_WAIT_SLEEP, ROLE_WORKER), (STEPS - 1) * (10 * MS - 300 * US));
}

/*
 * Main waits for what a maker computes. In between somebody else, who goes his own pace, wakes it for
 * nothing, and it has to wait for a CPU before it can see that: it does not depend on him.
 */
Test(replay, who_wakes_for_nothing_is_not_waited_for)
{
	uint32_t maker = timeline_thread(&line, MAIN, 101, "maker");
	uint32_t chatterer = timeline_thread(&line, MAIN, 102, "chatterer");

	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		timeline_kernel(&line, main_thread, t, t + 5 * US, t + 300 * US);
		timeline_sleep(&line, chatterer, t + 10 * US, t + 3 * MS - 10 * US);
		timeline_sleep(&line, chatterer, t + 3 * MS + 10 * US, t + 10 * MS);
		timeline_futex(&line, main_thread, t + 20 * US, t + 3 * MS, t + 3200 * US, chatterer, 0x3000);
		timeline_futex(&line, main_thread, t + 3210 * US, t + 10 * MS - 20 * US,
		               t + 10 * MS - 20 * US, maker, 0x3000);
		if (i)
			timeline_futex(&line, maker, t - 10 * US, t + 10 * US, t + 10 * US, main_thread,
			               0x4000);
	}
	timeline_analyse(&line);
	/* What the wake takes, 0.2 ms, counts as the chatterer's, which is also a thread that runs. */
	assert_gain(cause_of(CAUSE_HOST_USER_CODE, ROLE_THREAD), (STEPS - 1) * (6770 * US + 210 * US));
}

/*
 * Main waits for the network, but once for a peer on the same machine that had an answer from the network
 * itself. Whether that answers main, or came by itself, is not recorded: the gain is all of it or what came
 * after.
 */
Test(replay, what_a_peer_had_from_the_network_may_be_an_answer)
{
	const struct cause *cause;

	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		timeline_kernel(&line, main_thread, t, t + 10 * US, t + 1 * MS);
		timeline_blocked(&line, worker, t + 100 * US, t + 8 * MS, t + 8 * MS, "sk_wait_data",
		                 MODEL_NONE, "sock_def_readable<net_rx_action");
		if (i == STEPS / 2)
			timeline_pipe(&line, main_thread, t + 1 * MS, t + 8100 * US, t + 8100 * US, worker);
		else
			timeline_blocked(&line, main_thread, t + 1 * MS, t + 9 * MS, t + 9 * MS,
			                 "sk_wait_data", MODEL_NONE, "sock_def_readable<net_rx_action");
	}
	timeline_analyse(&line);
	cause = cause_of(CAUSE_WAIT_NETWORK, ROLE_LAUNCHER);
	cr_assert(cause->replayed);
	cr_assert_lt(cause->gain_low_ns, cause->ns * 6 / 10, "low %lu of %lu", cause->gain_low_ns, cause->ns);
	cr_assert_gt(cause->gain_high_ns, cause->ns * 95 / 100, "high %lu of %lu", cause->gain_high_ns,
	             cause->ns);
}

/* Each step the lock goes through three hands, 2 ms each, before the launcher has it. */
Test(replay, a_lock_that_is_handed_on_is_gained_whole)
{
	uint32_t holders[3];

	for (uint32_t i = 0; i < 3; i++)
		holders[i] = timeline_thread(&line, MAIN, 101 + i, "holder");
	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		for (uint32_t h = 0; h < 3; h++) {
			uint64_t from = t + 1 * MS + h * 2 * MS;
			struct offcpu *wait;

			if (i)
				timeline_futex(&line, holders[h], t - 5 * MS + h * MS, t + 900 * US,
				               t + 900 * US, main_thread, 0x4000 + h);
			if (h) {
				wait = timeline_futex(&line, holders[h], t + 910 * US, from, from,
				                      holders[h - 1], 0x2000);
				wait->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
				wait->args[2] = 2;
			}
			timeline_sleep(&line, holders[h], from + 10 * US, from + 2 * MS - 10 * US);
		}
		timeline_kernel(&line, main_thread, t, t + 5 * US, t + 500 * US);
		struct offcpu *wait = timeline_futex(&line, main_thread, t + 1 * MS, t + 7 * MS, t + 7 * MS,
		                                     holders[2], 0x2000);
		wait->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
		wait->args[2] = 2;
	}
	timeline_analyse(&line);
	assert_gain(cause_of(CAUSE_WAIT_LOCK, ROLE_LAUNCHER), (STEPS - 1) * 6 * MS);
}

/*
 * A holder has the lock that main wants for 6 ms of each step. Another lock, which main wants for a moment in
 * each step, is held by a thread that goes its own pace: that one does not hold main to its time.
 */
Test(replay, a_lock_of_a_moment_does_not_bind_who_is_freed_from_another)
{
	uint32_t holder = timeline_thread(&line, MAIN, 101, "holder");
	uint32_t other = timeline_thread(&line, MAIN, 102, "other");

	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		struct offcpu *wait;

		if (i)
			timeline_futex(&line, holder, t - 2 * MS, t + 900 * US, t + 900 * US, main_thread,
			               0x4000);
		timeline_sleep(&line, holder, t + 910 * US, t + 7 * MS - 10 * US);
		timeline_sleep(&line, other, t + 10 * US, t + 8 * MS - 10 * US);
		timeline_kernel(&line, main_thread, t, t + 5 * US, t + 500 * US);
		wait = timeline_futex(&line, main_thread, t + 1 * MS, t + 7 * MS, t + 7 * MS, holder, 0x2000);
		wait->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
		wait->args[2] = 2;
		wait =
		    timeline_futex(&line, main_thread, t + 7900 * US, t + 8 * MS, t + 8 * MS, other, 0x9000);
		wait->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
		wait->args[2] = 2;
	}
	timeline_analyse(&line);
	assert_gain(cause_of(CAUSE_WAIT_LOCK, ROLE_LAUNCHER), (STEPS - 1) * 6100 * US);
}

/* The launching call waits for the driver's lock, which another thread holds while it allocates. */
Test(replay, a_lock_inside_a_launch_is_gained)
{
	uint32_t other = timeline_thread(&line, MAIN, 101, "allocator");

	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		uint32_t correlation = ++line.correlation;

		timeline_call(&line, main_thread, "cudaLaunchKernel", t + 1 * MS, t + 9 * MS + 5 * US,
		              correlation);
		timeline_futex(&line, main_thread, t + 1 * MS + 2 * US, t + 9 * MS, t + 9 * MS, other,
		               0x2000);
		timeline_call(&line, other, "cudaMalloc", t + 900 * US, t + 9 * MS, 0);
		if (i)
			timeline_futex(&line, other, t - 500 * US, t + 890 * US, t + 890 * US, main_thread,
			               0x4000);
		timeline_op(&line, MAIN, t + 9 * MS + 10 * US, t + 10 * MS, correlation);
	}
	timeline_analyse(&line);
	assert_gain(cause_of(CAUSE_HOST_CUDA_LOCK, ROLE_LAUNCHER), (STEPS - 1) * (8 * MS - 2 * US));
}

/* A pool that outruns the GPU beyond a point: half of the cause gone gives all there is to gain. */
Test(replay, the_curve_has_a_knee)
{
	const struct cause *cause;

	/* Of each 10 ms the GPU works for 6 ms, and the worker, at its own pace, sleeps for 9.98 ms. */
	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		timeline_kernel(&line, main_thread, t, t + 10 * US, t + 6 * MS);
		timeline_call(&line, main_thread, "cudaStreamSynchronize", t + 20 * US, t + 6 * MS + 10 * US,
		              0);
		timeline_sleep(&line, worker, t + 10 * US, t + 10 * MS - 10 * US);
		timeline_pipe(&line, main_thread, t + 6 * MS + 50 * US, t + 10 * MS - 5 * US,
		              t + 10 * MS - 5 * US, worker);
	}
	timeline_analyse(&line);
	cause = cause_of(CAUSE_WAIT_SLEEP, ROLE_WORKER);
	cr_assert(cause->replayed);
	for (int i = 1; i < CAUSE_CURVE; i++)
		cr_assert_geq(cause->gain_curve_ns[i] + US, cause->gain_curve_ns[i - 1]);
	cr_assert_gt(cause->gain_curve_ns[0], STEPS * 2 * MS);
	cr_assert_gt(cause->gain_curve_ns[1], cause->ns * 9 / 10, "%lu of %lu", cause->gain_curve_ns[1],
	             cause->ns);
	cr_assert_leq(cause->gain_curve_ns[3], cause->ns);
}

Test(replay, without_scheduler_data_there_is_only_a_bound)
{
	const struct cause *cause;

	line.model.has_sched = false;
	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS)
		timeline_kernel(&line, main_thread, t + 9 * MS, t + 9 * MS + 10 * US, t + 10 * MS);
	timeline_analyse(&line);
	cr_assert_not(line.analysis.devices.items[0].replay.ran);
	array_for_each (cause, &line.analysis.devices.items[0].causes) {
		cr_assert_not(cause->replayed);
		cr_assert_eq(cause->gain_low_ns, 0);
		cr_assert_eq(cause->gain_high_ns, cause->ns);
	}
}

/* What the recorded edges do not explain makes the unchanged replay miss the recorded times: no gain then. */
Test(replay, a_graph_that_does_not_give_its_own_times_gives_no_gain)
{
	const struct cause *cause;

	for (uint64_t i = 0, t = 0; i < STEPS; i++, t += 10 * MS) {
		/* Launched 5 ms before it starts, and nothing says why. */
		timeline_kernel(&line, main_thread, t + 4 * MS, t + 9 * MS, t + 9500 * US);
		timeline_sleep(&line, main_thread, t + 500 * US, t + 3500 * US);
	}
	timeline_analyse(&line);
	cr_assert(line.analysis.devices.items[0].replay.ran);
	cr_assert_not(line.analysis.devices.items[0].replay.accepted);
	cause = cause_of(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER);
	cr_assert_not(cause->replayed);
	cr_assert_eq(cause->gain_high_ns, cause->ns);
}
