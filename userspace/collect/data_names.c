// SPDX-License-Identifier: GPL-2.0-only
#include "collect/data_names.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define MAX_KNOWN 4096 /* of a process; beyond that each is looked for anew */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Only files that hold code are opened: opening any other may block, or change it. */
static bool holds_code(struct process_code *process, const struct mapping *wanted)
{
	const struct mapping *mapping;

	array_for_each (mapping, &process->mappings) {
		if (mapping->executable && mapping->inode == wanted->inode &&
		    mapping->device == wanted->device)
			return true;
	}
	return false;
}

static uint32_t find_name(struct processes_code *all, struct process_code *process, uint64_t address,
                          struct session_writer *writer)
{
	const struct mapping *mapping = mapping_list_below(&process->mappings, address);
	const char *object;
	struct binary *binary;
	uint64_t start;
	char text[1024];

	if (!mapping || !mapping->inode)
		return 0;
	if (!holds_code(process, mapping) && address >= mapping->end)
		return 0;
	if (!strcmp(mapping->path, "/dev/zero"))
		return session_writer_cstring(writer, "shared memory");
	if (!holds_code(process, mapping))
		return session_writer_cstring(writer, mapping->path);
	binary = process_code_binary(all, process, mapping);
	if (!binary || !binary_address(binary, mapping->offset, &start) ||
	    !binary_in_memory(binary, start + (address - mapping->start)))
		return 0;
	object = binary_object(binary, start + (address - mapping->start));
	if (object)
		snprintf(text, sizeof(text), "%.*s (%s)", (int)strcspn(object, "@"), object,
		         base_name(mapping->path));
	else
		snprintf(text, sizeof(text), "in %s", base_name(mapping->path));
	return session_writer_cstring(writer, text);
}

uint32_t data_name(struct processes_code *all, struct process_code *process, uint64_t address, bool shared,
                   struct session_writer *writer)
{
	uint64_t read_ns = process->read_ns;
	uint32_t name = 0;
	bool known;

	if (!process->read)
		return 0;
	known = index_map_get(&process->data_names, address, &name);
	/* The file may have been mapped since. */
	if (!name && shared)
		process_code_refresh(process, clock_ns(CLOCK_MONOTONIC));
	if (known && process->read_ns == read_ns)
		return name;
	name = find_name(all, process, address, writer);
	if (process->data_names.count < MAX_KNOWN)
		index_map_put(&process->data_names, address, name);
	return name;
}
