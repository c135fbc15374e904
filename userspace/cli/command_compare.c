// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "cli/command.h"
#include "cli/compare_run.h"
#include "cli/fail_if.h"
#include "cli/html_file.h"
#include "report/report_compare.h"

struct compare_values {
	bool json, verbose;
	uint64_t gpu;
	const char *html;
	struct window before, after;
	struct text_list fail_if;
};

#define FIELD(name) offsetof(struct compare_values, name)
#define ALL_GPUS    UINT64_MAX

static const struct option_spec options[] = {
    {.name = "json", .help = "print the comparison as JSON", .kind = OPTION_FLAG, .offset = FIELD(json)},
    {.name = "html",
     .argument = "OUT",
     .help = "write the comparison, with both runs, as an HTML file instead, to be opened in a browser",
     .kind = OPTION_TEXT,
     .offset = FIELD(html)},
    {.name = "gpu",
     .argument = "N",
     .help = "only this GPU of each run",
     .kind = OPTION_NUMBER,
     .offset = FIELD(gpu),
     .max = INT_MAX},
    {.name = "window-before",
     .argument = "A..B",
     .help = "only this part of BEFORE: seconds into the session (1.5..3, ..10), or CLOCK_MONOTONIC "
             "nanoseconds where larger than 1e9",
     .kind = OPTION_WINDOW,
     .offset = FIELD(before)},
    {.name = "window-after",
     .argument = "A..B",
     .help = "only this part of AFTER",
     .kind = OPTION_WINDOW,
     .offset = FIELD(after)},
    {.name = "fail-if",
     .argument = "LIMIT",
     .help =
         "exit with status 3 if AFTER exceeds a limit: 'idle > 20%', 'cause:wait.disk > 5%' (shares of its "
         "window), 'idle worse than BEFORE by 3%' (points, beyond noise); may be repeated",
     .kind = OPTION_TEXTS,
     .offset = FIELD(fail_if)},
    {.name = "verbose",
     .letter = 'v',
     .help = "every cause and every kernel",
     .kind = OPTION_FLAG,
     .offset = FIELD(verbose)},
};

static const struct command_spec spec = {
    .name = "compare",
    .usage = "BEFORE AFTER [options]",
    .summary = "Tells whether a run is better or worse than another, and which cause of idle time changed.",
    .notes = "BEFORE and AFTER are session files, traces of the PyTorch profiler or nsys, or directories "
             "with one\nfile for each rank. What the spread inside each run explains is not called a "
             "difference.\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
};

static int print(const struct comparison *comparison, const struct compare_values *values,
                 struct html_file *html, struct error *error)
{
	struct report_text_options text;
	int err;

	if (values->html) {
		err = report_html_across(html->out, &html->labels, NULL, comparison, error);
		return err ? err : html_file_commit(html, error);
	}
	if (values->json)
		return report_compare_json(stdout, comparison, error);
	report_text_options_for(&text, stdout);
	text.verbose = values->verbose;
	err = report_compare_text(stdout, comparison, &text);
	return err ? error_set(error, err, "cannot write the comparison: %s", strerror(-err)) : 0;
}

static int compare(char *const *operands, const struct compare_values *values, struct fail_check *check,
                   struct error *error)
{
	int32_t device = values->gpu == ALL_GPUS ? -1 : (int32_t)values->gpu;
	struct html_file html = {0}, *page = values->html ? &html : NULL;
	const struct compare_side sides[2] = {
	    {operands[0], "--window-before", values->before, device, 0, page, "before"},
	    {operands[1], "--window-after", values->after, device, 0, page, "after"},
	};
	struct measurement before = {0}, after = {0};
	struct comparison comparison = {0};
	int err = page ? html_file_open(page, values->html, error) : 0;

	if (!err)
		err = compare_measure(&before, &sides[0], NULL, error);
	if (!err)
		err = compare_measure(&after, &sides[1], check, error);
	if (!err && comparison_make(&comparison, &before, &after))
		err = error_no_memory(error);
	if (!err)
		err = print(&comparison, values, &html, error);
	check->before = &before;
	if (!err)
		err = fail_check_finish(check, error);
	check->before = NULL;
	html_file_close(&html);
	comparison_free(&comparison);
	measurement_free(&before);
	measurement_free(&after);
	return err;
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct compare_values values = {.gpu = ALL_GPUS};
	struct fail_check check = {0};
	enum options_result result;
	struct error error = {0};
	int first, status;

	(void)services;
	result = options_parse(&spec, argc, argv, &values, &first, &error);
	if (result == OPTIONS_OK && values.html && values.json) {
		error_set(&error, -EINVAL, "compare: --json or --html, not both");
		result = OPTIONS_BAD;
	}
	if (result == OPTIONS_OK && argc - first != 2) {
		error_set(&error, -EINVAL, "compare: which two runs? (see whyidle compare --help)");
		result = OPTIONS_BAD;
	}
	if (result == OPTIONS_OK &&
	    fail_check_begin(&check, values.fail_if.items, values.fail_if.count, stderr, &error))
		result = OPTIONS_BAD;
	if (result != OPTIONS_OK) {
		status = command_leave(&spec, result, &error);
	} else if (compare(argv + first, &values, &check, &error)) {
		command_error(&error);
		status = STATUS_FAILED;
	} else {
		status = check.exceeded ? STATUS_LIMIT : STATUS_DONE;
	}
	fail_check_free(&check);
	array_free(&values.fail_if);
	return status;
}

const struct command command_compare = {&spec, run};
