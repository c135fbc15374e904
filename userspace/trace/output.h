/* SPDX-License-Identifier: GPL-2.0-only */
/* The file under a session writer. Internal to trace/. */
#ifndef WHYIDLE_TRACE_OUTPUT_H
#define WHYIDLE_TRACE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Creates or empties a regular file, readable by its owner only (command lines may hold secrets), and locks
 * it against a second writer. Returns the descriptor or a negative errno with `error` filled in.
 */
int output_open(const char *path, struct error *error);

/*
 * Writes everything at `offset`. Returns 0 or a negative errno; bytes may have been written even then. A file
 * that would exceed RLIMIT_FSIZE is -EFBIG, never a SIGXFSZ.
 */
int output_write(int fd, const void *bytes, size_t length, uint64_t offset);

/* False if it is certain that `length` more bytes from `offset` on would not fit now. */
bool output_has_room(int fd, uint64_t offset, uint64_t length);

#endif
