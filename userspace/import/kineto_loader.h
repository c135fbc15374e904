/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From events of a Kineto trace to a model: kineto_loader_event for each in file order, then
 * kineto_loader_finish. Memory grows with operations, calls, scopes and distinct names, not with other
 * events.
 */
#ifndef WHYIDLE_IMPORT_KINETO_LOADER_H
#define WHYIDLE_IMPORT_KINETO_LOADER_H

#include "import/kineto_event.h"
#include "model/model.h"

/* Overhead of a thread that the file does not name. */
struct kineto_overhead {
	struct overhead overhead;
	uint32_t
	    thread; /* the only one with a call around it; MODEL_NONE: none, KINETO_SEVERAL: more than one */
};

#define KINETO_SEVERAL (MODEL_NONE - 1)

struct kineto_property {
	struct kineto_id id;
	uint32_t name; /* string id */
};

struct kineto_loader {
	struct model *model;
	struct index_map names;        /* hash of text → string id */
	struct index_map odd_ids;      /* hash of what is no 31-bit number → number made up for it */
	struct index_map threads;      /* (pid, tid) → thread */
	struct index_map processes;    /* pid → string id, its name */
	struct index_map thread_names; /* (pid, tid) → string id */
	struct index_map devices;      /* number → device */
	struct index_map correlations; /* ids that do not fit → number made up for them */
	struct index_map externals; /* External id of calls without a correlation id → number, 0: ambiguous */
	struct {
		ARRAY(uint8_t)
	} classes; /* of functions, by string id: enum cuda_class + 1, 0 not looked up yet */
	struct {
		ARRAY(struct kineto_overhead)
	} overheads;
	struct {
		ARRAY(struct kineto_property)
	} properties; /* of devices */
	uint64_t last_thread_key;
	uint32_t last_thread; /* the one found last: most events come in runs of one thread */
	bool has_last_thread;
	uint32_t rank, world_size;
	uint64_t first_ns, last_ns; /* of everything */

	uint64_t events;     /* also useless ones */
	uint64_t recognised; /* with a phase, so that this is a trace at all */
	uint64_t ops, calls, scopes;
	uint64_t negative;   /* operations with a negative duration */
	uint64_t unusable;   /* events without a time that can be used */
	uint64_t unlinkable; /* operations without a correlation id */
};

/* Returns 0 or -ENOMEM. */
int kineto_loader_event(struct kineto_loader *loader, struct kineto_event *event);

/* An entry of deviceProperties. `name` is changed. */
int kineto_loader_device(struct kineto_loader *loader, const struct kineto_id *id, struct kineto_text *name);

/* Names threads and devices, links what can be, finishes the model and says what the trace lacks. */
int kineto_loader_finish(struct kineto_loader *loader, struct error *error);

void kineto_loader_free(struct kineto_loader *loader);

/* Adds a line to model.degraded. */
int kineto_loader_degrade(struct kineto_loader *loader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Key of a thread in `threads` and `thread_names`. */
static inline uint64_t kineto_thread_key(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

#endif
