/* SPDX-License-Identifier: GPL-2.0-only */
/* `whyidle` without arguments: ten seconds of all that uses a GPU, explained. */
#ifndef WHYIDLE_CLI_COMMAND_LOOK_H
#define WHYIDLE_CLI_COMMAND_LOOK_H

#include "cli/command.h"

/* Watches, explains on standard output, keeps no file. Returns the exit status. */
int command_look(const struct command_services *services);

#endif
