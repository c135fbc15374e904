// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

#define MAX_BYTES (16u << 20)

static int read_text(struct perf_map *map, int fd)
{
	size_t length = 0, capacity = 0;

	for (;;) {
		ssize_t got;

		if (length + 1 >= capacity) {
			char *grown;

			if (capacity >= MAX_BYTES)
				break;
			capacity = capacity ? capacity * 2 : 1 << 16;
			grown = realloc(map->text, capacity);
			if (!grown)
				return -ENOMEM;
			map->text = grown;
		}
		got = read(fd, map->text + length, capacity - length - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		length += got;
	}
	map->text[length] = '\0';
	/* A zero byte would end the text early; it has no place in it. */
	for (size_t i = 0; i < length; i++)
		map->text[i] = map->text[i] ? map->text[i] : ' ';
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct perf_map_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

int perf_map_read(struct perf_map *map, int fd)
{
	int err = read_text(map, fd);
	char *line, *rest;

	if (err)
		return err;
	for (line = strtok_r(map->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct perf_map_entry *entry;
		char *behind, *name;
		uint64_t start = strtoull(line, &behind, 16), size;

		if (*behind != ' ')
			continue;
		size = strtoull(behind, &name, 16);
		if (*name != ' ' || !name[1] || !size)
			continue;
		entry = array_add(map);
		if (!entry)
			return -ENOMEM;
		*entry = (struct perf_map_entry){start, size, name + 1};
	}
	array_sort(map, compare_entries);
	return 0;
}

const char *perf_map_find(const struct perf_map *map, uint64_t address)
{
	size_t low = 0, high = map->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - map->items[low - 1].start >= map->items[low - 1].size)
		return NULL;
	return map->items[low - 1].name;
}

void perf_map_free(struct perf_map *map)
{
	free(map->items);
	free(map->text);
	*map = (struct perf_map){0};
}
