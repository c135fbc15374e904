/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shows an analysis: to a person (report_text) and to a program (report_json, docs/report.schema.json).
 */
#ifndef WHYIDLE_REPORT_REPORT_H
#define WHYIDLE_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "attribute/analysis.h"
#include "base/error.h"
#include "ranks/ranks.h"

#define REPORT_SCHEMA       "whyidle.report/1"
#define REPORT_RANKS_SCHEMA "whyidle.ranks/1" /* several inputs */

struct report_text_options {
	unsigned width; /* columns, 80 to 160; 0: 100 */
	bool colour;
	bool verbose; /* every cause, every kept gap with its whole chain */
};

/* Width of the terminal and colour as fits `out`: colour only on a terminal, without NO_COLOR and TERM=dumb.
 */
void report_text_options_for(struct report_text_options *options, FILE *out);

/*
 * Writes the text report. The first three lines are the answer: how idle, the top cause, what to do.
 * `options` may be NULL. Returns 0, -ENOMEM, or -EIO if `out` could not be written.
 */
int report_text(FILE *out, const struct analysis *analysis, const struct report_text_options *options);

/* Writes the JSON report and a newline. Returns 0 or a negative errno with `error` filled in. */
int report_json(FILE *out, const struct analysis *analysis, struct error *error);

/* As report_json with "ranks" in it, as report_ranks_json does with the finished text; NULL: without. */
int report_json_with_ranks(FILE *out, const struct analysis *analysis, const struct ranks_report *ranks,
                           struct error *error);

/* False where there is nothing to say about ranks: one input, no collective. */
bool report_ranks_wanted(const struct ranks_report *ranks);

/*
 * What can be said across the ranks of a job: the answer first, then what it rests on. For a single rank only
 * what its collectives took. Returns 0, -ENOMEM or -EIO.
 */
int report_ranks_text(FILE *out, const struct ranks_report *ranks, const struct report_text_options *options);

/*
 * Writes the ranks with the JSON reports (as report_json makes them) of the inputs, in order: of one input
 * its report with "ranks" in it, of several a document of its own. Returns 0 or a negative errno with
 * `error`.
 */
int report_ranks_json(FILE *out, const struct ranks_report *ranks, const char *const *reports, size_t count,
                      struct error *error);

#endif
