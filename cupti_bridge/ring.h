/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared memory between the bridge (inside the target) and the collector, and the records in it.
 *
 * Life: the collector listens on an abstract Unix socket (SOCK_SEQPACKET) whose name it puts into the
 * target's environment (RING_SOCKET_ENV). The bridge connects and gets one message back, a struct ring_offer
 * with the descriptor of a sealed memfd (SCM_RIGHTS). The connection then stays open only so that each side
 * sees the other's end. The collector makes the memfd and seals its size, so that a target can never make the
 * collector fault by truncating it.
 *
 * The memory is one struct ring_control page followed by `capacity` bytes of records. head and tail only
 * grow; offset = value & (capacity - 1). A record never wraps: where it does not fit before the end, a
 * RING_PAD record fills the rest. Records are 8-byte aligned. The bridge is the only writer (its threads
 * serialise among themselves) and drops, with a count, when there is no room; it never waits.
 *
 * The collector trusts nothing in here: it copies a record out before it looks at it, and checks every
 * length.
 *
 * All times are CLOCK_MONOTONIC nanoseconds, unless ring_hello.clock says otherwise.
 */
#ifndef WHYIDLE_RING_H
#define WHYIDLE_RING_H

#include <stdint.h>

#define RING_MAGIC        0x31656c6469796877ULL /* "whyidle1", little endian */
#define RING_VERSION      1
#define RING_SOCKET_ENV   "WHYIDLE_SOCKET" /* name of the abstract socket, without the leading NUL byte */
#define RING_CUPTI_ENV    "WHYIDLE_CUPTI"  /* optional: path of the libcupti to use */
#define RING_CONTROL_SIZE 4096
#define RING_MAX_RECORD   65536 /* bytes; longer ones (names) are cut by the writer, refused by the reader */
#define RING_MAX_NAME     4096  /* bytes of a name that are kept */

/* First message of the collector on the socket; carries the memfd. */
struct ring_offer {
	uint64_t magic;
	uint32_t version;
	uint32_t flags;           /* none defined */
	uint64_t capacity;        /* bytes after the control page, a power of two */
	uint32_t flush_period_ms; /* how often to ask CUPTI for finished buffers; 0 never */
	uint32_t pad;
};

enum ring_phase {
	RING_PHASE_CONNECTED = 1, /* mapped, CUPTI not yet started */
	RING_PHASE_RUNNING = 2,   /* records flow */
	RING_PHASE_FAILED = 3,    /* CUPTI could not be used: see the RING_STATUS record */
	RING_PHASE_STOPPED = 4,   /* the target exits; everything was flushed */
};

/* Each group of fields has one writer and its own cache line. */
struct ring_control {
	uint64_t magic;
	uint32_t version;
	uint32_t pad0;
	uint64_t capacity;
	uint8_t pad1[40];
	/* written by the bridge */
	uint64_t head;         /* bytes ever written */
	uint64_t lost_records; /* not written because the ring was full */
	uint64_t cupti_lost;   /* activity records that CUPTI reports as dropped */
	uint64_t bridge_ns;    /* CPU time that the bridge itself has used */
	uint32_t phase;        /* enum ring_phase */
	uint8_t pad2[28];
	/* written by the collector */
	uint64_t tail;   /* bytes ever read */
	uint32_t closed; /* 1: nobody reads any more, write nothing */
	uint8_t pad3[52];
};

enum ring_type {
	RING_PAD = 0,
	RING_HELLO = 1,
	RING_STATUS = 2,
	RING_NAME = 3,
	RING_DEVICE = 4,
	RING_KERNEL = 5,
	RING_MEMCPY = 6,
	RING_MEMSET = 7,
	RING_API = 8,
	RING_SYNC = 9,
	RING_OVERHEAD = 10,
	RING_LOSS = 11,
	RING_RANGE = 12,
};

struct ring_record {
	uint32_t size; /* bytes of the whole record, a multiple of 8 */
	uint16_t type; /* enum ring_type */
	uint16_t pad;
};

enum ring_clock {
	RING_CLOCK_MONOTONIC = 0, /* CUPTI itself stamps with CLOCK_MONOTONIC */
	RING_CLOCK_OFFSET = 1,    /* converted by an offset; clock_error_ns bounds the error */
};

struct ring_hello {
	struct ring_record record;
	uint32_t pid;            /* as the target sees it */
	uint32_t cupti_version;  /* cuptiGetVersion */
	uint32_t driver_version; /* cuDriverGetVersion, 0 unknown */
	uint32_t clock;          /* enum ring_clock */
	uint64_t clock_error_ns;
	uint32_t simulated; /* 1: libcuda is the stand-in of tests/sim */
	uint32_t path_length;
	char path[]; /* of the libcupti in use, not terminated */
};

/* Something a person should know: phase changes and errors. text says what happened and what to do. */
struct ring_status {
	struct ring_record record;
	uint64_t time_ns;
	uint32_t phase; /* enum ring_phase */
	int32_t error;  /* CUptiResult, 0 none */
	uint32_t text_length;
	uint32_t pad;
	char text[];
};

/* Defines a name id before its first use in this ring. Ids are small and dense, from 1. */
struct ring_name {
	struct ring_record record;
	uint32_t id;
	uint32_t length; /* bytes kept of the name */
	char name[];
};

struct ring_device {
	struct ring_record record;
	uint32_t device; /* CUDA ordinal in this process */
	uint32_t sm_count;
	uint32_t name; /* name id */
	uint32_t compute_major;
	uint32_t compute_minor;
	uint32_t pad;
	uint64_t memory_bytes;
	uint8_t uuid[16];
};

struct ring_kernel {
	struct ring_record record;
	uint64_t start_ns, end_ns;
	uint32_t device, context, stream, correlation;
	uint32_t name;  /* name id, mangled as CUPTI gives it */
	uint32_t graph; /* graph id, 0 none */
	uint64_t graph_node;
	uint32_t grid[3], block[3];
};

/* memory kinds are CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, 3 device, 4 array, 5 managed … */
struct ring_memcpy {
	struct ring_record record;
	uint64_t start_ns, end_ns;
	uint32_t device, context, stream, correlation;
	uint64_t bytes;
	uint32_t graph;
	uint8_t copy_kind; /* CUpti_ActivityMemcpyKind: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP … */
	uint8_t source_kind, target_kind;
	uint8_t flags; /* bit 0: asynchronous */
};

struct ring_memset {
	struct ring_record record;
	uint64_t start_ns, end_ns;
	uint32_t device, context, stream, correlation;
	uint64_t bytes;
	uint32_t graph;
	uint32_t memory_kind;
};

enum ring_domain {
	RING_DOMAIN_DRIVER = 1,
	RING_DOMAIN_RUNTIME = 2,
};

struct ring_api {
	struct ring_record record;
	uint64_t start_ns, end_ns;
	uint32_t tid; /* as the target sees it */
	uint32_t correlation;
	uint32_t function; /* name id */
	uint32_t domain;   /* enum ring_domain */
	int32_t result;    /* CUresult or cudaError_t */
	uint32_t pad;
};

/* type is CUpti_ActivitySynchronizationType: 1 event, 2 stream wait event, 3 stream, 4 context */
struct ring_sync {
	struct ring_record record;
	uint64_t start_ns, end_ns;
	uint32_t type;
	uint32_t context, stream, correlation;
	uint32_t event;
	uint32_t pad;
};

/* CUPTI's own cost. kind is CUpti_ActivityOverheadKind. */
struct ring_overhead {
	struct ring_record record;
	uint64_t start_ns, end_ns;
	uint32_t kind;
	uint32_t tid; /* 0: not tied to a thread */
};

enum ring_range_kind {
	RING_RANGE_PUSH_POP = 1,
	RING_RANGE_START_END = 2, /* may have been ended by another thread, and cross others */
};

/* A range that the program named by NVTX. */
struct ring_range {
	struct ring_record record;
	uint64_t start_ns, end_ns;
	uint32_t tid;    /* thread that began it, as the target sees it */
	uint32_t name;   /* name id, 0: it has none */
	uint32_t domain; /* name id of its domain, 0: the default one */
	uint32_t kind;   /* enum ring_range_kind */
};

enum ring_loss_cause {
	RING_LOSS_RING = 1,  /* this ring was full */
	RING_LOSS_CUPTI = 2, /* CUPTI had no buffer */
};

/* Records are missing; operations lost lie within [start_ns, end_ns]. */
struct ring_loss {
	struct ring_record record;
	uint64_t start_ns, end_ns;
	uint64_t count;
	uint32_t cause; /* enum ring_loss_cause */
	uint32_t pad;
};

_Static_assert(sizeof(struct ring_offer) == 32, "ring_offer");
_Static_assert(sizeof(struct ring_control) == 192, "ring_control");
_Static_assert(sizeof(struct ring_record) == 8, "ring_record");
_Static_assert(sizeof(struct ring_hello) == 40, "ring_hello");
_Static_assert(sizeof(struct ring_status) == 32, "ring_status");
_Static_assert(sizeof(struct ring_name) == 16, "ring_name");
_Static_assert(sizeof(struct ring_device) == 56, "ring_device");
_Static_assert(sizeof(struct ring_kernel) == 80, "ring_kernel");
_Static_assert(sizeof(struct ring_memcpy) == 56, "ring_memcpy");
_Static_assert(sizeof(struct ring_memset) == 56, "ring_memset");
_Static_assert(sizeof(struct ring_api) == 48, "ring_api");
_Static_assert(sizeof(struct ring_sync) == 48, "ring_sync");
_Static_assert(sizeof(struct ring_overhead) == 32, "ring_overhead");
_Static_assert(sizeof(struct ring_loss) == 40, "ring_loss");
_Static_assert(sizeof(struct ring_range) == 40, "ring_range");

#endif
