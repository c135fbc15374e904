// SPDX-License-Identifier: GPL-2.0-only
/* Blocked threads: what a wait means by itself, by its wake, and by those that follow it. */
#include <linux/futex.h>
#include <sys/syscall.h>

#include "gap_fixture.h"

TestSuite(wait_rules, .init = gap_setup, .fini = gap_teardown);

/* Main is blocked in [10, 19] ms. */
static void main_waits(const char *blocked_in, uint32_t waker, const char *woken_by)
{
	timeline_blocked(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, blocked_in, waker, woken_by);
	end_gap();
	timeline_analyse(&line);
}

/* ---- by themselves, and by what woke them ---- */

/* Woken by a thread that slept: what explains itself does not lead there. */
Test(wait_rules, waits_that_explain_themselves)
{
	static const struct {
		const char *blocked_in;
		enum cause_code code;
	} rows[] = {
	    {"do_nanosleep", CAUSE_WAIT_SLEEP},
	    {"do_nanosleep.constprop.0", CAUSE_WAIT_SLEEP},
	    {"folio_wait_bit_common", CAUSE_WAIT_DISK},
	    {"folio_wait_bit_common<exc_page_fault", CAUSE_MEMORY_MAJOR_FAULT},
	    {"handle_userfault", CAUSE_MEMORY_MINOR_FAULT},
	    {"__vma_start_write", CAUSE_MEMORY_MMAP_LOCK},
	    {"rwsem_down_read_slowpath<exc_page_fault", CAUSE_MEMORY_MMAP_LOCK},
	    {"rwsem_down_write_slowpath<ext4_file_write_iter", CAUSE_WAIT_LOCK},
	    {"reclaim_throttle", CAUSE_MEMORY_RECLAIM},
	    {"folio_wait_bit_common<shrink_node", CAUSE_MEMORY_RECLAIM},
	    {"do_wait", CAUSE_WAIT_CHILD},
	    {"do_sigtimedwait", CAUSE_WAIT_SIGNAL},
	    {"flock_lock_inode_wait", CAUSE_WAIT_LOCK},
	    {"os_schedule", CAUSE_HOST_CUDA_API},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t other;

		gap_again();
		other = other_thread(101);
		timeline_sleep(&line, other, 9 * MS, 18 * MS);
		main_waits(rows[i].blocked_in, other, "futex_wake");
		cr_assert_eq(timeline_ns(&line, rows[i].code, ROLE_LAUNCHER), 9 * MS, "%s: %s is %lu",
		             rows[i].blocked_in, cause_code_name(rows[i].code),
		             timeline_ns(&line, rows[i].code, ROLE_LAUNCHER));
		assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 0);
		cr_assert_eq(cause_there(rows[i].code, ROLE_LAUNCHER)->confidence, CONFIDENCE_HIGH);
	}
}

/* A wait for several things: its wake tells. Each runs on top of a bystander, whose time it never is. */
Test(wait_rules, wakes_that_explain_the_wait)
{
	static const struct {
		const char *woken_by;
		enum cause_code code;
		enum cause_role role;
		enum confidence confidence;
	} rows[] = {
	    {"hrtimer_wakeup", CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, CONFIDENCE_HIGH},
	    {"bio_endio", CAUSE_WAIT_DISK, ROLE_LAUNCHER, CONFIDENCE_HIGH},
	    {"sock_def_readable<tcp_v4_rcv<net_rx_action", CAUSE_WAIT_NETWORK, ROLE_LAUNCHER,
	     CONFIDENCE_HIGH},
	    {"complete_signal", CAUSE_WAIT_SIGNAL, ROLE_LAUNCHER, CONFIDENCE_HIGH},
	    {"do_notify_parent", CAUSE_WAIT_CHILD, ROLE_LAUNCHER, CONFIDENCE_HIGH},
	    {"nvidia_isr", CAUSE_DEVICE_FLOOR, ROLE_DEVICE, CONFIDENCE_HIGH},
	    {"ep_poll_callback<process_one_work<worker_thread", CAUSE_WAIT_SYSCALL, ROLE_LAUNCHER,
	     CONFIDENCE_MEDIUM},
	    {"nothing_known<asm_common_interrupt", CAUSE_UNKNOWN_NO_WAKER, ROLE_LAUNCHER, CONFIDENCE_LOW},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t bystander;

		gap_again();
		bystander = other_thread(101);
		main_waits("ep_poll", bystander, rows[i].woken_by);
		cr_assert_geq(timeline_ns(&line, rows[i].code, rows[i].role), 9 * MS, "%s: %s is %lu",
		              rows[i].woken_by, cause_code_name(rows[i].code),
		              timeline_ns(&line, rows[i].code, rows[i].role));
		assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 0);
		cr_assert_eq(cause_there(rows[i].code, rows[i].role)->confidence, rows[i].confidence, "%s",
		             rows[i].woken_by);
	}
}

/* Loopback: the softirq that delivers runs on top of the sender's own call, and leads to the sender. */
Test(wait_rules, a_sender_on_this_machine_is_followed)
{
	uint32_t server = timeline_process(&line, 300, 0, "server");

	timeline_sleep(&line, server, 9 * MS, 18 * MS);
	main_waits("sk_wait_data", server, "sock_def_readable<tcp_v4_rcv<net_rx_action<tcp_sendmsg");
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_PROCESS, 8 * MS);
	assert_ns(CAUSE_WAIT_NETWORK, ROLE_LAUNCHER, 0);
}

/* An interval that the end of the recording closed. */
Test(wait_rules, a_wait_that_nobody_ended_has_no_waker)
{
	timeline_blocked(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, "anon_pipe_read", other_thread(101),
	                 "anon_pipe_write")
	    ->woken = false;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_NO_WAKER, ROLE_LAUNCHER, 9 * MS);
	cr_assert_eq(cause_there(CAUSE_UNKNOWN_NO_WAKER, ROLE_LAUNCHER)->confidence, CONFIDENCE_LOW);
}

/* ---- locks ---- */

/* Main waits by a futex operation with an expected value; the other thread sleeps until 18 ms. */
static void main_waits_by(uint32_t operation, uint32_t value)
{
	uint32_t other = other_thread(101);
	struct offcpu *wait;

	timeline_sleep(&line, other, 9 * MS, 18 * MS);
	wait = timeline_futex(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, other, 0x2000);
	wait->args[1] = operation;
	wait->args[2] = value;
	end_gap();
	timeline_analyse(&line);
}

Test(wait_rules, a_futex_wait_for_another_value_is_no_lock)
{
	main_waits_by(FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 0);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 8 * MS);
}

Test(wait_rules, a_futex_wait_by_another_operation_is_no_lock)
{
	main_waits_by(FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 2);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 0);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, 8 * MS);
}

Test(wait_rules, a_priority_inheriting_lock_is_a_lock)
{
	main_waits_by(FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 9 * MS);
	cr_assert_str_eq(timeline_top(&line)->detail.holder, "thread 101 (101)");
	gap_again();
	main_waits_by(FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG, 0);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 9 * MS);
}

Test(wait_rules, a_lock_that_processes_share_is_called_so)
{
	main_waits_by(FUTEX_WAIT, 2);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 9 * MS);
	cr_assert_str_eq(timeline_top(&line)->detail.lock, "shared futex 0x2000");
	gap_again();
	main_waits_by(FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2);
	cr_assert_str_eq(timeline_top(&line)->detail.lock, "futex 0x2000");
}

static void assert_holders(const char *const *names, size_t count)
{
	const struct gap_report *gap = &line.analysis.devices.items[0].top_gaps.items[0];
	const struct chain_link *link;
	size_t found = 0;

	array_for_each (link, &gap->chain) {
		if (link->code != CAUSE_WAIT_LOCK)
			continue;
		cr_assert_lt(found, count);
		cr_assert_str_eq(link->detail.holder, names[found]);
		found++;
	}
	cr_assert_eq(found, count);
}

/* An address means nothing in another process: what its threads waited for there is another lock. */
Test(wait_rules, a_lock_is_traced_back_within_its_process_only)
{
	uint32_t neighbour = timeline_process(&line, 300, 0, "neighbour");
	uint32_t third = timeline_thread(&line, 300, 301, "third");

	wait_for_lock_at(main_thread, 11 * MS, 19 * MS, neighbour, 0x2000);
	wait_for_lock_at(neighbour, 10 * MS, 15 * MS, third, 0x2000);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 8 * MS);
	assert_holders((const char *const[]){"neighbour (300)"}, 1);
}

/* The holder had waited for another lock, and long ago for this one: neither says who had this one now. */
Test(wait_rules, a_lock_is_traced_back_by_waits_for_it_only)
{
	uint32_t one = other_thread(101), two = other_thread(102);

	wait_for_lock_at(main_thread, 11 * MS, 19 * MS, two, 0x2000);
	wait_for_lock_at(two, 3 * MS, 5 * MS, one, 0x2000);
	wait_for_lock_at(two, 10 * MS, 15 * MS, one, 0x3000);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 8 * MS);
	assert_holders((const char *const[]){"thread 102 (102)"}, 1);
}

/* Twenty hands in one wait: the last sixteen are told, and the first of them has the time before. */
Test(wait_rules, a_lock_is_traced_back_through_sixteen_hands)
{
	const struct gap_report *gap;
	const struct chain_link *link;
	uint32_t thread = main_thread;
	size_t found = 0;

	for (uint32_t i = 0; i < 20; i++) {
		uint32_t holder = other_thread(101 + i);

		wait_for_lock_at(thread, 10 * MS, 19 * MS - i * 100 * US, holder, 0x2000);
		thread = holder;
	}
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 9 * MS);
	gap = &line.analysis.devices.items[0].top_gaps.items[0];
	array_for_each (link, &gap->chain) {
		if (link->code == CAUSE_WAIT_LOCK && !found++)
			cr_assert_eq(link->end_ns - link->start_ns, 9 * MS - 15 * 100 * US);
	}
	cr_assert_eq(found, 16);
}

/* ---- timed waits ---- */

static void main_waits_timed(uint64_t length_ns)
{
	timeline_blocked(&line, main_thread, 11 * MS, 11 * MS + length_ns, 11 * MS + length_ns,
	                 "futex_do_wait", MODEL_NONE, "hrtimer_wakeup");
	end_gap();
	timeline_analyse(&line);
}

/* Only the interval at which CPython asks for its lock again is that lock; other time-outs are sleeps. */
Test(wait_rules, a_timed_wait_of_another_length_is_a_sleep)
{
	static const uint64_t lengths[] = {3 * MS, 4800 * US, 6600 * US, 8 * MS};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		gap_again();
		main_waits_timed(lengths[i]);
		assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, lengths[i]);
		assert_ns(CAUSE_HOST_GIL, ROLE_LAUNCHER, 0);
	}
	gap_again();
	main_waits_timed(5 * MS);
	assert_ns(CAUSE_HOST_GIL, ROLE_LAUNCHER, 5 * MS);
}

/* The user stack of main's last wait: a frame of each of the files, innermost first. "": no file is known. */
static void last_wait_in(const char *const *files, uint32_t count, bool cut)
{
	struct model *model = &line.model;
	struct thread *thread = &model->threads.items[main_thread];
	struct stack *stack = array_add(&model->stacks);

	*stack = (struct stack){.kind = RECORD_STACK_USER,
	                        .pid = MAIN,
	                        .first = (uint32_t)model->frames.count,
	                        .count = count,
	                        .cut = cut};
	for (uint32_t i = 0; i < count; i++) {
		uint64_t *frame = array_add(&model->frames);
		uint32_t module = *files[i] ? model_add_string(model, files[i], strlen(files[i])) : 0;

		*frame = 0x400000 + model->frames.count;
		model_add_symbol(model, &(struct symbol){.address = *frame, .pid = MAIN, .module = module});
	}
	thread->offcpu.items[thread->offcpu.count - 1].ustack = (uint32_t)model->stacks.count - 1;
}

/* Who polls every 5 ms is no interpreter: a whole stack without one says so, and only that. */
Test(wait_rules, a_wait_outside_the_interpreter_is_not_for_its_lock)
{
	static const struct {
		const char *files[3];
		uint32_t count;
		bool cut, lock;
	} stacks[] = {
	    {{"/lib/libc.so.6", "/opt/app/server"}, 2, false, false},
	    {{"/lib/libc.so.6", "/opt/app/server"}, 2, true, true},
	    {{"/lib/libc.so.6", "", "/opt/app/server"}, 3, false, true},
	    {{"/lib/libc.so.6", "/usr/bin/python3.11"}, 2, false, true},
	    {{"/lib/libc.so.6", "/opt/lib/libpython3.12.so.1.0", "/opt/app/server"}, 3, false, true},
	};

	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		gap_again();
		timeline_blocked(&line, main_thread, 11 * MS, 16 * MS, 16 * MS, "futex_do_wait", MODEL_NONE,
		                 "hrtimer_wakeup");
		last_wait_in(stacks[i].files, stacks[i].count, stacks[i].cut);
		end_gap();
		timeline_analyse(&line);
		assert_ns(CAUSE_HOST_GIL, ROLE_LAUNCHER, stacks[i].lock ? 5 * MS : 0);
		assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, stacks[i].lock ? 0 : 5 * MS);
	}
}

/* A futex wait that a thread ended after 5 ms was satisfied, and did not expire. */
Test(wait_rules, a_wait_that_is_satisfied_in_five_milliseconds_is_no_interpreter_lock)
{
	uint32_t other = other_thread(101);

	timeline_futex(&line, main_thread, 11 * MS, 16 * MS, 16 * MS, other, 0x5000);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_GIL, ROLE_LAUNCHER, 0);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 5 * MS);
}

/* No task ended it: the one that ran most meanwhile had it. */
Test(wait_rules, the_interpreter_lock_is_the_one_that_ran_most)
{
	uint32_t lazy = other_thread(101);

	other_thread(102);
	timeline_sleep(&line, lazy, 12 * MS, 15 * MS);
	main_waits_timed(5 * MS);
	assert_ns(CAUSE_HOST_GIL, ROLE_LAUNCHER, 5 * MS);
	cr_assert_str_eq(timeline_top(&line)->detail.holder, "thread 102 (102)");
}

/* ---- false wakes ---- */

/*
 * Main waits for a word in [10, 12] ms, runs `latency_ns` later, and after `run_ns` waits again until 19 ms.
 * A bystander ends the first wait, which had slept until 11 ms: of that nothing is blamed if the wake is
 * false. Returns the second wait.
 */
static struct offcpu *main_waits_twice(uint64_t latency_ns, uint64_t run_ns)
{
	uint32_t bystander = other_thread(101), helper = other_thread(102);
	uint64_t in = 12 * MS + latency_ns;

	timeline_sleep(&line, bystander, 1 * MS, 11 * MS);
	timeline_futex(&line, main_thread, 10 * MS, 12 * MS, in, bystander, 0x3000);
	return timeline_futex(&line, main_thread, in + run_ns, 19 * MS, 19 * MS, helper, 0x3000);
}

static void assert_first_wake_is(bool real)
{
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_THREAD, real ? 1 * MS : 0);
	gap_again();
}

Test(wait_rules, a_wake_is_false_if_the_thread_waits_again_within_fifty_microseconds)
{
	main_waits_twice(0, 50 * US);
	assert_first_wake_is(false);
	main_waits_twice(0, 50 * US + 1);
	assert_first_wake_is(true);
}

Test(wait_rules, a_wake_is_false_only_if_the_thread_ran_at_once)
{
	main_waits_twice(50 * US, 10 * US);
	assert_first_wake_is(false);
	main_waits_twice(50 * US + 1, 10 * US);
	assert_first_wake_is(true);
}

Test(wait_rules, a_wake_is_false_only_if_the_thread_waits_for_the_same_word)
{
	main_waits_twice(0, 10 * US)->args[0] = 0x3008;
	assert_first_wake_is(true);
}

Test(wait_rules, a_wake_is_not_false_if_the_thread_made_a_call_in_between)
{
	main_waits_twice(0, 10 * US);
	timeline_call(&line, main_thread, "cudaStreamQuery", 12 * MS + 1 * US, 12 * MS + 2 * US, 0);
	assert_first_wake_is(true);
}

Test(wait_rules, a_wake_is_not_false_if_records_are_missing_in_between)
{
	main_waits_twice(0, 10 * US)->lost_before = true;
	assert_first_wake_is(true);
}

/* Bytes of a pipe are taken whenever they come. */
Test(wait_rules, only_futex_wakes_can_be_false)
{
	uint32_t bystander = other_thread(101), helper = other_thread(102);

	timeline_sleep(&line, bystander, 1 * MS, 11 * MS);
	timeline_pipe(&line, main_thread, 10 * MS, 12 * MS, 12 * MS, bystander);
	timeline_pipe(&line, main_thread, 12 * MS + 10 * US, 19 * MS, 19 * MS, helper);
	assert_first_wake_is(true);
}

/* What main did in between is its own, though it is little. */
Test(wait_rules, two_wakes_by_one_thread_are_followed_one_by_one)
{
	main_waits_twice(0, 10 * US)->waker_tid = 101;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 1 * MS - 5 * US + 10 * US);
	gap_again();
	main_waits_twice(0, 10 * US);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 1 * MS - 5 * US);
}

/* ---- inside CUDA calls ---- */

static void blocked_inside(const char *function, const char *blocked_in, uint32_t waker, const char *woken_by)
{
	timeline_call(&line, main_thread, function, 11 * MS, 15 * MS, 0);
	timeline_blocked(&line, main_thread, 12 * MS, 14 * MS, 14 * MS, blocked_in, waker, woken_by);
	end_gap();
	timeline_analyse(&line);
}

/* The class of the call says more than the wait; only the driver's own lock is told from the rest of a
 * launch. */
Test(wait_rules, a_wait_inside_a_call_is_the_calls)
{
	blocked_inside("cudaLaunchKernel", "futex_do_wait", other_thread(101), "futex_wake");
	assert_ns(CAUSE_HOST_CUDA_LOCK, ROLE_LAUNCHER, 2 * MS);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 2 * MS);
	cr_assert_str_eq(cause_there(CAUSE_HOST_CUDA_LOCK, ROLE_LAUNCHER)->detail.holder, "thread 101 (101)");
	gap_again();
	blocked_inside("cudaLaunchKernel", "futex_do_wait", MODEL_NONE, "hrtimer_wakeup");
	assert_ns(CAUSE_HOST_CUDA_LOCK, ROLE_LAUNCHER, 0);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 4 * MS);
	gap_again();
	blocked_inside("cudaLaunchKernel", "anon_pipe_read", other_thread(101), "anon_pipe_write");
	assert_ns(CAUSE_HOST_CUDA_LOCK, ROLE_LAUNCHER, 0);
	gap_again();
	blocked_inside("cudaMalloc", "futex_do_wait", other_thread(101), "futex_wake");
	assert_ns(CAUSE_HOST_CUDA_LOCK, ROLE_LAUNCHER, 0);
	assert_ns(CAUSE_HOST_CUDA_ALLOC, ROLE_LAUNCHER, 4 * MS);
}

/* The GPU is done and the call comes back, blocked or not: within half a millisecond that is nobody's fault.
 */
Test(wait_rules, a_synchronisation_that_blocks_for_long_waits_for_something_else)
{
	timeline_call(&line, main_thread, "cudaStreamSynchronize", 2 * MS, 10500 * US, 0);
	timeline_blocked(&line, main_thread, 3 * MS, 10500 * US, 10500 * US, "os_schedule", MODEL_NONE,
	                 "nvidia_isr");
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 500 * US + 5 * US);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 0);
	gap_again();
	timeline_call(&line, main_thread, "cudaStreamSynchronize", 2 * MS, 10500 * US + 1, 0);
	timeline_blocked(&line, main_thread, 3 * MS, 10500 * US + 1, 10500 * US + 1, "os_schedule",
	                 MODEL_NONE, "nvidia_isr");
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 500 * US + 1);
	cr_assert_eq(cause_there(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER)->confidence, CONFIDENCE_LOW);
}
