// SPDX-License-Identifier: GPL-2.0-only
#include "collect/python_process.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/*
 * Offsets of release builds on 64-bit machines, from the headers of 3.9.18, 3.10.13, 3.11.7 and 3.12.1, with
 * offsetof. They have been the same in all releases of a minor version.
 */
static const struct python_process versions[] = {
    {
        .version = 0x309,
        .frames = {.interpreters_head = 32,
                   .threads_head = 8,
                   .thread_next = 8,
                   .thread_id = 176,
                   .thread_frame = 24,
                   .frame_previous = 24,
                   .frame_code = 32,
                   .frame_position = 104,
                   .flags = WIRE_PYTHON_OBJECTS | WIRE_PYTHON_INDEX},
        .code = {.filename = 104,
                 .name = 112,
                 .first_line = 40,
                 .table = 120,
                 .position_unit = 1,
                 .lines = PYTHON_LINES_LNOTAB,
                 .text_header = 48,
                 .wide_text_header = 72,
                 .text_state_shift = 2},
    },
    {
        .version = 0x30a,
        .frames = {.interpreters_head = 32,
                   .threads_head = 8,
                   .thread_next = 8,
                   .thread_id = 176,
                   .thread_frame = 24,
                   .frame_previous = 24,
                   .frame_code = 32,
                   .frame_position = 96,
                   .flags = WIRE_PYTHON_OBJECTS | WIRE_PYTHON_INDEX},
        .code = {.filename = 104,
                 .name = 112,
                 .first_line = 40,
                 .table = 120,
                 .position_unit = 2,
                 .lines = PYTHON_LINES_RANGES,
                 .text_header = 48,
                 .wide_text_header = 72,
                 .text_state_shift = 2},
    },
    {
        .version = 0x30b,
        .frames = {.interpreters_head = 40,
                   .threads_head = 16,
                   .thread_next = 8,
                   .thread_id = 152,
                   .thread_frame = 56,
                   .cframe_current = 8,
                   .frame_previous = 48,
                   .frame_code = 32,
                   .frame_position = 56,
                   .frame_mark = 68,
                   .flags = WIRE_PYTHON_CFRAME | WIRE_PYTHON_ENTRY},
        .code = {.filename = 112,
                 .name = 128,
                 .first_line = 72,
                 .table = 136,
                 .instructions = 184,
                 .lines = PYTHON_LINES_LOCATIONS,
                 .text_header = 48,
                 .wide_text_header = 72,
                 .text_state_shift = 2},
    },
    {
        .version = 0x30c,
        .frames = {.interpreters_head = 40,
                   .threads_head = 72,
                   .thread_next = 8,
                   .thread_id = 136,
                   .thread_frame = 56,
                   .cframe_current = 0,
                   .frame_previous = 8,
                   .frame_code = 0,
                   .frame_position = 56,
                   .frame_mark = 70,
                   .flags = WIRE_PYTHON_CFRAME | WIRE_PYTHON_OWNER},
        .code = {.filename = 112,
                 .name = 128,
                 .first_line = 68,
                 .table = 136,
                 .instructions = 192,
                 .lines = PYTHON_LINES_LOCATIONS,
                 .text_header = 40,
                 .wide_text_header = 56,
                 .text_state_shift = 2},
    },
};

bool process_memory_read(uint32_t pid, uint64_t address, void *buffer, size_t size)
{
	struct iovec local = {buffer, size};
	struct iovec remote = {(void *)(uintptr_t)address, size}; // NOLINT(performance-no-int-to-ptr)

	return process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* ---- from 3.13 on: the interpreter's own table ---- */

#define TABLE_COOKIE "xdebugpy"
#define TABLE_WORDS  80

/* The table is a run of 64-bit words, each part of which begins with the size of the struct it is about. */
struct table {
	uint64_t words[TABLE_WORDS];
	bool wrong;
};

/* Word `index` of the part that begins at word `part`; it must lie within that struct. */
static uint32_t table_offset(struct table *table, size_t part, size_t index)
{
	uint64_t size = table->words[part], offset = table->words[part + index];

	if (size > 1 << 20 || offset >= size)
		table->wrong = true;
	return (uint32_t)offset;
}

static bool read_table(uint32_t pid, uint64_t runtime, struct python_process *python)
{
	struct table table;
	size_t runtime_part = 3, interpreter_part = 6, thread_part, frame_part, code_part;
	uint32_t minor;

	if (!process_memory_read(pid, runtime, &table, sizeof(table.words)) ||
	    memcmp(table.words, TABLE_COOKIE, 8))
		return false;
	table.wrong = false;
	minor = table.words[1] >> 16 & 0xff;
	/* Objects of builds without the interpreter lock are laid out differently. */
	if (table.words[1] >> 24 != 3 || minor < 13 || minor > 14 || table.words[2])
		return false;
	/* 3.14 tells three things more of interpreters and two more of frames. */
	thread_part = interpreter_part + (minor == 13 ? 13 : 16);
	frame_part = thread_part + 9;
	code_part = frame_part + (minor == 13 ? 6 : 8);
	python->version = 3 << 8 | minor;
	python->frames = (struct wire_python){
	    .interpreters_head = table_offset(&table, runtime_part, 2),
	    .threads_head = table_offset(&table, interpreter_part, 3),
	    .thread_next = table_offset(&table, thread_part, 2),
	    .thread_frame = table_offset(&table, thread_part, 4),
	    .thread_id = table_offset(&table, thread_part, 5),
	    .frame_previous = table_offset(&table, frame_part, 1),
	    .frame_code = table_offset(&table, frame_part, 2),
	    .frame_position = table_offset(&table, frame_part, 3),
	    .frame_mark = table_offset(&table, frame_part, 5),
	    .flags = WIRE_PYTHON_OWNER,
	};
	python->code = (struct python_code_layout){
	    .filename = table_offset(&table, code_part, 1),
	    .name = table_offset(&table, code_part, 3),
	    .table = table_offset(&table, code_part, 4),
	    .first_line = table_offset(&table, code_part, 5),
	    .lines = PYTHON_LINES_LOCATIONS,
	    .text_header = 40,
	    .wide_text_header = 56,
	    .text_state_shift = minor == 13 ? 2 : 16,
	};
	/* The code itself comes last, at or just behind the end of the struct. */
	python->code.instructions = (uint32_t)table.words[code_part + 9];
	return !table.wrong && python->code.instructions <= 4096;
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
static uint32_t binary_version(const struct process_code *process, const struct mapping *mapping,
                               struct binary *binary, uint64_t bias)
{
	uint64_t address = binary_symbol(binary, "Py_Version"), version;

	if (address && process_memory_read(process->pid, address + bias, &version, sizeof(version)) &&
	    version >> 24 == 3)
		return 3u << 8 | (version >> 16 & 0xff);
	return name_version(mapping->path);
}

/* Bytes of an object that hold all these fields, each taken as one of 8 bytes. */
static uint32_t fields_end(const uint32_t fields[4])
{
	uint32_t last = 0;

	for (size_t i = 0; i < 4; i++)
		last = fields[i] > last ? fields[i] : last;
	return last + 8;
}

static void set_sizes(struct python_process *python)
{
	const struct python_code_layout *code = &python->code;
	struct wire_python *frames = &python->frames;
	const uint32_t code_fields[] = {code->filename, code->name, code->first_line, code->table};
	const uint32_t frame_fields[] = {frames->frame_previous, frames->frame_code, frames->frame_position,
	                                 frames->frame_mark};

	python->code.size = fields_end(code_fields);
	frames->frame_bytes = fields_end(frame_fields);
}

static bool look_into(struct processes_code *all, struct process_code *process, const struct mapping *mapping,
                      struct python_process *python)
{
	struct binary *binary = process_code_binary(all, process, mapping);
	uint64_t runtime, address;
	uint32_t version;

	if (!binary || !binary_address(binary, mapping->offset, &address))
		return false;
	runtime = binary_symbol(binary, "_PyRuntime");
	if (!runtime)
		return false;
	runtime += mapping->start - address;
	if (!read_table(process->pid, runtime, python)) {
		version = binary_version(process, mapping, binary, mapping->start - address);
		python->version = 0;
		for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
			if (versions[i].version == version)
				*python = versions[i];
		}
	}
	if (!python->version)
		return false;
	python->frames.runtime = runtime;
	set_sizes(python);
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
