// SPDX-License-Identifier: GPL-2.0-only
#include "collect/python_process.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

bool process_memory_read(uint32_t pid, uint64_t address, void *buffer, size_t size)
{
	struct iovec local = {buffer, size};
	struct iovec remote = {(void *)(uintptr_t)address, size}; // NOLINT(performance-no-int-to-ptr)

	return process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* ---- finding it ---- */

/* Version from a file name that begins with "python3." or "libpython3.", 0 if it is another. */
static uint32_t name_version(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned minor;

	name = name ? name + 1 : path;
	if (!strncmp(name, "lib", 3))
		name += 3;
	return sscanf(name, "python3.%u", &minor) == 1 && minor < 256 ? 3u << 8 | minor : 0;
}

/* Version of an interpreter: by a constant that it has since 3.11, else by the name of its file. */
static uint32_t binary_version(struct process_code *process, const struct mapping *mapping,
                               struct binary *binary, uint64_t bias)
{
	uint64_t address = binary_symbol(binary, "Py_Version"), version;

	if (address && process_memory_read(process->pid, address + bias, &version, sizeof(version)) &&
	    version >> 24 == 3)
		return 3u << 8 | (version >> 16 & 0xff);
	return name_version(mapping->path);
}

static bool look_into(struct processes_code *all, struct process_code *process, const struct mapping *mapping,
                      struct python_process *python)
{
	struct binary *binary = process_code_binary(all, process, mapping);
	uint64_t table[PYTHON_TABLE_WORDS], runtime, address;
	uint32_t version;

	if (!binary || !binary_address(binary, mapping->offset, &address))
		return false;
	runtime = binary_symbol(binary, "_PyRuntime");
	if (!runtime)
		return false;
	runtime += mapping->start - address;
	if (!process_memory_read(process->pid, runtime, table, sizeof(table)))
		return false;
	if (!python_layout_from_table(table, python)) {
		version = binary_version(process, mapping, binary, mapping->start - address);
		if (!python_layout_of_version(version, python))
			return false;
	}
	python->frames.runtime = runtime;
	return true;
}

bool python_process_find(struct processes_code *all, struct process_code *process,
                         struct python_process *python)
{
	const struct mapping *mapping;
	bool first = true;

	*python = (struct python_process){0};
	/* The program itself, which may have Python built in, and what is named like it. */
	array_for_each (mapping, &process->mappings) {
		bool wanted = first || strstr(mapping->path, "python3.");

		if (!mapping->executable || !mapping->inode)
			continue;
		first = false;
		if (wanted && look_into(all, process, mapping, python))
			return true;
	}
	return false;
}
