// SPDX-License-Identifier: GPL-2.0-only
#include "cli/tables_report.h"

#include <errno.h>
#include <string.h>

#include "cli/fail_if.h"
#include "cli/load.h"
#include "report/report_tables.h"

int table_choice_make(struct table_choice *choice, const struct text_list *names, struct error *error)
{
	const char **name;

	*choice = (struct table_choice){0};
	if (!names->count) {
		for (int id = 0; id < TABLE_IDS; id++)
			choice->ids[choice->count++] = (enum table_id)id;
		return 0;
	}
	array_for_each (name, names) {
		int id = table_find(*name);
		bool chosen = false;

		if (id < 0)
			return error_set(
			    error, -EINVAL,
			    "report: --table: there is no table '%s' (see whyidle report --help)", *name);
		for (size_t i = 0; i < choice->count; i++)
			chosen |= choice->ids[i] == (enum table_id)id;
		if (!chosen)
			choice->ids[choice->count++] = (enum table_id)id;
	}
	return 0;
}

static int print(const struct table *tables, size_t count, const struct session_report_options *options,
                 struct error *error)
{
	struct report_text_options text;
	int err;

	if (options->json)
		return report_tables_json(options->json, tables, count, error);
	if (options->csv) {
		err = report_tables_csv(options->csv, tables, count);
	} else {
		report_text_options_for(&text, options->text);
		text.verbose = options->verbose;
		err = report_tables_text(options->text, tables, count, &text);
	}
	return err ? error_set(error, err, "cannot write the tables: %s", strerror(-err)) : 0;
}

/* Only these need the analysis. */
static bool wants_steps(const struct table_choice *choice)
{
	for (size_t i = 0; i < choice->count; i++) {
		if (choice->ids[i] == TABLE_STEPS)
			return true;
	}
	return false;
}

int tables_report_print(const char *path, const struct session_report_options *options, struct error *error)
{
	struct analysis_options chosen = {.device = options->device, .steps = true};
	const struct table_choice *choice = options->tables;
	struct table tables[TABLE_IDS] = {0};
	struct analysis analysis = {0};
	struct table_source source;
	struct model model = {0};
	int err;

	err = load_part(&model, &chosen, path, options, error);
	source = table_source_of(&model, &chosen);
	if (!err && options->device >= 0 && source.device == MODEL_NONE)
		err = error_set(error, -EINVAL, "the session has no GPU %d: it has %zu", options->device,
		                model.devices.count);
	if (!err && wants_steps(choice)) {
		err = analysis_run(&analysis, &model, &chosen, error);
		source.analysis = &analysis;
	}
	for (size_t i = 0; !err && i < choice->count; i++) {
		if (table_make(&tables[i], choice->ids[i], &source))
			err = error_no_memory(error);
	}
	if (!err)
		err = print(tables, choice->count, options, error);
	for (size_t i = 0; i < choice->count; i++)
		table_free(&tables[i]);
	analysis_free(&analysis);
	model_free(&model);
	return err;
}
