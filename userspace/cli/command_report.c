// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <stddef.h>

#include "cli/capture_range.h"
#include "cli/command.h"
#include "cli/fail_if.h"
#include "cli/inputs.h"
#include "cli/ranks_report.h"
#include "cli/session_report.h"
#include "cli/tables_report.h"

struct report_values {
	bool json, verbose, csv, tables;
	const char *html, *symbols, *capture_range;
	uint64_t gpu, pid;
	struct window window;
	struct range steps;
	struct text_list fail_if, table;
};

#define FIELD(name) offsetof(struct report_values, name)
#define ALL_GPUS    UINT64_MAX

static const struct option_spec options[] = {
    {.name = "json", .help = "print the report as JSON", .kind = OPTION_FLAG, .offset = FIELD(json)},
    {.name = "html",
     .argument = "OUT",
     .help = "write the report as an HTML file instead, to be opened in a browser; it needs nothing else",
     .kind = OPTION_TEXT,
     .offset = FIELD(html)},
    {.name = "tables",
     .help = "print tables instead: kernels, api, copies-time, copies-size, ranges, ranges-gpu, os-calls, "
             "off-cpu, steps",
     .kind = OPTION_FLAG,
     .offset = FIELD(tables)},
    {.name = "table",
     .argument = "NAME",
     .help = "only this table (nsys' names work as well); may be repeated",
     .kind = OPTION_TEXTS,
     .offset = FIELD(table)},
    {.name = "csv", .help = "print tables as CSV", .kind = OPTION_FLAG, .offset = FIELD(csv)},
    {.name = "gpu",
     .argument = "N",
     .help = "only this GPU, counted from 0",
     .kind = OPTION_NUMBER,
     .offset = FIELD(gpu),
     .max = INT_MAX},
    {.name = "pid",
     .argument = "P",
     .help = "the GPU as this process sees it: only its operations count as busy",
     .kind = OPTION_NUMBER,
     .offset = FIELD(pid),
     .min = 1,
     .max = INT_MAX},
    {.name = "window",
     .argument = "A..B",
     .help = "only this part: seconds into the session (1.5..3, ..10), or CLOCK_MONOTONIC nanoseconds where "
             "larger than 1e9",
     .kind = OPTION_WINDOW,
     .offset = FIELD(window)},
    {.name = "steps",
     .argument = "A..B",
     .help = "only these steps, as the program names them or by the rhythm of its launches, from 1",
     .kind = OPTION_RANGE,
     .offset = FIELD(steps)},
    {.name = "capture-range",
     .argument = "RANGE",
     .help = "only what the program marked: cudaProfilerApi (from its first cudaProfilerStart to the next "
             "cudaProfilerStop), or nvtx:NAME or nvtx:NAME@DOMAIN (its first range of that name)",
     .kind = OPTION_TEXT,
     .offset = FIELD(capture_range)},
    {.name = "fail-if",
     .argument = "LIMIT",
     .help = "exit with status 3 if a limit is exceeded: 'idle > 20%', 'cause:wait.disk > 5%' (shares of the "
             "window), 'idle worse than BASE by 3%' (BASE is a file; points, beyond noise); may be repeated",
     .kind = OPTION_TEXTS,
     .offset = FIELD(fail_if)},
    {.name = "symbols",
     .argument = "DIR",
     .help = "look for functions that had no names when they were recorded in the files of this folder, by "
             "build id",
     .kind = OPTION_TEXT,
     .offset = FIELD(symbols)},
    {.name = "verbose",
     .letter = 'v',
     .help = "every cause, and every gap that is kept with its whole chain",
     .kind = OPTION_FLAG,
     .offset = FIELD(verbose)},
};

static const struct command_spec spec = {
    .name = "report",
    .usage = "FILE... | DIRECTORY [options]",
    .summary = "Explains why GPUs were idle, in a session or a trace of the PyTorch profiler or nsys.",
    .examples = "whyidle report FILE                          # why the GPUs were idle, and what to do\n"
                "whyidle report --html out.html FILE          # the same to look at and to pass on\n"
                "whyidle report --table kernels --csv FILE    # for a spreadsheet\n",
    .notes = "Of several files, or a directory of them, each is taken for a rank (or a host) of one job: "
             "then the\n"
             "report also says which rank made the others wait, and why.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
};

/* Several files are the ranks of one job. */
static int print_report(const struct inputs *inputs, const struct session_report_options *wanted,
                        struct error *error)
{
	if (inputs->count == 1)
		return wanted->tables ? tables_report_print(inputs->items[0], wanted, error)
		                      : session_report_print(inputs->items[0], wanted, error);
	if (wanted->tables)
		return error_set(error, -EINVAL,
		                 "tables are of one input, not of %zu: give them with one file",
		                 inputs->count);
	if (session_report_is_part(wanted))
		return error_set(
		    error, -EINVAL,
		    "--gpu, --pid, --window, --steps and --capture-range are for one input, not for %zu: "
		    "give them with one file",
		    inputs->count);
	return ranks_report_print(inputs, wanted, error);
}

/* What the options ask for together. */
static int check_values(struct report_values *values, struct table_choice *choice, struct error *error)
{
	values->tables |= values->csv || values->table.count;
	if (values->tables && values->html)
		return error_set(error, -EINVAL, "report: --html has the tables already: leave --tables out");
	if (values->tables && values->fail_if.count)
		return error_set(error, -EINVAL, "report: --fail-if is for the report, not for --tables");
	if (values->window.given + values->steps.given + !!values->capture_range > 1)
		return error_set(error, -EINVAL, "report: one of --window, --steps and --capture-range");
	if (values->capture_range && capture_range_check(values->capture_range, error))
		return -EINVAL;
	if (values->json && values->csv)
		return error_set(error, -EINVAL, "report: --json or --csv, not both");
	return table_choice_make(choice, &values->table, error);
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct report_values values = {.gpu = ALL_GPUS};
	struct session_report_options wanted;
	struct table_choice choice;
	struct fail_check check = {0};
	enum options_result result;
	struct error error = {0};
	struct inputs inputs = {0};
	int first, err, status;

	(void)services;
	result = options_parse(&spec, argc, argv, &values, &first, &error);
	if (result == OPTIONS_OK && argc == first) {
		error_set(&error, -EINVAL, "report: which session file? (see whyidle report --help)");
		result = OPTIONS_BAD;
	}
	if (result == OPTIONS_OK && check_values(&values, &choice, &error))
		result = OPTIONS_BAD;
	if (result == OPTIONS_OK &&
	    fail_check_begin(&check, values.fail_if.items, values.fail_if.count, stderr, &error))
		result = OPTIONS_BAD;
	if (result != OPTIONS_OK) {
		status = command_leave(&spec, result, &error);
		goto out;
	}
	wanted = (struct session_report_options){
	    .window = values.window,
	    .steps = values.steps,
	    .capture_range = values.capture_range,
	    .device = values.gpu == ALL_GPUS ? -1 : (int32_t)values.gpu,
	    .pid = values.pid,
	    .text = values.json || values.html || values.csv ? NULL : stdout,
	    .json = values.json ? stdout : NULL,
	    .csv = values.csv ? stdout : NULL,
	    .html = values.html,
	    .tables = values.tables ? &choice : NULL,
	    .symbols = values.symbols,
	    .verbose = values.verbose,
	    .check = &check,
	};
	err = inputs_collect(&inputs, argv + first, argc - first, &error);
	if (!err)
		err = print_report(&inputs, &wanted, &error);
	if (!err)
		err = fail_check_finish(&check, &error);
	inputs_free(&inputs);
	if (err)
		command_error(&error);
	status = err ? STATUS_FAILED : check.exceeded ? STATUS_LIMIT : STATUS_DONE;
out:
	fail_check_free(&check);
	array_free(&values.fail_if);
	array_free(&values.table);
	return status;
}

const struct command command_report = {&spec, run};
