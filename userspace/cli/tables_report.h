/* SPDX-License-Identifier: GPL-2.0-only */
/* From an input to printed tables: `report --tables`. */
#ifndef WHYIDLE_CLI_TABLES_REPORT_H
#define WHYIDLE_CLI_TABLES_REPORT_H

#include "cli/options.h"
#include "cli/session_report.h"
#include "tables/tables.h"

/* Which tables, in the order in which they are printed. */
struct table_choice {
	enum table_id ids[TABLE_IDS];
	size_t count;
};

/* All tables where no name is given. Returns 0 or -EINVAL with `error`: there is no such table. */
int table_choice_make(struct table_choice *choice, const struct text_list *names, struct error *error);

/* Returns 0 or a negative errno with `error`. */
int tables_report_print(const char *path, const struct session_report_options *options, struct error *error);

#endif
