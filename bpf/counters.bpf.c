// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters of the threads of GPU processes: the tier that is always on. An object of its own, loaded apart
 * from the programs of a recording.
 *
 * Most of it costs nothing while it counts: the kernel itself keeps how long a thread ran and how long it
 * waited for a CPU, and an iterator reads that once a second. Only the split of the rest into kinds of
 * blocking needs a program at the switch, which userspace attaches as long as it is affordable. Nothing is
 * sent for an event.
 *
 * A blocked interval ends when the thread runs again, but part of the time since it left was spent ready to
 * run. How much, the kernel adds to sched_info.run_delay only after the switch to it; so an interval is
 * counted at the thread's next switch away. Ids are those of the initial pid namespace.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "counters.h"

#define TASK_FLAG_EXITING    0x00000004 /* PF_EXITING */
#define TASK_FLAG_KTHREAD    0x00200000 /* PF_KTHREAD */
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_NOLOAD          0x0400 /* an idle wait of a kernel thread, no disk */

/* Processes whose threads are counted → the process that userspace named. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, COUNTERS_PROCESSES);
	__type(key, __u32);
	__type(value, __u32);
} counted_processes SEC(".maps");

struct thread_times {
	__u64 out_ns;    /* it left the CPU then, 0: it is on one */
	__u64 off_ns;    /* length of the last interval, not counted yet */
	__u64 run_delay; /* as far as it was counted */
	__u64 sleep_ns, disk_ns;
	__u32 disk;    /* of the interval: kind of blocking */
	__u32 blocked; /* of the interval: it was not runnable when it left */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_times);
} thread_times SEC(".maps");

/* Counts the interval before the one that begins now. */
static __always_inline void times_settle(struct thread_times *times, struct task_struct *task)
{
	__u64 run_delay = task->sched_info.run_delay, waited = run_delay - times->run_delay;
	__u64 blocked = times->off_ns > waited ? times->off_ns - waited : 0;

	if (times->blocked && times->disk)
		times->disk_ns += blocked;
	else if (times->blocked)
		times->sleep_ns += blocked;
	times->run_delay = run_delay;
	times->off_ns = 0;
}

SEC("tp_btf/sched_switch")
int counted_switch(__u64 *context)
{
	bool preempted = context[0];
	struct task_struct *prev = (struct task_struct *)context[1];
	struct task_struct *next = (struct task_struct *)context[2];
	struct thread_times *times = bpf_task_storage_get(&thread_times, prev, NULL, 0);
	__u64 now = 0;
	__u32 state;

	if (times) {
		now = bpf_ktime_get_ns();
		times_settle(times, prev);
		state = prev->__state;
		times->blocked = !preempted && state;
		times->disk = (state & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)) == TASK_UNINTERRUPTIBLE ||
		              BPF_CORE_READ_BITFIELD(prev, in_iowait);
		times->out_ns = now;
	}
	times = bpf_task_storage_get(&thread_times, next, NULL, 0);
	if (times && times->out_ns) {
		times->off_ns = (now ? now : bpf_ktime_get_ns()) - times->out_ns;
		times->out_ns = 0;
	}
	return 0;
}

/* The process that a task is counted under, 0 none. A child of a counted process becomes one. */
static __always_inline __u32 counted_root(struct task_struct *task)
{
	__u32 tgid = task->tgid, parent, *root, found;

	root = bpf_map_lookup_elem(&counted_processes, &tgid);
	if (root)
		return *root;
	parent = task->real_parent->tgid;
	root = bpf_map_lookup_elem(&counted_processes, &parent);
	if (!root)
		return 0;
	found = *root;
	bpf_map_update_elem(&counted_processes, &tgid, &found, BPF_NOEXIST);
	return found;
}

/* What is not counted yet: the last interval, or the one it is in. */
static __always_inline void add_open(struct counters_thread *record, const struct thread_times *times,
                                     struct task_struct *task, __u64 now)
{
	__u64 waited = task->sched_info.run_delay - times->run_delay;
	__u64 off = times->off_ns, blocked;

	if (times->out_ns && !task->on_rq && now > times->out_ns)
		off = now - times->out_ns;
	blocked = times->blocked && off > waited ? off - waited : 0;
	record->sleep_ns = times->sleep_ns + (times->disk ? 0 : blocked);
	record->disk_ns = times->disk_ns + (times->disk ? blocked : 0);
}

SEC("iter/task")
int threads_counted(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct counters_thread record = {};
	struct thread_times *times;

	if (!task || task->flags & (TASK_FLAG_EXITING | TASK_FLAG_KTHREAD))
		return 0;
	record.root = counted_root(task);
	if (!record.root)
		return 0;
	record.tgid = task->tgid;
	record.tid = task->pid;
	record.start_ns = task->start_time;
	bpf_probe_read_kernel_str(record.comm, sizeof(record.comm), task->comm);
	record.run_ns = task->se.sum_exec_runtime;
	record.runqueue_ns = task->sched_info.run_delay;
	record.voluntary = task->nvcsw;
	record.preempted = task->nivcsw;
	record.minor_faults = task->min_flt;
	record.major_faults = task->maj_flt;
	if (bpf_core_field_exists(task->ioac.read_bytes)) {
		record.flags |= COUNTERS_IO;
		record.read_bytes = task->ioac.read_bytes;
		record.write_bytes = task->ioac.write_bytes;
	}
	times = bpf_task_storage_get(&thread_times, task, NULL, 0);
	if (times) {
		add_open(&record, times, task, bpf_ktime_get_ns());
	} else {
		times = bpf_task_storage_get(&thread_times, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (times)
			times->run_delay = record.runqueue_ns;
	}
	bpf_seq_write(context->meta->seq, &record, sizeof(record));
	return 0;
}

char program_license[] SEC("license") = "GPL";
