/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bytes of a file from first to last, unpacked if they are gzip (also several members in a row). A thread
 * of its own reads and unpacks a larger file ahead. Uses about a MiB, whatever the size of the file.
 */
#ifndef WHYIDLE_IMPORT_INPUT_H
#define WHYIDLE_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct input;

/*
 * Opens a regular file. `ahead`: it will be read to its end, so work ahead where that helps. On success
 * *input is owned by the caller until input_close. Returns 0 or a negative errno.
 */
int input_open(struct input **input, const char *path, bool ahead, struct error *error);
void input_close(struct input *input); /* NULL is allowed */

/* Fills in up to `size` bytes and returns how many; 0 at the end, also at an early one (input_problem). */
size_t input_read(struct input *input, void *buffer, size_t size);

/* Why the bytes ended before the file's proper end ("its gzip data is cut off"); NULL if they did not. */
const char *input_problem(const struct input *input);

bool input_is_packed(const struct input *input);

/* Bytes of the file that were taken in, and its size. */
uint64_t input_done(const struct input *input);
uint64_t input_total(const struct input *input);

#endif
