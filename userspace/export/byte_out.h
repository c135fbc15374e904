/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bytes that are written as they are made, plain or through gzip, in a buffer of fixed size. The first
 * failure is kept and everything after it is dropped: byte_out_close returns it.
 */
#ifndef WHYIDLE_EXPORT_BYTE_OUT_H
#define WHYIDLE_EXPORT_BYTE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct byte_out {
	char *buffer;
	size_t used;
	int fd;
	void *compressor; /* gzFile, NULL: plain */
	int failure;      /* negative errno */
};

/* Takes the descriptor over, also on failure. Returns 0 or a negative errno. */
int byte_out_open(struct byte_out *stream, int fd, bool compressed);

/* Writes the rest and closes the descriptor. Returns the first failure. */
int byte_out_close(struct byte_out *stream);

void byte_out_put(struct byte_out *stream, const void *bytes, size_t length);
#define byte_out_literal(stream, text) byte_out_put(stream, text, sizeof(text) - 1)

/* In decimal digits. */
void byte_out_number(struct byte_out *stream, uint64_t number);

/* True for names that end in ".gz". */
bool byte_out_is_compressed(const char *path);

/*
 * A whole file (target_file.h): `write` makes its bytes and returns 0 or a negative errno. Returns 0 or a
 * negative errno with `error`; the file is then not there, or what it was before.
 */
int byte_out_file(const char *path, bool compressed, int (*write)(struct byte_out *stream, void *context),
                  void *context, struct error *error);

#endif
