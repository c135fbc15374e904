/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How far a figure of one run may be off by chance, and whether two runs differ by more than that
 * (docs/compare.md: why batches, why this interval).
 */
#ifndef WHYIDLE_COMPARE_NOISE_H
#define WHYIDLE_COMPARE_NOISE_H

#include <stdbool.h>

#define NOISE_BATCHES_MOST  20
#define NOISE_BATCHES_LEAST 5 /* fewer say nothing about the spread */

/* A mean over a run. */
struct estimate {
	double value;
	double error;     /* standard error; means nothing without batches */
	unsigned batches; /* that the error was estimated from, 0: it is not known */
};

/*
 * Sum of parts over sum of wholes ("idle time per step"), from consecutive batches of the run. What is left
 * of a correlation between neighbours widens the error. With fewer than NOISE_BATCHES_LEAST batches, or an
 * empty whole, only the value is given.
 */
struct estimate estimate_ratio(const double *parts, const double *wholes, unsigned count);

/* A figure of two runs. */
struct figure {
	struct estimate before, after;
	double change; /* after - before */
	double noise;  /* half width of the interval of the change; 0 if not known */
	bool known;    /* the noise is */
	bool beyond; /* the change is larger than the noise and than `floor`; false if the noise is not known
	              */
};

/*
 * Compares two estimates: by chance alone the change is beyond the noise with probability `risk` at most.
 * Changes up to `floor` are never beyond it: two recordings of the same program differ in more than their own
 * spread shows.
 */
struct figure figure_make(struct estimate before, struct estimate after, double risk, double floor);

/* Quantile of Student's t distribution for 0.5 <= p < 1 and df >= 1 degrees of freedom. */
double student_quantile(double p, double df);

#endif
