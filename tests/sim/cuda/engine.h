/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulated device: streams with in-order queues and a clock thread ("sim-gpu") that finishes what they
 * hold when its time is over.
 *
 * Operations have exact times that no host scheduling can disturb: an operation starts at the latest of its
 * submission plus SIM_START_NS, the end of the one before plus its floor, the end of what it depends on and
 * the moment its copy engine is free, and ends after its duration. Only that the host learns of it takes
 * until the clock thread has run. Kernels of different streams overlap; each direction of copies has one
 * engine.
 *
 * An operation counts as done once its bytes were moved and its record was given to the tracer, in this
 * order. One lock guards streams, events and operations; functions say if the caller must hold it.
 */
#ifndef WHYIDLE_SIM_ENGINE_H
#define WHYIDLE_SIM_ENGINE_H

#include "tests/sim/cuda_sim.h"
#include "tests/sim/trace.h"

#define SIM_MAX_DEVICES    16
#define SIM_QUEUE_DEPTH    1024 /* operations of a stream that may wait; a launch beyond that blocks */
#define SIM_DEFAULT_ID     7    /* CUPTI's number of the default stream */
#define SIM_FIRST_ID       13   /* and of the first one that a program creates */
#define SIM_GRAPH_FLOOR_NS 500

struct sim_options {
	uint32_t devices;
	bool spin;
	const char *truth;
	uint64_t launch_ns, start_ns, floor_ns, alloc_ns, free_ns, sync_ns, load_ns;
	uint64_t copy_mbps, memory_mb;
};
extern struct sim_options sim_options;

enum sim_magic {
	SIM_MAGIC_CONTEXT = 0x63747831,
	SIM_MAGIC_STREAM = 0x73747231,
	SIM_MAGIC_EVENT = 0x65767431,
	SIM_MAGIC_KERNEL = 0x6b726e31,
	SIM_MAGIC_GRAPH = 0x67726631,
	SIM_MAGIC_EXEC = 0x67786331,
};

struct sim_kernel {
	uint32_t magic;
	uint64_t duration_ns;
	bool by_block; /* that is for each block of the grid */
	bool meets;    /* its argument is a struct sim_meeting */
	char *name;
};

/* A point in a stream: everything submitted up to it. Numbers wrap, compare by difference. */
struct sim_point {
	struct sim_stream *stream; /* NULL: nothing to wait for */
	uint32_t seq;
};

struct sim_op {
	struct sim_op *next;
	struct sim_work work;
	uint32_t seq, correlation;
	bool started;
	uint64_t submit_ns, start_ns, end_ns;
	struct sim_event *event; /* marker that stamps an event, or NULL; holds a reference */
	struct sim_point *waits; /* owned */
	size_t wait_count;
};

struct sim_event {
	uint32_t magic, id, flags;
	uint32_t references;    /* the program's one and those of pending markers */
	struct sim_point point; /* of the last record */
	uint64_t time_ns;       /* when the device passed it */
};

struct sim_stream {
	uint32_t magic, id, flags;
	struct sim_context *context;
	struct sim_stream *next;        /* of the context, all that ever were */
	struct sim_stream *active_next; /* of the engine: streams with work */
	bool active;
	struct sim_op *head, *tail;
	uint32_t submitted; /* seq of the last operation put in */
	uint32_t done;      /* seq of the last finished one; futex word, read without the lock */
	uint32_t waiters;   /* threads that sleep on it */
	uint64_t last_end_ns;
	struct sim_graph *capture; /* operations go there instead */
};

struct sim_context {
	uint32_t magic, id;
	CUdevice device;
	uint32_t next_stream_id;
	bool primary;
	uint32_t retained;
	struct sim_context *next;
	struct sim_stream *streams; /* the default stream is the last */
	struct sim_stream *default_stream;
};

uint64_t sim_now(void); /* CLOCK_MONOTONIC, ns */
/* Uses the caller's CPU for that long. */
void sim_spend(uint64_t duration_ns);

void engine_lock(void);
void engine_unlock(void);

/* Starts the clock thread if it does not run yet. Returns 0 or an errno. */
int engine_start(void);

/*
 * Puts `work` into a stream, with the waits that legacy default stream semantics ask for and `wait` (stream
 * NULL: none). event: stamped when reached, may be NULL. Takes over work->staging, also on failure. Blocks
 * while the stream is full. Returns false if memory ran out.
 */
bool engine_submit(struct sim_stream *stream, const struct sim_work *work, uint32_t correlation,
                   struct sim_event *event, struct sim_point wait);
/* Several operations at once, nothing in between. */
bool engine_submit_all(struct sim_stream *stream, const struct sim_work *works, size_t count,
                       uint32_t correlation);

bool engine_reached(struct sim_point point);
/* Blocks (or spins, see SIM_SPIN) until the device passed the point. */
void engine_wait(struct sim_point point);
/* All that was submitted to a stream so far. */
struct sim_point engine_last(struct sim_stream *stream);
void engine_wait_context(struct sim_context *context);
bool engine_context_idle(struct sim_context *context);

void sim_event_release(struct sim_event *event); /* lock held */

/* account.c: the truth about each device. Lock held, but for account_write. */
void account_add(CUdevice device, enum sim_operation_kind kind, uint64_t start_ns, uint64_t end_ns);
void account_write(const char *path);

#endif
