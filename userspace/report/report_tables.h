/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables for a person, for spreadsheets and for programs (docs/tables.md). Names come from the recorded
 * program: text is escaped for terminals; in CSV nothing that a spreadsheet would run as a formula begins a
 * cell; JSON is valid UTF-8.
 */
#ifndef WHYIDLE_REPORT_REPORT_TABLES_H
#define WHYIDLE_REPORT_REPORT_TABLES_H

#include "report/report.h"
#include "tables/tables.h"

#define REPORT_TABLES_SCHEMA "whyidle.tables/1"

/*
 * Write `count` tables. Of the text, options->verbose shows all rows; otherwise the largest. CSV of several
 * tables has a line "# NAME" before each and an empty line behind. Return 0, -ENOMEM or -EIO.
 */
int report_tables_text(FILE *out, const struct table *tables, size_t count,
                       const struct report_text_options *options);
int report_tables_csv(FILE *out, const struct table *tables, size_t count);
/* Also fills in `error`. */
int report_tables_json(FILE *out, const struct table *tables, size_t count, struct error *error);

#endif
