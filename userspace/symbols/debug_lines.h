/* SPDX-License-Identifier: GPL-2.0-only */
/* Line tables of debug information (DWARF 2 to 5), which are not trusted. */
#ifndef WHYIDLE_SYMBOLS_DEBUG_LINES_H
#define WHYIDLE_SYMBOLS_DEBUG_LINES_H

#include "symbols/debug_info.h"

/* The file and line of an address by the unit's table; false if that does not say. `line` may be 0: none. */
bool debug_lines_find(struct debug_info *info, struct debug_unit *unit, uint64_t address, uint64_t *file,
                      int *line);

/* Path of a file of the unit's table, NULL. It belongs to `info`. */
const char *debug_lines_file(struct debug_info *info, const struct debug_unit *unit, uint64_t file);

#endif
