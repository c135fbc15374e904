/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel stacks of an off-CPU interval say: what a thread was blocked in, and what woke it.
 *
 * The tables match function names of kernel stacks; each entry names the kernel versions it was seen in or
 * known for. Where a stack is missing, the system call number is the fallback, with less certainty.
 */
#ifndef WHYIDLE_MODEL_WAIT_H
#define WHYIDLE_MODEL_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wait_kind {
	WAIT_KIND_UNKNOWN,
	WAIT_KIND_FUTEX,
	WAIT_KIND_PIPE_READ,
	WAIT_KIND_PIPE_WRITE,
	WAIT_KIND_POLL, /* poll, select */
	WAIT_KIND_EPOLL,
	WAIT_KIND_EVENTFD,
	WAIT_KIND_UNIX_SOCKET,
	WAIT_KIND_INET_SOCKET,
	WAIT_KIND_SLEEP,
	WAIT_KIND_DISK,       /* block or file I/O, also write-back throttling */
	WAIT_KIND_DISK_FAULT, /* the same inside a page fault */
	WAIT_KIND_MMAP_LOCK,
	WAIT_KIND_RECLAIM,
	WAIT_KIND_FAULT, /* blocked in a page fault for another reason */
	WAIT_KIND_CHILD,
	WAIT_KIND_SIGNAL,
	WAIT_KIND_GPU_DRIVER,
	WAIT_KIND_FILE_LOCK, /* flock, fcntl locks, inode locks */
	WAIT_KIND_EXIT,      /* the thread was ending */
	WAIT_KIND_COUNT
};

enum wake_kind {
	WAKE_KIND_UNKNOWN,
	WAKE_KIND_TASK, /* the current task did it in a system call of its own: a causal edge */
	WAKE_KIND_TIMER,
	WAKE_KIND_DISK,
	WAKE_KIND_NETWORK,
	WAKE_KIND_GPU,        /* the driver's interrupt */
	WAKE_KIND_WORKER,     /* a kernel thread */
	WAKE_KIND_SIGNAL,     /* a signal was sent */
	WAKE_KIND_CHILD_EXIT, /* a child ended */
	WAKE_KIND_COUNT
};

enum sample_kind {
	SAMPLE_USER,
	SAMPLE_SYSCALL,
	SAMPLE_FAULT,
	SAMPLE_RECLAIM,
	SAMPLE_IRQ,
	SAMPLE_KERNEL, /* elsewhere in the kernel */
};

/* Kind of wait by the frames of the blocked thread's kernel stack, innermost first; names may hold NULLs. */
enum wait_kind wait_classify(const char *const *frames, size_t count, int32_t syscall);

/*
 * Kind of wake by the waker's kernel stack. waker_tid 0 is the idle task: then it was an interrupt, whatever
 * the stack says.
 */
enum wake_kind wake_classify(const char *const *frames, size_t count, uint32_t waker_tid, uint32_t waker_pid,
                             int32_t waker_syscall);

/* True if the waker did it while it ended. */
bool wake_is_ending(const char *const *frames, size_t count, int32_t waker_syscall);

enum sample_kind sample_classify(const char *const *frames, size_t count, bool user, int32_t syscall);

const char *wait_kind_name(enum wait_kind kind); /* "futex", "pipe", … */

/* "read", "futex" …; "syscall_451" for numbers that are not in the table; NULL for -1. x86-64 numbers. */
const char *syscall_name(int32_t number);

#endif
