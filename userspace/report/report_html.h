/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The report as one HTML file that needs nothing else, to be looked at in a browser (docs/html.md). Style and
 * program of the page are in report/html/ and travel inside the program.
 */
#ifndef WHYIDLE_REPORT_REPORT_HTML_H
#define WHYIDLE_REPORT_REPORT_HTML_H

#include "report/report.h"
#include "tables/tables.h"

#define HTML_TOP_GAPS  20     /* worst gaps of a device that are drawn as lanes */
#define HTML_GAPS_MOST 700000 /* gaps of a device that are drawn; of more, the longest */

/*
 * `analysis` is of source->model, `source` what the tables are made from, `ranks` may be NULL. Returns 0 or a
 * negative errno with `error`. Names of the target go into JSON only, in which every "<" is escaped.
 */
int report_html(FILE *out, const struct table_source *source, const struct analysis *analysis,
                const struct ranks_report *ranks, struct error *error);

#endif
