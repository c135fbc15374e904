// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page faults of tracked threads, counted: the next record of the thread tells how many there were. A fault
 * that blocks shows as an off-CPU interval without a system call, with its reason in the kernel stack, and
 * the address that is kept here.
 */
#include "common.bpf.h"

SEC("tp_btf/page_fault_user")
int user_fault(__u64 *context)
{
	struct thread_state *thread = thread_find(bpf_get_current_task_btf());
	struct pt_regs *regs = (struct pt_regs *)context[1];

	if (thread) {
		__sync_fetch_and_add(&thread->faults, 1);
		thread->fault_address = context[0];
		thread->fault_ip = PT_REGS_IP(regs);
	}
	return 0;
}

/*
 * Faults that the kernel takes on a thread's memory, as in read() into fresh memory. Those of a reader that
 * does not want them served (this very tool walking a user stack) are none of the thread's.
 */
SEC("tp_btf/page_fault_kernel")
int kernel_fault(__u64 *context __attribute__((unused)))
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *thread = thread_find(task);

	if (thread && !task->pagefault_disabled)
		__sync_fetch_and_add(&thread->faults, 1);
	return 0;
}
