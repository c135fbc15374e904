/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the counters of the always-on tier look like: shared by bpf/counters.bpf.c and
 * userspace/collect/counters.c. Sums since the thread began, or since it was first looked at where that is
 * said; times in ns.
 */
#ifndef WHYIDLE_BPF_COUNTERS_H
#define WHYIDLE_BPF_COUNTERS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define COUNTERS_COMM      16
#define COUNTERS_PROCESSES 4096 /* GPU processes and their descendants */

/* struct counters_thread.flags */
#define COUNTERS_IO (1u << 0) /* read_bytes and write_bytes are known */

/* A thread, as an iterator gives it. */
struct counters_thread {
	__u32 tgid, tid;
	__u32 root;  /* process that was named by userspace: itself or an ancestor */
	__u32 flags; /* COUNTERS_* */
	__u64 start_ns;
	char comm[COUNTERS_COMM];
	__u64 run_ns;      /* on a CPU */
	__u64 runqueue_ns; /* ready to run, without a CPU */
	__u64 sleep_ns;    /* blocked and interruptible, since first looked at */
	__u64 disk_ns;     /* blocked and not interruptible, or waiting for I/O, since first looked at */
	__u64 voluntary, preempted; /* switches */
	__u64 minor_faults, major_faults;
	__u64 read_bytes, write_bytes; /* to and from storage */
};

_Static_assert(sizeof(struct counters_thread) == 120, "counters_thread");

#endif
