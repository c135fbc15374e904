// SPDX-License-Identifier: GPL-2.0-only
/*
 * Off-CPU intervals of tracked threads, one record each.
 *
 * sched_switch away from a thread opens an interval: time, state, system call with arguments, the file behind
 * its descriptor, kernel stack. sched_waking adds who woke it and what that thread was doing. sched_switch to
 * the thread closes the interval and sends the record if it was long enough. Nothing but the thread's own
 * state is touched in between, so a busy thread pays for two looks at its state and one stack walk, and a
 * thread that is not tracked for one look at a NULL pointer.
 *
 * The object of a wait and that of a wake are equal when both are about the same file, which is what lets
 * attribution follow the waker: see struct wire_offcpu.
 *
 * A wake can come before the switch that it ends: the thread has left the run queue, but its CPU still looks
 * for something else to run. Such a wake counts for the interval that is about to open. A wake of a thread
 * that is still on the run queue ends nothing and is ignored.
 */
#include "common.bpf.h"
#include "file.bpf.h"
#include "lock.bpf.h"
#include "stack.bpf.h"
#include "steal.bpf.h"

/*
 * The CPU quota of the task's cgroup is used up. Since 6.18 the task itself is taken off the run queue and
 * marked; before that its group's run queue was, and until then only the count of that tells.
 */
static __always_inline bool task_throttled(struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled) && task->throttled)
		return true;
	return bpf_core_field_exists(task->se.cfs_rq) &&
	       bpf_core_field_exists(((struct cfs_rq *)0)->throttle_count) &&
	       task->se.cfs_rq->throttle_count > 0;
}

/* Outside of system calls a thread blocks in page faults, mostly: what it touched. */
static __always_inline void fault_object(struct thread_state *thread, struct task_struct *task)
{
	thread->args[0] = thread->fault_address;
	thread->file = mapped_file(task, thread->fault_address);
}

/* CPUs beyond these are taken for busy. */
#define CPUS_MAX 1024

/* Work of a CPU up to this long is a moment's: it does not end its idleness. */
#define IDLE_BREAK_NS 500000

/* Idleness of each CPU. A cache line each: every CPU writes its own. */
static struct {
	__u64 since_ns; /* when it became idle last, 0 not known */
	__u64 left_ns;  /* when it began to work since then, 0: it is idle */
	__u64 pad[6];
} idle_cpus[CPUS_MAX];

static __always_inline void note_idle(struct task_struct *prev, struct task_struct *next)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 now;

	if (cpu >= CPUS_MAX || (next->pid && prev->pid))
		return;
	now = bpf_ktime_get_ns();
	if (next->pid) {
		idle_cpus[cpu].left_ns = now;
		return;
	}
	if (!idle_cpus[cpu].since_ns || now - idle_cpus[cpu].left_ns > IDLE_BREAK_NS)
		idle_cpus[cpu].since_ns = now;
	idle_cpus[cpu].left_ns = 0;
}

static __always_inline bool task_allows(struct task_struct *task, __u32 cpu)
{
	const void *bits = task->cpus_ptr;
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), bits + cpu / 64 * sizeof(word));
	return word >> cpu % 64 & 1;
}

/* See WIRE_OFFCPU_BOUND. Only waits for the CPU that matter pay for the look at all CPUs. */
static __always_inline bool task_bound(struct task_struct *task, __u64 from_ns, __u64 to_ns)
{
	__u64 middle_ns = from_ns + (to_ns - from_ns) / 2;
	bool elsewhere = false;

	if (to_ns - from_ns < WIRE_BOUND_MIN_NS)
		return false;
	for (__u32 cpu = 0; cpu < CPUS_MAX && cpu < settings.cpus; cpu++) {
		__u64 since = idle_cpus[cpu].since_ns, left = idle_cpus[cpu].left_ns;

		if (!since || since > middle_ns || (left && to_ns - left > IDLE_BREAK_NS))
			continue;
		if (task_allows(task, cpu))
			return false;
		elsewhere = true;
	}
	return elsewhere;
}

static __always_inline void interval_open(void *context, struct thread_state *thread,
                                          struct task_struct *task, struct task_struct *next, bool runnable,
                                          __u32 state, __u64 now)
{
	/* A wake that came before a switch was for an interval that ended elsewhere (see process.bpf.c). */
	if (thread->out_ns || runnable)
		thread->woken = 0;
	thread->out_ns = now;
	thread->state = state;
	thread->next_tid = task_tid(next);
	thread->out_cpu = bpf_get_smp_processor_id();
	thread->syscall = task_syscall(task, thread->args);
	thread->object = thread->file = thread->ready = 0;
	thread->lock_kind = WIRE_LOCK_NONE;
	if (runnable) {
		/* It was interrupted anywhere: its stack says nothing about a wait. */
		thread->flags = WIRE_OFFCPU_PREEMPTED | (task_throttled(task) ? WIRE_OFFCPU_THROTTLED : 0);
		thread->kstack = WIRE_NO_STACK;
		thread->stack_bytes = 0;
		return;
	}
	thread->flags = BPF_CORE_READ_BITFIELD(task, in_iowait) ? WIRE_OFFCPU_IOWAIT : 0;
	thread->kstack = kernel_stack(context);
	stack_take(thread, task, STACKS_OFFCPU, now);
	if (thread->syscall >= 0)
		thread->object = syscall_object(task, thread->syscall, thread->args, false, &thread->file);
	else if (thread->fault_address)
		fault_object(thread, task);
	if (settings.locks && syscall_kind(thread->syscall) == SYSCALL_FUTEX)
		lock_take(thread, task);
}

/* Sends the interval [thread->out_ns, end]. */
static __always_inline void interval_record(struct thread_state *thread, struct task_struct *task,
                                            __u32 prev_tid, __u32 flags, __u64 end)
{
	bool has_stack = end - thread->out_ns >= settings.min_stack_ns && stack_send(thread);
	struct wire_offcpu *record = record_reserve(WIRE_OFFCPU, sizeof(*record));

	if (!record)
		return;
	record->out_ns = thread->out_ns;
	record->wake_ns = 0;
	record->in_ns = end;
	record->tgid = task_tgid(task);
	record->tid = task_tid(task);
	record->waker_tgid = record->waker_tid = 0;
	record->next_tid = thread->next_tid;
	record->prev_tid = prev_tid;
	record->syscall = thread->syscall;
	record->waker_syscall = WIRE_NO_SYSCALL;
	__builtin_memcpy(record->args, thread->args, sizeof(record->args));
	record->waker_args[0] = record->waker_args[1] = 0;
	record->object = thread->object;
	record->file = thread->file;
	record->ready = thread->ready;
	record->waker_object = 0;
	record->kstack = thread->kstack;
	record->waker_kstack = WIRE_NO_STACK;
	record->has_stack = has_stack;
	record->state = thread->state;
	record->flags = thread->flags | flags;
	record->seq = thread->seq;
	record->faults = thread_take_faults(thread);
	record->out_cpu = thread->out_cpu;
	record->in_cpu = record->header.cpu;
	record->cpus_allowed = task->nr_cpus_allowed;
	record->lock_kind = thread->lock_kind;
	record->lock = thread->lock_kind ? thread->lock : 0;
	record->lock_holder = thread->lock_kind ? thread->lock_holder : 0;
	record->pad = 0;
	if (thread->woken) {
		record->flags |= WIRE_OFFCPU_WOKEN;
		record->wake_ns = thread->wake_ns < thread->out_ns ? thread->out_ns : thread->wake_ns;
		record->waker_tgid = thread->waker_tgid;
		record->waker_tid = thread->waker_tid;
		record->waker_syscall = thread->waker_syscall;
		record->waker_args[0] = thread->waker_args[0];
		record->waker_args[1] = thread->waker_args[1];
		record->waker_object = thread->waker_object;
		record->waker_kstack = thread->waker_kstack;
	}
	record_submit(record);
}

static __always_inline void interval_close(struct thread_state *thread, struct task_struct *task,
                                           struct task_struct *prev, __u64 now)
{
	__u64 runnable_ns = now;

	if (thread->out_ns && now - thread->out_ns >= settings.min_offcpu_ns) {
		if (thread->flags & WIRE_OFFCPU_PREEMPTED)
			runnable_ns = thread->out_ns;
		else if (thread->woken)
			runnable_ns = thread->wake_ns;
		thread->seq++;
		thread_name(thread, task, now);
		task_name(prev, now);
		if (thread->object && syscall_kind(thread->syscall) == SYSCALL_EPOLL)
			thread->ready = epoll_ready((struct eventpoll *)thread->object);
		interval_record(thread, task, task_tid(prev),
		                task_bound(task, runnable_ns, now) ? WIRE_OFFCPU_BOUND : 0, now);
	}
	thread->out_ns = 0;
	thread->woken = 0;
}

static __always_inline struct thread_state *thread_switched(struct task_struct *task)
{
	struct thread_state *thread = thread_find(task);

	if (!thread && settings.adopt_on_switch && task->pid && process_tracked(task_tgid(task)) &&
	    !(task->flags & TASK_FLAG_EXITING))
		thread = thread_create(task);
	return thread;
}

SEC("tp_btf/sched_switch")
int sched_switched(__u64 *context)
{
	bool preempted = context[0];
	struct task_struct *prev = (struct task_struct *)context[1];
	struct task_struct *next = (struct task_struct *)context[2];
	struct thread_state *from = thread_switched(prev), *to = thread_switched(next);
	__u64 now = 0, stolen = 0;
	__u32 state;

	if (settings.virtual) {
		now = bpf_ktime_get_ns();
		stolen = steal_since(prev, true, now);
	}
	if (from) {
		now = now ?: bpf_ktime_get_ns();
		steal_record(prev, stolen, now);
		state = settings.switch_has_state ? (__u32)context[3] : prev->__state;
		interval_open(context, from, prev, next, preempted || !state, state, now);
		task_name(next, now);
	}
	if (to) {
		now = now ?: bpf_ktime_get_ns();
		if (!prev->pid && to->woken && to->wake_ns < now)
			steal_record(next, stolen < now - to->wake_ns ? stolen : now - to->wake_ns, now);
		interval_close(to, next, prev, now);
	}
	note_idle(prev, next);
	return 0;
}

/* True if `task` no longer is on a run queue, or only until its CPU gets round to taking it off. */
static __always_inline bool task_left_queue(struct task_struct *task)
{
	if (!task->on_rq)
		return true;
	return bpf_core_field_exists(task->se.sched_delayed) && task->se.sched_delayed;
}

/* Threads outside the tracked processes that are tracked at most. */
#define GUESTS_MAX 256

static __u32 guest_count;

/*
 * A thread of no tracked process woke a tracked one out of a wait that matters: it is tracked from now on, so
 * that the next such wait can be followed into it (a data server that is nobody's child). Only from within a
 * system call: an interrupt wakes on top of whatever thread had the CPU.
 */
static __always_inline void guest_admit(struct task_struct *task, __s32 syscall, __u64 now)
{
	struct thread_state *thread = thread_find(task);
	struct wire_fork *record;
	__u32 tgid;

	if (thread)
		thread->guest_ns = now;
	if (syscall < 0 || guest_count >= GUESTS_MAX || task->flags & TASK_FLAG_EXITING || thread)
		return;
	tgid = task_tgid(task);
	if (tgid == settings.collector || process_tracked(tgid))
		return;
	thread = thread_create(task);
	if (!thread)
		return;
	__sync_fetch_and_add(&guest_count, 1);
	thread->guest = 1;
	thread->guest_ns = now;
	record = record_reserve(WIRE_FORK, sizeof(*record));
	if (!record)
		return;
	record->time_ns = now;
	record->parent_tgid = record->child_tgid = tgid;
	record->parent_tid = record->child_tid = thread->tid;
	record->namespace_tid = innermost_tid(task);
	record->pad = 0;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	record_submit(record);
	thread->named = 1;
}

SEC("tp_btf/sched_waking")
int sched_wakes(__u64 *context)
{
	struct task_struct *task = (struct task_struct *)context[0], *waker;
	struct thread_state *thread = thread_find(task);
	__u64 args[WIRE_SYSCALL_ARGS], now, blocked;
	enum syscall_kind kind;
	__s32 number;
	bool several;

	if (!thread || thread->woken)
		return 0;
	if (thread->out_ns ? thread->flags & WIRE_OFFCPU_PREEMPTED : !task_left_queue(task))
		return 0;
	now = bpf_ktime_get_ns();
	waker = bpf_get_current_task_btf();
	number = task_syscall(waker, args);
	if (task_throttled(task))
		thread->flags |= WIRE_OFFCPU_THROTTLED;
	thread->wake_ns = now;
	thread->waker_tgid = task_tgid(waker);
	thread->waker_tid = task_tid(waker);
	thread->waker_syscall = number;
	thread->waker_args[0] = args[0];
	thread->waker_args[1] = args[1];
	kind = syscall_kind(thread->syscall);
	several = !thread->object && (kind == SYSCALL_POLL || kind == SYSCALL_SELECT);
	thread->waker_object =
	    number >= 0 ? syscall_object(waker, number, args, true, several ? &thread->ready : NULL) : 0;
	/* The stack is what costs. A wait too short to be recorded is not worth it, whatever follows it. */
	blocked = thread->out_ns ? now - thread->out_ns : 0;
	thread->waker_kstack = blocked >= settings.min_offcpu_ns ? kernel_stack(context) : WIRE_NO_STACK;
	if (blocked >= settings.min_stack_ns && !thread->guest)
		guest_admit(waker, number, now);
	task_name(waker, now);
	thread->woken = 1;
	return 0;
}

/* Run over all threads when recording has ended: what is still open is sent as it stands. */
SEC("iter/task")
int intervals_left(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct thread_state *thread;

	if (!task)
		return 0;
	thread = thread_find(task);
	if (!thread || !thread->out_ns || recording_end_ns < thread->out_ns)
		return 0;
	if (recording_end_ns - thread->out_ns >= settings.min_offcpu_ns) {
		thread->seq++;
		thread_name(thread, task, recording_end_ns);
		interval_record(thread, task, 0, WIRE_OFFCPU_OPEN, recording_end_ns);
	}
	thread->out_ns = 0;
	return 0;
}

/* Run over all threads before another recording with the same programs: none is tracked any more. */
SEC("iter/task")
int threads_forgotten(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct thread_state *thread;

	guest_count = 0;
	thread = task ? thread_find(task) : NULL;
	if (!thread)
		return 0;
	slot_give_back(thread);
	thread_forget(task);
	return 0;
}
