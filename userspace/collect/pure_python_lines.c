// SPDX-License-Identifier: GPL-2.0-only
#include "collect/pure_python_lines.h"

#include <stdbool.h>

#define CODE_UNIT 2 /* bytes of a unit of code */

static uint32_t as_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs: bytes of code up to the next pair's line, lines to add. */
static uint32_t lnotab_line(const uint8_t *table, size_t length, int64_t line, uint64_t offset)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < length; i += 2) {
		at += table[i];
		if (at > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return as_line(line);
}

/* Pairs: bytes of code that have the line, after these lines were added; -128: they have none. */
static uint32_t ranges_line(const uint8_t *table, size_t length, int64_t line, uint64_t offset)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < length; i += 2) {
		int8_t add = (int8_t)table[i + 1];

		if (add != -128)
			line += add;
		at += table[i];
		if (offset < at)
			return add == -128 ? 0 : as_line(line);
	}
	return 0;
}

/* Six bits a byte, the lowest first, 64 set in all but the last. */
static bool read_number(const uint8_t *table, size_t length, size_t *at, uint64_t *number)
{
	unsigned shift = 0;
	uint8_t byte;

	*number = 0;
	do {
		if (*at >= length || shift > 30)
			return false;
		byte = table[(*at)++];
		*number |= (uint64_t)(byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	return true;
}

/*
 * An entry begins with a byte that has its highest bit set, a kind of four bits and, in three bits, how many
 * units of code it stands for less one. What follows tells lines and columns, by the kind; only those kinds
 * are read that change the line.
 */
static uint32_t locations_line(const uint8_t *table, size_t length, int64_t line, uint64_t offset)
{
	uint64_t covered = 0;
	size_t at = 0;

	while (at < length) {
		uint8_t first = table[at++], kind = first >> 3 & 15;
		uint64_t number;

		if (!(first & 128))
			return 0;
		if (kind == 13 || kind == 14) { /* lines without columns; with all */
			if (!read_number(table, length, &at, &number))
				return 0;
			/* The lowest bit is the sign. */
			line += number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
		} else if (kind >= 10 && kind <= 12) {
			line += kind - 10;
		}
		covered += (size_t)((first & 7) + 1) * CODE_UNIT;
		if (offset < covered)
			return kind == 15 ? 0 : as_line(line); /* 15: no location */
		while (at < length && !(table[at] & 128))
			at++;
	}
	return 0;
}

uint32_t python_line(enum python_lines format, const uint8_t *table, size_t length, uint32_t first_line,
                     uint64_t offset)
{
	switch (format) {
	case PYTHON_LINES_LNOTAB:
		return lnotab_line(table, length, first_line, offset);
	case PYTHON_LINES_RANGES:
		return ranges_line(table, length, first_line, offset);
	case PYTHON_LINES_LOCATIONS:
		return locations_line(table, length, first_line, offset);
	}
	return 0;
}
