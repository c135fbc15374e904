/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The manual page and the completions of shells, from the tables of options that --help and the parser use.
 */
#ifndef WHYIDLE_CLI_MANUAL_H
#define WHYIDLE_CLI_MANUAL_H

#include "cli/options.h"

/* The commands in the order in which they are shown. Owned by the caller. */
struct manual {
	const struct command_spec *const *commands;
	size_t count;
	const char *version;
	const char *examples; /* lines "COMMAND    # WHAT IT DOES" */
};

/* The page whyidle(1) as roff for man(7). */
void manual_page(FILE *out, const struct manual *manual);

/* Scripts to be sourced by bash, or to be put into zsh's $fpath as _whyidle. */
void manual_bash(FILE *out, const struct manual *manual);
void manual_zsh(FILE *out, const struct manual *manual);

#endif
