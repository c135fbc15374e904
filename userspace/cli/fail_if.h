/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * --fail-if: limits that a run must keep, for CI jobs.
 *
 *	idle > 20%                        of the window of any GPU
 *	cause:wait.disk > 5%              the same for a cause; cause:wait.disk@worker, cause:wait (all
 *wait.*) idle worse than BASE by 3%        BASE is a file; in points of the time, and beyond the noise
 *	cause:… worse than BASE by 3%
 *	step worse than BASE by 3%        time per step, relative to BASE's
 */
#ifndef WHYIDLE_CLI_FAIL_IF_H
#define WHYIDLE_CLI_FAIL_IF_H

#include <stdio.h>

#include "attribute/analysis.h"
#include "compare/compare.h"

enum fail_metric {
	FAIL_IDLE,
	FAIL_CAUSE,
	FAIL_STEP,
};

struct fail_limit {
	const char *text; /* as given */
	enum fail_metric metric;
	struct cause_set causes; /* FAIL_CAUSE */
	double share;            /* 0.2 for "20%" */
	bool or_equal;           /* ">=" */
	char *base;              /* file to be worse than, NULL: a plain limit */
};

/*
 * Takes an expression apart; `text` must outlive the limit. Returns 0 or -EINVAL (-ENOMEM) with one line in
 * `error`; fail_limit_free in either case.
 */
int fail_limit_parse(struct fail_limit *limit, const char *text, struct error *error);
void fail_limit_free(struct fail_limit *limit);

/* All limits of one command, and what they were held against. */
struct fail_check {
	struct {
		ARRAY(struct fail_limit)
	} limits;
	struct measurement run;           /* filled only where a limit compares */
	const struct measurement *before; /* what the word BEFORE means, NULL: the name of a file */
	FILE *out;                        /* takes one line for each limit that is exceeded */
	unsigned devices;                 /* that the limits were held against */
	unsigned exceeded;                /* once for each limit and device */
};

/* Parses every expression of `texts`, `count` of them. Returns as fail_limit_parse. */
int fail_check_begin(struct fail_check *check, const char *const *texts, size_t count, FILE *out,
                     struct error *error);

/* Holds the plain limits against one input, and measures it if others need that. */
int fail_check_input(struct fail_check *check, const struct model *model, const struct analysis *analysis,
                     const char *path, struct error *error);

/* Holds the rest against their bases, after the last input; where no GPU did anything, no limit can be
 * judged. Returns 0 or a negative errno with `error`. */
int fail_check_finish(struct fail_check *check, struct error *error);
void fail_check_free(struct fail_check *check);

#endif
