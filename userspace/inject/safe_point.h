/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a thread may be borrowed, and how it is put back. Pure: numbers in, numbers out. x86-64 Linux.
 *
 * A thread is borrowed only while it waits, in a system call that glibc makes neither in its memory allocator
 * nor in its loader: then it holds no lock that starting a thread needs. Those calls are also the ones that
 * the kernel restarts by itself after a stop, so that the program does not notice it, and that can be made
 * again with the arguments they have: with no time-out, or one that is a point in time. (Of a relative one,
 * as in poll and nanosleep, only the kernel knows what is left, and rt_sigreturn makes it forget that.)
 */
#ifndef WHYIDLE_INJECT_SAFE_POINT_H
#define WHYIDLE_INJECT_SAFE_POINT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * True if a thread that waits in system call `number` may be borrowed. `reads_pipe` says whether the first
 * argument is a pipe, which matters for read(2) alone.
 */
bool safe_point_waits(long number, const uint64_t arguments[6], bool reads_pipe);

struct safe_return {
	uint64_t number;  /* to be in rax */
	uint32_t restart; /* PAYLOAD_RESTART_… */
};

/*
 * How to go back into call `number`, which a stop has interrupted with `result` (rax). False if the result is
 * no request to be restarted: the call has ended.
 */
bool safe_point_return(long number, int64_t result, struct safe_return *back);

/*
 * Whether a call that our stop made fail with EINTR can simply be made again: those that the kernel does not
 * restart by itself. (A thread may have gone into one of them since it was looked at.)
 */
bool safe_point_is_repeatable(long number, int64_t result);

#endif
