// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a recorded program can put before the collector to have its code named: an ELF file, the text of its
 * mappings and of its perf map, Python's line tables, mangled names, a stack, unwind tables. The first byte
 * says which.
 */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/pure_python_lines.h"
#include "symbols/address_space.h"
#include "symbols/binary.h"
#include "symbols/demangle.h"
#include "symbols/perf_map.h"
#include "tests/fuzz/fuzz_names.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int memory_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static bool rule_at(void *context, uint64_t address, struct unwind_rule *rule)
{
	return binary_rule(context, address, rule);
}

static bool code_at(void *context, uint64_t address)
{
	(void)context;
	return address < 1 << 20;
}

/* A stack that is the file itself, unwound by the file's own rules. */
static void unwind_in(struct binary *binary, const uint8_t *data, size_t size, uint64_t ip)
{
	struct unwind_input input = {.ip = ip,
	                             .sp = 0x1000,
	                             .bp = 0x1020,
	                             .stack = data,
	                             .stack_bytes = size,
	                             .rule = rule_at,
	                             .code = code_at,
	                             .context = binary};
	uint64_t addresses[64], pointers[64];
	bool complete;
	size_t count = unwind(&input, addresses, pointers, 64, &complete);

	REQUIRE(count >= 1 && count <= 64 && addresses[0] == ip);
}

static void try_binary(const uint8_t *data, size_t size)
{
	struct binary *binary = binary_open(memory_file(data, size));
	uint64_t address, step = size / 16 + 1;
	struct source_place places[SOURCE_PLACES_MAX];
	size_t count;

	REQUIRE(binary);
	binary_add_debug(binary, memory_file(data, size));
	for (uint64_t offset = 0; offset < size + step; offset += step) {
		struct unwind_rule rule;
		const char *name;

		if (!binary_address(binary, offset, &address))
			address = offset;
		name = binary_function(binary, address);
		REQUIRE(!name || *name);
		binary_rule(binary, address, &rule);
		count = binary_places(binary, address, places);
		REQUIRE(count <= SOURCE_PLACES_MAX);
		for (size_t i = 0; i < count; i++)
			REQUIRE(places[i].line >= 0);
		unwind_in(binary, data, size, address);
	}
	binary_symbol(binary, "_PyRuntime");
	REQUIRE(strlen(binary_build_id(binary)) % 2 == 0);
	binary_free(binary);
}

static void try_mappings(const uint8_t *data, size_t size)
{
	struct mapping_list list = {0}, copy = {0};
	FILE *file = size ? fmemopen((void *)data, size, "r") : NULL;

	if (!file)
		return;
	REQUIRE(!mapping_list_read(&list, file));
	fclose(file);
	REQUIRE(!mapping_list_copy(&copy, &list) && copy.count == list.count);
	for (size_t i = 0; i < list.count; i++) {
		const struct mapping *found = mapping_list_find(&copy, list.items[i].start);

		REQUIRE(!found || (found->start <= list.items[i].start && found->end > list.items[i].start));
	}
	mapping_list_free(&list);
	mapping_list_free(&copy);
}

static void try_perf_map(const uint8_t *data, size_t size)
{
	struct perf_map map = {0};
	int fd = memory_file(data, size);

	REQUIRE(!perf_map_read(&map, fd));
	close(fd);
	for (size_t i = 0; i < map.count; i++) {
		const char *name = perf_map_find(&map, map.items[i].start);

		REQUIRE(name && *name);
	}
	perf_map_free(&map);
}

static void try_lines(const uint8_t *data, size_t size)
{
	if (!size)
		return;
	for (uint64_t offset = 0; offset < 64; offset += 3)
		python_line(data[0] % 3, data + 1, size - 1, 100, offset);
}

static void try_name(const uint8_t *data, size_t size)
{
	char *name = strndup((const char *)data, size), *text;

	REQUIRE(name);
	free(symbol_demangle(name));
	text = symbol_short(name);
	REQUIRE(text);
	free(text);
	free(name);
}

/* A file around them in which nothing is damaged, so that changes reach the tables: .eh_frame_hdr, .eh_frame.
 */
static void try_unwind_tables(const uint8_t *data, size_t size)
{
	struct {
		Elf64_Ehdr file;
		Elf64_Phdr segments[2];
	} head = {
	    .file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	             .e_type = ET_DYN,
	             .e_machine = FUZZ_NAMES_MACHINE,
	             .e_version = EV_CURRENT,
	             .e_phoff = sizeof(Elf64_Ehdr),
	             .e_ehsize = sizeof(Elf64_Ehdr),
	             .e_phentsize = sizeof(Elf64_Phdr),
	             .e_phnum = 2},
	    .segments = {{PT_LOAD, PF_R, 0, 0, 0, sizeof(head) + size, sizeof(head) + size, 4096},
	                 {PT_GNU_EH_FRAME, PF_R, sizeof(head), sizeof(head), sizeof(head), size, size, 4}},
	};
	uint8_t *bytes = malloc(sizeof(head) + size);
	struct binary *binary;

	REQUIRE(bytes);
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), data, size);
	binary = binary_open(memory_file(bytes, sizeof(head) + size));
	REQUIRE(binary);
	/* The places that the table for searching names: behind a head of 12 bytes, relative to the table's
	 * start. */
	for (size_t at = 12; at + 8 <= size && at < 12 + 8 * 16; at += 8) {
		int32_t start;

		memcpy(&start, data + at, sizeof(start));
		for (uint64_t within = 0; within < 32; within += 5)
			unwind_in(binary, data, size, sizeof(head) + (uint64_t)(int64_t)start + within);
	}
	binary_free(binary);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % FUZZ_NAMES_KINDS) {
	case 0:
		try_binary(data + 1, size - 1);
		break;
	case 1:
		try_mappings(data + 1, size - 1);
		break;
	case 2:
		try_perf_map(data + 1, size - 1);
		break;
	case 3:
		try_lines(data + 1, size - 1);
		break;
	case 4:
		try_name(data + 1, size - 1);
		break;
	default:
		try_unwind_tables(data + 1, size - 1);
		break;
	}
	return 0;
}
