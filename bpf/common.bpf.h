/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all BPF programs share: maps, settings, the state kept for each tracked thread, and small helpers.
 *
 * Every file of bpf/ is compiled by itself; `bpftool gen object` links them. Maps are weak, so that their
 * equal definitions are merged into one; settings and counters are defined in shared.bpf.c.
 */
#ifndef WHYIDLE_BPF_COMMON_H
#define WHYIDLE_BPF_COMMON_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "events.h"
#include "settings.h"

/* Constants of the kernel that its type information does not hold. */
#define TASK_FLAG_EXITING   0x00000004 /* PF_EXITING */
#define TASK_FLAG_IO_WORKER 0x00000010 /* PF_IO_WORKER */
#define TASK_FLAG_KTHREAD   0x00200000 /* PF_KTHREAD */
#define THREAD_COMPAT       0x0002     /* TS_COMPAT: the system call is a 32-bit one */
#define ERROR_EXISTS        17         /* EEXIST */
#define ERROR_FAULT         14         /* EFAULT */

extern const volatile struct bpf_settings settings;
extern __u64 losses[WIRE_LOSS_COUNT];
/* Set by the collector once all other programs are detached: those on CUDA calls do nothing from then on. */
extern __u64 recording_end_ns;
/* Set by the collector: no user stacks in this recording, whatever the settings say. */
extern __u32 stacks_off;
/* Bytes of user stacks sent since the collector last set it to 0. */
extern __u64 stack_bytes_sent;

/* Processes that are recorded, by thread group id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} tracked_processes SEC(".maps") __weak;

/*
 * State of a tracked thread. A thread is tracked if and only if it has one: so a thread that is not costs the
 * scheduler programs one look at a NULL pointer.
 *
 * Writers: the thread itself (or the CPU that switches it) writes everything but the wake fields; those are
 * written by the waker, which holds the thread's pi_lock, and only while `woken` is 0.
 */
struct thread_state {
	__u64 out_ns; /* start of the off-CPU interval it is in, 0: it runs */
	__u64 args[WIRE_SYSCALL_ARGS];
	__u64 object;
	__u64 file;          /* key of the record that names what it is about, 0 none */
	__u64 ready;         /* the same for what ended a wait for several */
	__u64 fault_address; /* of its last page fault, 0 none */
	__u64 fault_ip;      /* instruction that took it, in user mode */
	__s32 syscall;
	__s32 kstack;
	__u32 stack_bytes; /* length of the record in its slot, 0: no user stack was taken */
	__u32 state;
	__u32 flags; /* WIRE_OFFCPU_PREEMPTED, WIRE_OFFCPU_IOWAIT */
	__u32 next_tid;
	__u32 out_cpu;

	__u32 woken; /* 1: the wake fields below are those of this interval */
	__u64 wake_ns;
	__u64 waker_args[2];
	__u64 waker_object;
	__u32 waker_tgid, waker_tid;
	__s32 waker_syscall;
	__s32 waker_kstack;

	__u32 tid;      /* as records give it; exec can change it */
	__u32 seq;      /* recorded intervals so far */
	__u32 faults;   /* since the last record */
	__u32 named;    /* a record with its name was sent */
	__u32 slot;     /* number of its slot for stacks + 1, 0 none */
	__u32 guest;    /* 1: tracked on demand, because it woke a tracked thread (see sched.bpf.c) */
	__u64 guest_ns; /* when it did so last */

	__u64 python_thread; /* PyThreadState, 0 not known */
	__u64 python_missed; /* first of the list of those when this thread was not found in it */

	__u64 call_cookie; /* the CUDA call it is in, see cuda.bpf.c */
	__u64 call_target, call_object, call_work;
	__u32 call_known;
	__u64 call_ns;
	__u64 call_stack;
	__u64 launch_ns;
	/* The last query that was recorded. */
	__u64 query_ns, query_object;
	__s32 query_result;
	__u32 query_pad;
	__u64 launch_stack, launch_return;

	__u64 lock_called; /* first argument of the function of lock.bpf.c that it entered last, 0 none */
	__u64 lock_second; /* of a wait for a condition variable: its mutex */
	__u64 lock_stack;  /* stack pointer at that entry, and the return address that lay there */
	__u64 lock_return;
	__u32 lock_function; /* enum wire_lock */

	__u32 lock_kind; /* of the interval that it is in, see struct wire_offcpu */
	__u64 lock;
	__u32 lock_holder;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} thread_storage SEC(".maps") __weak;

/* The same by thread id, for kernels that refuse task storage (settings.thread_table). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct thread_state);
} thread_table SEC(".maps") __weak;

/* Threads outside the tracked set whose name was sent: by thread id, a hash of start time and name. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, __u32);
	__type(value, __u64);
} named_threads SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024 * 1024);
} ring SEC(".maps") __weak;

/*
 * Stacks. The bucket of a stack is its hash; the kernel refuses a second one with the same bucket. Such a
 * stack goes to a second map, where that bucket is most likely free (WIRE_STACK_SECOND is set in its id).
 */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 32768);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, WIRE_STACK_DEPTH * sizeof(__u64));
} kernel_stacks SEC(".maps") __weak, kernel_stacks_second SEC(".maps") __weak;

static __always_inline void count_loss(enum wire_loss cause)
{
	__sync_fetch_and_add(&losses[cause], 1);
}

/* Room for a record of `size` bytes with its header filled in; NULL, and counted, if the ring is full. */
static __always_inline void *record_reserve(__u16 type, __u16 size)
{
	struct wire_header *header = bpf_ringbuf_reserve(&ring, size, 0);

	if (!header) {
		count_loss(WIRE_LOSS_RING);
		return NULL;
	}
	header->type = type;
	header->size = size;
	header->cpu = bpf_get_smp_processor_id();
	return header;
}

/* Nobody is woken: a collector that is woken by records would make scheduler records itself. It polls. */
static __always_inline void record_submit(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* An id as the collector sees it, see WIRE_ID_OUTSIDE. */
static __always_inline __u32 visible_id(struct pid *pid, __u32 initial)
{
	__u32 depth = BPF_CORE_READ(pid, level);
	struct upid *id = (void *)pid + bpf_core_field_offset(struct pid, numbers);

	/* Namespaces nest 32 deep at most; the initial one is at 0. */
	for (__u32 level = 1; level <= 32 && level <= depth; level++) {
		id = (void *)id + bpf_core_type_size(struct upid);
		if (BPF_CORE_READ(id, ns, ns.inum) == settings.pid_namespace)
			return BPF_CORE_READ(id, nr);
	}
	return initial | WIRE_ID_OUTSIDE;
}

/* The id in the innermost pid namespace of the task, 0 if that is the initial one. */
static __always_inline __u32 innermost_tid(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	__u32 depth = BPF_CORE_READ(pid, level);
	struct upid *id = (void *)pid + bpf_core_field_offset(struct pid, numbers);

	if (!depth || depth > 32)
		return 0;
	id = (void *)id + (__u64)depth * bpf_core_type_size(struct upid);
	return BPF_CORE_READ(id, nr);
}

static __always_inline __u32 task_tid(struct task_struct *task)
{
	if (!settings.pid_namespace || !task->pid)
		return task->pid;
	return visible_id(task->thread_pid, task->pid);
}

static __always_inline __u32 task_tgid(struct task_struct *task)
{
	if (!settings.pid_namespace || !task->tgid)
		return task->tgid;
	return visible_id(task->group_leader->thread_pid, task->tgid);
}

static __always_inline bool process_tracked(__u32 tgid)
{
	return bpf_map_lookup_elem(&tracked_processes, &tgid) != NULL;
}

/* State of a thread, NULL if it is not tracked. */
static __always_inline struct thread_state *thread_find(struct task_struct *task)
{
	__u32 tid;

	if (!settings.thread_table)
		return bpf_task_storage_get(&thread_storage, task, NULL, 0);
	tid = task->pid;
	return bpf_map_lookup_elem(&thread_table, &tid);
}

static const struct thread_state new_thread;

/* Begins to track a thread. NULL, and counted, if there is no memory. */
static __always_inline struct thread_state *thread_create(struct task_struct *task)
{
	struct thread_state *thread;
	__u32 tid;

	if (!settings.thread_table) {
		thread = bpf_task_storage_get(&thread_storage, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	} else {
		tid = task->pid;
		bpf_map_update_elem(&thread_table, &tid, &new_thread, BPF_NOEXIST);
		thread = bpf_map_lookup_elem(&thread_table, &tid);
	}
	if (thread)
		thread->tid = task_tid(task);
	else
		count_loss(WIRE_LOSS_STORAGE);
	return thread;
}

static __always_inline void thread_forget(struct task_struct *task)
{
	__u32 tid;

	if (!settings.thread_table) {
		bpf_task_storage_delete(&thread_storage, task);
		return;
	}
	tid = task->pid;
	bpf_map_delete_elem(&thread_table, &tid);
}

/* Page faults since the last record that told. */
static __always_inline __u32 thread_take_faults(struct thread_state *thread)
{
	return __sync_lock_test_and_set(&thread->faults, 0);
}

static __always_inline bool record_task_name(struct task_struct *task, __u64 now)
{
	struct wire_task *record = record_reserve(WIRE_TASK, sizeof(*record));

	if (!record)
		return false;
	record->time_ns = now;
	record->tgid = task_tgid(task);
	record->tid = task_tid(task);
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	record_submit(record);
	return true;
}

/* Names a tracked thread that no record has named yet. */
static __always_inline void thread_name(struct thread_state *thread, struct task_struct *task, __u64 now)
{
	if (!thread->named)
		thread->named = record_task_name(task, now);
}

/* Names a thread that a record is about to mention: once, and again when it has another name. */
static __always_inline void task_name(struct task_struct *task, __u64 now)
{
	struct thread_state *thread = thread_find(task);
	__u64 comm[2] = {}, *known, hash;
	__u32 tid = task->pid;

	if (!tid)
		return;
	if (thread) {
		thread_name(thread, task, now);
		return;
	}
	bpf_probe_read_kernel_str(comm, sizeof(comm), task->comm);
	hash = task->start_time ^ comm[0] * 0x9e3779b97f4a7c15ULL ^ comm[1] * 0xc2b2ae3d27d4eb4fULL;
	known = bpf_map_lookup_elem(&named_threads, &tid);
	if (known && *known == hash)
		return;
	if (record_task_name(task, now))
		bpf_map_update_elem(&named_threads, &tid, &hash, BPF_ANY);
}

static __always_inline __s32 stack_id(long id, long second)
{
	if (id >= 0)
		return id;
	if (id == -ERROR_EXISTS && second >= 0)
		return second | WIRE_STACK_SECOND;
	if (id != -ERROR_FAULT) /* EFAULT: there is no stack of that kind */
		count_loss(WIRE_LOSS_STACK);
	return WIRE_NO_STACK;
}

static __always_inline __s32 kernel_stack(void *context)
{
	long id = bpf_get_stackid(context, &kernel_stacks, BPF_F_FAST_STACK_CMP), second = -1;

	if (id == -ERROR_EXISTS)
		second = bpf_get_stackid(context, &kernel_stacks_second, BPF_F_FAST_STACK_CMP);
	return stack_id(id, second);
}

/*
 * Number of the system call that `task` is in, WIRE_NO_SYSCALL if it entered the kernel otherwise or is a
 * kernel thread. Taken from the registers that the entry code saved, so no probe on system calls is needed.
 */
static __always_inline __s32 task_syscall(struct task_struct *task, __u64 args[WIRE_SYSCALL_ARGS])
{
	struct pt_regs *regs;
	__s32 number;

	args[0] = args[1] = args[2] = args[3] = 0;
	if (!task->pid || task->flags & (TASK_FLAG_KTHREAD | TASK_FLAG_IO_WORKER))
		return WIRE_NO_SYSCALL;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	if (task->thread_info.status & THREAD_COMPAT)
		return WIRE_NO_SYSCALL;
	number = regs->orig_ax;
	if (number < 0)
		return WIRE_NO_SYSCALL;
	args[0] = regs->di;
	args[1] = regs->si;
	args[2] = regs->dx;
	args[3] = regs->r10;
#elif defined(__TARGET_ARCH_arm64)
	number = regs->syscallno;
	if (number < 0)
		return WIRE_NO_SYSCALL;
	args[0] = regs->orig_x0;
	args[1] = regs->regs[1];
	args[2] = regs->regs[2];
	args[3] = regs->regs[3];
#endif
	return number;
}

#endif
