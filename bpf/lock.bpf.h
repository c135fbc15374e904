/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a thread that blocks on a futex waits for, if it does so inside a function that lock.bpf.c has seen it
 * enter. Sizes and places are those of glibc 2.31 to 2.41 (sysdeps/nptl/bits/struct_mutex.h,
 * struct_rwlock.h, thread-shared-types.h), the same on x86-64 and aarch64 as far as they are used.
 */
#ifndef WHYIDLE_BPF_LOCK_H
#define WHYIDLE_BPF_LOCK_H

#include "common.bpf.h"

/* The word that is waited for lies so far into the object at most. */
#define LOCK_CONDITION_BYTES 48
#define LOCK_SEMAPHORE_BYTES 32
#define LOCK_RWLOCK_BYTES    56
#define LOCK_MUTEX_BYTES     40
#define LOCK_THREAD_BYTES    4096 /* struct pthread, which the handle points to */

#define LOCK_MUTEX_OWNER   8
#define LOCK_RWLOCK_WRITER 24

/* The functions themselves and what they call use less of the stack. */
#define LOCK_FRAMES_MAX 4096

static __always_inline __u64 lock_bytes(__u32 kind)
{
	switch (kind) {
	case WIRE_LOCK_CONDITION:
		return LOCK_CONDITION_BYTES;
	case WIRE_LOCK_SEMAPHORE:
		return LOCK_SEMAPHORE_BYTES;
	case WIRE_LOCK_JOIN:
		return LOCK_THREAD_BYTES;
	case WIRE_LOCK_READ:
	case WIRE_LOCK_WRITE:
		return LOCK_RWLOCK_BYTES;
	case WIRE_LOCK_MUTEX:
		return LOCK_MUTEX_BYTES;
	default:
		return 0;
	}
}

/* The thread has not returned from the function: it is deeper in the stack, and the return address is there.
 */
static __always_inline bool lock_call_open(const struct thread_state *thread, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 stack = PT_REGS_SP(regs), address = 0;

	if (stack > thread->lock_stack || thread->lock_stack - stack > LOCK_FRAMES_MAX)
		return false;
#if defined(__TARGET_ARCH_x86)
	return !bpf_probe_read_user(&address, sizeof(address), (void *)thread->lock_stack) &&
	       address == thread->lock_return;
#else
	return true;
#endif
}

/* Fills in what the thread, which is current and about to leave the CPU, waits for. */
static __always_inline void lock_take(struct thread_state *thread, struct task_struct *task)
{
	__u64 futex = thread->args[0], object = thread->lock_called;
	__u32 kind = thread->lock_function;

	if (!object)
		return;
	/* A wait for a condition variable ends with its mutex. */
	if (kind == WIRE_LOCK_CONDITION && thread->lock_second && futex == thread->lock_second) {
		object = thread->lock_second;
		kind = WIRE_LOCK_MUTEX;
	}
	if (futex < object || futex - object >= lock_bytes(kind) || !lock_call_open(thread, task))
		return;
	thread->lock = object;
	thread->lock_kind = kind;
	thread->lock_holder = 0;
	if (kind == WIRE_LOCK_MUTEX)
		bpf_probe_read_user(&thread->lock_holder, sizeof(thread->lock_holder),
		                    (void *)(object + LOCK_MUTEX_OWNER));
	else if (kind == WIRE_LOCK_READ || kind == WIRE_LOCK_WRITE)
		bpf_probe_read_user(&thread->lock_holder, sizeof(thread->lock_holder),
		                    (void *)(object + LOCK_RWLOCK_WRITER));
}

#endif
