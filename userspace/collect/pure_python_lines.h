/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Line of a Python instruction, from the line table of its code object: in each of the three formats that
 * CPython has had since 3.6. The table is not trusted.
 */
#ifndef WHYIDLE_COLLECT_PYTHON_LINES_H
#define WHYIDLE_COLLECT_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

enum python_lines {
	PYTHON_LINES_LNOTAB,    /* until 3.9: pairs of increments */
	PYTHON_LINES_RANGES,    /* 3.10: pairs of length and increment */
	PYTHON_LINES_LOCATIONS, /* from 3.11: entries with columns */
};

/* Line of the instruction at byte `offset` of the code; 0 if the table does not say. */
uint32_t python_line(enum python_lines format, const uint8_t *table, size_t length, uint32_t first_line,
                     uint64_t offset);

#endif
