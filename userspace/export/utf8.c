// SPDX-License-Identifier: GPL-2.0-only
#include "export/utf8.h"

#include <stdlib.h>
#include <string.h>

static bool continues(unsigned char byte, unsigned char least, unsigned char most)
{
	return byte >= least && byte <= most;
}

unsigned utf8_length(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;
	unsigned char least = 0x80, most = 0xbf;
	unsigned length;

	if (byte[0] < 0x80)
		return 1;
	if (byte[0] < 0xc2 || byte[0] > 0xf4)
		return 0;
	length = byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
	/* The second byte rules out overlong forms, surrogates and what lies above U+10FFFF. */
	if (byte[0] == 0xe0)
		least = 0xa0;
	else if (byte[0] == 0xed)
		most = 0x9f;
	else if (byte[0] == 0xf0)
		least = 0x90;
	else if (byte[0] == 0xf4)
		most = 0x8f;
	if (!continues(byte[1], least, most))
		return 0;
	for (unsigned i = 2; i < length; i++) {
		if (!continues(byte[i], 0x80, 0xbf))
			return 0;
	}
	return length;
}

bool utf8_is_valid(const char *text)
{
	while (*text) {
		unsigned length = utf8_length(text);

		if (!length)
			return false;
		text += length;
	}
	return true;
}

char *utf8_copy(const char *text)
{
	char *copy = malloc(strlen(text) * strlen(UTF8_REPLACEMENT) + 1), *to = copy;

	if (!copy)
		return NULL;
	while (*text) {
		unsigned length = utf8_length(text);

		if (length) {
			memcpy(to, text, length);
			to += length;
			text += length;
		} else {
			memcpy(to, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
			to += strlen(UTF8_REPLACEMENT);
			text++;
		}
	}
	*to = '\0';
	return copy;
}
