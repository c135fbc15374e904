// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life of tracked processes and threads, and who is tracked at all.
 *
 * Children of tracked processes are tracked from their first moment: sched_process_fork gives them their
 * state before they can run. A new thread starts in an off-CPU interval (it is runnable until its first
 * switch-in), so that waiting for a first CPU is seen like any other wait for one. Threads that exist when
 * recording begins get their state from an iterator over all threads, which the collector runs once the other
 * programs are attached; those that are blocked then start in an interval of which only the end is missing.
 * The state goes when the thread exits, the process when its last thread does.
 */
#include "common.bpf.h"
#include "nccl.bpf.h"
#include "stack.bpf.h"

/* Puts a thread that does not run into an off-CPU interval from `now` on. */
static __always_inline void thread_start_off_cpu(struct thread_state *thread, __u32 state, __u32 flags,
                                                 __u64 now)
{
	thread->state = state;
	thread->flags = flags;
	thread->kstack = WIRE_NO_STACK;
	thread->stack_bytes = 0;
	thread->syscall = WIRE_NO_SYSCALL;
	thread->out_cpu = bpf_get_smp_processor_id();
	thread->out_ns = now;
}

/* A forked process has its parent's memory, and so its interpreter. */
static __always_inline void python_inherit(__u32 parent, __u32 child)
{
	struct wire_python *python = bpf_map_lookup_elem(&python_processes, &parent), copy;

	if (!python)
		return;
	copy = *python;
	copy.collector = 0;
	bpf_map_update_elem(&python_processes, &child, &copy, BPF_ANY);
}

SEC("tp_btf/sched_process_fork")
int process_forked(__u64 *context)
{
	struct task_struct *parent = (struct task_struct *)context[0];
	struct task_struct *child = (struct task_struct *)context[1];
	struct thread_state *thread;
	struct wire_fork *record;
	__u32 tgid = task_tgid(child);
	__u64 now;
	__u8 one = TRACKED_WHOLE;

	thread = thread_find(parent);
	if ((!thread || thread->guest) && !process_tracked(task_tgid(parent)))
		return 0;
	if (child->tgid != parent->tgid && bpf_map_update_elem(&tracked_processes, &tgid, &one, BPF_ANY))
		count_loss(WIRE_LOSS_STORAGE);
	if (child->tgid != parent->tgid)
		python_inherit(task_tgid(parent), tgid);
	now = bpf_ktime_get_ns();
	thread = thread_create(child);
	if (thread)
		thread_start_off_cpu(thread, 0, WIRE_OFFCPU_PREEMPTED, now);
	record = record_reserve(WIRE_FORK, sizeof(*record));
	if (!record)
		return 0;
	record->time_ns = now;
	record->parent_tgid = task_tgid(parent);
	record->parent_tid = task_tid(parent);
	record->child_tgid = tgid;
	record->child_tid = task_tid(child);
	record->namespace_tid = innermost_tid(child);
	record->pad = 0;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), child->comm);
	record_submit(record);
	if (thread)
		thread->named = 1;
	return 0;
}

static __always_inline void record_exit(struct thread_state *thread, __u32 tgid, __s32 code)
{
	struct wire_exit *record = record_reserve(WIRE_EXIT, sizeof(*record));

	if (!record)
		return;
	record->time_ns = bpf_ktime_get_ns();
	record->tgid = tgid;
	record->tid = thread->tid;
	record->exit_code = code;
	record->seq = thread->seq;
	record->faults = thread_take_faults(thread);
	record->pad = 0;
	record_submit(record);
}

/* The arguments lie on the new program's stack and were written just now. */
static __always_inline void command_line(struct wire_exec *record, struct task_struct *task)
{
	__u64 start = BPF_CORE_READ(task, mm, arg_start), end = BPF_CORE_READ(task, mm, arg_end);
	__u64 bytes = end > start ? end - start : 0;

	if (bytes > WIRE_CMDLINE_LEN)
		bytes = WIRE_CMDLINE_LEN;
	asm volatile("" : "+r"(bytes));
	if (bytes > WIRE_CMDLINE_LEN || bpf_probe_read_user(record->cmdline, bytes, (void *)start))
		bytes = 0;
	record->cmdline_bytes = bytes;
}

SEC("tp_btf/sched_process_exec")
int process_executed(__u64 *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	struct linux_binprm *program = (struct linux_binprm *)context[2];
	struct thread_state *thread = thread_find(task);
	struct wire_exec *record;
	__u32 tid = task_tid(task), tgid = task_tgid(task);

	bpf_map_delete_elem(&python_processes, &tgid);
	if (!thread)
		return 0;
	thread->python_thread = thread->python_missed = 0;
	if (thread->tid != tid) {
		/* A thread that is not the leader becomes it, with the leader's id: its old id is gone. */
		record_exit(thread, tgid, 0);
		thread->seq = 0;
		thread->tid = tid;
	}
	thread->call_stack = 0;
	nccl_thread_forget((__u32)context[1]); /* the id that it had when it called */
	record = record_reserve(WIRE_EXEC, sizeof(*record));
	if (!record)
		return 0;
	record->time_ns = bpf_ktime_get_ns();
	record->tgid = tgid;
	record->tid = tid;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	bpf_probe_read_kernel_str(record->filename, sizeof(record->filename), program->filename);
	record->pad = 0;
	command_line(record, task);
	record_submit(record);
	return 0;
}

SEC("tp_btf/task_rename")
int task_renamed(__u64 *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	const char *name = (const char *)context[1];
	struct wire_task *record;

	if (!thread_find(task))
		return 0;
	record = record_reserve(WIRE_TASK, sizeof(*record));
	if (!record)
		return 0;
	record->time_ns = bpf_ktime_get_ns();
	record->tgid = task_tgid(task);
	record->tid = task_tid(task);
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), name);
	record_submit(record);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int process_exited(__u64 *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	struct thread_state *thread = thread_find(task);
	__u32 tgid = task_tgid(task);

	if (thread) {
		record_exit(thread, tgid, task->exit_code);
		slot_give_back(thread);
		thread_forget(task);
		nccl_thread_forget(task->pid);
	}
	if (!task->signal->live.counter) {
		bpf_map_delete_elem(&tracked_processes, &tgid);
		bpf_map_delete_elem(&python_processes, &tgid);
	}
	return 0;
}

/* Run over all threads when recording begins or a process is added: gives those of tracked processes their
 * state. */
SEC("iter/task")
int threads_adopted(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct thread_state *thread;

	if (!task || !process_tracked(task_tgid(task)) || task->flags & TASK_FLAG_EXITING ||
	    thread_find(task))
		return 0;
	thread = thread_create(task);
	if (!thread)
		return 0;
	if (!task->on_cpu) {
		__u32 state = task->__state;

		thread_start_off_cpu(thread, state, state ? 0 : WIRE_OFFCPU_PREEMPTED, bpf_ktime_get_ns());
		thread->syscall = task_syscall(task, thread->args);
	}
	return 0;
}
