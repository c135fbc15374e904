// SPDX-License-Identifier: GPL-2.0-only
#include "export/json_out.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Bytes that stand for themselves within a string; all others need a look. */
static inline bool is_plain(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* One character that is not plain; returns how many bytes of the text it took. */
static unsigned put_special(struct byte_out *stream, const char *text)
{
	static const char short_forms[32] = {
	    ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	unsigned char byte = (unsigned char)*text;
	unsigned length = utf8_length(text);

	if (!length) {
		byte_out_literal(stream, UTF8_REPLACEMENT);
		return 1;
	}
	if (byte == '"' || byte == '\\') {
		byte_out_put(stream, (char[]){'\\', (char)byte}, 2);
	} else if (byte < 0x20 && short_forms[byte]) {
		byte_out_put(stream, (char[]){'\\', short_forms[byte]}, 2);
	} else if (byte < 0x20 || byte == 0x7f) {
		char escape[8];

		snprintf(escape, sizeof(escape), "\\u%04x", byte);
		byte_out_put(stream, escape, 6);
	} else {
		byte_out_put(stream, text, length);
	}
	return length;
}

void json_out_text(struct byte_out *stream, const char *text)
{
	while (*text) {
		const char *end = text;

		while (is_plain((unsigned char)*end))
			end++;
		byte_out_put(stream, text, (size_t)(end - text));
		text = end;
		if (*text)
			text += put_special(stream, text);
	}
}

void json_out_string(struct byte_out *stream, const char *text)
{
	byte_out_literal(stream, "\"");
	json_out_text(stream, text);
	byte_out_literal(stream, "\"");
}

void json_out_time(struct byte_out *stream, uint64_t ns)
{
	unsigned below = ns % 1000;
	const char decimals[] = {'.', (char)('0' + below / 100), (char)('0' + below / 10 % 10),
	                         (char)('0' + below % 10)};

	byte_out_number(stream, ns / 1000);
	byte_out_put(stream, decimals, sizeof(decimals));
}
