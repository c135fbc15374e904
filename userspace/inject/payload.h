/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The instructions that are lent to the target (payload_x86_64.S), and the constants that follow them. They
 * are written into bytes of the target's code that nothing uses, and only ever read there.
 *
 * payload_borrow runs on a thread of the target that waits in a system call, in its place: it makes the
 * region (cupti_bridge/attach.h), has the C library start a thread at payload_worker, and puts the thread
 * back into its system call by itself. Whoever traces need not be there any more.
 */
#ifndef WHYIDLE_INJECT_PAYLOAD_H
#define WHYIDLE_INJECT_PAYLOAD_H

/* What a signal handler that ran meanwhile does to the system call that is gone back to. */
#define PAYLOAD_RESTART_ALWAYS  0 /* it is restarted */
#define PAYLOAD_RESTART_HANDLER 1 /* it fails with EINTR, unless each handler was set with SA_RESTART */
#define PAYLOAD_RESTART_NEVER   2 /* it fails with EINTR */

/* Offsets of struct payload_constants. */
#define PAYLOAD_AT_RBX            0
#define PAYLOAD_AT_RBP            8
#define PAYLOAD_AT_R12            16
#define PAYLOAD_AT_R13            24
#define PAYLOAD_AT_R14            32
#define PAYLOAD_AT_R15            40
#define PAYLOAD_AT_RDI            48
#define PAYLOAD_AT_RSI            56
#define PAYLOAD_AT_RDX            64
#define PAYLOAD_AT_R8             72
#define PAYLOAD_AT_R9             80
#define PAYLOAD_AT_R10            88
#define PAYLOAD_AT_RSP            96
#define PAYLOAD_AT_FLAGS          104
#define PAYLOAD_AT_RAX            112
#define PAYLOAD_AT_RIP            120
#define PAYLOAD_AT_RIP_AFTER      128
#define PAYLOAD_AT_MASK           136
#define PAYLOAD_AT_REGION         144
#define PAYLOAD_AT_REGION_BYTES   152
#define PAYLOAD_AT_RESTART        160
#define PAYLOAD_AT_PTHREAD_CREATE 168
#define PAYLOAD_AT_PTHREAD_DETACH 176
#define PAYLOAD_AT_PTHREAD_SELF   184
#define PAYLOAD_AT_ERRNO          192
#define PAYLOAD_AT_DLOPEN         200
#define PAYLOAD_AT_DLSYM          208
#define PAYLOAD_AT_DLERROR        216
#define PAYLOAD_CONSTANTS_BYTES   224

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

struct payload_constants {
	/* the borrowed thread's registers, as it shall have them again */
	uint64_t rbx, rbp, r12, r13, r14, r15, rdi, rsi, rdx, r8, r9, r10, rsp, flags;
	uint64_t rax, rip;  /* at the system call that is restarted: its number, its address */
	uint64_t rip_after; /* behind it, where it would have returned to with EINTR */
	uint64_t mask;      /* signals that it blocks */
	uint64_t region, region_bytes;
	uint64_t restart; /* PAYLOAD_RESTART_… */
	/* addresses in the target's C library */
	uint64_t pthread_create, pthread_detach, pthread_self, errno_location, dlopen, dlsym, dlerror;
};

_Static_assert(offsetof(struct payload_constants, rax) == PAYLOAD_AT_RAX, "rax");
_Static_assert(offsetof(struct payload_constants, rsp) == PAYLOAD_AT_RSP, "rsp");
_Static_assert(offsetof(struct payload_constants, region) == PAYLOAD_AT_REGION, "region");
_Static_assert(offsetof(struct payload_constants, dlerror) == PAYLOAD_AT_DLERROR, "dlerror");
_Static_assert(sizeof(struct payload_constants) == PAYLOAD_CONSTANTS_BYTES, "constants");

/* The code; the constants belong right behind it, at payload_constants. */
extern const unsigned char payload_start[], payload_borrow[], payload_constants[];

#endif
#endif
