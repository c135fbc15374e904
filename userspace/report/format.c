// SPDX-License-Identifier: GPL-2.0-only
#include "report/format.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "symbols/demangle.h"

#define ELLIPSIS "…"

/* Three significant digits, with the largest of four units, each 1000 times the last. */
static const char *format_scaled(char buffer[FORMAT_FIGURE], uint64_t value, const char *const units[4])
{
	uint64_t scale = 1;
	unsigned unit = 0;

	/* The next unit starts where this one would be rounded to "1000". */
	while (unit < 3 && value >= scale * 999 + scale / 2 + (scale == 1)) {
		scale *= 1000;
		unit++;
	}
	if (scale == 1 || value / scale >= 1000)
		snprintf(buffer, FORMAT_FIGURE, "%" PRIu64 " %s", value / scale, units[unit]);
	else if (value + scale / 200 < scale * 10)
		snprintf(buffer, FORMAT_FIGURE, "%" PRIu64 ".%02u %s", (value + scale / 200) / scale,
		         (unsigned)((value + scale / 200) % scale / (scale / 100)), units[unit]);
	else if (value + scale / 20 < scale * 100)
		snprintf(buffer, FORMAT_FIGURE, "%" PRIu64 ".%u %s", (value + scale / 20) / scale,
		         (unsigned)((value + scale / 20) % scale / (scale / 10)), units[unit]);
	else
		snprintf(buffer, FORMAT_FIGURE, "%" PRIu64 " %s", (value + scale / 2) / scale, units[unit]);
	return buffer;
}

const char *format_duration(char buffer[FORMAT_FIGURE], uint64_t ns)
{
	static const char *const units[] = {"ns", "µs", "ms", "s"};

	return format_scaled(buffer, ns, units);
}

const char *format_bytes(char buffer[FORMAT_FIGURE], uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB"};

	return format_scaled(buffer, bytes, units);
}

const char *format_percent(char buffer[FORMAT_FIGURE], uint64_t part, uint64_t whole)
{
	double percent = whole ? 100.0 * (double)part / (double)whole : 0;

	if (percent > 0 && percent < 0.1)
		snprintf(buffer, FORMAT_FIGURE, "<0.1 %%");
	else if (part == whole || percent == 0 || percent >= 1000)
		snprintf(buffer, FORMAT_FIGURE, "%.0f %%", percent);
	else if (part < whole && percent > 99.9)
		snprintf(buffer, FORMAT_FIGURE, "99.9 %%");
	else
		snprintf(buffer, FORMAT_FIGURE, "%.1f %%", percent);
	return buffer;
}

const char *format_share(char buffer[FORMAT_FIGURE], uint64_t part, uint64_t whole)
{
	double percent = whole ? 100.0 * (double)part / (double)whole : 0;

	if (percent < 10)
		return format_percent(buffer, part, whole);
	if (part < whole && percent > 99)
		percent = 99;
	snprintf(buffer, FORMAT_FIGURE, "%.0f %%", percent);
	return buffer;
}

const char *format_count(char buffer[32], uint64_t count)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = buffer;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buffer;
}

static unsigned point_columns(uint32_t point)
{
	bool wide = (point >= 0x1100 && point <= 0x115f) || (point >= 0x2e80 && point <= 0xa4cf) ||
	            (point >= 0xac00 && point <= 0xd7a3) || (point >= 0xf900 && point <= 0xfaff) ||
	            (point >= 0xfe30 && point <= 0xfe6f) || (point >= 0xff00 && point <= 0xff60) ||
	            (point >= 0xffe0 && point <= 0xffe6) || (point >= 0x1f300 && point <= 0x1faff) ||
	            (point >= 0x20000 && point <= 0x3fffd);

	/* Combining marks count as one, so that a pile of them is cut too. */
	return wide ? 2 : 1;
}

const char *format_text(char *buffer, size_t size, const char *text, unsigned columns)
{
	size_t used = 0, cut = 0; /* bytes; `cut`: where "…" would still fit in */
	unsigned used_columns = 0;
	char piece[20];

	if (!size)
		return "";
	buffer[0] = '\0';
	for (const char *from = text ? text : ""; *from;) {
		uint32_t point;
		unsigned length = utf8_decode(from, &point);
		unsigned bytes = length ? length : 1;
		size_t piece_length = 0;
		unsigned piece_columns;

		if (length && !utf8_is_deceptive(point)) {
			memcpy(piece, from, length);
			piece_length = length;
			piece_columns = point_columns(point);
		} else {
			for (unsigned i = 0; i < bytes; i++)
				piece_length +=
				    (size_t)snprintf(piece + piece_length, sizeof(piece) - piece_length,
				                     "\\x%02x", (unsigned char)from[i]);
			piece_columns = (unsigned)piece_length;
		}
		if (used_columns + piece_columns > columns || used + piece_length >= size) {
			if (columns && cut + sizeof(ELLIPSIS) <= size)
				memcpy(buffer + cut, ELLIPSIS, sizeof(ELLIPSIS));
			else
				buffer[cut] = '\0';
			return buffer;
		}
		memcpy(buffer + used, piece, piece_length);
		used += piece_length;
		used_columns += piece_columns;
		buffer[used] = '\0';
		if (used_columns < columns && used + sizeof(ELLIPSIS) <= size)
			cut = used;
		from += bytes;
	}
	return buffer;
}

const char *format_name(char *buffer, size_t size, const char *name, unsigned columns)
{
	char *name_short = name ? symbol_short(name) : NULL;

	format_text(buffer, size, name_short ? name_short : name, columns);
	free(name_short);
	return buffer;
}

unsigned format_columns(const char *text)
{
	unsigned columns = 0;

	while (*text) {
		uint32_t point;
		unsigned length = utf8_decode(text, &point);

		columns += length ? point_columns(point) : 1;
		text += length ? length : 1;
	}
	return columns;
}

static void put_spaces(FILE *out, unsigned count)
{
	fprintf(out, "%*s", (int)count, "");
}

void format_left(FILE *out, const char *text, unsigned columns)
{
	unsigned used = format_columns(text);

	fputs(text, out);
	put_spaces(out, used < columns ? columns - used : 0);
}

void format_right(FILE *out, const char *text, unsigned columns)
{
	unsigned used = format_columns(text);

	put_spaces(out, used < columns ? columns - used : 0);
	fputs(text, out);
}

/* Columns of the first `length` bytes. */
static unsigned word_columns(const char *text, size_t length)
{
	unsigned columns = 0;

	for (const char *end = text + length; text < end;) {
		uint32_t point;
		unsigned bytes = utf8_decode(text, &point);

		columns += bytes ? point_columns(point) : 1;
		text += bytes ? bytes : 1;
	}
	return columns;
}

/* Length of the next piece that must stay on one line: a word, and the unit if it is a figure ("78 %"). */
static size_t piece_length(const char *text)
{
	size_t length = strcspn(text, " ");

	while (length && text[length - 1] >= '0' && text[length - 1] <= '9') {
		const char *unit = text + length + strspn(text + length, " ");
		size_t unit_length = strcspn(unit, " ");

		if (!unit_length || unit_length > 4 || !strchr("%nmsµ", unit[0]))
			break;
		length = (size_t)(unit + unit_length - text);
	}
	return length;
}

/* Prints a piece, broken anywhere if it is longer than a line; returns the column after it. */
static unsigned put_piece(FILE *out, const char *text, size_t length, unsigned width, unsigned column,
                          unsigned rest)
{
	for (const char *end = text + length; text < end;) {
		uint32_t point;
		unsigned bytes = utf8_decode(text, &point);
		unsigned columns = bytes ? point_columns(point) : 1;

		bytes = bytes ? bytes : 1;
		if (column + columns > width && column > rest) {
			fputc('\n', out);
			put_spaces(out, rest);
			column = rest;
		}
		fwrite(text, 1, bytes, out);
		column += columns;
		text += bytes;
	}
	return column;
}

void format_wrapped(FILE *out, const char *text, unsigned width, unsigned column, unsigned rest)
{
	bool at_start = true;

	for (;;) {
		text += strspn(text, " ");
		size_t length = piece_length(text);
		if (!length)
			break;
		unsigned columns = word_columns(text, length);
		if (!at_start && column + 1 + columns > width) {
			fputc('\n', out);
			put_spaces(out, rest);
			column = rest;
			at_start = true;
		}
		if (!at_start) {
			fputc(' ', out);
			column++;
		}
		column = put_piece(out, text, length, width, column, rest);
		at_start = false;
		text += length;
	}
	fputc('\n', out);
}

void format_paragraph(FILE *out, const char *text, unsigned width, unsigned first, unsigned rest)
{
	put_spaces(out, first);
	format_wrapped(out, text, width, first, rest);
}

char *format_json_text(const char *text, size_t limit)
{
	size_t length = strnlen(text, limit + 1);
	bool cut = length > limit;
	char *copy = malloc(3 * (cut ? limit : length) + sizeof(ELLIPSIS));
	char *to = copy;

	if (!copy)
		return NULL;
	for (size_t from = 0; from < length;) {
		uint32_t point;
		unsigned bytes = utf8_decode(text + from, &point);

		if (cut && from + (bytes ? bytes : 1) > limit)
			break;
		if (bytes) {
			memcpy(to, text + from, bytes);
			to += bytes;
			from += bytes;
		} else {
			memcpy(to, "\xef\xbf\xbd", 3);
			to += 3;
			from++;
		}
	}
	memcpy(to, cut ? ELLIPSIS : "", cut ? sizeof(ELLIPSIS) : 1);
	return copy;
}

const char *format_gain(char *buffer, uint64_t low_ns, uint64_t high_ns, uint64_t window_ns)
{
	char low[FORMAT_FIGURE], high[FORMAT_FIGURE], share[FORMAT_FIGURE];

	format_duration(low, low_ns);
	format_duration(high, high_ns);
	format_share(share, high_ns, window_ns);
	if (!low_ns)
		snprintf(buffer, FORMAT_GAIN, "at most %s (%s)", high, share);
	else if (!strcmp(low, high))
		snprintf(buffer, FORMAT_GAIN, "about %s (%s)", high, share);
	else
		snprintf(buffer, FORMAT_GAIN, "%s to %s (up to %s)", low, high, share);
	return buffer;
}
