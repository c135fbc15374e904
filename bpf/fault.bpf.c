// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page faults of tracked threads, counted: the next record of the thread tells how many there were. A fault
 * that blocks shows as an off-CPU interval without a system call, with its reason in the kernel stack.
 */
#include "common.bpf.h"

static __always_inline int count_fault(void)
{
	struct thread_state *thread = thread_find(bpf_get_current_task_btf());

	if (thread)
		__sync_fetch_and_add(&thread->faults, 1);
	return 0;
}

SEC("tp_btf/page_fault_user")
int user_fault(__u64 *context __attribute__((unused)))
{
	return count_fault();
}

/* Faults that the kernel takes on a thread's memory, as in read() into fresh memory. */
SEC("tp_btf/page_fault_kernel")
int kernel_fault(__u64 *context __attribute__((unused)))
{
	return count_fault();
}
