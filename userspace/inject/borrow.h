/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Borrows a waiting thread of the target: stops it, checks that it is where it may be borrowed, sets it onto
 * the payload and lets go of it. From that moment on it goes its way without us, and comes back to its wait
 * by itself; before it, it was only stopped. There is no moment at which our death would leave it with
 * registers that are not its own.
 *
 * Belongs to one thread: the kernel ties traced to tracing threads. If it gets -ETIMEDOUT, it must end: that
 * is how the kernel takes a request to stop back that was never answered.
 */
#ifndef WHYIDLE_INJECT_BORROW_H
#define WHYIDLE_INJECT_BORROW_H

#include <stdint.h>

#include "base/error.h"
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
	uint64_t code;                         /* where the payload goes */
	const struct payload_constants *calls; /* what of the constants is no register */
	uint64_t stopped_ns;                   /* of the last attempt: how long the thread was stopped */
	bool written;                          /* something was written at `code` */
};

/*
 * Borrows thread `tid`. Returns 1 if it is on its way, 0 if it was not where it may be borrowed and goes on
 * as if nothing had happened, or a negative errno: -ETIMEDOUT (see above), -EPERM (ptrace is refused, or
 * another tool has it), -ESRCH (gone), -EIO (its memory cannot be written) with `error`.
 */
int borrow_thread(struct borrow *borrow, uint32_t tid, struct error *error);

/* True if a thread looks as if it could be borrowed; lower *rank is better. Stops nothing. */
bool borrow_is_candidate(const struct borrow *borrow, uint32_t tid, uint32_t *rank);

#endif
