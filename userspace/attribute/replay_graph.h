/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private to replay: what happened on one device and in the threads that its idle time leads to, as events in
 * the order of their recorded times, each with what it had to wait for.
 *
 * Edges, by how they are known: explicit (a call launches an operation, operations of a stream follow each
 * other, a synchronising call returns after the operation it waited for), observed (a thread was woken by
 * another), inferred (an operation began just after one of another stream had ended). What none of them
 * explains of the start of an operation is its residual.
 */
#ifndef WHYIDLE_ATTRIBUTE_REPLAY_GRAPH_H
#define WHYIDLE_ATTRIBUTE_REPLAY_GRAPH_H

#include "attribute/replay.h"

enum replay_event_kind {
	REPLAY_LAUNCH, /* at the entry of a call that launched operations; item: index of launches */
	REPLAY_SYNC,   /* at the return of a synchronising call; item: index of syncs */
	REPLAY_WAIT,   /* at the wake that ended a wait; item: index of waits */
	REPLAY_HEARD,  /* at the wake by which a thread that launches nothing heard from the network */
	REPLAY_OP,     /* at the start of an operation; item: index of ops */
};

struct replay_event {
	uint64_t time_ns;
	uint32_t kind, slot, item; /* slot: of the thread, 0 for operations */
};

struct replay_sync {
	uint64_t enter_ns, exit_ns;
	uint32_t op; /* index of ops that it waited for */
};

struct replay_wait {
	uint64_t out_ns, wake_ns;
	uint32_t waker; /* slot */
	uint64_t lock;  /* address of a lock that the waker let go, 0: of none */
};

/* An operation and the least distances to what it follows, in ns. */
struct replay_op {
	uint64_t start_ns, end_ns;
	uint64_t residual_ns;
	uint32_t launch;   /* index of launches, MODEL_NONE */
	uint32_t previous; /* of its stream, index of ops, MODEL_NONE */
	uint32_t inferred; /* of another stream, MODEL_NONE */
	uint32_t submit_ns, between_ns, lag_ns;
	uint32_t device_op; /* index of device.ops */
};

/* A thread that takes part. */
struct replay_slot {
	uint32_t thread;
	bool launcher;
	bool classified; /* states holds all of its own time */
	struct replay_leaves states;
};

struct replay_graph {
	const struct model *model;
	const struct device *device;
	uint64_t from_ns, to_ns;
	struct {
		ARRAY(struct replay_slot)
	} slots;
	uint32_t *slot_of_thread; /* by index of model.threads, MODEL_NONE */
	struct {
		ARRAY(struct replay_event)
	} events;
	struct {
		ARRAY(struct replay_sync)
	} syncs;
	struct {
		ARRAY(struct replay_wait)
	} waits;
	struct {
		ARRAY(struct replay_op)
	} ops;
	uint32_t launch_count;
};

/* Returns 0 or -ENOMEM; replay_graph_free in either case. */
int replay_graph_make(struct replay_graph *graph, const struct model *model, uint32_t device,
                      uint64_t from_ns, uint64_t to_ns, const struct launch_floor *floor,
                      const struct replay_threads *threads);
void replay_graph_free(struct replay_graph *graph);

/* Fills in slot->states: what the thread did by itself, without the threads it waited for. Returns 0 or
 * -ENOMEM. */
int replay_slot_classify(const struct replay_graph *graph, struct replay_slot *slot);

#endif
