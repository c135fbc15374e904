// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/binary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gelf.h>

#include "base/array.h"
#include "base/hash.h"
#include "symbols/build_id.h"
#include "symbols/cfi_rule.h"
#include "symbols/elf_file.h"
#include "symbols/elf_names.h"

#define MAX_SEGMENTS 64
#define MAX_RULES    (256u << 10) /* kept; beyond that each is made anew */

struct segment {
	uint64_t offset, address, size; /* `size` in the file */
	uint64_t memory_size;
	bool writable;
};

struct binary {
	int fd, debug_fd; /* -1 none */
	Elf *elf, *debug_elf;
	struct {
		ARRAY(struct segment)
	} segments;
	char build_id[BUILD_ID_TEXT];

	bool names_read, objects_read, lines_read, rules_read;
	struct elf_names names, objects;
	struct debug_info *lines;
	struct cfi_table *cfi;
	struct {
		ARRAY(struct unwind_rule)
	} rules;
	struct index_map rule_at; /* address → index in `rules` + 1, 0: there is none */
};

static void read_segments(struct binary *binary)
{
	size_t count;

	if (elf_getphdrnum(binary->elf, &count))
		return;
	for (size_t i = 0; i < count && binary->segments.count < MAX_SEGMENTS; i++) {
		struct segment *segment;
		GElf_Phdr header;

		if (!gelf_getphdr(binary->elf, (int)i, &header))
			return;
		if (header.p_type != PT_LOAD)
			continue;
		segment = array_add(&binary->segments);
		if (!segment)
			return;
		*segment = (struct segment){header.p_offset, header.p_vaddr, header.p_filesz, header.p_memsz,
		                            header.p_flags & PF_W};
	}
}

static struct binary *binary_new(int fd, char *image, size_t size)
{
	struct binary *binary = calloc(1, sizeof(*binary));

	if (!binary) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	binary->fd = fd;
	binary->debug_fd = -1;
	elf_version(EV_CURRENT);
	binary->elf = image ? elf_memory(image, size) : elf_file_open(fd);
	if (!binary->elf || elf_kind(binary->elf) != ELF_K_ELF) {
		elf_end(binary->elf);
		binary->elf = NULL;
		return binary;
	}
	read_segments(binary);
	build_id_read(binary->elf, binary->build_id);
	return binary;
}

struct binary *binary_open(int fd)
{
	return binary_new(fd, NULL, 0);
}

struct binary *binary_open_memory(char *image, size_t size)
{
	return binary_new(-1, image, size);
}

void binary_free(struct binary *binary)
{
	if (!binary)
		return;
	elf_names_free(&binary->names);
	elf_names_free(&binary->objects);
	debug_info_free(binary->lines);
	cfi_table_free(binary->cfi);
	elf_end(binary->debug_elf);
	elf_end(binary->elf);
	if (binary->fd >= 0)
		close(binary->fd);
	if (binary->debug_fd >= 0)
		close(binary->debug_fd);
	array_free(&binary->segments);
	array_free(&binary->rules);
	index_map_free(&binary->rule_at);
	free(binary);
}

bool binary_address(const struct binary *binary, uint64_t offset, uint64_t *address)
{
	const struct segment *segment;

	array_for_each (segment, &binary->segments) {
		if (offset >= segment->offset && offset - segment->offset < segment->size) {
			*address = segment->address + (offset - segment->offset);
			return true;
		}
	}
	return false;
}

const char *binary_build_id(const struct binary *binary)
{
	return binary->build_id;
}

void binary_add_debug(struct binary *binary, int fd)
{
	char build_id[BUILD_ID_TEXT];
	Elf *elf = binary->debug_elf ? NULL : elf_file_open(fd);

	if (elf)
		build_id_read(elf, build_id);
	else
		*build_id = '\0';
	if (!*build_id || strcmp(build_id, binary->build_id)) {
		elf_end(elf);
		close(fd);
		return;
	}
	binary->debug_elf = elf;
	binary->debug_fd = fd;
}

static void read_names(const struct binary *binary, struct elf_names *names, enum elf_names_kind kind)
{
	names->kind = kind;
	if (binary->debug_elf)
		elf_names_add(names, binary->debug_elf);
	if (!names->count && binary->elf)
		elf_names_add(names, binary->elf);
	elf_names_sort(names);
}

const char *binary_function(struct binary *binary, uint64_t address)
{
	const struct elf_name *name;

	if (!binary->names_read)
		read_names(binary, &binary->names, ELF_NAMES_FUNCTIONS);
	binary->names_read = true;
	name = elf_names_find(&binary->names, address);
	return name ? name->name : NULL;
}

const char *binary_object(struct binary *binary, uint64_t address)
{
	const struct elf_name *name;

	if (!binary->objects_read)
		read_names(binary, &binary->objects, ELF_NAMES_OBJECTS);
	binary->objects_read = true;
	name = elf_names_find(&binary->objects, address);
	return name ? name->name : NULL;
}

bool binary_in_memory(const struct binary *binary, uint64_t address)
{
	const struct segment *segment;

	array_for_each (segment, &binary->segments) {
		if (segment->writable && address >= segment->address &&
		    address - segment->address < segment->memory_size)
			return true;
	}
	return false;
}

size_t binary_places(struct binary *binary, uint64_t address, struct source_place places[SOURCE_PLACES_MAX])
{
	if (!binary->lines_read) {
		Elf *elf = binary->debug_elf ? binary->debug_elf : binary->elf;
		struct debug_sections sections;

		binary->lines_read = true;
		if (elf) {
			debug_sections_read(&sections, elf);
			binary->lines = debug_info_open(&sections);
		}
	}
	return binary->lines ? source_places(binary->lines, address, places) : 0;
}

uint64_t binary_symbol(struct binary *binary, const char *name)
{
	return binary->elf ? elf_symbol_address(binary->elf, name) : 0;
}

bool binary_rule(struct binary *binary, uint64_t address, struct unwind_rule *rule)
{
	struct unwind_rule *slot;
	uint32_t at;

	if (!binary->elf)
		return false;
	if (index_map_get(&binary->rule_at, address, &at)) {
		if (at)
			*rule = binary->rules.items[at - 1];
		return at;
	}
	if (!binary->rules_read) {
		binary->rules_read = true;
		binary->cfi = cfi_table_open(binary->elf);
	}
	if (!binary->cfi || !cfi_rule(binary->cfi, address, rule)) {
		if (binary->rule_at.count < MAX_RULES)
			index_map_put(&binary->rule_at, address, 0);
		return false;
	}
	slot = binary->rule_at.count < MAX_RULES ? array_add(&binary->rules) : NULL;
	if (slot) {
		*slot = *rule;
		index_map_put(&binary->rule_at, address, binary->rules.count);
	}
	return true;
}
