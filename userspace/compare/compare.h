/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two runs of the same work, device by device: what changed by more than the spread inside each run explains
 * (docs/compare.md).
 *
 * Where both runs have steps, time is counted per step and the time of a step decides; else it is counted as
 * a share of the time, and the idle share decides.
 */
#ifndef WHYIDLE_COMPARE_COMPARE_H
#define WHYIDLE_COMPARE_COMPARE_H

#include "compare/measure.h"

enum compare_basis {
	COMPARE_PER_STEP, /* figures in ns per step */
	COMPARE_PER_TIME, /* figures as shares of the time, 0..1 */
};

enum compare_verdict {
	COMPARE_SAME, /* no difference beyond noise */
	COMPARE_BETTER,
	COMPARE_WORSE,
	COMPARE_UNKNOWN, /* too little to tell noise from change */
};

struct compare_cause {
	enum cause_code code;
	enum cause_role role;
	struct figure figure;         /* on the basis of the pair */
	uint64_t before_ns, after_ns; /* whole, of the time that is compared */
};

struct compare_kernel {
	const char *name;
	struct figure figure;         /* time, on the basis of the pair */
	struct figure count;          /* COMPARE_PER_STEP: per step; else per second */
	uint64_t before_ns, after_ns; /* whole, of the time that is compared */
	uint64_t before_count, after_count;
};

struct compare_pair {
	const struct device_measure *before, *after; /* owned by the measurements */
	enum compare_basis basis;
	enum compare_verdict verdict;
	struct figure step;       /* ns; COMPARE_PER_STEP only */
	struct figure idle_share; /* of the time that is compared */
	struct figure idle;       /* COMPARE_PER_STEP: ns per step; else the same as idle_share */
	struct {
		ARRAY(struct compare_cause)
	} causes; /* those beyond the noise first, then by change, largest first */
	struct {
		ARRAY(struct compare_kernel)
	} kernels; /* the same */
};

struct comparison {
	const struct measurement *before, *after;
	struct {
		ARRAY(struct compare_pair)
	} pairs;
	const struct compare_pair *answer; /* that changed most; NULL without pairs */
	enum compare_verdict verdict;      /* of `answer` */
	struct {
		ARRAY(char *)
	} notes; /* what a reader must know to judge it, one line each */
};

/* The two measurements must outlive the comparison. Returns 0 or -ENOMEM; comparison_free in either case. */
int comparison_make(struct comparison *comparison, const struct measurement *before,
                    const struct measurement *after);
void comparison_free(struct comparison *comparison);

const char *compare_verdict_name(enum compare_verdict verdict); /* "same", "better", "worse", "unknown" */
const char *compare_basis_name(enum compare_basis basis);       /* "step", "time" */

/* The figure that decides the verdict: the time of a step, or the idle share. */
const struct figure *compare_main_figure(const struct compare_pair *pair);

/* Some causes, in any role or in one. */
struct cause_set {
	bool codes[CAUSE_COUNT];
	bool has_role;
	enum cause_role role;
};

static inline bool cause_set_holds(const struct cause_set *set, enum cause_code code, enum cause_role role)
{
	return set->codes[code] && (!set->has_role || set->role == role);
}

/* The share of the time that causes take together, also ones that neither run has. */
struct figure compare_causes_share(const struct compare_pair *pair, const struct cause_set *causes);

#endif
