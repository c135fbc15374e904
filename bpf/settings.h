/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings of the BPF programs: filled in by the collector before the programs are loaded, constants to the
 * verifier (which removes what a setting switches off). Shared by bpf/ and userspace/collect/.
 */
#ifndef WHYIDLE_BPF_SETTINGS_H
#define WHYIDLE_BPF_SETTINGS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define SETTINGS_SYSCALLS 512 /* system call numbers with a known kind; a power of two */

/* Values of the map of tracked processes. */
#define TRACKED_WHOLE  1
#define TRACKED_CALLER 2 /* by BPF, at its first CUDA call: threads that it had before are not known yet */

/*
 * The attach cookie of a probe on a CUDA function: its index, and where it has the stream and the object that
 * the call is about: the n-th argument, counted in registers and words of the stack, or a field of the struct
 * that the first one points to, by its offset. And where it says how much work it is.
 */
#define CALL_PLACE_NONE     0
#define CALL_PLACE_ARGUMENT 1
#define CALL_PLACE_FIELD    128
#define CALL_SIZE_NONE      0
#define CALL_SIZE_NUMBERS   1  /* x, y, z of grid and block, shared memory: arguments 1 to 7, each a number */
#define CALL_SIZE_DIM3      2  /* arguments 1 and 2 are a dim3, 3 and 4 another, 6 the shared memory */
#define CALL_SIZE_CONFIG    3  /* the same as the first 28 bytes of the struct that the first one points to */
#define CALL_SIZE_ARGUMENT  16 /* bytes: the n-th argument */
#define CALL_COOKIE(function, stream, object, size, query)                                                   \
	((__u64)(function) | (__u64)(stream) << 32 | (__u64)(object) << 40 | (__u64)(size) << 48 |           \
	 (__u64)(query) << 56)
#define CALL_FUNCTION(cookie) ((__u32)(cookie))
#define CALL_STREAM(cookie)   ((__u32)((cookie) >> 32) & 0xff)
#define CALL_OBJECT(cookie)   ((__u32)((cookie) >> 40) & 0xff)
#define CALL_SIZE(cookie)     ((__u32)((cookie) >> 48) & 0xff)
#define CALL_IS_QUERY(cookie) ((cookie) >> 56 & 1)

/*
 * The same of a probe on a function of NCCL: its enum wire_nccl_function, and where it has count, type, peer
 * or root, communicator and stream: CALL_PLACE_ARGUMENT + n, or CALL_PLACE_NONE.
 */
#define NCCL_COOKIE(function, count, type, peer, comm, stream)                                               \
	((__u64)(function) | (__u64)(count) << 8 | (__u64)(type) << 16 | (__u64)(peer) << 24 |               \
	 (__u64)(comm) << 32 | (__u64)(stream) << 40)
#define NCCL_FUNCTION(cookie) ((__u32)(cookie)&0xff)
#define NCCL_COUNT(cookie)    ((__u32)((cookie) >> 8) & 0xff)
#define NCCL_TYPE(cookie)     ((__u32)((cookie) >> 16) & 0xff)
#define NCCL_PEER(cookie)     ((__u32)((cookie) >> 24) & 0xff)
#define NCCL_COMM(cookie)     ((__u32)((cookie) >> 32) & 0xff)
#define NCCL_STREAM(cookie)   ((__u32)((cookie) >> 40) & 0xff)

/* What the first argument of a system call is. */
enum syscall_kind {
	SYSCALL_OTHER = 0,
	SYSCALL_FD = 1,     /* a file descriptor */
	SYSCALL_POLL = 2,   /* an array of struct pollfd, the second one its length */
	SYSCALL_SELECT = 3, /* something else that stands for several descriptors */
	SYSCALL_EPOLL = 4,  /* a descriptor of an epoll */
	SYSCALL_FUTEX = 5,  /* the address of a futex */
};

#define STACKS_OFFCPU  (1u << 0) /* blocked intervals of at least min_stack_ns */
#define STACKS_SAMPLED (1u << 1) /* CPU samples */

struct bpf_settings {
	__u64 pid_namespace;   /* inode of the pid namespace that ids are given in, 0: the initial one */
	__u64 min_offcpu_ns;   /* shorter intervals are not recorded */
	__u64 min_stack_ns;    /* shorter intervals come without a user stack */
	__u64 stack_budget;    /* bytes of user stacks between two polls of the collector */
	__u8 user_stacks;      /* which records come with a user stack: STACKS_* */
	__u8 thread_table;     /* 1: thread states in a hash table, task storage is not available */
	__u8 adopt_on_switch;  /* 1: threads of tracked processes are found when they are switched */
	__u8 switch_has_state; /* 1: sched_switch passes the state of the previous task (since 5.18) */
	__u8 report_callers;   /* 1: processes outside the tracked set that call CUDA are told of */
	__u8 adopt_callers;    /* 1: and tracked from then on */
	__u8 locks;            /* 1: functions of the C library that wait are probed (lock.bpf.c) */
	__u8 virtual;          /* 1: a virtual machine, whose CPUs the hypervisor may keep from running */
	__u32 collector;       /* process id of the collector, which is never tracked on demand */
	__u32 cpus;            /* possible CPUs */
	__u8 syscall_kinds[SETTINGS_SYSCALLS]; /* enum syscall_kind */
};

_Static_assert(sizeof(struct bpf_settings) == 48 + SETTINGS_SYSCALLS, "bpf_settings");

#endif
