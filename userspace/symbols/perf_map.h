/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of generated code: the file /tmp/perf-PID.map, which programs that generate code write for profilers.
 * One line a function, "START SIZE NAME" with hexadecimal numbers. The file is not trusted.
 */
#ifndef WHYIDLE_SYMBOLS_PERF_MAP_H
#define WHYIDLE_SYMBOLS_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

struct perf_map {
	struct perf_map_entry {
		uint64_t start, size;
		const char *name; /* in `text` */
	} * items;                /* by start */
	size_t count, capacity;
	char *text;
};

/* Reads the file at `fd`, at most its first 16 MiB. Returns 0, -ENOMEM or the negative errno of reading. */
int perf_map_read(struct perf_map *map, int fd);

/* Of several functions with the same start the last of the file counts. NULL if none holds `address`. */
const char *perf_map_find(const struct perf_map *map, uint64_t address);

void perf_map_free(struct perf_map *map);

#endif
