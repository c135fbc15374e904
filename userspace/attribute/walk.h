/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The walk (attribution.md section 3): cuts an interval of a thread by the thread's states and follows waits
 * to the thread that ended them, until every nanosecond ends in exactly one leaf.
 */
#ifndef WHYIDLE_ATTRIBUTE_WALK_H
#define WHYIDLE_ATTRIBUTE_WALK_H

#include "attribute/cause.h"
#include "model/model.h"

#define WALK_DEPTH 16 /* threads in a chain, attribution.md section 3 */

enum leaf_state {
	LEAF_RUNNING,
	LEAF_RUNNABLE,
	LEAF_BLOCKED,
	LEAF_DEVICE,
};

/* What a stretch of time is blamed on. Threads are indices of model.threads; MODEL_NONE: the device. */
struct leaf {
	uint64_t start_ns, end_ns;
	enum cause_code code;
	enum cause_role role;
	enum confidence confidence;
	enum leaf_state state;
	uint32_t thread;
	uint32_t holder;       /* thread that held the lock or had the CPU, MODEL_NONE */
	int32_t syscall;       /* -1 none */
	uint32_t path, device; /* string ids */
	uint32_t function;     /* string id of the CUDA call, operator or annotation */
	uint32_t python;       /* string id of the Python function */
	uint32_t stack;        /* index of model.stacks: user stack, MODEL_NONE */
	uint64_t lock;         /* address, 0 none */
	bool lock_shared;      /* between processes */
	/*
	 * The first wait of the chain whose object in the C library is known (offcpu.lock_kind), and whose it
	 * is; NULL: none. It names what was waited for, and changes no cause.
	 */
	const struct offcpu *lock_wait;
	uint32_t lock_waiter;
	const uint32_t *chain; /* threads from the launcher to `thread`, `depth` of them */
	uint32_t depth;
};

struct walk {
	const struct model *model;
	uint32_t launcher; /* thread that launched the operation that ended the gap */
	bool alone;        /* waits for other threads are not followed */
	bool drained;      /* a synchronising call had emptied the queue when the gap began */
	bool launching;    /* whatever the launcher runs is launching */
	void (*leaf)(void *context, const struct leaf *leaf);
	/* A thread of the launcher's process waited for a descendant of it in [from, to]; may be NULL. */
	void (*crossed)(void *context, uint32_t waiter, uint32_t worker, uint64_t from_ns, uint64_t to_ns);
	void *context;
	/* private */
	uint32_t chain[WALK_DEPTH];
	uint64_t since[WALK_DEPTH]; /* where each thread's stretch begins */
	uint32_t depth;
	enum confidence confidence;     /* lowest of the edges walked so far */
	struct leaf last;               /* emitted */
	const struct offcpu *lock_wait; /* see struct leaf */
	uint32_t lock_waiter;
};

/* Prepares a walk for the gap that an operation launched by `launcher` ended. */
void walk_begin(struct walk *walk, const struct model *model, uint32_t launcher, bool drained);

/* Blames [from, to] of the launcher. The leaves cover it without holes or overlaps, in time order. */
void walk_blame(struct walk *walk, uint64_t from_ns, uint64_t to_ns);

/* Emits one leaf for the device, not for a thread. */
void walk_device(struct walk *walk, uint64_t from_ns, uint64_t to_ns, enum cause_code code,
                 enum confidence confidence);

/* Emits one leaf for the launcher as a whole, whatever it did in detail. */
void walk_launcher(struct walk *walk, uint64_t from_ns, uint64_t to_ns, enum cause_code code,
                   enum confidence confidence, uint32_t function);

/* The call of the thread that covers `time` (enter <= time < exit), NULL. */
const struct call *thread_call_at(const struct thread *thread, uint64_t time_ns);

/* True if the thread was on a CPU during all of [from, to]. */
bool thread_ran(const struct thread *thread, uint64_t from_ns, uint64_t to_ns);

/* Index of the first off-CPU interval that ends after `time`, count if none. */
size_t thread_offcpu_after(const struct thread *thread, uint64_t time_ns);

/* Why a thread has no scheduler records. */
enum cause_code unrecorded_cause(const struct model *model);

/* Role of a thread, seen from the process that launched. */
enum cause_role thread_role(const struct model *model, uint32_t launcher, uint32_t thread);

#endif
