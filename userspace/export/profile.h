/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time by stack, as flame graphs show it: idle time of the GPUs by cause, time of their operations by what
 * launched them, and time that threads were not running by what they waited in. A tree for each; all time is
 * exact, nothing is sampled.
 *
 *	idle      GPU → cause → process → thread → user stack (or what else is known of it) → system call
 *	          → kernel stack
 *	gpu       GPU → process → thread → operators around the launch → CUDA call → operation
 *	off_cpu   process → thread → kind of wait → user stack → system call → kernel stack
 */
#ifndef WHYIDLE_EXPORT_PROFILE_H
#define WHYIDLE_EXPORT_PROFILE_H

#include "attribute/analysis.h"
#include "base/array.h"
#include "base/hash.h"
#include "model/model.h"

enum profile_kind { PROFILE_IDLE, PROFILE_GPU, PROFILE_OFF_CPU, PROFILE_KINDS };

struct profile_node {
	uint32_t parent; /* index of nodes, MODEL_NONE: the root of a kind */
	uint32_t name;   /* index of names; of a root that of the kind */
	uint32_t kind;
	uint64_t ns; /* of the stack that ends here, without those that go on */
};

struct profile {
	struct {
		ARRAY(struct profile_node)
	} nodes; /* nodes[kind] are the roots; parents before children */
	struct {
		ARRAY(char *)
	} names;     /* valid UTF-8, each once; [0] is "" */
	bool failed; /* memory ran out */

	/* Private. */
	const struct model *model;
	struct index_map name_by_hash, node_by_key;
	struct {
		ARRAY(uint32_t)
	} name_by_string; /* of the model, 0: not looked up yet */
	struct {
		ARRAY(uint32_t)
	} name_by_frame; /* of model.frames, the same */
};

/* Returns 0 or -ENOMEM; profile_free in either case. `model` must outlive it. */
int profile_make(struct profile *profile, const struct model *model, const struct analysis *analysis);
void profile_free(struct profile *profile);

const char *profile_kind_name(enum profile_kind kind); /* "idle", "gpu", "off_cpu" */

/*
 * Building blocks, which remember failures: the child of a node with this name, and its name from a text, a
 * string of the model or a format.
 */
uint32_t profile_child(struct profile *profile, uint32_t parent, uint32_t name);
uint32_t profile_text(struct profile *profile, const char *text);
uint32_t profile_string(struct profile *profile, uint32_t string);
uint32_t profile_format(struct profile *profile, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void profile_add(struct profile *profile, uint32_t node, uint64_t ns);

/* profile_collect.c: the three trees. */
void profile_collect_idle(struct profile *profile, const struct analysis *analysis);
void profile_collect_gpu(struct profile *profile);
void profile_collect_off_cpu(struct profile *profile);

#endif
