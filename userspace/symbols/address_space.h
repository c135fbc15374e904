/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What lies where in a process: /proc/PID/maps as far as code is concerned, and the files behind it.
 */
#ifndef WHYIDLE_SYMBOLS_ADDRESS_SPACE_H
#define WHYIDLE_SYMBOLS_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"

struct mapping {
	uint64_t start, end, offset;
	uint64_t device, inode; /* 0: no file */
	bool executable;
	char *path; /* as the kernel has it, "" for memory without a name; " (deleted)" is taken off */
};

struct mapping_list {
	ARRAY(struct mapping) /* by start */
};

#define MAPPINGS_MAX 65536 /* of one process; more are left out */

/*
 * Reads the text of /proc/PID/maps. Lines that make no sense are passed over. All mappings of files are kept,
 * of others only those with code. Returns 0 or -ENOMEM; call mapping_list_free in either case.
 */
int mapping_list_read(struct mapping_list *list, FILE *maps);

/* Appends copies of all mappings of `from`. Returns 0 or -ENOMEM. */
int mapping_list_copy(struct mapping_list *list, const struct mapping_list *from);

/* False if code of a file that `before` has lies elsewhere in `now`, or something else lies in its place. */
bool mapping_list_keeps_code(const struct mapping_list *now, const struct mapping_list *before);

/* The mapping that holds `address`, NULL. */
const struct mapping *mapping_list_find(const struct mapping_list *list, uint64_t address);

/* The last mapping that begins at or below `address`, whether it reaches it or not; NULL. */
const struct mapping *mapping_list_below(const struct mapping_list *list, uint64_t address);

void mapping_list_free(struct mapping_list *list);

#endif
