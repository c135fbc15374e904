// SPDX-License-Identifier: GPL-2.0-only
#include "inject/safe_point.h"

#include <errno.h>

#include "inject/payload.h"

/* Numbers of x86-64, whatever this is built for. */
enum {
	NR_READ = 0,
	NR_WRITE = 1,
	NR_POLL = 7,
	NR_ACCEPT = 43,
	NR_SENDTO = 44,
	NR_RECVFROM = 45,
	NR_SENDMSG = 46,
	NR_RECVMSG = 47,
	NR_WAIT4 = 61,
	NR_SEMOP = 65,
	NR_MSGSND = 69,
	NR_MSGRCV = 70,
	NR_SIGTIMEDWAIT = 128,
	NR_FUTEX = 202,
	NR_IO_GETEVENTS = 208,
	NR_SEMTIMEDOP = 220,
	NR_CLOCK_NANOSLEEP = 230,
	NR_EPOLL_WAIT = 232,
	NR_WAITID = 247,
	NR_PPOLL = 271,
	NR_EPOLL_PWAIT = 281,
	NR_ACCEPT4 = 288,
	NR_RECVMMSG = 299,
	NR_IO_PGETEVENTS = 333,
	NR_EPOLL_PWAIT2 = 441,
};

/* include/linux/errno.h: what a system call returns to the kernel's own signal code. */
enum {
	ERESTARTSYS = 512,
	ERESTARTNOINTR = 513,
	ERESTARTNOHAND = 514,
	ERESTART_RESTARTBLOCK = 516,
};

#define FUTEX_COMMAND     0x7f /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
#define FUTEX_WAIT_BITSET 9
#define SLEEP_ABSOLUTE    1 /* TIMER_ABSTIME */

bool safe_point_waits(long number, const uint64_t arguments[6], bool reads_pipe)
{
	switch (number) {
	case NR_WAIT4:
	case NR_WAITID:
		return true;
	case NR_POLL: /* for any time */
		return (int32_t)arguments[2] < 0;
	case NR_CLOCK_NANOSLEEP: /* until a point in time */
		return arguments[1] & SLEEP_ABSOLUTE;
	case NR_PPOLL: /* with a signal mask of its own the thread's mask is not what it seems */
		return arguments[3] == 0;
	case NR_FUTEX:
		/*
		 * Condition variables, semaphores and joins of glibc wait with a bit set. Its internal locks,
		 * among them those of the allocator, and pthread_mutex_lock use FUTEX_WAIT.
		 */
		return (arguments[1] & FUTEX_COMMAND) == FUTEX_WAIT_BITSET;
	case NR_READ: /* of files: the loader reads them */
		return reads_pipe;
	default:
		return false;
	}
}

bool safe_point_return(long number, int64_t result, struct safe_return *back)
{
	back->number = (uint64_t)number;
	switch (-result) {
	case ERESTARTNOINTR:
		back->restart = PAYLOAD_RESTART_ALWAYS;
		return true;
	case ERESTARTSYS:
		back->restart = PAYLOAD_RESTART_HANDLER;
		return true;
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK: /* what it keeps in the kernel is gone; those that wait know all by
	                               themselves */
		back->restart = PAYLOAD_RESTART_NEVER;
		return true;
	default:
		return false;
	}
}

bool safe_point_is_repeatable(long number, int64_t result)
{
	if (result != -EINTR)
		return false;
	switch (number) {
	case NR_READ:
	case NR_WRITE:
	case NR_ACCEPT:
	case NR_ACCEPT4:
	case NR_SENDTO:
	case NR_SENDMSG:
	case NR_RECVFROM:
	case NR_RECVMSG:
	case NR_RECVMMSG:
	case NR_SEMOP:
	case NR_SEMTIMEDOP:
	case NR_MSGSND:
	case NR_MSGRCV:
	case NR_SIGTIMEDWAIT:
	case NR_IO_GETEVENTS:
	case NR_IO_PGETEVENTS:
	case NR_EPOLL_WAIT:
	case NR_EPOLL_PWAIT:
	case NR_EPOLL_PWAIT2:
		return true;
	default:
		return false;
	}
}
