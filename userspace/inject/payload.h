/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The instructions that are lent to the target (payload_x86_64.S), and the constants that follow them. They
 * lie in the region (cupti_bridge/attach.h), which is mapped for them and unmapped after them; no code of the
 * program is ever written to.
 *
 * payload_borrow runs on a thread of the target that waits in a system call, in its place: it has the C
 * library start a thread at payload_worker, and leaves through the frames below the thread's stack
 * (lent_stack.h), which put it back into its system call. Whoever traces need not be there any more.
 */
#ifndef WHYIDLE_INJECT_PAYLOAD_H
#define WHYIDLE_INJECT_PAYLOAD_H

/* What a signal handler that ran meanwhile does to the system call that is gone back to. */
#define PAYLOAD_RESTART_ALWAYS  0 /* it is restarted */
#define PAYLOAD_RESTART_HANDLER 1 /* it fails with EINTR, unless each handler was set with SA_RESTART */
#define PAYLOAD_RESTART_NEVER   2 /* it fails with EINTR */

/* Offsets of struct payload_constants. */
#define PAYLOAD_AT_RESTART        0
#define PAYLOAD_AT_MASK           8
#define PAYLOAD_AT_RIP_AFTER      16
#define PAYLOAD_AT_SP_ORIGINAL    24
#define PAYLOAD_AT_SP_LEFT        32
#define PAYLOAD_AT_SP_UNMAP       40
#define PAYLOAD_AT_RESTORER       48
#define PAYLOAD_AT_PTHREAD_CREATE 56
#define PAYLOAD_AT_PTHREAD_DETACH 64
#define PAYLOAD_AT_PTHREAD_SELF   72
#define PAYLOAD_AT_PTHREAD_JOIN   80
#define PAYLOAD_AT_ERRNO          88
#define PAYLOAD_AT_MUNMAP         96
#define PAYLOAD_AT_DLOPEN         104
#define PAYLOAD_AT_DLSYM          112
#define PAYLOAD_AT_DLERROR        120
#define PAYLOAD_CONSTANTS_BYTES   128

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

struct payload_constants {
	uint64_t restart;   /* PAYLOAD_RESTART_… */
	uint64_t mask;      /* signals that the borrowed thread blocks */
	uint64_t rip_after; /* where its system call returns to */
	/* stack pointers for rt_sigreturn, which is at `restorer` */
	uint64_t sp_original, sp_left, sp_unmap;
	uint64_t restorer;
	/* addresses in the target's C library */
	uint64_t pthread_create, pthread_detach, pthread_self, pthread_join, errno_location, munmap, dlopen,
	    dlsym, dlerror;
};

_Static_assert(offsetof(struct payload_constants, restorer) == PAYLOAD_AT_RESTORER, "restorer");
_Static_assert(offsetof(struct payload_constants, munmap) == PAYLOAD_AT_MUNMAP, "munmap");
_Static_assert(offsetof(struct payload_constants, dlerror) == PAYLOAD_AT_DLERROR, "dlerror");
_Static_assert(sizeof(struct payload_constants) == PAYLOAD_CONSTANTS_BYTES, "constants");

/* The code; the constants belong right behind it, at payload_constants. */
extern const unsigned char payload_start[], payload_borrow[], payload_constants[];

#endif
#endif
