// SPDX-License-Identifier: GPL-2.0-only
/* The memory of a program that says that it is Python: code objects, their texts and line tables, the
 * interpreter's table. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collect/python_code.h"
#include "collect/python_thread.h"
#include "tests/fuzz/fuzz_python.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *memory;
static size_t memory_size;

/* Stands in for that of python_process.c. */
bool process_memory_read(uint32_t pid, uint64_t address, void *buffer, size_t size)
{
	uint64_t at = address - FUZZ_PYTHON_BASE;

	REQUIRE(pid == 1);
	if (address < FUZZ_PYTHON_BASE || at > memory_size || size > memory_size - at)
		return false;
	memcpy(buffer, memory + at, size);
	return true;
}

static bool find_layout(uint8_t kind, struct python_process *python)
{
	uint64_t table[PYTHON_TABLE_WORDS];

	*python = (struct python_process){0};
	if (kind % FUZZ_PYTHON_KINDS < FUZZ_PYTHON_KINDS - 1)
		return python_layout_of_version(0x309 + kind % FUZZ_PYTHON_KINDS, python);
	return process_memory_read(1, FUZZ_PYTHON_BASE, table, sizeof(table)) &&
	       python_layout_from_table(table, python);
}

static void try_code(struct python_codes *codes, const struct python_code_layout *layout, uint64_t address,
                     uint64_t now_ns)
{
	const struct python_code *code = python_code_get(codes, 1, layout, address, now_ns);

	if (!code)
		return;
	REQUIRE(code->name && code->file && *code->name && *code->file);
	REQUIRE(strlen(code->name) < PYTHON_TEXT_MAX && strlen(code->file) < PYTHON_TEXT_MAX);
	for (uint64_t position = 0; position < 64; position += 3) {
		python_code_line(code, layout, address, position);
		python_code_line(code, layout, address, address + layout->instructions + position);
		python_code_line(code, layout, address, UINT64_MAX - position);
	}
}

static void try_thread(const struct python_process *python)
{
	char *name = python_thread_name(1, python, FUZZ_PYTHON_BASE + FUZZ_PYTHON_THREAD);

	REQUIRE(!name || (*name && strlen(name) < PYTHON_TEXT_MAX));
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct python_codes codes = {0};
	struct python_process python;

	if (!size)
		return 0;
	memory = data + 1;
	memory_size = size - 1;
	if (!find_layout(data[0], &python))
		return 0;
	REQUIRE(python.frames.frame_bytes >= 8 && python.code.size >= 8);
	try_thread(&python);
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t address = FUZZ_PYTHON_BASE + i * PYTHON_TABLE_WORDS * 8;

		try_code(&codes, &python.code, address, 1);
		/* Later another thing lies there. */
		memory_size -= memory_size > 64 ? 8 : 0;
		memory += 8 * (memory_size > 64);
		try_code(&codes, &python.code, address, UINT64_MAX / 2);
	}
	python_codes_free(&codes);
	return 0;
}
