// SPDX-License-Identifier: GPL-2.0-only
#include "cli/compare_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "cli/fail_if.h"
#include "cli/inputs.h"
#include "cli/load.h"
#include "cli/session_report.h"
#include "model/model.h"

static int add_page(const struct compare_side *side, const char *path, const struct model *model,
                    const struct analysis *analysis, const struct analysis_options *chosen,
                    struct error *error)
{
	struct table_source source = table_source_of(model, chosen);
	char label[PATH_MAX];

	snprintf(label, sizeof(label), "%s: %s", side->label, path);
	source.analysis = analysis;
	return html_file_add(side->html, label, &source, analysis, NULL, error);
}

static int measure_file(struct measurement *measurement, const struct compare_side *side, const char *path,
                        struct fail_check *check, struct error *error)
{
	struct analysis_options chosen = {
	    .device = side->device, .top_gaps = side->html ? HTML_TOP_GAPS : 1, .steps = side->html != NULL};
	struct analysis analysis = {0};
	struct model model = {0};
	int err = load_model(&model, path, NULL, error);

	if (!err && side->pid)
		err = model_keep_process(&model, side->pid, error);
	if (!err)
		err = choose_window(&chosen, &model, &side->window, side->option, error);
	if (!err)
		err = analysis_run(&analysis, &model, &chosen, error);
	if (!err)
		err = measurement_add(measurement, &model, &analysis, path, error);
	if (!err && side->html)
		err = add_page(side, path, &model, &analysis, &chosen, error);
	if (!err && check)
		err = fail_check_input(check, &model, &analysis, path, error);
	analysis_free(&analysis);
	model_free(&model);
	return err;
}

int compare_measure(struct measurement *measurement, const struct compare_side *side,
                    struct fail_check *check, struct error *error)
{
	char *operand = (char *)side->path;
	struct inputs inputs = {0};
	char *const *path;
	int err = inputs_collect(&inputs, &operand, 1, error);

	array_for_each (path, &inputs) {
		if (!err)
			err = measure_file(measurement, side, *path, check, error);
	}
	if (!err && !measurement->devices.count)
		err = error_set(error, -ENODATA, "%s has no GPU operation: there is nothing to compare",
		                side->path);
	inputs_free(&inputs);
	return err;
}
