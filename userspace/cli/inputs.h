/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files that a command is given: each operand is a file, or a directory whose session files and traces
 * are meant.
 */
#ifndef WHYIDLE_CLI_INPUTS_H
#define WHYIDLE_CLI_INPUTS_H

#include "base/array.h"
#include "base/error.h"

struct inputs {
	ARRAY(char *)
};

/*
 * Expands the operands, directories in the order of their file names with numbers compared as numbers. Of a
 * directory only files are taken that can be read by their content; none is an error. Returns 0 or a negative
 * errno with `error`; inputs_free in either case.
 */
int inputs_collect(struct inputs *inputs, char *const *operands, int count, struct error *error);
void inputs_free(struct inputs *inputs);

#endif
