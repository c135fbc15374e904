/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which functions an address is in, by debug information: the function itself and those that the compiler put
 * in the place of their calls. The debug information is not trusted.
 */
#ifndef WHYIDLE_SYMBOLS_SOURCE_PLACES_H
#define WHYIDLE_SYMBOLS_SOURCE_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/debug_info.h"

#define SOURCE_PLACES_MAX 16 /* functions within each other that are kept of an address */

/* Strings belong to the debug information; NULL and 0: not known. */
struct source_place {
	const char *function; /* mangled, where it is that */
	const char *file;
	int line;
};

/*
 * The places of an address, innermost first; each one's line is where it is at, so that of all but the first
 * is that of a call. The last one is the function that the others were put into. Returns how many, 0 if
 * nothing is known. Of more than there is room for the innermost are left out.
 */
size_t source_places(struct debug_info *info, uint64_t address,
                     struct source_place places[SOURCE_PLACES_MAX]);

#endif
