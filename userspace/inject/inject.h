/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts the bridge into a process that runs already, and takes it out again. docs/attach.md has the design.
 *
 * Nothing in here waits for the target without a bound, and whatever fails leaves the target as it was. The
 * work is done by a thread of its own, for the kernel ties a traced thread to the thread that traces it.
 *
 *	inject_start ──► (inject_fd readable) ──► inject_state
 *	     ATTACHED: inject_take gives the descriptors of the ring; bridge_server_adopt goes on with them
 *	     FAILED:   a sentence why; the target was left alone
 *	inject_close once the bridge has gone (or was given up)
 */
#ifndef WHYIDLE_INJECT_H
#define WHYIDLE_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Why a process cannot be attached. The words of inject_reason_code are for programs and never change. */
enum inject_reason {
	INJECT_OK,
	INJECT_GONE,          /* there is no such process any more */
	INJECT_ARCHITECTURE,  /* this whyidle, or the target, is not x86-64 */
	INJECT_NOT_PERMITTED, /* ptrace is refused: capability, Yama, a security module */
	INJECT_TRACED,        /* a debugger or another tool has it */
	INJECT_STOPPED,       /* stopped (SIGSTOP) or frozen */
	INJECT_NO_CUDA,       /* no CUDA driver library is mapped */
	INJECT_NO_LIBC,       /* no glibc is mapped: statically linked, or musl */
	INJECT_SECCOMP,       /* a seccomp filter would refuse, or kill for, what the bridge does */
	INJECT_SHADOW_STACK,  /* the CPU's shadow stack is on */
	INJECT_NO_ROOM,       /* it got no memory that can be run, or there are no free addresses */
	INJECT_NO_SAFE_POINT, /* in the time given no thread was where it can be borrowed */
	INJECT_TIMEOUT,       /* the target did not go on (its loader is busy, it gets no CPU) */
	INJECT_LOAD,          /* its C library did not load the bridge */
	INJECT_BUSY,          /* another collector is attached */
	INJECT_KERNEL,        /* this kernel lacks something */
	INJECT_FAILED_REASON, /* anything else: the text says what */
};

/* "ok", "gone", "not-permitted", … */
const char *inject_reason_code(enum inject_reason reason);

/*
 * Whether `pid` can be attached, as far as that can be told without touching it. `error` (may be NULL) gets
 * a sentence: what is in the way and what to do.
 */
enum inject_reason inject_check(uint32_t pid, struct error *error);

/* What has just been done to the target, in this order. */
enum inject_step {
	INJECT_SEIZED,
	INJECT_INTERRUPTED,     /* told to stop, perhaps not stopped */
	INJECT_HELD,            /* stopped */
	INJECT_FRAMES_WRITTEN,  /* below its stack */
	INJECT_CALL_SET,        /* it will map the region, unmap it, and go back */
	INJECT_SIGNALS_BLOCKED, /* its signals wait */
	INJECT_CALL_ENTERED,
	INJECT_REGION_MAPPED,
	INJECT_REGION_FILLED,
	INJECT_CODE_SET, /* it will run what is in the region, and go back */
	INJECT_LET_GO,
	INJECT_ANSWERED, /* the bridge's thread waits for the library */
	INJECT_HANDED_OVER,
	INJECT_RING_MADE, /* its descriptors can be opened */
	INJECT_RING_OPEN,
	INJECT_STEPS,
};

struct inject_options {
	uint32_t pid; /* as we see it */
	/* The library (bridge_blob_start … bridge_blob_end); must stay until inject_close. */
	const void *bridge;
	size_t bridge_bytes;
	uint64_t ring_bytes; /* a power of two, at least a page */
	uint32_t flush_period_ms;
	bool finalize;        /* when the bridge leaves, CUPTI is finalised in a call of the program */
	uint32_t timeout_ms;  /* for all of it; 0: default (15 s) */
	uint32_t patience_ms; /* how long the target waits for us at each step; 0: default (5 s) */
	/* Called on a thread of its own after each step; for tests, which end the collector there. May be
	 * NULL. */
	void (*step)(void *context, enum inject_step step);
	void *context;
};

enum inject_state {
	INJECT_WORKING,
	INJECT_ATTACHED,
	INJECT_FAILED,
};

/* What attaching took; 0 what was not reached. */
struct inject_times {
	uint64_t borrow_ns;   /* the borrowed thread was stopped for that long, as we saw it */
	uint64_t borrowed_ns; /* from its stop until it waited again, as it saw it */
	uint64_t load_ns;     /* from the start to the bridge being loaded */
	uint64_t total_ns;    /* from the start to the ring being there */
	uint32_t attempts;    /* threads that were looked at in a stop */
};

struct inject;

/* Returns 0 or a negative errno with `error` (no thread, no memory). The bytes of `options` are copied. */
int inject_start(struct inject **inject, const struct inject_options *options, struct error *error);

/* A descriptor that polls readable once the state is no longer INJECT_WORKING. */
int inject_fd(const struct inject *inject);

/* `reason` and `text` (both may be NULL) are set if it failed; the text stays until inject_close. */
enum inject_state inject_state(const struct inject *inject, enum inject_reason *reason, const char **text);

void inject_times(const struct inject *inject, struct inject_times *times);

/*
 * Gives away the two descriptors of an attached bridge, once: the ring (a memfd; its size is sealed) and the
 * pipe that the bridge listens to. Closing the pipe makes the bridge leave at once; the byte
 * ATTACH_STOP (cupti_bridge/attach.h) makes it hand over its last records before. Its other end closes when
 * the bridge has left or the process has gone. Returns 0 or -EAGAIN.
 */
int inject_take(struct inject *inject, int *ring, int *pipe);

/*
 * Frees everything. Waits for work in progress (bounded by the time-out). NULL is allowed.
 */
void inject_close(struct inject *inject);

#endif
