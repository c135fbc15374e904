/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From several files, one for each rank or host of a job, to one printed report.
 */
#ifndef WHYIDLE_CLI_RANKS_REPORT_H
#define WHYIDLE_CLI_RANKS_REPORT_H

#include "cli/inputs.h"
#include "cli/session_report.h"
#include "ranks/ranks.h"

struct model;

/*
 * Prints what can be said across the ranks, then the report of each. Models are read one after the other, so
 * that memory does not grow with their number. A file that cannot be read is noted in the report; an error
 * only if none can. Returns 0 or a negative errno with `error`.
 */
int ranks_report_print(const struct inputs *inputs, const struct session_report_options *options,
                       struct error *error);

/* Takes in a model, with the rank and the size of the job that it has. alone: it is the only one. */
int ranks_report_add(struct ranks *ranks, const struct model *model, const char *path, bool alone,
                     struct error *error);

#endif
