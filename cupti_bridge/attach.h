/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the collector, the few instructions that it lends to a running process (userspace/inject/) and the
 * bridge share while the bridge is put into that process: the control page at the start of a region of
 * private memory in the target. docs/attach.md tells the story.
 *
 *	STARTED ─► WAITING ─► LOADED ─► RING ─► OPEN ─► (the ring tells the rest)
 *	      └──────┴──────────┴─────────┴──► a number from ATTACH_FAILED on
 *
 * The target writes the state, the collector writes `go`. Neither side trusts the other: the collector
 * checks what it reads here, and the target's side waits for the collector for `patience_ms` at most.
 *
 * Included by assembler code too.
 */
#ifndef WHYIDLE_ATTACH_H
#define WHYIDLE_ATTACH_H

#define ATTACH_MAGIC   0x3168636174746177 /* "wattach1", little endian */
#define ATTACH_VERSION 3

/* The region: this page, the instructions, a stack for the borrowed thread, the library. */
#define ATTACH_CODE       0x1000
#define ATTACH_CODE_BYTES 0x1000
#define ATTACH_STACK_END  0x15000
#define ATTACH_BLOB       0x15000

#define ATTACH_PATIENCE_MS 5000
#define ATTACH_LINGER_MS   1000 /* how long a failure stays to be read */
#define ATTACH_STOP        'S'  /* on the pipe: hand over the last records and leave */

/* Offsets of struct attach_control, for the assembler. */
#define ATTACH_AT_PATIENCE    0
#define ATTACH_AT_STATE       4
#define ATTACH_AT_GO          8
#define ATTACH_AT_ERROR       12
#define ATTACH_AT_LINK_TID    16
#define ATTACH_AT_BORROWED    20
#define ATTACH_AT_THREAD      24
#define ATTACH_AT_LINK_ENTRY  32
#define ATTACH_AT_WORK_ENTRY  40
#define ATTACH_AT_BLOB_BYTES  48
#define ATTACH_AT_FD_NUMBER   56
#define ATTACH_AT_FD_FLAGS    60
#define ATTACH_AT_BYTES       64
#define ATTACH_AT_LINK_THREAD 104
#define ATTACH_AT_WORK_TID    112
#define ATTACH_AT_PATH        128
#define ATTACH_AT_TEXT        256
#define ATTACH_TEXT_BYTES     512
#define ATTACH_AT_SCRATCH     1024
#define ATTACH_AT_LEFT        1080

/* States. */
#define ATTACH_NONE            0
#define ATTACH_STARTED         1
#define ATTACH_WAITING         2 /* for the library, or for its address */
#define ATTACH_LOADED          3
#define ATTACH_RING            4 /* ring_fd and pipe_fd of thread link_tid can be opened */
#define ATTACH_OPEN            5 /* the bridge works */
#define ATTACH_FAILED          256
#define ATTACH_FAILED_THREAD   256 /* pthread_create: `error` */
#define ATTACH_FAILED_FILES    257 /* close_range(CLOSE_RANGE_UNSHARE): `error` */
#define ATTACH_FAILED_PATIENCE 258 /* the collector did not go on */
#define ATTACH_FAILED_MEMFD    259
#define ATTACH_FAILED_WRITE    260
#define ATTACH_FAILED_DLOPEN   261 /* `text` is what dlerror said */
#define ATTACH_FAILED_DLSYM    262
#define ATTACH_FAILED_BUSY     263 /* another collector is attached */
#define ATTACH_FAILED_VERSION  264 /* another version's bridge was found */
#define ATTACH_FAILED_RING     265 /* `text` */
#define ATTACH_FAILED_CHILD    266 /* forked from a process that had the bridge */

/* Values of `go`. */
#define ATTACH_GO_LOAD 1 /* library, path and the like are there */
#define ATTACH_GO_OPEN 2 /* both descriptors were opened */
#define ATTACH_GO_SEEN 3 /* the failure was read */

/* Flags. */
#define ATTACH_FINALIZE 1 /* in the end CUPTI is finalised, within a call of the program */

#define ATTACH_LINK_NAME "whyidle_attach_link"
#define ATTACH_WORK_NAME "whyidle_attach_work"

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

struct attach_control {
	uint32_t patience_ms; /* how long the collector is waited for */
	uint32_t state;
	uint32_t go;
	int32_t error;       /* errno of a failure, positive */
	uint32_t link_tid;   /* as the target sees it */
	uint32_t borrowed;   /* 1: the borrowed thread is about to leave the region */
	uint64_t thread;     /* pthread_t, no use made of it */
	uint64_t link_entry; /* ATTACH_LINK_NAME; the collector sets it if the bridge is loaded already */
	uint64_t work_entry; /* ATTACH_WORK_NAME */
	uint64_t blob_bytes; /* at ATTACH_BLOB */
	int32_t fd_number;   /* where the library's memfd is put, part of `path` */
	uint32_t fd_flags;   /* of memfd_create */
	uint64_t bytes;      /* of the region */
	uint64_t magic;      /* of the collector, with the fields below */
	uint32_t version, flush_period_ms;
	uint64_t ring_bytes;
	int32_t ring_fd, pipe_fd; /* in the descriptor table of thread link_tid */
	uint64_t link_thread;     /* pthread_t of the second thread */
	uint32_t work_tid;        /* of the other thread */
	uint32_t work_order;      /* between the two threads, in the bridge */
	uint32_t work_done;
	uint32_t flags; /* of the collector */
	char path[128]; /* to load the library by */
	char text[ATTACH_TEXT_BYTES];
	uint8_t rest[ATTACH_AT_SCRATCH - ATTACH_AT_TEXT - ATTACH_TEXT_BYTES];
	uint64_t scratch[7]; /* of the borrowed thread */
	uint64_t left;       /* not 0: the borrowed thread is out of the region, the kernel says so */
};

_Static_assert(offsetof(struct attach_control, patience_ms) == ATTACH_AT_PATIENCE, "patience_ms");
_Static_assert(offsetof(struct attach_control, state) == ATTACH_AT_STATE, "state");
_Static_assert(offsetof(struct attach_control, go) == ATTACH_AT_GO, "go");
_Static_assert(offsetof(struct attach_control, error) == ATTACH_AT_ERROR, "error");
_Static_assert(offsetof(struct attach_control, link_tid) == ATTACH_AT_LINK_TID, "link_tid");
_Static_assert(offsetof(struct attach_control, borrowed) == ATTACH_AT_BORROWED, "borrowed");
_Static_assert(offsetof(struct attach_control, thread) == ATTACH_AT_THREAD, "thread");
_Static_assert(offsetof(struct attach_control, link_entry) == ATTACH_AT_LINK_ENTRY, "link_entry");
_Static_assert(offsetof(struct attach_control, work_entry) == ATTACH_AT_WORK_ENTRY, "work_entry");
_Static_assert(offsetof(struct attach_control, blob_bytes) == ATTACH_AT_BLOB_BYTES, "blob_bytes");
_Static_assert(offsetof(struct attach_control, fd_number) == ATTACH_AT_FD_NUMBER, "fd_number");
_Static_assert(offsetof(struct attach_control, fd_flags) == ATTACH_AT_FD_FLAGS, "fd_flags");
_Static_assert(offsetof(struct attach_control, bytes) == ATTACH_AT_BYTES, "bytes");
_Static_assert(offsetof(struct attach_control, link_thread) == ATTACH_AT_LINK_THREAD, "link_thread");
_Static_assert(offsetof(struct attach_control, work_tid) == ATTACH_AT_WORK_TID, "work_tid");
_Static_assert(offsetof(struct attach_control, path) == ATTACH_AT_PATH, "path");
_Static_assert(offsetof(struct attach_control, text) == ATTACH_AT_TEXT, "text");
_Static_assert(offsetof(struct attach_control, scratch) == ATTACH_AT_SCRATCH, "scratch");

_Static_assert(offsetof(struct attach_control, left) == ATTACH_AT_LEFT, "left");

#endif
#endif
