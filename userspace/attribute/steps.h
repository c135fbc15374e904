/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The steps of a job (iterations of a training loop, requests): what the program names so, or what repeats.
 * docs/compare.md says how a rhythm is found.
 */
#ifndef WHYIDLE_ATTRIBUTE_STEPS_H
#define WHYIDLE_ATTRIBUTE_STEPS_H

#include <stdbool.h>

#include "model/model.h"

#define STEP_PREFIX "ProfilerStep#" /* how the PyTorch profiler names steps */

#define STEPS_LEAST 5 /* fewer repetitions are no rhythm */

struct step {
	uint64_t start_ns, end_ns;
	uint64_t number; /* as the program counts, else from 1 */
};

struct step_list {
	ARRAY(struct step)
};

enum steps_origin {
	STEPS_NONE,
	STEPS_NAMED,  /* annotations of the program */
	STEPS_RHYTHM, /* the same operations again and again */
};

struct steps {
	enum steps_origin origin;
	struct step_list list; /* in time order, disjoint; what is between them belongs to none */
	const char *name;    /* STEPS_NAMED: what they are called, without their number; owned by the model */
	uint64_t period_ops; /* STEPS_RHYTHM: operations in a typical step */
};

const char *steps_origin_name(enum steps_origin origin); /* "none", "named", "rhythm" */

/*
 * The steps that the PyTorch profiler has named, of one process (MODEL_NONE: any), by number; one that is
 * there more than once is taken once. Returns 0 or -ENOMEM.
 */
int steps_profiler(struct step_list *list, const struct model *model, uint32_t process);

/*
 * Steps of a device within [from, to]: the profiler's; else repeated annotations that are called step,
 * iteration or batch; else the rhythm of the device's operations. No steps are no error. Returns 0 or
 * -ENOMEM; steps_free in either case.
 */
int steps_find(struct steps *steps, const struct model *model, uint32_t device, uint64_t from_ns,
               uint64_t to_ns);
void steps_free(struct steps *steps);

/*
 * How many steps at the beginning are warm-up (compilation, caches, a cold start): those that take more than
 * two medians, up to a quarter of all, but for the last STEPS_LEAST.
 */
size_t steps_warm_up(const struct step_list *list);

#endif
