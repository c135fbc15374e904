/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options from a file: lines "name = value" with the long names of a command's options, a flag by its name
 * alone; "#" begins a comment.
 */
#ifndef WHYIDLE_CLI_CONFIG_FILE_H
#define WHYIDLE_CLI_CONFIG_FILE_H

#include "cli/options.h"

/* The text of a file, which the values that were read refer to. */
struct config_file {
	char *text;
	struct text_list words;
};

/* Reads `path` and stores what it sets into `values`. Returns 0, or a negative errno with `error`; free the
 * file in either case, once the values are not used any more. */
int config_file_read(struct config_file *file, const char *path, const struct command_spec *spec,
                     void *values, struct error *error);
void config_file_free(struct config_file *file);

#endif
