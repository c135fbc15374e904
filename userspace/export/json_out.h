/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * JSON text that is written as it is made, plain or through gzip, in a buffer of fixed size. The caller puts
 * the pieces together; strings are escaped here. The first failure is kept and everything after it is
 * dropped: json_out_close returns it.
 */
#ifndef WHYIDLE_EXPORT_JSON_OUT_H
#define WHYIDLE_EXPORT_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_out {
	char *buffer;
	size_t used;
	int fd;
	void *compressor; /* gzFile, NULL: plain */
	int failure;      /* negative errno */
};

/* Takes the descriptor over, also on failure. Returns 0 or a negative errno. */
int json_out_open(struct json_out *stream, int fd, bool compressed);

/* Writes the rest and closes the descriptor. Returns the first failure. */
int json_out_close(struct json_out *stream);

/* As it is. */
void json_out_put(struct json_out *stream, const char *text, size_t length);
#define json_out_literal(stream, text) json_out_put(stream, text, sizeof(text) - 1)

/* In quotes, escaped; bytes that are not UTF-8 become U+FFFD. */
void json_out_string(struct json_out *stream, const char *text);
/* The same without the quotes, to put a string together. */
void json_out_text(struct json_out *stream, const char *text);

void json_out_number(struct json_out *stream, uint64_t number);

/* ns as microseconds with three decimals, exact: 1234 is 1.234. */
void json_out_time(struct json_out *stream, uint64_t ns);

#endif
