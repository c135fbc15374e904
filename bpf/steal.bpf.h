/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Steal time: a virtual machine's CPU that wants to run while the hypervisor runs something else on it. The
 * guest sees nothing of it but a clock: how long this has been for each CPU since it began.
 *
 * Every switch and timer interrupt looks at the clock of its CPU, so what it has moved on by lies between two
 * looks; and since an interrupt is pending when a CPU comes back, mostly right before the second.
 * It counts for the thread that had the CPU, or that took it out of idleness. Who waits for a CPU that
 * another thread has waits for that one.
 */
#ifndef WHYIDLE_BPF_STEAL_H
#define WHYIDLE_BPF_STEAL_H

#include "common.bpf.h"

#define STEAL_CPUS_MAX 1024

/* Less is not worth a record: every time that a hypervisor has some work of its own takes a few microseconds.
 */
#define STEAL_MIN_NS 20000

/* The last look at each clock. A cache line each: every CPU writes its own. Cleared by the collector. */
#define STEAL_LOOK_WORDS 8

struct steal_look {
	__u64 clock_ns;
	__u64 time_ns; /* 0: none */
	__u64 pad[STEAL_LOOK_WORDS - 2];
};

/* A struct steal_look for each CPU, in words: the collector has no name for that type. */
extern __u64 steal_looks[STEAL_CPUS_MAX * STEAL_LOOK_WORDS];

/*
 * The clock of the CPU that `task` has, as the scheduler read it last: at a switch just now, else at the last
 * tick. 0 where the kernel does not keep it (CONFIG_PARAVIRT_TIME_ACCOUNTING, CONFIG_FAIR_GROUP_SCHED).
 */
static __always_inline __u64 steal_clock(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(((struct cfs_rq *)0)->rq) ||
	    !bpf_core_field_exists(((struct rq *)0)->prev_steal_time_rq))
		return 0;
	return task->se.cfs_rq->rq->prev_steal_time_rq;
}

/*
 * How much was stolen of this CPU, which `task` has, since the last look. Interrupts are off wherever this is
 * called. A look between switches that finds nothing does not count: the clock may not have been read since.
 */
static __always_inline __u64 steal_since(struct task_struct *task, bool switching, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 clock, stolen = 0, since;
	struct steal_look *look;

	if (!settings.virtual || cpu >= STEAL_CPUS_MAX)
		return 0;
	look = (struct steal_look *)&steal_looks[cpu * STEAL_LOOK_WORDS];
	clock = steal_clock(task);
	if (!switching && clock == look->clock_ns)
		return 0;
	since = look->time_ns;
	if (since && now > since && clock > look->clock_ns)
		stolen = clock - look->clock_ns < now - since ? clock - look->clock_ns : now - since;
	look->clock_ns = clock;
	look->time_ns = now;
	return stolen;
}

static __always_inline void steal_record(struct task_struct *task, __u64 stolen, __u64 now)
{
	struct wire_steal *record;

	if (stolen < STEAL_MIN_NS)
		return;
	record = record_reserve(WIRE_STEAL, sizeof(*record));
	if (!record)
		return;
	record->start_ns = now - stolen;
	record->end_ns = now;
	record->tgid = task_tgid(task);
	record->tid = task_tid(task);
	record_submit(record);
}

#endif
