// SPDX-License-Identifier: GPL-2.0-only
#include "cli/session_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "attribute/analysis.h"
#include "cli/capture_range.h"
#include "cli/fail_if.h"
#include "cli/html_file.h"
#include "cli/load.h"
#include "cli/ranks_report.h"
#include "model/model.h"
#include "report/report.h"

int choose_window(struct analysis_options *chosen, const struct model *model, const struct window *window,
                  const char *option, struct error *error)
{
	if (!window->given)
		return 0;
	chosen->has_window = true;
	if (window_resolve(window, model->start_ns, model->end_ns, &chosen->window_start_ns,
	                   &chosen->window_end_ns))
		return error_set(error, -EINVAL, "%s: empty or outside of the session, which is %.3f s long",
		                 option, (model->end_ns - model->start_ns) / 1e9);
	return 0;
}

/* The window from the beginning of the first step in the range to the end of the last. */
static int choose_steps(struct analysis_options *chosen, const struct model *model, const struct range *range,
                        struct error *error)
{
	uint32_t index = table_source_of(model, chosen).device;
	const struct step *step;
	struct steps steps;
	int rc;

	index = index == MODEL_NONE ? 0 : index;
	if (index >= model->devices.count)
		return error_set(error, -EINVAL, "--steps: the session has no GPU");
	rc = steps_find(&steps, model, index, 0, UINT64_MAX);
	array_for_each (step, &steps.list) {
		if (step->number < range->from || step->number > range->to)
			continue;
		if (!chosen->has_window)
			chosen->window_start_ns = step->start_ns;
		chosen->has_window = true;
		chosen->window_end_ns = step->end_ns;
	}
	if (rc)
		error_no_memory(error);
	else if (!steps.list.count)
		rc = error_set(error, -EINVAL,
		               "--steps: no steps were found (docs/compare.md says what is looked for)");
	else if (!chosen->has_window)
		rc = error_set(error, -EINVAL,
		               "--steps: none of them is there: the steps are %" PRIu64 " to %" PRIu64,
		               steps.list.items[0].number, steps.list.items[steps.list.count - 1].number);
	steps_free(&steps);
	return rc;
}

static int choose_part(struct analysis_options *chosen, const struct model *model,
                       const struct session_report_options *options, struct error *error)
{
	if (options->capture_range) {
		chosen->has_window = true;
		return capture_range_find(model, options->capture_range, &chosen->window_start_ns,
		                          &chosen->window_end_ns, error);
	}
	if (options->steps.given)
		return choose_steps(chosen, model, &options->steps, error);
	return choose_window(chosen, model, &options->window, "--window", error);
}

bool session_report_is_part(const struct session_report_options *options)
{
	return options->window.given || options->steps.given || options->capture_range ||
	       options->device >= 0 || options->pid;
}

/* What the report of one file says about ranks; nothing about a part of it. */
static int find_ranks(struct ranks_report *report, const struct model *model, const char *path,
                      const struct session_report_options *options, struct error *error)
{
	struct ranks *ranks;
	int err;

	if (session_report_is_part(options))
		return 0;
	ranks = ranks_new();
	if (!ranks)
		return error_no_memory(error);
	err = ranks_report_add(ranks, model, path, true, error);
	if (!err)
		err = ranks_solve(ranks, report, error);
	ranks_free(ranks);
	return err;
}

static int print_text(const struct analysis *analysis, const struct ranks_report *ranks,
                      const struct session_report_options *options, struct error *error)
{
	struct report_text_options text;
	int err;

	report_text_options_for(&text, options->text);
	text.verbose = options->verbose;
	err = report_text(options->text, analysis, &text);
	if (!err && report_ranks_wanted(ranks)) {
		if (ranks->members.count > 1)
			fputs("\n", options->text);
		err = report_ranks_text(options->text, ranks, &text);
	}
	if (!err && fflush(options->text))
		err = -EIO;
	return err ? error_set(error, err, "cannot write the report: %s", strerror(-err)) : 0;
}

static int print_html(const char *path, const struct table_source *source, const struct analysis *analysis,
                      const struct ranks_report *ranks, struct error *error)
{
	struct html_file html;
	int err = html_file_open(&html, path, error);

	if (!err)
		err = html_file_add(&html, path, source, analysis, ranks, error);
	if (!err)
		err = html_file_commit(&html, error);
	html_file_close(&html);
	return err;
}

int load_part(struct model *model, struct analysis_options *chosen, const char *path,
              const struct session_report_options *options, struct error *error)
{
	int err = load_model(model, path, options->symbols, error);

	if (!err && options->pid)
		err = model_keep_process(model, options->pid, error);
	return err ? err : choose_part(chosen, model, options, error);
}

int session_report_print(const char *path, const struct session_report_options *options, struct error *error)
{
	struct analysis_options chosen = {.device = options->device,
	                                  .top_gaps = options->html ? HTML_TOP_GAPS : 0,
	                                  .steps = options->text || options->json || options->html};
	struct analysis analysis = {0};
	struct ranks_report ranks = {0};
	struct model model = {0};
	int err;

	err = load_part(&model, &chosen, path, options, error);
	if (!err)
		err = analysis_run(&analysis, &model, &chosen, error);
	if (!err)
		err = find_ranks(&ranks, &model, path, options, error);
	if (!err && options->text)
		err = print_text(&analysis, &ranks, options, error);
	if (!err && options->json)
		err = report_json_with_ranks(options->json, &analysis,
		                             report_ranks_wanted(&ranks) ? &ranks : NULL, error);
	if (!err && options->html) {
		struct table_source source = table_source_of(&model, &chosen);

		source.analysis = &analysis;
		err = print_html(options->html, &source, &analysis,
		                 report_ranks_wanted(&ranks) ? &ranks : NULL, error);
	}
	if (!err && options->check)
		err = fail_check_input(options->check, &model, &analysis, path, error);
	ranks_report_free(&ranks);
	analysis_free(&analysis);
	model_free(&model);
	return err;
}
