// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"
#include "trace/dump.h"

static const struct command_spec spec = {
    .name = "dump",
    .usage = "FILE",
    .summary = "Prints every record of a session as text, for debugging.",
};

static int run(const struct command_services *services, int argc, char **argv)
{
	enum options_result parsed;
	struct error error = {0};
	int first;

	(void)services;
	parsed = options_parse(&spec, argc, argv, NULL, &first, &error);
	if (parsed == OPTIONS_OK && argc - first != 1) {
		error_set(&error, -EINVAL, "dump: which session file? (see whyidle dump --help)");
		parsed = OPTIONS_BAD;
	}
	if (parsed != OPTIONS_OK)
		return command_leave(&spec, parsed, &error);
	if (session_dump(argv[first], stdout, &error)) {
		command_error(&error);
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}

const struct command command_dump = {&spec, run};
