// SPDX-License-Identifier: GPL-2.0-only
/* What a model makes of its records before anything is blamed: which call launched what, what overlaps, what
 * is lost. */
#include <stdio.h>
#include <sys/syscall.h>

#include "gap_fixture.h"

TestSuite(model_finish, .init = gap_setup, .fini = gap_teardown);

/* ---- calls ---- */

/* The runtime's call encloses the driver's, which carries the id: the thread is in the outer one. */
Test(model_finish, the_outermost_call_is_the_launch)
{
	timeline_call(&line, main_thread, "cudaLaunchKernel", 15 * MS, 19900 * US, 0);
	timeline_call(&line, main_thread, "cuLaunchKernel", 19 * MS, 19800 * US, 900);
	timeline_op(&line, MAIN, 20 * MS, 21 * MS, 900);
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 5 * MS);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 4900 * US);
	cr_assert_str_eq(line.analysis.devices.items[0].top_gaps.items[0].launch, "cudaLaunchKernel");
}

/* Whether idle time was launched late is told by the call with the id, as other tools tell it. */
Test(model_finish, the_call_with_the_id_tells_when_it_was_launched)
{
	timeline_call(&line, main_thread, "cudaLaunchKernel", 9 * MS, 19900 * US, 0);
	timeline_call(&line, main_thread, "cuLaunchKernel", 11 * MS, 19800 * US, 900);
	timeline_op(&line, MAIN, 20 * MS, 21 * MS, 900);
	timeline_analyse(&line);
	cr_assert_eq(line.analysis.devices.items[0].late_ns, 10 * MS);
}

Test(model_finish, of_several_calls_with_one_id_the_earliest_launched)
{
	timeline_call(&line, main_thread, "cudaLaunchKernel", 12 * MS, 12 * MS + 3 * US, 900);
	timeline_call(&line, main_thread, "cudaEventRecord", 19 * MS, 19 * MS + 3 * US, 900);
	timeline_op(&line, MAIN, 20 * MS, 21 * MS, 900);
	timeline_analyse(&line);
	cr_assert_str_eq(line.analysis.devices.items[0].top_gaps.items[0].launch, "cudaLaunchKernel");
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 2 * MS);
}

/* An id means nothing in another process. */
Test(model_finish, an_operation_is_launched_by_its_own_process)
{
	uint32_t other = timeline_process(&line, 300, 0, "other");

	timeline_call(&line, other, "cudaLaunchKernel", 12 * MS, 12 * MS + 3 * US, 900);
	timeline_op(&line, MAIN, 20 * MS, 21 * MS, 900);
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_UNTRACED, ROLE_DEVICE, 10 * MS);
}

/* ---- intervals ---- */

/* As a damaged file may have them: the later one loses what overlaps. */
Test(model_finish, overlapping_intervals_are_made_disjoint)
{
	timeline_sleep(&line, main_thread, 11 * MS, 15 * MS);
	timeline_blocked(&line, main_thread, 13 * MS, 18 * MS, 18 * MS, "bit_wait_io", MODEL_NONE,
	                 "bio_endio");
	timeline_sleep(&line, main_thread, 14 * MS, 17 * MS);
	end_gap();
	timeline_analyse(&line);
	cr_assert_eq(line.model.threads.items[main_thread].offcpu.count, 2);
	cr_assert_eq(line.model.threads.items[main_thread].offcpu.items[1].out_ns, 15 * MS);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 4 * MS);
	assert_ns(CAUSE_WAIT_DISK, ROLE_LAUNCHER, 3 * MS);
}

Test(model_finish, a_wake_lies_within_its_interval)
{
	struct offcpu *sleep = timeline_sleep(&line, main_thread, 11 * MS, 13 * MS);

	sleep->wake_ns = 15 * MS;
	sleep = timeline_sleep(&line, main_thread, 16 * MS, 18 * MS);
	sleep->wake_ns = 14 * MS;
	sleep->prev_tid = MAIN;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_WAIT_SLEEP, ROLE_LAUNCHER, 2 * MS);
	assert_ns(CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER, 2 * MS);
}

/* ---- what a wait was about ---- */

/* A wait in a system call with a named descriptor, which the network ended. Its path in the report. */
static const char *path_of_wait(int32_t syscall, uint64_t count, const char *blocked_in)
{
	static char path[32];
	struct offcpu *wait = timeline_blocked(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, blocked_in,
	                                       MODEL_NONE, "sock_def_readable<net_rx_action");
	const struct cause *top;

	wait->syscall = syscall;
	wait->args[1] = count;
	wait->path = model_add_string(&line.model, "socket", 6);
	end_gap();
	timeline_analyse(&line);
	top = timeline_top(&line);
	cr_assert_eq(top->ns, 9 * MS);
	snprintf(path, sizeof(path), "%s", top->detail.path ? top->detail.path : "none");
	gap_again();
	return path;
}

/* Of several descriptors one was named, and an interrupt does not say which was ready. */
Test(model_finish, a_descriptor_is_told_if_it_was_the_only_one)
{
	cr_assert_str_eq(path_of_wait(SYS_ppoll, 1, "do_sys_poll"), "socket");
	cr_assert_str_eq(path_of_wait(SYS_ppoll, 2, "do_sys_poll"), "none");
	cr_assert_str_eq(path_of_wait(SYS_pselect6, 1, "do_select"), "none");
	cr_assert_str_eq(path_of_wait(SYS_recvfrom, 0, "sk_wait_data"), "socket");
}

/* Outside system calls what is named is the file of the last page fault. */
Test(model_finish, a_file_is_told_of_faults_only)
{
	cr_assert_str_eq(path_of_wait(-1, 0, "folio_wait_bit_common<exc_page_fault"), "socket");
	cr_assert_str_eq(path_of_wait(-1, 0, "sk_wait_data"), "none");
}

/* ---- losses ---- */

Test(model_finish, holes_that_overlap_are_one)
{
	timeline_lost(&line, RECORD_LOSS_CUPTI, 13 * MS, 16 * MS);
	timeline_lost(&line, RECORD_LOSS_BRIDGE_RING, 12 * MS, 17 * MS);
	timeline_lost(&line, RECORD_LOSS_FILE, 17 * MS, 18 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_LOST, ROLE_DEVICE, 6 * MS);
	cr_assert_eq(line.model.gpu_holes.count, 1);
}

Test(model_finish, lost_scheduler_records_are_no_hole_of_the_gpu)
{
	timeline_lost(&line, RECORD_LOSS_BPF_RING, 12 * MS, 16 * MS);
	timeline_lost(&line, RECORD_LOSS_STACKS, 12 * MS, 16 * MS);
	timeline_sleep(&line, main_thread, 25 * MS, 26 * MS);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_LOST, ROLE_DEVICE, 0);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, HOST_PART);
}

/* A gap in a thread's record numbers would show: up to its last record it has them all. */
Test(model_finish, what_was_lost_before_a_threads_last_record_is_not_its_own)
{
	timeline_lost(&line, RECORD_LOSS_BPF_RING, 12 * MS, 13 * MS);
	timeline_sleep(&line, main_thread, 12500 * US, 13500 * US);
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_UNKNOWN_LOST, ROLE_LAUNCHER, 0);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, HOST_PART - 1 * MS);
}
