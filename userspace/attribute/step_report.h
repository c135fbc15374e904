/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each step of a device spent, and what slow steps spent more of than normal ones. Plain data, part of
 * an analysis (attribute/analysis.h).
 *
 * A step is slow if it took longer than the median by more than a tenth and by more than five times the usual
 * spread (1.4826 times the median absolute deviation, which is the standard deviation where steps differ by
 * chance alone). Steps that are neither slow nor warm-up are normal.
 */
#ifndef WHYIDLE_ATTRIBUTE_STEP_REPORT_H
#define WHYIDLE_ATTRIBUTE_STEP_REPORT_H

#include "attribute/cause.h"
#include "attribute/steps.h"

#define STEPS_EXPLAINED 20 /* slow steps that are kept with their causes */

/* Idle time of a step by cause. */
struct step_cause {
	enum cause_code code;
	enum cause_role role;
	uint64_t ns;
	uint64_t more_ns;  /* than the mean of normal steps, of a slow step; at least 1 */
	uint32_t pid, tid; /* thread with the longest stretch of it, 0 the device */
	const char *comm;  /* of that, never NULL; owned by the model */
};

struct step_figures {
	uint64_t number, start_ns, end_ns;
	uint64_t idle_ns, op_count; /* operations that start in it */
	bool warm_up, slow;
	bool has_cause; /* it has idle time */
	struct step_cause largest;
};

struct slow_step {
	size_t step;          /* index of step_report.steps */
	uint64_t more_ns;     /* longer than the mean of normal steps */
	int64_t busy_more_ns; /* of that the GPU was busy, less than zero: it was busy for less time */
	struct {
		ARRAY(struct step_cause)
	} causes; /* those with more_ns, the largest more_ns first */
};

struct step_report {
	enum steps_origin origin; /* STEPS_NONE: no steps were found, or looked for */
	const char *name;         /* STEPS_NAMED: what they are called, without their number */
	uint64_t period_ops;      /* STEPS_RHYTHM */
	struct {
		ARRAY(struct step_figures)
	} steps;                               /* in time order */
	uint64_t warm_up;                      /* how many at the beginning */
	uint64_t least_ns, median_ns, most_ns; /* of the others */
	uint64_t slow_ns;                      /* what takes longer is slow */
	uint64_t slow_count, normal_ns;        /* mean of the normal ones */
	uint64_t slow_more_ns;                 /* what all slow ones took more than so many normal ones */
	struct {
		ARRAY(struct slow_step)
	} slow; /* by more_ns, at most STEPS_EXPLAINED */
};

/* Collects the parts of one device's steps: leaves in time order, then the end. */
struct step_tally;
struct leaf;

/* Finds the steps. NULL if memory ran out. */
struct step_tally *step_tally_new(struct step_report *report, const struct model *model, uint32_t device,
                                  uint64_t from_ns, uint64_t to_ns);
void step_tally_leaf(struct step_tally *tally, const struct leaf *leaf);
/* Fills in the report. Returns 0 or -ENOMEM. */
int step_tally_finish(struct step_tally *tally);
void step_tally_free(struct step_tally *tally);

void step_report_free(struct step_report *report);

#endif
