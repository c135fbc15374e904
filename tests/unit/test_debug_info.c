// SPDX-License-Identifier: GPL-2.0-only
/* Debug information of every kind that compilers make (tests.mk), against another reader; and of kinds that
 * none makes. */
#include <criterion/criterion.h>
#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/binary.h"
#include "symbols/debug_lines.h"
#include "tests/unit/libdw_places.h"

static int open_fixture(const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", UNIT_FIXTURES, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s: %m", path);
	return fd;
}

struct counts {
	size_t known, inlined, local;
};

static void compare_at(struct binary *binary, Dwarf *dwarf, uint64_t address, struct counts *counts)
{
	struct source_place own[SOURCE_PLACES_MAX], other[SOURCE_PLACES_MAX];
	size_t count = binary_places(binary, address, own), expected = libdw_places(dwarf, address, other);

	counts->known += count > 0;
	counts->inlined += count > 1;
	if (expected == 1 && !other[0].function && count && own[count - 1].function) {
		/* A function of a class within a function, which only the symbols name beside us. */
		const char *symbol = binary_function(binary, address) ?: "", *name = own[count - 1].function;

		cr_assert(strstr(symbol, strcmp(name, "operator()") ? name : "clE"), "%lx: %s, but it is %s",
		          address, name, symbol);
		cr_assert_eq(own[0].line, other[0].line);
		counts->local++;
		return;
	}
	cr_assert_eq(count, expected, "%lx: %zu for %zu", address, count, expected);
	for (size_t i = 0; i < count; i++) {
		cr_assert_str_eq(own[i].function ?: "", other[i].function ?: "", "%lx: %s for %s", address,
		                 own[i].function, other[i].function);
		cr_assert_str_eq(own[i].file ?: "", other[i].file ?: "", "%lx: %s for %s", address,
		                 own[i].file, other[i].file);
		cr_assert_eq(own[i].line, other[i].line, "%lx: %d for %d", address, own[i].line,
		             other[i].line);
	}
}

static struct counts compare(const char *name)
{
	struct binary *binary = binary_open(open_fixture(name));
	struct counts counts = {0};
	int fd = open_fixture(name);
	Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	cr_assert_not_null(dwarf);
	while ((section = elf_nextscn(dwarf_getelf(dwarf), section))) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
			continue;
		for (uint64_t i = 0; i < header.sh_size; i++)
			compare_at(binary, dwarf, header.sh_addr + i, &counts);
	}
	dwarf_end(dwarf);
	close(fd);
	binary_free(binary);
	return counts;
}

Test(debug_info, as_another_reader_has_it)
{
	static const char *const files[] = {"names.so",      "names-cxx.so",    "inlined-2.so",
	                                    "inlined-4.so",  "inlined-5.so",    "inlined-64.so",
	                                    "inlined-gz.so", "inlined-whole.so"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct counts counts = compare(files[i]);

		cr_assert_gt(counts.known, i == 1 ? 10 : 100, "%s: %zu", files[i], counts.known);
		cr_assert(i < 2 || (counts.inlined > 50 && counts.local > 10), "%s: %zu, %zu", files[i],
		          counts.inlined, counts.local);
	}
	cr_assert_gt(compare("inlined-unoptimised.so").local, 100);
}

/* ---- made by hand ---- */

#define CODE 0x1000

/* A function that refers to itself for its name. */
static const uint8_t abbreviations[] = {1,
                                        DW_TAG_compile_unit,
                                        1,
                                        DW_AT_low_pc,
                                        DW_FORM_addr,
                                        DW_AT_high_pc,
                                        DW_FORM_data4,
                                        DW_AT_stmt_list,
                                        DW_FORM_sec_offset,
                                        0,
                                        0,
                                        2,
                                        DW_TAG_subprogram,
                                        1,
                                        DW_AT_low_pc,
                                        DW_FORM_addr,
                                        DW_AT_high_pc,
                                        DW_FORM_data4,
                                        DW_AT_abstract_origin,
                                        DW_FORM_ref4,
                                        0,
                                        0,
                                        3,
                                        DW_TAG_lexical_block,
                                        0,
                                        DW_AT_ranges,
                                        DW_FORM_sec_offset,
                                        0,
                                        0,
                                        0};

static const uint8_t head[] = {4, 0, 0, 0, 0, 0, 8};

static void put(uint8_t *bytes, size_t *size, uint64_t value, size_t length)
{
	memcpy(bytes + *size, &value, length);
	*size += length;
}

/* One unit with one function, in which lie `blocks` blocks, each of all of .debug_ranges. */
static size_t make_unit(uint8_t *bytes, size_t blocks)
{
	size_t size = 4, function;
	uint32_t length;

	memcpy(bytes + size, head, sizeof(head));
	size += sizeof(head);
	put(bytes, &size, 1, 1);
	put(bytes, &size, CODE, 8);
	put(bytes, &size, 256, 4);
	put(bytes, &size, 0, 4);
	function = size;
	put(bytes, &size, 2, 1);
	put(bytes, &size, CODE, 8);
	put(bytes, &size, 256, 4);
	put(bytes, &size, function, 4);
	for (size_t i = 0; i < blocks; i++) {
		put(bytes, &size, 3, 1);
		put(bytes, &size, 0, 4);
	}
	length = (uint32_t)(size - 4);
	memcpy(bytes, &length, 4);
	return size;
}

static struct debug_info *open_made(uint8_t *unit, size_t size, const uint8_t *ranges, size_t ranges_size)
{
	struct debug_sections sections = {0};
	struct debug_info *info;

	sections.items[DEBUG_INFO] = (struct debug_bytes){unit, size, NULL};
	sections.items[DEBUG_ABBREV] = (struct debug_bytes){abbreviations, sizeof(abbreviations), NULL};
	sections.items[DEBUG_RANGES] = (struct debug_bytes){ranges, ranges_size, NULL};
	info = debug_info_open(&sections);
	cr_assert_not_null(info);
	return info;
}

Test(debug_info, function_that_is_named_by_itself)
{
	uint8_t unit[128];
	size_t size = make_unit(unit, 0);
	struct debug_info *info = open_made(unit, size, NULL, 0);
	struct source_place places[SOURCE_PLACES_MAX];

	cr_assert_eq(source_places(info, CODE + 255, places), 1);
	cr_assert_null(places[0].function);
	cr_assert_null(places[0].file);
	cr_assert_eq(source_places(info, CODE + 256, places), 0);
	debug_info_free(info);
}

/* Every block would have every range be looked at: 20,000 times 65,536. */
Test(debug_info, work_is_limited, .timeout = 20)
{
	static uint8_t unit[128 + 20000 * 5];
	static uint64_t ranges[65536 * 2];
	struct source_place places[SOURCE_PLACES_MAX];
	size_t size = make_unit(unit, 20000);
	struct debug_info *info;

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i += 2) {
		ranges[i] = 1;
		ranges[i + 1] = 2;
	}
	info = open_made(unit, size, (const uint8_t *)ranges, sizeof(ranges));
	cr_assert_eq(source_places(info, CODE, places), 1);
	cr_assert_eq(info->steps, 0, "it ended by itself");
	/* The next question has its own share. */
	cr_assert_eq(source_places(info, CODE, places), 1);
	debug_info_free(info);
}

/* Cut anywhere, nothing is read behind the end: the sanitizers watch. */
Test(debug_info, cut_anywhere)
{
	uint8_t unit[128];
	size_t size = make_unit(unit, 1), known = 0;

	for (size_t length = 0; length <= size; length++) {
		uint8_t *cut = malloc(length + !length);
		struct source_place places[SOURCE_PLACES_MAX];
		struct debug_info *info;
		uint32_t inner = length > 4 ? (uint32_t)length - 4 : 0;

		cr_assert_not_null(cut);
		memcpy(cut, unit, length);
		if (length >= 4)
			memcpy(cut, &inner, 4);
		info = open_made(cut, length, NULL, 0);
		known += source_places(info, CODE, places) == 1;
		debug_info_free(info);
		free(cut);
	}
	cr_assert(known > 0 && known < size, "%zu of %zu", known, size);
}
