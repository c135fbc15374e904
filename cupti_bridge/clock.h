/* SPDX-License-Identifier: GPL-2.0-only */
/* The two clocks of the bridge, in nanoseconds. Neither call can fail on Linux. */
#ifndef WHYIDLE_CUPTI_CLOCK_H
#define WHYIDLE_CUPTI_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The clock of every record. */
static inline uint64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread, for the bridge's account of its own cost. */
static inline uint64_t clock_thread_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

#endif
