/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Borrows a waiting thread of the target. It is stopped, and signal frames are written below its stack
 * (lent_stack.h). Then, by one PTRACE_SETREGSET each:
 *
 *	1. it is set onto a `syscall; ret` of its C library that maps the region; what it returns to unmaps it
 *	   again and puts the thread back into its wait
 *	2. once the region is there and filled, it is set onto the instructions in it, which end in such a
 *	   frame, too
 *
 * From each of the two it goes its way without us, before, between and after them, so that our death leaves
 * it with what is its own. No instruction of the program is ever changed.
 *
 * Belongs to one thread: the kernel ties traced to tracing threads. If it gets -ETIMEDOUT, it must end: that
 * is how the kernel takes a request to stop back that was never answered.
 */
#ifndef WHYIDLE_INJECT_BORROW_H
#define WHYIDLE_INJECT_BORROW_H

#include <stdint.h>

#include "base/error.h"
#include "inject/inject.h"
#include "inject/lent_stack.h"
#include "inject/payload.h"
#include "inject/target.h"

struct borrow {
	uint32_t pid;
	int memory; /* /proc/PID/mem, opened for reading and writing */
	const struct target_maps *maps;
	/* Files whose code may be waited in: the C library, and its thread library where that is apart. */
	struct {
		uint64_t device, inode;
	} c_library[2];
	struct lent_places places;             /* all but `left` */
	const struct payload_constants *calls; /* the addresses among the constants */
	uint32_t patience_ms;                  /* how long the target waits for us */
	uint64_t stopped_ns;                   /* of the last attempt: how long it took from the stop */
	void (*step)(void *context, enum inject_step step); /* may be NULL */
	void *context;
};

/*
 * Borrows thread `tid`. Returns 1 if it is on its way, 0 if it was not where it may be borrowed and goes on
 * as if nothing had happened, or a negative errno: -ETIMEDOUT (see above), -EPERM (ptrace is refused, or
 * another tool has it), -ESRCH (gone), -EIO (its memory cannot be written), -EACCES (it may have no memory
 * that can be run), -ENOMEM (it got no memory) with `error`.
 */
int borrow_thread(struct borrow *borrow, uint32_t tid, struct error *error);

/* True if a thread looks as if it could be borrowed; lower *rank is better. Stops nothing. */
bool borrow_is_candidate(const struct borrow *borrow, uint32_t tid, uint32_t *rank);

#endif
