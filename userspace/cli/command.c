// SPDX-License-Identifier: GPL-2.0-only
#include "cli/command.h"

#include <stdio.h>

void command_error(const struct error *error)
{
	fprintf(stderr, "whyidle: %s\n", error->text);
}

int command_leave(const struct command_spec *spec, enum options_result result, const struct error *error)
{
	if (result == OPTIONS_HELP || result == OPTIONS_HELP_ALL) {
		options_help(stdout, spec, result == OPTIONS_HELP_ALL);
		return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
	}
	command_error(error);
	return STATUS_USAGE;
}
