/* SPDX-License-Identifier: GPL-2.0-only */
/* Session files as text, for debugging: not a format that anything should parse. */
#ifndef WHYIDLE_TRACE_DUMP_H
#define WHYIDLE_TRACE_DUMP_H

#include <stdio.h>

#include "base/error.h"

/*
 * Writes a line for each record of `path` to `out`, in file order: its type and every field that the file has
 * of it, strings resolved and escaped, so that the output is printable ASCII whatever the file holds. The
 * last line sums up the file. Returns 0 or a negative errno with `error` filled in, also if `out` cannot be
 * written.
 */
int session_dump(const char *path, FILE *out, struct error *error);

#endif
