/* SPDX-License-Identifier: GPL-2.0-only */
/* Each rule of attribution on a timeline small enough to check by hand. Gaps are [10 ms, 20 ms] unless said.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "gap_fixture.h"

TestSuite(attribute, .init = gap_setup, .fini = gap_teardown);

Test(attribute, running_launcher_is_user_code)
{
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, HOST_PART);
	assert_ns(CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 5 * US);
}

Test(attribute, running_after_a_drained_queue_is_sync_then_serial)
{
	timeline_call(&line, main_thread, "cudaStreamSynchronize", 2 * MS, 10 * MS + 20 * US, 0);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_SYNC_THEN_SERIAL, ROLE_LAUNCHER, HOST_PART - 20 * US);
	/* The return of the call is nobody's fault. */
	assert_ns(CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 25 * US);
}

Test(attribute, a_wait_after_a_drained_queue_is_not_serial_code)
{
	timeline_call(&line, main_thread, "cudaStreamSynchronize", 2 * MS, 10 * MS, 0);
	timeline_sleep(&line, main_thread, 11 * MS, 19 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 8 * MS);
	assert_ns(CAUSE_HOST_SYNC_THEN_SERIAL, ROLE_LAUNCHER, 2 * MS - 5 * US);
}

Test(attribute, a_wait_leads_to_the_worker_behind_the_delivering_thread)
{
	uint32_t pin = timeline_thread(&line, MAIN, 101, "pin");
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0");

	timeline_futex(&line, main_thread, 9 * MS, 19 * MS, 19 * MS, pin, 0x1000);
	timeline_pipe(&line, pin, 8 * MS, 18 * MS, 18 * MS, worker);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_WORKER, 8 * MS);
	/* The pin thread runs from its wake to its own. */
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 1 * MS);
	cr_assert_eq(timeline_top(&line)->confidence, CONFIDENCE_HIGH);
	cr_assert_eq(timeline_top(&line)->group.count, 1);
	cr_assert_float_eq(timeline_top(&line)->group.running, 1.0, 1e-9);
	cr_assert_str_eq(timeline_top(&line)->waiter->comm, "main");
}

Test(attribute, the_walk_never_looks_before_the_wait_began)
{
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0");

	/* The worker slept until 15 ms, but main waits only from 16 ms on. */
	timeline_sleep(&line, worker, 1 * MS, 15 * MS);
	timeline_pipe(&line, main_thread, 16 * MS, 19 * MS, 19 * MS, worker);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_WORKER, 0);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_WORKER, 3 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 7 * MS - 5 * US);
}

Test(attribute, a_sleeping_worker_is_a_sleep)
{
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0");

	timeline_sleep(&line, worker, 5 * MS, 18 * MS);
	timeline_pipe(&line, main_thread, 10 * MS, 18 * MS + 100 * US, 18 * MS + 100 * US, worker);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_WORKER, 8 * MS);
	cr_assert_float_eq(timeline_top(&line)->group.blocked_sleep, 8.0 / 8.1, 1e-6);
}

Test(attribute, a_contended_lock_names_its_holder)
{
	uint32_t flusher = timeline_thread(&line, MAIN, 101, "flusher");
	struct offcpu *wait = timeline_futex(&line, main_thread, 11 * MS, 19 * MS, 19 * MS, flusher, 0x2000);

	wait->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
	wait->args[2] = 2;
	timeline_sleep(&line, flusher, 8 * MS, 19 * MS - 100 * US);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 8 * MS);
	cr_assert_str_eq(timeline_top(&line)->detail.holder, "flusher (101)");
	cr_assert_str_eq(timeline_top(&line)->detail.lock, "futex 0x2000");
}

Test(attribute, probes_name_the_lock_and_change_no_cause)
{
	uint32_t helper = timeline_thread(&line, MAIN, 101, "helper");
	struct offcpu *wait = timeline_futex(&line, main_thread, 11 * MS, 19 * MS, 19 * MS, helper, 0x2000);

	wait->lock_kind = RECORD_LOCK_READ;
	wait->lock = 0x2000;
	wait->lock_holder = 101;
	timeline_sleep(&line, helper, 8 * MS, 19 * MS - 100 * US);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 7900 * US);
	cr_assert(
	    strstr(timeline_top(&line)->detail.waits_for,
	           "waits for the read-write lock (to read) 0x2000, held by helper (101) when it began"));
}

/* main joins thread 101, which slept until 1 ms before its end; its record comes before its last wake. */
static struct offcpu *join_after_end(const char *woken_by, int waker_syscall, uint64_t end_ns)
{
	uint32_t ended = timeline_thread(&line, MAIN, 101, "joined");
	struct offcpu *wait =
	    timeline_blocked(&line, main_thread, 11 * MS, 19 * MS, 19 * MS, "futex_do_wait", ended, woken_by);

	wait->syscall = SYS_futex;
	wait->waker_syscall = waker_syscall;
	timeline_sleep(&line, ended, 8 * MS, 17 * MS);
	line.model.threads.items[ended].end_ns = end_ns;
	end_gap();
	return wait;
}

Test(attribute, a_join_leads_to_the_thread_that_has_just_ended)
{
	join_after_end("do_exit", SYS_exit, 18 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 6 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 1 * MS);
	/* It had ended: what kept it from waking others at once is not recorded. */
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD, 1 * MS);
}

Test(attribute, a_thread_that_has_ended_wakes_nobody_by_a_call)
{
	join_after_end("futex_wake", SYS_futex, 18 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 0);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_LAUNCHER, 8 * MS);
}

Test(attribute, the_last_wake_of_another_process_is_not_that_of_an_ended_thread)
{
	join_after_end("do_exit", SYS_exit, 18 * MS)->waker_pid = WORKER;
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 0);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_LAUNCHER, 8 * MS);
}

Test(attribute, a_later_thread_of_the_same_id_is_the_one_that_woke)
{
	uint32_t later;

	join_after_end("do_exit", SYS_exit, 12 * MS);
	later = model_new_thread(&line.model, MAIN, 101, 15 * MS);
	line.model.threads.items[later].tracked = true;
	line.model.threads.items[later].end_ns = 18 * MS;
	timeline_analyse(&line);
	/* Nothing of the first one: not its sleep until 17 ms. */
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 0);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 3 * MS);
}

Test(attribute, long_after_its_end_a_thread_wakes_nobody)
{
	uint32_t ended = timeline_thread(&line, MAIN, 101, "joined");
	struct offcpu wait = {.woken = true, .waker_ending = true, .waker_tid = 101, .waker_pid = MAIN};

	line.model.threads.items[ended].end_ns = 18 * MS;
	wait.wake_ns = 1018 * MS;
	cr_assert_eq(model_waker(&line.model, &wait), ended);
	wait.wake_ns++;
	cr_assert_eq(model_waker(&line.model, &wait), MODEL_NONE);
}

Test(attribute, each_holder_of_a_lock_gets_its_own_time)
{
	uint32_t one = timeline_thread(&line, MAIN, 101, "one");
	uint32_t two = timeline_thread(&line, MAIN, 102, "two");
	struct offcpu *wait;

	wait = timeline_futex(&line, main_thread, 10 * MS, 12 * MS, 12 * MS, one, 0x2000);
	wait->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
	wait->args[2] = 2;
	wait = timeline_futex(&line, main_thread, 12 * MS + 2 * US, 19 * MS, 19 * MS, two, 0x2000);
	wait->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
	wait->args[2] = 2;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 9 * MS - 2 * US);
	cr_assert_str_eq(timeline_top(&line)->detail.holder, "two (102)");
}

static void wait_for_lock(uint32_t thread, uint64_t out, uint64_t wake, uint32_t holder)
{
	wait_for_lock_at(thread, out, wake, holder, 0x2000);
}

/* One wait of the launcher, in which the lock goes from hand to hand before it comes to it. */
Test(attribute, a_lock_that_is_handed_on_names_each_of_its_holders)
{
	static const char *const holders[] = {"one (101)", "two (102)", "three (103)"};
	uint32_t one = timeline_thread(&line, MAIN, 101, "one");
	uint32_t two = timeline_thread(&line, MAIN, 102, "two");
	uint32_t three = timeline_thread(&line, MAIN, 103, "three");
	const struct gap_report *gap;
	size_t found = 0;

	wait_for_lock(main_thread, 11 * MS, 19 * MS, three);
	wait_for_lock(three, 10 * MS, 16 * MS, two);
	wait_for_lock(two, 9 * MS, 13 * MS, one);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 8 * MS);
	gap = &line.analysis.devices.items[0].top_gaps.items[0];
	for (size_t i = 0; i < gap->chain.count; i++) {
		static const uint64_t ends[] = {13 * MS, 16 * MS, 19 * MS};
		const struct chain_link *link = &gap->chain.items[i];

		if (link->code != CAUSE_WAIT_LOCK)
			continue;
		cr_assert_lt(found, 3);
		cr_assert_str_eq(link->detail.holder, holders[found]);
		cr_assert_eq(link->end_ns, ends[found]);
		found++;
	}
	cr_assert_eq(found, 3);
}

Test(attribute, a_false_wake_is_part_of_the_wait)
{
	uint32_t bystander = timeline_thread(&line, MAIN, 101, "bystander");
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0");

	/* The bystander wakes main at 12 ms, but main blocks again on the same word. */
	timeline_futex(&line, main_thread, 10 * MS, 12 * MS, 12 * MS, bystander, 0x3000);
	timeline_futex(&line, main_thread, 12 * MS + 10 * US, 19 * MS, 19 * MS, worker, 0x3000);
	timeline_sleep(&line, bystander, 1 * MS, 11 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_WORKER, 9 * MS);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 0);
}

Test(attribute, an_interrupt_on_top_of_a_thread_does_not_blame_that_thread)
{
	uint32_t bystander = timeline_thread(&line, MAIN, 101, "bystander");

	timeline_blocked(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, "folio_wait_bit_common", bystander,
	                 "folio_wake_bit");
	timeline_sleep(&line, bystander, 1 * MS, 18 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_DISK, ROLE_LAUNCHER, 9 * MS);
}

Test(attribute, preemption_is_contention_and_names_the_neighbour)
{
	uint32_t hog = timeline_process(&line, 300, 0, "hog");

	timeline_preempted(&line, main_thread, 11 * MS, 17 * MS, hog);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 6 * MS);
	cr_assert_str_eq(timeline_top(&line)->detail.holder, "hog (300)");
}

Test(attribute, a_used_up_quota_is_not_contention)
{
	uint32_t neighbour = timeline_process(&line, 300, 0, "neighbour");

	timeline_preempted(&line, main_thread, 12 * MS, 16 * MS, neighbour)->throttled = true;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_THROTTLED, ROLE_LAUNCHER, 4 * MS);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 0);
}

/* A process that crowds the few CPUs it may use; others in its way are contention, whatever CPUs are idle. */
Test(attribute, a_process_that_may_not_use_the_idle_cpus_is_bound)
{
	uint32_t own = timeline_thread(&line, 100, 101, "pool");
	uint32_t other = timeline_process(&line, 300, 0, "neighbour");

	timeline_preempted(&line, main_thread, 11 * MS, 14 * MS, own)->bound = true;
	timeline_preempted(&line, main_thread, 15 * MS, 16 * MS, own);
	timeline_preempted(&line, main_thread, 17 * MS, 19 * MS, other)->bound = true;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_SCHED_AFFINITY, ROLE_LAUNCHER, 3 * MS);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 3 * MS);
}

Test(attribute, time_between_wake_and_run_is_contention_not_the_wait)
{
	uint32_t hog = timeline_process(&line, 300, 0, "hog");
	struct offcpu *sleep = timeline_sleep(&line, main_thread, 10 * MS, 19 * MS);

	sleep->wake_ns = 12 * MS;
	sleep->prev_tid = 300;
	(void)hog;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 2 * MS);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 7 * MS);
}

Test(attribute, waking_on_an_idle_cpu_is_part_of_the_wait)
{
	struct offcpu *sleep = timeline_sleep(&line, main_thread, 10 * MS, 12 * MS + 50 * US);

	sleep->wake_ns = 12 * MS;
	sleep->prev_tid = sleep->next_tid = 0;
	/* Three milliseconds are no wake latency, whoever had the CPU. */
	sleep = timeline_sleep(&line, main_thread, 13 * MS, 17 * MS);
	sleep->wake_ns = 14 * MS;
	sleep->prev_tid = sleep->next_tid = 0;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 3 * MS + 50 * US);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 3 * MS);
}

Test(attribute, waking_on_an_idle_cpu_goes_to_the_end_of_the_chain)
{
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0");
	struct offcpu *wait = timeline_pipe(&line, main_thread, 10 * MS, 19 * MS, 19 * MS + 40 * US, worker);

	wait->prev_tid = 0;
	timeline_sleep(&line, worker, 9 * MS, 20 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_WORKER, 9 * MS + 40 * US);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 0);
}

Test(attribute, work_queued_before_the_gap_is_the_devices)
{
	timeline_kernel(&line, main_thread, 2 * MS, 20 * MS, 21 * MS);
	timeline_sleep(&line, main_thread, 3 * MS, 25 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 10 * MS);
	cr_assert_eq(line.analysis.devices.items[0].queued_ns, 10 * MS);
}

Test(attribute, short_gaps_between_launches_are_launch_bound)
{
	for (uint64_t i = 0; i < 50; i++) {
		uint64_t at = 10 * MS + 6 * US + i * 10 * US;

		timeline_kernel(&line, main_thread, at - 5 * US, at, at + 4 * US);
	}
	timeline_analyse(&line);
	/* 49 gaps of 6 µs between the short kernels and one before them. */
	assert_ns(CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 49 * 6 * US);
}

Test(attribute, a_run_of_launches_that_is_kept_from_the_cpu_stays_launch_bound_for_the_rest)
{
	uint32_t hog = timeline_process(&line, 300, 0, "hog");

	for (uint64_t i = 0; i < 50; i++) {
		uint64_t at = 10 * MS + 6 * US + i * 20 * US;

		timeline_kernel(&line, main_thread, at - 5 * US, at, at + 4 * US);
		/* 3 of the 16 µs before the next kernel starts. */
		timeline_preempted(&line, main_thread, at + 6 * US, at + 9 * US, hog);
	}
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 49 * 13 * US);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 49 * 3 * US);
}

Test(attribute, operations_shorter_than_their_launch_are_launch_bound_even_when_queued)
{
	/* Launched long before, each in a call of 3 µs; 1 µs long, 1.5 µs apart. Then longer ones: those are
	 * not. */
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t start = 10 * MS + i * 2500 + 1500;

		timeline_kernel(&line, main_thread, 1 * MS + i * 5 * US, start, start + 1000);
	}
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t start = 11 * MS + i * 21500 + 1500;

		timeline_kernel(&line, main_thread, 2 * MS + i * 5 * US, start, start + 20 * US);
	}
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 100 * 1500);
	/* 99 gaps, and the one before the first of the longer ones is longer than a floor. */
	assert_ns(CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 99 * 1500);
}

Test(attribute, calls_are_blamed_by_their_class)
{
	timeline_call(&line, main_thread, "cudaMalloc", 11 * MS, 14 * MS, 0);
	timeline_blocked(&line, main_thread, 12 * MS, 13 * MS, 13 * MS, "os_schedule", MODEL_NONE,
	                 "hrtimer_wakeup");
	timeline_call(&line, main_thread, "cuModuleLoadData", 15 * MS, 16 * MS, 0);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_CUDA_ALLOC, ROLE_LAUNCHER, 3 * MS);
	assert_ns(CAUSE_HOST_COMPILE, ROLE_LAUNCHER, 1 * MS);
}

Test(attribute, a_pageable_copy_is_told_from_a_pinned_one)
{
	struct gpu_op *op;

	timeline_call(&line, main_thread, "cudaMemcpyAsync", 12 * MS, 21 * MS, 900);
	op = timeline_op(&line, MAIN, 20 * MS, 21 * MS, 900);
	op->kind = OP_MEMCPY;
	op->source_kind = 1;
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_PAGEABLE_COPY, ROLE_LAUNCHER, 8 * MS - 5 * US);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 2 * MS);
}

/* 64 MiB to the device from memory that is not pinned, in the call from 10 to 21 ms. */
static void fed_copy(void)
{
	struct gpu_op *op;

	timeline_call(&line, main_thread, "cudaMemcpyAsync", 10 * MS, 21 * MS, 900);
	op = timeline_op(&line, MAIN, 10 * MS + 20 * US, 21 * MS, 900);
	op->kind = OP_MEMCPY;
	op->copy_kind = 1;
	op->source_kind = 1;
	op->bytes = 64 << 20;
}

/* One record from the first piece to the last: at 64 GB/s, 64 MiB need 1,048,576 ns of it. */
Test(attribute, a_copy_that_the_host_feeds_is_busy_for_its_transfer_only)
{
	const struct device_report *device;

	fed_copy();
	device = timeline_analyse(&line);
	assert_ns(CAUSE_HOST_PAGEABLE_COPY, ROLE_LAUNCHER, 11 * MS - 1048576);
	cr_assert_eq(device->idle_ns, 11 * MS - 1048576);
}

/* The pinned copy of the same recording had 16 bytes a nanosecond: 64 MiB need 4,194,304 ns. */
Test(attribute, a_pinned_copy_tells_how_fast_the_link_is)
{
	const struct device_report *device;
	struct gpu_op *op;

	fed_copy();
	timeline_call(&line, main_thread, "cudaMemcpyAsync", 21 * MS, 21 * MS + 2 * US, 901);
	op = timeline_op(&line, MAIN, 21 * MS, 21 * MS + 131072, 901);
	op->kind = OP_MEMCPY;
	op->copy_kind = 1;
	op->source_kind = 2;
	op->bytes = 2 << 20;
	device = timeline_analyse(&line);
	cr_assert_eq(device->idle_ns, 11 * MS - 4194304);
}

/* Another stream's work makes the GPU busy while a copy is fed. */
Test(attribute, what_runs_while_a_copy_is_fed_is_busy)
{
	const struct device_report *device;
	struct gpu_op *op;

	fed_copy();
	op = timeline_op(&line, MAIN, 12 * MS, 15 * MS, 0);
	op->stream = 9;
	device = timeline_analyse(&line);
	cr_assert_eq(device->idle_ns, 8 * MS - 1048576);
}

Test(attribute, samples_split_running_time)
{
	for (uint64_t t = 10 * MS + 500 * US; t < 20 * MS; t += 1 * MS)
		timeline_sample(&line, main_thread, t, t < 16 * MS ? "asm_exc_page_fault" : NULL);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_MEMORY_MINOR_FAULT, ROLE_LAUNCHER, 6 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 4 * MS - 5 * US);
}

Test(attribute, a_wake_from_an_unrecorded_thread_is_unknown)
{
	struct offcpu *wait = timeline_pipe(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, MODEL_NONE);

	wait->waker_tid = 4242;
	wait->waker_pid = 4242;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_LAUNCHER, 9 * MS);
}

Test(attribute, lost_gpu_records_make_the_gap_unknown_where_they_are_missing)
{
	timeline_lost(&line, RECORD_LOSS_BRIDGE_RING, 12 * MS, 15 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_LOST, ROLE_DEVICE, 3 * MS);
}

Test(attribute, lost_intervals_of_a_thread_make_its_running_time_unknown)
{
	struct offcpu *sleep = timeline_sleep(&line, main_thread, 15 * MS, 16 * MS);

	sleep->lost_before = true;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_LOST, ROLE_LAUNCHER, 5 * MS);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 1 * MS);
}

Test(attribute, a_thread_whose_last_records_may_be_lost_is_not_believed_to_run)
{
	/* Lost long after the gap: the lost record may be the end of a wait that began in it. */
	timeline_lost(&line, RECORD_LOSS_BPF_RING, 50 * MS, 60 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_LOST, ROLE_LAUNCHER, HOST_PART);
}

Test(attribute, records_lost_before_the_last_one_of_a_thread_are_not_its_own)
{
	timeline_lost(&line, RECORD_LOSS_BPF_RING, 12 * MS, 13 * MS);
	end_gap();
	timeline_sleep(&line, main_thread, 25 * MS, 26 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, HOST_PART);
}

Test(attribute, a_process_whose_birth_may_be_lost_has_no_certain_role)
{
	/* No process was made: the record that would have said whose child this is is missing. */
	uint32_t orphan = timeline_thread(&line, WORKER, WORKER, "loader-0");

	timeline_pipe(&line, main_thread, 9 * MS, 19 * MS, 19 * MS, orphan);
	timeline_sleep(&line, orphan, 25 * MS, 26 * MS);
	timeline_lost(&line, RECORD_LOSS_BPF_RING, 1 * MS, 2 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_PROCESS, 9 * MS);
	cr_assert_eq(timeline_top(&line)->confidence, CONFIDENCE_MEDIUM);
}

Test(attribute, another_process_is_certain_where_births_are_known)
{
	uint32_t other = timeline_process(&line, WORKER, 0, "server");

	timeline_pipe(&line, main_thread, 9 * MS, 19 * MS, 19 * MS, other);
	timeline_sleep(&line, other, 25 * MS, 26 * MS);
	timeline_lost(&line, RECORD_LOSS_BPF_RING, 1 * MS, 2 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_PROCESS, 9 * MS);
	cr_assert_eq(timeline_top(&line)->confidence, CONFIDENCE_HIGH);
}

/* Two processes share the GPU: from the view of one, the other's work is idle time with a cause of its own.
 */
Test(attribute, the_view_of_one_process_leaves_the_other_out)
{
	uint32_t other = timeline_process(&line, 300, 0, "other");
	struct error error = {0};

	timeline_sleep(&line, main_thread, 10 * MS + 100 * US, 19 * MS);
	end_gap();
	timeline_kernel(&line, other, 9 * MS, 10 * MS, 20 * MS);
	/* Queued at 20.9 ms, behind the other's second kernel. */
	timeline_kernel(&line, other, 20900 * US, 21 * MS, 26 * MS);
	timeline_kernel(&line, main_thread, 20950 * US, 26 * MS, 27 * MS);
	cr_assert_eq(model_finish(&line.model, &error), 0);
	cr_assert_eq(model_keep_process(&line.model, MAIN, &error), 0);
	cr_assert_eq(
	    analysis_run(&line.analysis, &line.model, &(struct analysis_options){.device = -1}, &error), 0);
	cr_assert_eq(line.analysis.devices.items[0].idle_ns, 15 * MS);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 9 * MS - 100 * US);
	assert_ns(CAUSE_DEVICE_OTHER_PROCESS, ROLE_DEVICE, 5 * MS);
	cr_assert_eq(model_keep_process(&line.model, 4711, &error), -ENOENT);
	cr_assert_not_null(strstr(error.text, "4711"));
}

Test(attribute, a_launch_that_was_not_recorded_is_unknown)
{
	timeline_op(&line, MAIN, 20 * MS, 21 * MS, 0);
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_DEVICE, 10 * MS);
	cr_assert_eq(line.analysis.devices.items[0].unknown_ns, 10 * MS);
}

Test(attribute, no_scheduler_data_is_said)
{
	struct scope *scope;

	line.model.has_sched = false;
	line.model.threads.items[main_thread].tracked = false;
	scope = array_add(&line.model.threads.items[main_thread].scopes);
	*scope = (struct scope){.start_ns = 1 * MS,
	                        .end_ns = 30 * MS,
	                        .name = model_add_string(&line.model, "ProfilerStep#3", 14),
	                        .kind = SCOPE_ANNOTATION};
	scope = array_add(&line.model.threads.items[main_thread].scopes);
	*scope = (struct scope){.start_ns = 2 * MS,
	                        .end_ns = 29 * MS,
	                        .name = model_add_string(&line.model, "train.py(7): step", 17),
	                        .kind = SCOPE_PYTHON};
	scope = array_add(&line.model.threads.items[main_thread].scopes);
	*scope = (struct scope){.start_ns = 11 * MS,
	                        .end_ns = 12 * MS,
	                        .name = model_add_string(&line.model, "aten::item", 10),
	                        .kind = SCOPE_OPERATOR};
	timeline_call(&line, main_thread, "cudaMalloc", 12 * MS, 14 * MS, 0);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_NO_SCHED, ROLE_LAUNCHER, HOST_PART - 2 * MS);
	assert_ns(CAUSE_HOST_CUDA_ALLOC, ROLE_LAUNCHER, 2 * MS);
	/* The larger part, after the allocation, is named by what is open in its middle. */
	cr_assert_str_eq(timeline_top(&line)->detail.function, "ProfilerStep#3");
	cr_assert_str_eq(timeline_top(&line)->detail.python, "train.py(7): step");
}

Test(attribute, without_scheduler_data_a_drained_queue_is_still_certain)
{
	line.model.has_sched = false;
	line.model.threads.items[main_thread].tracked = false;
	timeline_call(&line, main_thread, "cudaStreamSynchronize", 2 * MS, 10 * MS, 0);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_SYNC_THEN_SERIAL, ROLE_LAUNCHER, HOST_PART);
	cr_assert_eq(timeline_top(&line)->confidence, CONFIDENCE_MEDIUM);
}

Test(attribute, a_hole_inside_one_graph_launch_is_not_believed)
{
	timeline_call(&line, main_thread, "cudaGraphLaunch", 20 * MS - 5 * US, 20 * MS, 950);
	timeline_op(&line, MAIN, 20 * MS, 21 * MS, 950);
	timeline_op(&line, MAIN, 25 * MS, 26 * MS, 950);
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_LOST, ROLE_DEVICE, 4 * MS);
}

Test(attribute, a_gap_shorter_than_the_clock_error_is_unknown)
{
	line.model.clock_error_ns = 11 * MS;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_CLOCK, ROLE_DEVICE, 10 * MS);
}

Test(attribute, the_interpreter_lock_is_seen_by_its_switch_interval)
{
	uint32_t other = timeline_thread(&line, MAIN, 101, "other");
	struct offcpu *wait = timeline_futex(&line, main_thread, 10 * MS, 15 * MS + 50 * US,
	                                     15 * MS + 60 * US, MODEL_NONE, 0x5000);
	uint32_t stack =
	    timeline_blocked(&line, other, 1, 2, 3, "x", MODEL_NONE, "hrtimer_wakeup")->waker_kstack;

	wait = &line.model.threads.items[main_thread].offcpu.items[0];
	wait->waker_kstack = stack;
	timeline_futex(&line, main_thread, 15 * MS + 65 * US, 18 * MS, 18 * MS, other, 0x5000);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_GIL, ROLE_LAUNCHER, 8 * MS);
	cr_assert_str_eq(timeline_top(&line)->detail.holder, "other (101)");
}

Test(attribute, a_delivering_thread_of_a_worker_leads_to_the_one_that_computes)
{
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0");
	uint32_t feeder = timeline_thread(&line, WORKER, 201, "feeder");

	/* The feeder asks for the interpreter lock every 5 ms while the worker's main thread computes. */
	timeline_pipe(&line, main_thread, 9 * MS, 19 * MS, 19 * MS, feeder);
	timeline_blocked(&line, feeder, 8 * MS, 13 * MS, 13 * MS, "futex_do_wait", MODEL_NONE,
	                 "hrtimer_wakeup");
	timeline_blocked(&line, feeder, 13 * MS, 18 * MS, 18 * MS, "futex_do_wait", MODEL_NONE,
	                 "hrtimer_wakeup");
	(void)worker;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_GIL, ROLE_WORKER, 0);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_WORKER, 9 * MS);
	cr_assert_eq(timeline_top(&line)->threads.items[0].tid, WORKER);
}

Test(attribute, threads_that_wait_for_each_other_end_the_walk)
{
	uint32_t other = timeline_thread(&line, MAIN, 101, "other");

	timeline_futex(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, other, 0x1000);
	timeline_futex(&line, other, 9 * MS, 18 * MS, 18 * MS, main_thread, 0x1008);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_THREAD, 8 * MS);
}

Test(attribute, cupti_overhead_is_charged_to_the_tool)
{
	struct overhead *overhead = array_add(&line.model.threads.items[main_thread].overhead);

	*overhead = (struct overhead){12 * MS, 14 * MS, false};
	overhead = array_add(&line.model.threads.items[main_thread].overhead);
	*overhead = (struct overhead){15 * MS, 16 * MS, true};
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_TOOL_OVERHEAD, ROLE_LAUNCHER, 2 * MS);
	assert_ns(CAUSE_HOST_COMPILE, ROLE_LAUNCHER, 1 * MS);
}

Test(attribute, a_thread_that_launches_is_a_launcher_too)
{
	/* The backward pass: the autograd thread launches and waits for main in between. */
	uint32_t autograd = timeline_thread(&line, MAIN, 101, "pt_autograd_0");

	timeline_futex(&line, autograd, 5 * MS, 19 * MS, 19 * MS, main_thread, 0x1000);
	timeline_kernel(&line, autograd, 20 * MS - 5 * US, 20 * MS, 21 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, HOST_PART);
}

Test(attribute, a_window_clips_gaps_and_busy_time)
{
	struct analysis_options options = {
	    .device = -1, .has_window = true, .window_start_ns = 5 * MS, .window_end_ns = 15 * MS};
	struct error error = {0};
	const struct device_report *device;

	end_gap();
	cr_assert_eq(model_finish(&line.model, &error), 0);
	cr_assert_eq(analysis_run(&line.analysis, &line.model, &options, &error), 0);
	device = &line.analysis.devices.items[0];
	cr_assert_eq(device->busy_ns, 5 * MS);
	cr_assert_eq(device->idle_ns, 5 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 5 * MS);
}
