// SPDX-License-Identifier: GPL-2.0-only
/*
 * What tracked threads run: a cpu-clock event on every CPU, of which only those that hit a tracked thread
 * become records. The clock needs no hardware counters, which virtual machines often lack.
 */
#include "common.bpf.h"
#include "stack.bpf.h"
#include "steal.bpf.h"

/* Kernel addresses are the upper half, on every architecture that is supported. */
static __always_inline bool kernel_address(__u64 address)
{
	return (__s64)address < 0;
}

/*
 * The way back from a page fault runs with interrupts off: a clock that strikes there is heard in user mode,
 * at the instruction that faulted or the one after it. So long is an instruction at most.
 */
#define INSTRUCTION_MOST 15

SEC("perf_event")
int cpu_sampled(struct bpf_perf_event_data *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *thread = thread_find(task);
	__u64 args[WIRE_SYSCALL_ARGS], now;
	struct wire_sample *record;
	__s32 kstack = WIRE_NO_STACK;
	bool has_stack;
	__u64 ip = PT_REGS_IP(&context->regs);
	bool kernel = kernel_address(ip);

	if (!thread)
		return 0;
	now = bpf_ktime_get_ns();
	thread_name(thread, task, now);
	steal_record(task, steal_since(task, false, now), now);
	if (kernel)
		kstack = kernel_stack(context);
	stack_take(thread, task, STACKS_SAMPLED, now);
	has_stack = stack_send(thread);
	record = record_reserve(WIRE_SAMPLE, sizeof(*record));
	if (!record)
		return 0;
	record->time_ns = now;
	record->tgid = task_tgid(task);
	record->tid = task_tid(task);
	record->syscall = kernel ? task_syscall(task, args) : WIRE_NO_SYSCALL;
	record->kstack = kstack;
	record->has_stack = has_stack;
	record->flags = kernel ? 0 : WIRE_SAMPLE_USER;
	record->faults = thread_take_faults(thread);
	if (!kernel && record->faults && ip - thread->fault_ip <= INSTRUCTION_MOST)
		record->flags |= WIRE_SAMPLE_FAULT;
	record->pad = 0;
	record->ip = ip;
	record_submit(record);
	return 0;
}
