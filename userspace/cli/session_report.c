// SPDX-License-Identifier: GPL-2.0-only
#include "cli/session_report.h"

#include <errno.h>
#include <string.h>

#include "attribute/analysis.h"
#include "import/import.h"
#include "model/model.h"
#include "report/report.h"

static int choose(const struct model *model, const struct session_report_options *options,
                  struct analysis_options *chosen, struct error *error)
{
	chosen->device = options->device;
	chosen->pid = options->pid;
	if (!options->window.given)
		return 0;
	chosen->has_window = true;
	if (window_resolve(&options->window, model->start_ns, model->end_ns, &chosen->window_start_ns,
	                   &chosen->window_end_ns))
		return error_set(error, -EINVAL,
		                 "--window: empty or outside of the session, which is %.3f s long",
		                 (model->end_ns - model->start_ns) / 1e9);
	return 0;
}

static int print(const struct analysis *analysis, const struct session_report_options *options,
                 struct error *error)
{
	struct report_text_options text;
	int err = 0;

	if (options->text) {
		report_text_options_for(&text, options->text);
		text.verbose = options->verbose;
		err = report_text(options->text, analysis, &text);
		if (!err && fflush(options->text))
			err = -EIO;
		if (err)
			error_set(error, err, "cannot write the report: %s", strerror(-err));
	}
	if (!err && options->json) {
		err = report_json(options->json, analysis, error);
		if (!err && fflush(options->json))
			err = error_set(error, -EIO, "cannot write the report: %s", strerror(errno));
	}
	return err;
}

int session_report_print(const char *path, const struct session_report_options *options, struct error *error)
{
	struct analysis_options chosen = {0};
	struct analysis analysis = {0};
	struct model model = {0};
	int err;

	err = import_load(&model, path, NULL, error);
	if (!err)
		err = choose(&model, options, &chosen, error);
	if (!err)
		err = analysis_run(&analysis, &model, &chosen, error);
	if (!err)
		err = print(&analysis, options, error);
	analysis_free(&analysis);
	model_free(&model);
	return err;
}
