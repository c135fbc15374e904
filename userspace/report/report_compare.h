/* SPDX-License-Identifier: GPL-2.0-only */
/* Shows a comparison of two runs: to a person, and to a program (docs/compare.schema.json). */
#ifndef WHYIDLE_REPORT_REPORT_COMPARE_H
#define WHYIDLE_REPORT_REPORT_COMPARE_H

#include "compare/compare.h"
#include "report/report.h"

#define COMPARE_SCHEMA "whyidle.compare/1"

/*
 * Writes the text. The first three lines are the answer: better, worse or neither, and by how much; the idle
 * share; the cause that changed most. `options` may be NULL. Returns 0, or -EIO if `out` could not be
 * written.
 */
int report_compare_text(FILE *out, const struct comparison *comparison,
                        const struct report_text_options *options);

/* Writes the JSON and a newline. Returns 0 or a negative errno with `error` filled in. */
int report_compare_json(FILE *out, const struct comparison *comparison, struct error *error);

#endif
