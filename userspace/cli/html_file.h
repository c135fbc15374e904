/* SPDX-License-Identifier: GPL-2.0-only */
/* The file of an HTML report: there whole, or not at all. */
#ifndef WHYIDLE_CLI_HTML_FILE_H
#define WHYIDLE_CLI_HTML_FILE_H

#include <stdio.h>

#include "attribute/analysis.h"
#include "export/target_file.h"
#include "report/report_html.h"

struct html_file {
	const char *path;
	struct target_file file;
	FILE *out; /* NULL: not open */
	struct html_labels labels;
};

/* Opens it and begins the page. Returns 0 or a negative errno with `error`; html_file_close in either case.
 */
int html_file_open(struct html_file *html, const char *path, struct error *error);

/* Adds an input, called `label` where there are several. `ranks` may be NULL. */
int html_file_add(struct html_file *html, const char *label, const struct table_source *source,
                  const struct analysis *analysis, const struct ranks_report *ranks, struct error *error);

/* Ends the page and puts the file in its place. Returns 0 or a negative errno with `error`. */
int html_file_commit(struct html_file *html, struct error *error);

/* Takes away what was not committed. */
void html_file_close(struct html_file *html);

#endif
