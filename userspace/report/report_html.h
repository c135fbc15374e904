/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The report (of one input, of several ranks, or a comparison) as one HTML file that needs nothing else, to
 * be looked at in a browser (docs/html.md). Style and program of the page are in report/html/ and travel
 * inside the program.
 */
#ifndef WHYIDLE_REPORT_REPORT_HTML_H
#define WHYIDLE_REPORT_REPORT_HTML_H

#include "report/report.h"
#include "compare/compare.h"
#include "tables/tables.h"

#define HTML_TOP_GAPS  20     /* worst gaps of a device that are drawn as lanes */
#define HTML_GAPS_MOST 700000 /* gaps of a device that are drawn; of more, the longest */

/*
 * A page is written in order: begin, each part (an input with its GPUs, numbered from 0), what is said across
 * them if there are several, end. What could not be written shows at the end. Names of the target go into
 * JSON only, in which every "<" is escaped.
 */
void report_html_begin(FILE *out);

/*
 * `analysis` is of source->model, `source` what the tables are made from, `ranks` may be NULL. Returns 0 or a
 * negative errno with `error`.
 */
int report_html_part(FILE *out, unsigned part, const struct table_source *source,
                     const struct analysis *analysis, const struct ranks_report *ranks, struct error *error);

/* What each part is called, in order. */
struct html_labels {
	ARRAY(char *)
};

/* The ranks of a job, or a comparison: one of them, the other NULL. Returns 0 or -ENOMEM with `error`. */
int report_html_across(FILE *out, const struct html_labels *labels, const struct ranks_report *ranks,
                       const struct comparison *comparison, struct error *error);

/* Returns 0, or -EIO with `error`. */
int report_html_end(FILE *out, struct error *error);

#endif
