// SPDX-License-Identifier: GPL-2.0-only
#include "live/bar.h"

void bar_share(unsigned *result, const uint64_t *parts, size_t count, unsigned cells)
{
	double whole = 0, end = 0;
	unsigned given = 0;

	for (size_t i = 0; i < count; i++)
		whole += (double)parts[i];
	for (size_t i = 0; i < count; i++) {
		unsigned to;

		end += (double)parts[i];
		to = whole > 0 ? (unsigned)(end / whole * cells + 0.5) : 0;
		result[i] = to - given;
		given = to;
	}
}
