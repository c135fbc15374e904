/* SPDX-License-Identifier: GPL-2.0-only */
/* Names come from a target and may hold any byte: what is valid UTF-8 in them, for formats that need it. */
#ifndef WHYIDLE_EXPORT_UTF8_H
#define WHYIDLE_EXPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, stands for a byte that is not part of a character */

/* Bytes of the character at `text` (RFC 3629), 0 if there is none. Reads nothing behind a NUL. */
unsigned utf8_length(const char *text);

/* True if all of it is. */
bool utf8_is_valid(const char *text);

/* A valid copy that the caller frees; NULL if memory ran out. */
char *utf8_copy(const char *text);

#endif
