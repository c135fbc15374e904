// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/daemon_windows.h"
#include "cli/quantity.h"
#include "trace/dump.h"

struct dump_values {
	const char *duration, *folder, *control;
};

#define FIELD(name) offsetof(struct dump_values, name)

static const struct option_spec options[] = {
    {.name = "duration",
     .letter = 'd',
     .argument = "SECONDS",
     .help = "ask a running daemon for its windows of the last seconds, and write each as a session file",
     .kind = OPTION_TEXT,
     .offset = FIELD(duration)},
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .help = "with -d: where to (default: here)",
     .kind = OPTION_TEXT,
     .offset = FIELD(folder)},
    {.name = "control",
     .argument = "PATH",
     .help = "with -d: control socket of the daemon (default /run/whyidle/control)",
     .kind = OPTION_TEXT,
     .offset = FIELD(control)},
};

static const struct command_spec spec = {
    .name = "dump",
    .usage = "-d SECONDS [-o FOLDER] | FILE",
    .summary = "Takes the last windows out of a running daemon; or prints every record of a session as text.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
};

static void print_path(const char *path)
{
	puts(path);
}

static int check(const struct dump_values *values, int operands, uint64_t *duration_ns, struct error *error)
{
	if (!values->duration)
		return operands == 1
		           ? 0
		           : error_set(error, -EINVAL,
		                       "dump: -d SECONDS, or which session file? (see whyidle dump --help)");
	if (operands)
		return error_set(error, -EINVAL, "dump: -d takes no file");
	if (quantity_seconds(values->duration, duration_ns) || !*duration_ns)
		return error_set(error, -EINVAL, "dump: '%s' is no duration (60, 5m)", values->duration);
	return 0;
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct dump_values values = {.folder = ".", .control = "/run/whyidle/control"};
	enum options_result parsed;
	struct error error = {0};
	uint64_t duration_ns = 0;
	int first, err;

	(void)services;
	parsed = options_parse(&spec, argc, argv, &values, &first, &error);
	if (parsed == OPTIONS_OK && check(&values, argc - first, &duration_ns, &error))
		parsed = OPTIONS_BAD;
	if (parsed != OPTIONS_OK)
		return command_leave(&spec, parsed, &error);
	err = values.duration
	          ? daemon_windows_take(values.control, duration_ns, values.folder, print_path, &error)
	          : session_dump(argv[first], stdout, &error);
	if (err) {
		command_error(&error);
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}

const struct command command_dump = {&spec, run};
