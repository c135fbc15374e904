// SPDX-License-Identifier: GPL-2.0-only
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "base/number.h"

#define MOST 5000

/* Some number that differs from place to place, the same in each run. */
static uint64_t scrambled(uint64_t i)
{
	i *= 0x9e3779b97f4a7c15u;
	return i ^ i >> 29;
}

static uint64_t value_of(int kind, size_t i, size_t count)
{
	switch (kind) {
	case 0:
		return i; /* sorted */
	case 1:
		return count - i;
	case 2:
		return 7; /* all alike */
	case 3:
		return scrambled(i);
	case 4:
		return scrambled(i) % 3;
	case 5:
		return i < count / 2 ? i : count - i; /* up and down again */
	default:
		return i % 2 ? UINT64_MAX - i : i; /* from both ends */
	}
}

Test(median, is_what_sorting_finds)
{
	static uint64_t values[MOST], sorted[MOST];
	static const size_t counts[] = {1, 2, 3, 31, 32, 33, 34, 100, 101, 1000, 4999, MOST};

	for (int kind = 0; kind < 7; kind++) {
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
			size_t count = counts[k];

			for (size_t i = 0; i < count; i++)
				values[i] = sorted[i] = value_of(kind, i, count);
			qsort(sorted, count, sizeof(*sorted), compare_unsigned);
			cr_assert_eq(median_unsigned(values, count), sorted[count / 2], "kind %d, %zu values",
			             kind, count);
			qsort(values, count, sizeof(*values), compare_unsigned);
			cr_assert_arr_eq(values, sorted, count * sizeof(*values), "kind %d, %zu values", kind,
			                 count);
		}
	}
}
