/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file that is there whole or not at all: it is written under another name in the same folder, readable by
 * its owner only (command lines may hold secrets), and gets its own name at the end. What had the name
 * before stays until then. Something that is no regular file (a pipe, /dev/null) is written directly.
 */
#ifndef WHYIDLE_EXPORT_TARGET_FILE_H
#define WHYIDLE_EXPORT_TARGET_FILE_H

#include <stdbool.h>

#include "base/error.h"

struct target_file {
	char *path;    /* as it will be called, links resolved */
	char *written; /* where it is written, NULL: directly */
	int fd;        /* for writing; whoever closes it sets it to -1 */
};

/* Returns 0 or a negative errno with `error`. target_file_discard may be called in either case. */
int target_file_create(struct target_file *file, const char *path, struct error *error);

/* Gives the file its name and frees `file`; on failure what was written is removed. */
int target_file_commit(struct target_file *file, struct error *error);

/* Removes what was written and frees `file`; does nothing after a commit. */
void target_file_discard(struct target_file *file);

#endif
