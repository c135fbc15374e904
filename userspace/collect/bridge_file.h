/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bridge library travels inside the program; this puts it where a target can load it from: a fresh
 * directory, owned by us, readable by everybody, on a file system that allows code to be mapped.
 */
#ifndef WHYIDLE_COLLECT_BRIDGE_FILE_H
#define WHYIDLE_COLLECT_BRIDGE_FILE_H

#include "base/error.h"

struct bridge_file {
	char directory[256];
	char path[300];
};

/* `preferred` is tried first (the target's TMPDIR), NULL allowed. Returns 0 or a negative errno with `error`.
 */
int bridge_file_create(struct bridge_file *file, const char *preferred, struct error *error);

/* Removes file and directory; a zeroed struct is allowed. Processes that have it mapped keep it. */
void bridge_file_remove(struct bridge_file *file);

#endif
