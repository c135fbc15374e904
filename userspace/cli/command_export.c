// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attribute/analysis.h"
#include "cli/command.h"
#include "export/formats.h"
#include "cli/load.h"
#include "model/model.h"

#define NO_FORMAT (-1)

struct export_values {
	int format;
	const char *output, *symbols;
	bool force;
};

#define FIELD(name) offsetof(struct export_values, name)

static const char *const format_names[] = {
#define FORMAT_NAME(enumerator, name, ending, purpose, writer) name,
    EXPORT_FORMATS(FORMAT_NAME)
#undef FORMAT_NAME
        NULL};

static const struct option_spec options[] = {
    {.name = "format",
     .letter = 'f',
     .argument = "NAME",
     .help = "which format, see below",
     .kind = OPTION_CHOICE,
     .offset = FIELD(format),
     .choices = format_names},
    {.name = "output",
     .letter = 'o',
     .argument = "OUT",
     .help = "where to write (-: standard output); a file that is there is replaced once the new one is "
             "whole. Without it: beside FILE, with the format's ending",
     .kind = OPTION_TEXT,
     .offset = FIELD(output)},
    {.name = "symbols",
     .argument = "DIR",
     .help = "look for functions that have no names in the files of this folder, by build id",
     .kind = OPTION_TEXT,
     .offset = FIELD(symbols)},
    {.name = "force",
     .help = "replace a file that is there also where -o is not given",
     .kind = OPTION_FLAG,
     .offset = FIELD(force)},
};

#define FORMAT_LINE(enumerator, name, ending, purpose, writer) "\n  " name " (" ending ")\n      " purpose

static const struct command_spec spec = {
    .name = "export",
    .usage = "FILE --format NAME [-o OUT]",
    .summary = "Writes a session or trace in another tool's format, with why the GPUs were idle.",
    .notes = "Formats:" EXPORT_FORMATS(
        FORMAT_LINE) "\npprof is always compressed, JSON, perfetto and folded where OUT ends in .gz.\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
};

static int check_output(const char *input, const char *output, bool may_replace, struct error *error)
{
	struct stat source, target;

	if (stat(output, &target))
		return 0;
	if (!stat(input, &source) && source.st_dev == target.st_dev && source.st_ino == target.st_ino)
		return error_set(error, -EINVAL, "%s is the input: name another file with -o", output);
	if (!may_replace)
		return error_set(error, -EEXIST, "%s exists: name a file with -o, or replace it with --force",
		                 output);
	return 0;
}

static int export_file(const char *input, const char *output, const struct export_values *values,
                       struct error *error)
{
	const struct analysis_options whole = {.device = -1};
	struct analysis analysis = {0};
	struct model model = {0};
	int err = load_model(&model, input, values->symbols, error);

	if (!err)
		err = analysis_run(&analysis, &model, &whole, error);
	if (!err)
		err = export_formats[values->format].write(output, &model, &analysis, error);
	analysis_free(&analysis);
	model_free(&model);
	return err;
}

static enum options_result check_values(const struct export_values *values, int operands, struct error *error)
{
	if (operands != 1)
		error_set(error, -EINVAL, "export: %s (see whyidle export --help)",
		          operands ? "one file at a time" : "which file?");
	else if (values->format == NO_FORMAT)
		error_set(error, -EINVAL, "export: which --format? (see whyidle export --help)");
	else
		return OPTIONS_OK;
	return OPTIONS_BAD;
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct export_values values = {.format = NO_FORMAT};
	enum options_result result;
	struct error error = {0};
	char *output;
	int first, err;

	(void)services;
	result = options_parse(&spec, argc, argv, &values, &first, &error);
	if (result == OPTIONS_OK)
		result = check_values(&values, argc - first, &error);
	if (result != OPTIONS_OK)
		return command_leave(&spec, result, &error);
	/* A limit on the size of files is an error to report, not a reason to die. */
	signal(SIGXFSZ, SIG_IGN);
	if (values.output && !strcmp(values.output, "-"))
		values.output = "/dev/stdout";
	output = values.output ? strdup(values.output) : export_default_path(argv[first], values.format);
	if (!output)
		err = error_no_memory(&error);
	else
		err = check_output(argv[first], output, values.output || values.force, &error);
	if (!err)
		err = export_file(argv[first], output, &values, &error);
	free(output);
	if (err) {
		command_error(&error);
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}

const struct command command_export = {&spec, run};
