// SPDX-License-Identifier: GPL-2.0-only
#include "cli/ranks_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "attribute/analysis.h"
#include "cli/fail_if.h"
#include "cli/html_file.h"
#include "cli/load.h"
#include "model/model.h"
#include "report/format.h"
#include "report/report.h"

/* The report of one input, kept as text until all are read: what is across them comes first. */
struct rendered {
	char *text;
	const char *path;
};

struct run {
	const struct session_report_options *options;
	struct ranks *ranks;
	struct html_file html; /* if options->html */
	struct {
		ARRAY(struct rendered)
	} reports;
};

int ranks_report_add(struct ranks *ranks, const struct model *model, const char *path, bool alone,
                     struct error *error)
{
	struct ranks_input input = {
	    .path = path,
	    .rank = model->world_size ? model->rank : RANKS_NONE,
	    .world_size = model->world_size,
	    .alone = alone,
	};

	return ranks_add(ranks, model, &input, error);
}

static int render(struct run *run, const struct analysis *analysis, const char *path, struct error *error)
{
	struct rendered *rendered = array_add(&run->reports);
	struct report_text_options text;
	size_t size;
	FILE *out;
	int err;

	if (!rendered)
		return error_no_memory(error);
	rendered->path = path;
	if (run->options->html)
		return 0; /* goes into the page as it is */
	out = open_memstream(&rendered->text, &size);
	if (!out)
		return error_no_memory(error);
	if (run->options->json) {
		err = report_json(out, analysis, error);
	} else {
		/* As it will be printed. */
		report_text_options_for(&text, run->options->text);
		text.verbose = run->options->verbose;
		err = report_text(out, analysis, &text);
		if (err)
			error_set(error, err, "cannot write the report: %s", strerror(-err));
	}
	if (fclose(out) && !err)
		err = error_no_memory(error);
	return err;
}

static int take_in(struct run *run, const struct model *model, const char *path, struct error *error)
{
	const struct analysis_options chosen = {
	    .device = -1,
	    .top_gaps = run->options->html ? HTML_TOP_GAPS : 0,
	    .steps = run->options->html != NULL,
	};
	struct analysis analysis = {0};
	int err = analysis_run(&analysis, model, &chosen, error);

	if (!err)
		err = render(run, &analysis, path, error);
	if (!err && run->options->html) {
		struct table_source source = table_source_of(model, &chosen);

		source.analysis = &analysis;
		err = html_file_add(&run->html, path, &source, &analysis, NULL, error);
	}
	if (!err && run->options->check)
		err = fail_check_input(run->options->check, model, &analysis, path, error);
	analysis_free(&analysis);
	return err ? err : ranks_report_add(run->ranks, model, path, false, error);
}

/* A file that cannot be read does not spoil the others. */
static int read_all(struct run *run, const struct inputs *inputs, struct error *error)
{
	char *const *path;
	int err = 0;

	array_for_each (path, inputs) {
		struct error problem = {0};
		struct model model = {0};

		err = load_model(&model, *path, run->options->symbols, &problem);
		if (!err)
			err = take_in(run, &model, *path, &problem);
		else if (err != -ENOMEM)
			err = ranks_note(run->ranks, problem.text) ? error_no_memory(&problem) : 0;
		model_free(&model);
		if (problem.code && (err || !error->code))
			*error = problem;
		if (err)
			return err;
	}
	return run->reports.count ? 0 : error->code;
}

static int print_texts(const struct run *run, const struct ranks_report *report)
{
	FILE *out = run->options->text;
	struct report_text_options text;
	const struct rendered *rendered;
	int err;

	report_text_options_for(&text, out);
	text.verbose = run->options->verbose;
	err = report_ranks_text(out, report, &text);
	array_for_each (rendered, &run->reports) {
		char path[FORMAT_TEXT_SIZE(80)];

		fprintf(out, "\n======== %s\n%s", format_text(path, sizeof(path), rendered->path, 80),
		        rendered->text);
	}
	return err ? err : fflush(out) || ferror(out) ? -EIO : 0;
}

static int print_json(const struct run *run, const struct ranks_report *report, struct error *error)
{
	const char **texts = calloc(run->reports.count + 1, sizeof(*texts));
	int err;

	if (!texts)
		return error_no_memory(error);
	for (size_t i = 0; i < run->reports.count; i++)
		texts[i] = run->reports.items[i].text;
	err = report_ranks_json(run->options->json, report, texts, run->reports.count, error);
	free(texts);
	return err;
}

int ranks_report_print(const struct inputs *inputs, const struct session_report_options *options,
                       struct error *error)
{
	struct run run = {.options = options, .ranks = ranks_new()};
	struct ranks_report report = {0};
	struct rendered *rendered;
	int err = run.ranks ? 0 : error_no_memory(error);

	if (!err && options->html)
		err = html_file_open(&run.html, options->html, error);
	if (!err)
		err = read_all(&run, inputs, error);
	if (!err)
		err = ranks_solve(run.ranks, &report, error);
	if (!err && options->json)
		err = print_json(&run, &report, error);
	if (!err && options->html)
		err = report_html_across(run.html.out, &run.html.labels, &report, NULL, error);
	if (!err && options->html)
		err = html_file_commit(&run.html, error);
	if (!err && options->text) {
		err = print_texts(&run, &report);
		if (err)
			error_set(error, err, "cannot write the report: %s", strerror(-err));
	}
	array_for_each (rendered, &run.reports)
		free(rendered->text);
	array_free(&run.reports);
	html_file_close(&run.html);
	ranks_report_free(&report);
	ranks_free(run.ranks);
	return err;
}
