// SPDX-License-Identifier: GPL-2.0-only
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

unsigned utf8_decode(const char *text, uint32_t *point)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned length = s[0] < 0x80   ? 1
	                  : s[0] < 0xc2 ? 0
	                  : s[0] < 0xe0 ? 2
	                  : s[0] < 0xf0 ? 3
	                  : s[0] < 0xf5 ? 4
	                                : 0;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

	if (length < 2) {
		*point = s[0];
		return length;
	}
	*point = s[0] & (0xff >> (length + 1));
	for (unsigned i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*point = *point << 6 | (s[i] & 0x3f);
	}
	if (*point < least[length] || *point > 0x10ffff || (*point >= 0xd800 && *point < 0xe000))
		return 0;
	return length;
}

unsigned utf8_length(const char *text)
{
	uint32_t point;

	return (unsigned char)*text < 0x80 ? 1 : utf8_decode(text, &point);
}

bool utf8_is_deceptive(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0xad || point == 0x61c ||
	       (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2060 && point <= 0x206f) || point == 0xfeff ||
	       (point >= 0xfe00 && point <= 0xfe0f) || (point >= 0xe000 && point <= 0xf8ff) ||
	       (point >= 0xfff0 && point <= 0xfffb) || (point & 0xfffe) == 0xfffe || point >= 0xe0000;
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
