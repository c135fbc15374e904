// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <stddef.h>

#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/ranks_report.h"
#include "cli/session_report.h"

struct report_values {
	bool json, verbose;
	uint64_t gpu, pid;
	struct window window;
};

#define FIELD(name) offsetof(struct report_values, name)
#define ALL_GPUS    UINT64_MAX

static const struct option_spec options[] = {
    {.name = "json", .help = "print the report as JSON", .kind = OPTION_FLAG, .offset = FIELD(json)},
    {.name = "gpu",
     .argument = "N",
     .help = "only this GPU, counted from 0",
     .kind = OPTION_NUMBER,
     .offset = FIELD(gpu),
     .max = INT_MAX},
    {.name = "pid",
     .argument = "P",
     .help = "only gaps that this process ended",
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
    {.name = "verbose",
     .letter = 'v',
     .help = "every cause, and every gap that is kept with its whole chain",
     .kind = OPTION_FLAG,
     .offset = FIELD(verbose)},
};

static const struct command_spec spec = {
    .name = "report",
    .usage = "FILE... | DIRECTORY [options]",
    .summary = "Explains why the GPUs were idle, in a recorded session or in a trace of the PyTorch profiler "
               "or nsys.",
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
		return session_report_print(inputs->items[0], wanted, error);
	if (wanted->window.given || wanted->device >= 0 || wanted->pid)
		return error_set(
		    error, -EINVAL,
		    "--gpu, --pid and --window are for one input, not for %zu: give them with one "
		    "file",
		    inputs->count);
	return ranks_report_print(inputs, wanted, error);
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct report_values values = {.gpu = ALL_GPUS};
	struct session_report_options wanted;
	enum options_result result;
	struct error error = {0};
	struct inputs inputs = {0};
	int first, err;

	(void)services;
	result = options_parse(&spec, argc, argv, &values, &first, &error);
	if (result == OPTIONS_OK && argc == first) {
		error_set(&error, -EINVAL, "report: which session file? (see whyidle report --help)");
		result = OPTIONS_BAD;
	}
	if (result != OPTIONS_OK)
		return command_leave(&spec, result, &error);
	wanted = (struct session_report_options){
	    .window = values.window,
	    .device = values.gpu == ALL_GPUS ? -1 : (int32_t)values.gpu,
	    .pid = values.pid,
	    .text = values.json ? NULL : stdout,
	    .json = values.json ? stdout : NULL,
	    .verbose = values.verbose,
	};
	err = inputs_collect(&inputs, argv + first, argc - first, &error);
	if (!err)
		err = print_report(&inputs, &wanted, &error);
	inputs_free(&inputs);
	if (err)
		command_error(&error);
	return err ? STATUS_FAILED : STATUS_DONE;
}

const struct command command_report = {&spec, run};
