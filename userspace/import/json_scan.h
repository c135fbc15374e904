/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads JSON text as it comes in, token by token, in constant memory.
 *
 *	json_scan_open(&scan, read, context, &error);
 *	while ((token = json_scan_next(&scan)) > JSON_BROKEN) …
 *	json_scan_close(&scan);
 *
 * Made for long traces of which little is wanted: json_scan_skip and json_scan_leave pass over a value at the
 * speed of a search for quotes and brackets; inside what they pass over only these are checked.
 *
 * More lenient than the standard where profilers are: control characters and unknown escapes in strings,
 *bytes that are no UTF-8, and NaN or Infinity (tokens JSON_NULL) are let through.
 */
#ifndef WHYIDLE_IMPORT_JSON_SCAN_H
#define WHYIDLE_IMPORT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define JSON_TEXT_KEPT 65536 /* bytes of a string that are kept */
#define JSON_DEPTH_MAX 512   /* arrays and objects inside each other */

enum json_token {
	JSON_END,    /* the text ended: whole if json_scan_whole, otherwise cut off */
	JSON_BROKEN, /* not JSON from here on, see json_scan.problem */
	JSON_OBJECT,
	JSON_OBJECT_END,
	JSON_ARRAY,
	JSON_ARRAY_END,
	JSON_KEY,
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
};

/* Fills in up to `size` bytes and returns how many; 0 at the end. */
typedef size_t (*json_read)(void *context, char *buffer, size_t size);

struct json_scan {
	/*
	 * Text of the last key, string or number; valid until the next call, not NUL-terminated. Of a string
	 * it is what stands between the quotes: where `escaped`, json_decode makes it readable. `cut`: it was
	 * longer than JSON_TEXT_KEPT, the rest was dropped.
	 */
	const char *text;
	size_t length;
	bool escaped, cut;
	uint32_t depth;      /* containers entered and not left */
	const char *problem; /* what is wrong, after JSON_BROKEN */

	/* Private. */
	json_read read;
	void *context;
	char *buffer;
	const char *at, *end; /* what is in the buffer and not consumed; zeros follow `end` */
	uint64_t before;      /* bytes of text before the buffer */
	uint32_t expect;
	bool at_end;                           /* `read` has nothing more */
	uint64_t objects[JSON_DEPTH_MAX / 64]; /* a bit for each level: it is an object */
};

/* Returns 0 or -ENOMEM. json_scan_close may be called in either case. */
int json_scan_open(struct json_scan *scan, json_read read, void *context, struct error *error);
void json_scan_close(struct json_scan *scan);

/* After JSON_END or JSON_BROKEN it returns the same again. */
enum json_token json_scan_next(struct json_scan *scan);

/* Passes over the value that comes next: after a JSON_KEY its value. False if the text broke or ended. */
bool json_scan_skip(struct json_scan *scan);

/* Passes over the rest of the innermost container, including its end. False if the text broke or ended. */
bool json_scan_leave(struct json_scan *scan);

/* True once the outermost value was complete. */
bool json_scan_whole(const struct json_scan *scan);

/* Bytes of text consumed so far. */
uint64_t json_scan_position(const struct json_scan *scan);

/*
 * Writes the text that an escaped one stands for as UTF-8 to `out` (of at least `length` bytes; may be `text`
 * itself) and returns its length. U+0000 and half surrogates become U+FFFD, unknown escapes stay as they are,
 * an escape that was cut off is dropped.
 */
size_t json_decode(const char *text, size_t length, char *out);

#endif
