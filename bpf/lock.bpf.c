// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions of the C library that wait for other threads (record --locks): which object a thread waits for.
 *
 * Nothing is sent from here: the entry leaves a note in the thread's state, and a switch away inside a futex
 * wait reads it (lock.bpf.h). So a call that does not block costs the probe alone. Returns are not probed:
 * that the call is still open is told by the stack, and that this futex is its object's by the address.
 *
 * The attach cookie is the enum wire_lock of the function.
 */
#include "common.bpf.h"

SEC("uprobe")
int lock_called(struct pt_regs *context)
{
	struct thread_state *thread = thread_find(bpf_get_current_task_btf());
	__u64 stack = PT_REGS_SP(context), first = PT_REGS_PARM1(context), second = PT_REGS_PARM2(context);

	if (!thread || recording_end_ns)
		return 0;
	thread->lock_function = bpf_get_attach_cookie(context);
	thread->lock_called = first;
	thread->lock_second = second;
	thread->lock_stack = stack;
#if defined(__TARGET_ARCH_x86)
	thread->lock_return = 0;
	bpf_probe_read_user(&thread->lock_return, sizeof(thread->lock_return), (void *)stack);
#endif
	return 0;
}
