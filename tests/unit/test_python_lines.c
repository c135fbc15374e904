// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables are those of CPython itself for this function, as 3.9, 3.10 and 3.12 compile it; so are the
 *lines, by co_lines() and dis.findlinestarts():
 *
 *	def f(a):                               1
 *	    b = [                               2
 *	        a,
 *	        a + 1,
 *	    ]
 *	    for c in b:                         6
 *	        if c:
 *	            print(c)                    8, then four empty lines
 *	    return (a                           13
 *	            + len(b))
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "collect/pure_python_lines.h"

struct place {
	unsigned offset, line;
};

static const uint8_t table_3_9[] = {0, 2, 2, 1, 6, 254, 4, 4, 8, 1, 4, 1, 10, 5, 2, 1, 6, 255};
static const uint8_t table_3_10[] = {2, 2, 6, 1, 4, 254, 8, 4, 4, 1, 8, 1, 2, 128, 2, 5, 6, 1, 4, 255};
static const uint8_t table_3_12[] = {
    128, 0,   224, 8,  9,  216, 8,   9,  136, 65, 137, 5,   240, 5,  3,   9,  6,   128, 65,  240, 8, 0, 14,
    15,  242, 0,   2,  5,  21,  136, 1,  218, 11, 12,  220, 12,  17, 144, 33, 141, 72,  240, 5,   2, 5, 21,
    240, 14,  0,   13, 14, 220, 14,  17, 144, 33, 139, 102, 241, 3,  1,   13, 21,  240, 0,   1,   5, 22};

static const struct place places_3_9[] = {{0, 3},  {2, 4},  {8, 2},   {12, 6},  {20, 7},
                                          {24, 8}, {33, 8}, {34, 13}, {36, 14}, {42, 13}};
static const struct place places_3_10[] = {{0, 3},  {2, 4},  {8, 2},   {12, 6},  {20, 7},
                                           {24, 8}, {32, 0}, {34, 13}, {36, 14}, {42, 13}};
static const struct place places_3_12[] = {{0, 1},  {2, 3},  {4, 4},  {11, 4},  {12, 2},  {16, 6}, {26, 7},
                                           {32, 8}, {54, 8}, {56, 6}, {58, 13}, {60, 14}, {80, 13}};

#define CHECK_TABLE(format, version)                                                                         \
	for (size_t i = 0; i < sizeof(places_##version) / sizeof(places_##version[0]); i++) {                \
		const struct place *place = &places_##version[i];                                            \
		unsigned line =                                                                              \
		    python_line(format, table_##version, sizeof(table_##version), 1, place->offset);         \
                                                                                                             \
		cr_assert_eq(line, place->line, "offset %u: line %u, not %u", place->offset, line,           \
		             place->line);                                                                   \
	}

Test(python_lines, lnotab){CHECK_TABLE(PYTHON_LINES_LNOTAB, 3_9)}

Test(python_lines, ranges)
{
	CHECK_TABLE(PYTHON_LINES_RANGES, 3_10)
	cr_assert_eq(python_line(PYTHON_LINES_RANGES, table_3_10, sizeof(table_3_10), 1, 46), 0);
}

Test(python_lines, locations)
{
	CHECK_TABLE(PYTHON_LINES_LOCATIONS, 3_12)
	cr_assert_eq(python_line(PYTHON_LINES_LOCATIONS, table_3_12, sizeof(table_3_12), 1, 86), 0);
}

/* Whatever a table holds, nothing is read behind it (the sanitizers watch) and the search ends. */
Test(python_lines, any_bytes)
{
	srand(1);
	for (int round = 0; round < 20000; round++) {
		size_t length = rand() % 40;
		uint8_t *table = malloc(length ? length : 1);

		for (size_t i = 0; i < length; i++)
			table[i] = rand();
		for (int format = PYTHON_LINES_LNOTAB; format <= PYTHON_LINES_LOCATIONS; format++)
			python_line(format, table, length, rand(), rand() % 200);
		free(table);
	}
}
