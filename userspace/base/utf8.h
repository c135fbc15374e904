/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names come from a target and may hold any byte: what is valid UTF-8 in them, for formats that need it, and
 * what must not reach a person as it is.
 */
#ifndef WHYIDLE_BASE_UTF8_H
#define WHYIDLE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, stands for a byte that is not part of a character */

/* Decodes one character; returns its length in bytes, 0 if the bytes are not UTF-8 (RFC 3629). */
unsigned utf8_decode(const char *text, uint32_t *point);

/* Code points that a terminal obeys, or that hide or turn text around. */
bool utf8_is_deceptive(uint32_t point);

/* Bytes of the character at `text` (RFC 3629), 0 if there is none. Reads nothing behind a NUL. */
unsigned utf8_length(const char *text);

/* True if all of it is. */
bool utf8_is_valid(const char *text);

/* A valid copy that the caller frees; NULL if memory ran out. */
char *utf8_copy(const char *text);

#endif
