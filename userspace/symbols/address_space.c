// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/address_space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

static const char deleted[] = " (deleted)";

/* "START-END PERMS OFFSET MAJOR:MINOR INODE   PATH". Returns false if it is something else. */
static bool parse_line(char *line, struct mapping *mapping)
{
	unsigned major, minor;
	char permissions[5];
	size_t length;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &mapping->start,
	           &mapping->end, permissions, &mapping->offset, &major, &minor, &mapping->inode,
	           &path) < 7 ||
	    !path || mapping->end <= mapping->start)
		return false;
	mapping->device = makedev(major, minor);
	mapping->executable = permissions[2] == 'x';
	line += path;
	length = strcspn(line, "\n");
	line[length] = '\0';
	if (length > sizeof(deleted) - 1 && !strcmp(line + length - (sizeof(deleted) - 1), deleted))
		line[length - (sizeof(deleted) - 1)] = '\0';
	mapping->path = line;
	return true;
}

static int compare_mappings(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Adds a copy of `mapping`. */
static int add_mapping(struct mapping_list *list, const struct mapping *mapping)
{
	char *path = strdup(mapping->path);
	struct mapping *slot = path ? array_add(list) : NULL;

	if (!slot) {
		free(path);
		return -ENOMEM;
	}
	*slot = *mapping;
	slot->path = path;
	return 0;
}

int mapping_list_copy(struct mapping_list *list, const struct mapping_list *from)
{
	const struct mapping *mapping;
	int err = 0;

	array_for_each (mapping, from) {
		err = err ?: add_mapping(list, mapping);
	}
	return err;
}

int mapping_list_read(struct mapping_list *list, FILE *maps)
{
	struct mapping mapping;
	char *line = NULL;
	size_t size = 0;
	int err = 0;

	while (!err && list->count < MAPPINGS_MAX && getline(&line, &size, maps) > 0) {
		if (parse_line(line, &mapping) && (mapping.executable || mapping.inode))
			err = add_mapping(list, &mapping);
	}
	free(line);
	array_sort(list, compare_mappings);
	return err;
}

const struct mapping *mapping_list_below(const struct mapping_list *list, uint64_t address)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &list->items[low - 1] : NULL;
}

const struct mapping *mapping_list_find(const struct mapping_list *list, uint64_t address)
{
	const struct mapping *mapping = mapping_list_below(list, address);

	return mapping && address < mapping->end ? mapping : NULL;
}

static uint64_t file_offset(const struct mapping *mapping, uint64_t address)
{
	return mapping->offset + (address - mapping->start);
}

bool mapping_list_keeps_code(const struct mapping_list *now, const struct mapping_list *before)
{
	const struct mapping *mapping;

	array_for_each (mapping, before) {
		const struct mapping *found = mapping_list_find(now, mapping->start);

		if (!mapping->executable || !mapping->inode)
			continue;
		/* It may have been split or joined with its neighbour. */
		if (!found || found->inode != mapping->inode || found->device != mapping->device ||
		    file_offset(found, mapping->start) != mapping->offset)
			return false;
	}
	return true;
}

void mapping_list_free(struct mapping_list *list)
{
	struct mapping *mapping;

	array_for_each (mapping, list) {
		free(mapping->path);
	}
	array_free(list);
}
