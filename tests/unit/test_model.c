/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of CUDA functions and of kernel stacks. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/syscall.h>

#include "model/cuda_call.h"
#include "model/wait.h"

Test(cuda_call, names_without_the_version_of_the_interface)
{
	cr_assert_eq(cuda_name_length("cudaLaunchKernel_v7000"), strlen("cudaLaunchKernel"));
	cr_assert_eq(cuda_name_length("cudaLaunchKernel_ptsz_v7000"), strlen("cudaLaunchKernel_ptsz"));
	cr_assert_eq(cuda_name_length("cudaLaunchKernel"), strlen("cudaLaunchKernel"));
	cr_assert_eq(cuda_name_length("cuMemcpyHtoD_v2"), strlen("cuMemcpyHtoD_v2"));
	cr_assert_eq(cuda_name_length("cuda7000"), strlen("cuda7000"));
	cr_assert_eq(cuda_name_length("cuda_v7000"), strlen("cuda"));
	cr_assert_eq(cuda_name_length("_v7000"), strlen("_v7000"));
	cr_assert_eq(cuda_name_length(""), 0);
}

Test(cuda_call, the_table_is_sorted_for_the_search)
{
	for (size_t i = 1; i < cuda_function_count; i++)
		cr_assert_lt(strcmp(cuda_functions[i - 1].name, cuda_functions[i].name), 0, "%s",
		             cuda_functions[i].name);
	for (size_t i = 0; i < cuda_function_count; i++)
		cr_assert_eq(cuda_classify(cuda_functions[i].name), cuda_functions[i].class, "%s",
		             cuda_functions[i].name);
}

Test(cuda_call, suffixes_do_not_matter)
{
	cr_assert_eq(cuda_classify("cudaLaunchKernel_v7000"), CUDA_LAUNCH);
	cr_assert_eq(cuda_classify("cudaLaunchKernel_ptsz_v7000"), CUDA_LAUNCH);
	cr_assert_eq(cuda_classify("cuMemcpyHtoDAsync_v2_ptsz"), CUDA_COPY);
	cr_assert_eq(cuda_classify("cuMemFree_v2"), CUDA_ALLOC);
	cr_assert_eq(cuda_classify("cuMemsetD8Async"), CUDA_MEMSET);
}

Test(cuda_call, a_symbol_finds_its_entry)
{
	const struct cuda_function *found;

	for (size_t i = 0; i < cuda_function_count; i++)
		cr_assert_eq(cuda_function_find(cuda_functions[i].name), &cuda_functions[i], "%s",
		             cuda_functions[i].name);
	found = cuda_function_find("cuMemcpyHtoD_v2_ptds");
	cr_assert_not_null(found);
	cr_assert_str_eq(found->name, "cuMemcpyHtoD");
	cr_assert(found->both_ends);
	found = cuda_function_find("cudaLaunchKernel_ptsz_v7000");
	cr_assert_not_null(found);
	cr_assert_str_eq(found->name, "cudaLaunchKernel");
	cr_assert_not(found->both_ends);
	cr_assert_null(cuda_function_find(""));
	cr_assert_null(cuda_function_find("cuLaunch"));
	cr_assert_null(cuda_function_find("_ptsz"));
}

Test(cuda_call, others_are_other)
{
	cr_assert_eq(cuda_classify(""), CUDA_OTHER);
	cr_assert_eq(cuda_classify("cuLaunch"), CUDA_OTHER);
	cr_assert_eq(cuda_classify("cudaLaunchKernelExCX"), CUDA_OTHER);
	cr_assert_eq(cuda_classify("_v2"), CUDA_OTHER);
	cr_assert_eq(cuda_classify("zzz"), CUDA_OTHER);
}

#define KIND_OF_WAIT(...)                                                                                    \
	wait_classify((const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), \
	              -1)
#define KIND_OF_WAKE(tid, syscall, ...)                                                                      \
	wake_classify((const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), \
	              tid, tid, syscall)

#define IS_ENDING(syscall, ...)                                                                              \
	wake_is_ending((const char *[]){__VA_ARGS__},                                                        \
	               sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), syscall)

Test(wait, last_wakes_of_a_thread_come_from_its_exit)
{
	cr_assert(IS_ENDING(SYS_exit, "futex_wake", "do_futex", "mm_release", "exit_mm", "do_exit"));
	cr_assert(IS_ENDING(-1, "futex_wake", "mm_release", "do_exit", "do_group_exit", "get_signal"));
	cr_assert(wake_is_ending(NULL, 0, SYS_exit_group));
	cr_assert_not(IS_ENDING(SYS_futex, "futex_wake", "do_futex", "__x64_sys_futex"));
	cr_assert_not(IS_ENDING(SYS_exit, "hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt", "do_exit"));
	cr_assert_not(wake_is_ending(NULL, 0, -1));
}

/* Stacks as seen on Linux 6.18. */
Test(wait, kinds_by_stack)
{
	cr_assert_eq(KIND_OF_WAIT("__schedule", "schedule", "futex_do_wait", "__futex_wait", "futex_wait"),
	             WAIT_KIND_FUTEX);
	cr_assert_eq(KIND_OF_WAIT("schedule_hrtimeout_range_clock", "poll_schedule_timeout.constprop.0",
	                          "do_sys_poll"),
	             WAIT_KIND_POLL);
	cr_assert_eq(KIND_OF_WAIT("schedule_hrtimeout_range_clock", "do_epoll_wait", "__x64_sys_epoll_wait"),
	             WAIT_KIND_EPOLL);
	cr_assert_eq(KIND_OF_WAIT("ep_poll", "do_epoll_wait"), WAIT_KIND_EPOLL);
	cr_assert_eq(KIND_OF_WAIT("folio_wait_bit_common", "filemap_get_pages", "filemap_read"),
	             WAIT_KIND_DISK);
	cr_assert_eq(KIND_OF_WAIT("folio_wait_bit_common", "filemap_fault", "__do_fault", "handle_mm_fault",
	                          "exc_page_fault"),
	             WAIT_KIND_DISK_FAULT);
	cr_assert_eq(
	    KIND_OF_WAIT("rwsem_down_read_slowpath", "down_read", "do_user_addr_fault", "exc_page_fault"),
	    WAIT_KIND_MMAP_LOCK);
	cr_assert_eq(KIND_OF_WAIT("rwsem_down_write_slowpath", "down_write", "ext4_file_write_iter"),
	             WAIT_KIND_FILE_LOCK);
	cr_assert_eq(KIND_OF_WAIT("__skb_wait_for_more_packets", "__skb_recv_udp", "udp_recvmsg"),
	             WAIT_KIND_INET_SOCKET);
	cr_assert_eq(KIND_OF_WAIT("__skb_wait_for_more_packets", "unix_accept"), WAIT_KIND_UNIX_SOCKET);
	cr_assert_eq(KIND_OF_WAIT("os_schedule", "_scrubWaitAndSave"), WAIT_KIND_GPU_DRIVER);
}

Test(wait, without_a_stack_the_system_call_decides)
{
	cr_assert_eq(wait_classify(NULL, 0, SYS_futex), WAIT_KIND_FUTEX);
	cr_assert_eq(wait_classify(NULL, 0, SYS_clock_nanosleep), WAIT_KIND_SLEEP);
	cr_assert_eq(wait_classify(NULL, 0, SYS_getpid), WAIT_KIND_UNKNOWN);
}

Test(wait, an_interrupt_is_not_the_task_below_it)
{
	cr_assert_eq(KIND_OF_WAKE(42, SYS_futex, "try_to_wake_up", "wake_up_q", "futex_wake", "do_futex"),
	             WAKE_KIND_TASK);
	cr_assert_eq(
	    KIND_OF_WAKE(42, -1, "wake_page_function", "__wake_up_common", "folio_wake_bit", "bio_endio"),
	    WAKE_KIND_DISK);
	cr_assert_eq(KIND_OF_WAKE(0, -1, "hrtimer_wakeup", "__hrtimer_run_queues"), WAKE_KIND_TIMER);
	cr_assert_eq(KIND_OF_WAKE(42, SYS_read, "sock_def_readable", "tcp_data_queue", "tcp_v4_rcv",
	                          "net_rx_action", "handle_softirqs", "asm_common_interrupt"),
	             WAKE_KIND_NETWORK);
	cr_assert_eq(KIND_OF_WAKE(42, SYS_sendto, "sock_def_readable", "tcp_v4_rcv", "process_backlog",
	                          "net_rx_action", "tcp_sendmsg_locked", "tcp_sendmsg"),
	             WAKE_KIND_TASK);
	cr_assert_eq(KIND_OF_WAKE(0, -1, "something"), WAKE_KIND_UNKNOWN);
}

Test(wait, system_calls_have_names)
{
	cr_assert_str_eq(syscall_name(SYS_pread64), "pread64");
	cr_assert_str_eq(syscall_name(SYS_futex), "futex");
	cr_assert_null(syscall_name(-1));
	cr_assert_str_eq(syscall_name(99999), "syscall_99999");
}
