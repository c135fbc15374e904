// SPDX-License-Identifier: GPL-2.0-only
/* Names and unwind rules of ELF files that the build makes (tests.mk): whole, stripped, with compressed
 * symbols. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/address_space.h"
#include "symbols/binary.h"
#include "symbols/demangle.h"
#include "symbols/perf_map.h"

static int open_fixture(const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", UNIT_FIXTURES, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s: %m", path);
	return fd;
}

/* Address of fixture_local, from the whole file: the others are copies of it. */
static uint64_t local_address(void)
{
	struct binary *whole = binary_open(open_fixture("names.so"));
	uint64_t address = binary_symbol(whole, "fixture_local");

	cr_assert_neq(address, 0);
	binary_free(whole);
	return address;
}

static void check_names(const char *file, bool knows_local)
{
	struct binary *binary = binary_open(open_fixture(file));
	uint64_t local = local_address(), exported = binary_symbol(binary, "fixture_exported");
	const char *name;

	cr_assert_str_eq(binary_function(binary, exported), "fixture_exported");
	cr_assert_str_eq(binary_function(binary, exported + 8), "fixture_exported");
	name = binary_function(binary, local + 1);
	if (knows_local)
		cr_assert_str_eq(name, "fixture_local");
	else
		cr_assert_null(name, "%s, but nothing says so", name);
	binary_free(binary);
}

Test(binary, names)
{
	check_names("names.so", true);
}

Test(binary, variables)
{
	struct binary *binary = binary_open(open_fixture("names.so"));
	uint64_t counter = binary_symbol(binary, "fixture_counter");
	uint64_t room = binary_symbol(binary, "fixture_room"),
	         code = binary_symbol(binary, "fixture_exported");

	cr_assert_str_eq(binary_object(binary, counter), "fixture_counter");
	cr_assert_str_eq(binary_object(binary, room + 16000), "fixture_room");
	cr_assert_null(binary_object(binary, code));
	cr_assert_null(binary_function(binary, counter));
	cr_assert(binary_in_memory(binary, counter) && binary_in_memory(binary, room + 16000));
	cr_assert(!binary_in_memory(binary, code), "nobody can write there");
	cr_assert(!binary_in_memory(binary, room + (1 << 20)));
	binary_free(binary);
}

/* What a stripped file does not tell stays unknown: the next best symbol would be a wrong name. */
Test(binary, stripped)
{
	check_names("names-stripped.so", false);
}

Test(binary, compressed_symbols)
{
	check_names("names-mini.so", true);
}

Test(binary, split_debug_information)
{
	struct binary *binary = binary_open(open_fixture("names-stripped.so"));
	uint64_t local = local_address();
	struct source_place places[SOURCE_PLACES_MAX];

	binary_add_debug(binary, open_fixture("names-cxx.so")); /* another build id: refused */
	binary_add_debug(binary, open_fixture("names.so"));
	cr_assert_str_eq(binary_function(binary, local), "fixture_local");
	cr_assert_eq(binary_places(binary, local, places), 1);
	cr_assert_str_eq(places[0].function, "fixture_local");
	cr_assert(strstr(places[0].file, "fixtures/names.c"), "%s", places[0].file);
	cr_assert(places[0].line >= 3 && places[0].line <= 5, "line %d", places[0].line);
	binary_free(binary);
}

/* Each function has the line that it is at: the outer ones that of the call. */
Test(binary, inlined_functions)
{
	static const struct {
		const char *function;
		int first, last;
	} wanted[] = {{"fixture_innermost", 20, 21}, {"fixture_between", 26, 26}, {"fixture_around", 32, 32}};
	struct binary *binary = binary_open(open_fixture("names.so"));
	uint64_t address = binary_symbol(binary, "fixture_around");
	struct source_place places[SOURCE_PLACES_MAX];
	size_t count = 0;

	for (; count < 3 && !strcmp(binary_function(binary, address) ?: "", "fixture_around"); address++)
		count = binary_places(binary, address, places);
	cr_assert_eq(count, 3);
	for (size_t i = 0; i < count; i++) {
		cr_assert_str_eq(places[i].function, wanted[i].function);
		cr_assert(strstr(places[i].file, "fixtures/names.c"), "%s", places[i].file);
		cr_assert(places[i].line >= wanted[i].first && places[i].line <= wanted[i].last,
		          "%s: line %d", places[i].function, places[i].line);
	}
	cr_assert_eq(binary_places(binary, 1ULL << 40, places), 0);
	binary_free(binary);
}

Test(binary, cxx)
{
	struct binary *binary = binary_open(open_fixture("names-cxx.so"));
	uint64_t address = binary_symbol(binary, "_ZN7fixture6add_upILi4ElEET0_PKS1_");
	char *name;

	cr_assert_neq(address, 0);
	name = symbol_short(binary_function(binary, address));
	cr_assert_str_eq(name, "fixture::add_up<4, long>");
	free(name);
	binary_free(binary);
}

/* Compiled without frame pointers: at its first instruction a function's frame is sp + 8, later further off.
 */
Test(binary, rules_without_frame_pointers)
{
	struct binary *binary = binary_open(open_fixture("names-stripped.so"));
	uint64_t exported = binary_symbol(binary, "fixture_exported");
	struct unwind_rule rule;
	int32_t largest = 0;

	cr_assert(binary_rule(binary, exported, &rule));
	cr_assert_eq(rule.frame.base, UNWIND_SP);
	cr_assert_eq(rule.frame.offset, 8);
	cr_assert_eq(rule.address.base, UNWIND_CFA);
	cr_assert_eq(rule.address.offset, -8);
	cr_assert_eq(rule.bp.base, UNWIND_SAME);
	for (uint64_t at = exported; binary_function(binary, at) && binary_rule(binary, at, &rule); at++)
		largest = rule.frame.offset > largest ? rule.frame.offset : largest;
	cr_assert_gt(largest, 200, "room for 64 numbers, but the frame never grew over %d", largest);
	cr_assert_not(binary_rule(binary, 1ULL << 40, &rule));
	binary_free(binary);
}

static struct binary *open_bytes(const void *bytes, size_t length)
{
	int fd = memfd_create("fixture", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, length), (ssize_t)length);
	return binary_open(fd);
}

Test(binary, no_elf_file)
{
	struct binary *binary = open_bytes("#!/bin/sh\n", 10);
	struct unwind_rule rule;
	struct source_place places[SOURCE_PLACES_MAX];
	uint64_t address;

	cr_assert_null(binary_function(binary, 0x1000));
	cr_assert_not(binary_rule(binary, 0x1000, &rule));
	cr_assert_eq(binary_places(binary, 0x1000, places), 0);
	cr_assert_not(binary_address(binary, 0, &address));
	cr_assert_eq(binary_symbol(binary, "main"), 0);
	cr_assert_str_eq(binary_build_id(binary), "");
	binary_free(binary);
}

Test(mappings, lines)
{
	char text[] = "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a program (deleted)\n"
	              "nonsense\n"
	              "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
	              "7f0000002000-7f0000003000 rwxp 00000000 00:00 0 \n"
	              "7ffd0000-7ffc0000 r-xp 00000000 00:00 0 [vdso]\n"
	              "00300000-00301000 r--p 00000000 08:02 7 /data";
	struct mapping_list list = {0}, copy = {0};
	FILE *file = fmemopen(text, strlen(text), "r");

	cr_assert_eq(mapping_list_read(&list, file), 0);
	fclose(file);
	cr_assert_eq(mapping_list_copy(&copy, &list), 0);
	mapping_list_free(&list);
	cr_assert_eq(copy.count, 3);
	cr_assert_str_eq(copy.items[0].path, "/data");
	cr_assert_str_eq(mapping_list_find(&copy, 0x451fff)->path, "/usr/bin/a program");
	cr_assert_eq(mapping_list_find(&copy, 0x400000)->offset, 0x1000);
	cr_assert_null(mapping_list_find(&copy, 0x452000));
	cr_assert_null(mapping_list_find(&copy, 0x10));
	cr_assert(mapping_list_find(&copy, 0x7f0000002fff)->executable);
	mapping_list_free(&copy);
}

static bool keeps(const char *now, const char *before)
{
	struct mapping_list one = {0}, other = {0};
	FILE *file = fmemopen((void *)now, strlen(now), "r");
	bool same;

	cr_assert(file && !mapping_list_read(&one, file));
	fclose(file);
	file = fmemopen((void *)before, strlen(before), "r");
	cr_assert(file && !mapping_list_read(&other, file));
	fclose(file);
	same = mapping_list_keeps_code(&one, &other);
	mapping_list_free(&one);
	mapping_list_free(&other);
	return same;
}

Test(mappings, code_that_is_not_what_it_was)
{
	static const char *const before = "1000-3000 r-xp 00000000 08:01 5 /a\n8000-9000 r--p 0 08:01 6 /b\n";

	cr_assert(keeps(before, before));
	cr_assert(keeps("1000-3000 r-xp 00000000 08:01 5 /a\n4000-5000 r-xp 0 08:01 9 /c\n", before),
	          "more code; data that is gone");
	cr_assert(keeps("1000-2000 r-xp 00000000 08:01 5 /a\n2000-3000 r-xp 00001000 08:01 5 /a\n", before),
	          "split");
	cr_assert_not(keeps("8000-9000 r--p 0 08:01 6 /b\n", before), "gone");
	cr_assert_not(keeps("1000-3000 r-xp 00000000 08:01 7 /a\n", before), "another file");
	cr_assert_not(keeps("1000-3000 r-xp 00000000 08:02 5 /a\n", before), "of another device");
	cr_assert_not(keeps("1000-3000 r-xp 00001000 08:01 5 /a\n", before), "another part of it");
	cr_assert_not(keeps("0000-3000 r-xp 00000000 08:01 5 /a\n", before), "moved");
}

Test(perf_map, names)
{
	static const char text[] = "7f00 10 LazyCompile:*step /app.js:3\nbad\n7f10 0 empty\n7f20 8 old\n"
	                           "7f20 8 new\n7f40 ffffffffffffffff all";
	int fd = memfd_create("map", MFD_CLOEXEC);
	struct perf_map map = {0};

	cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	lseek(fd, 0, SEEK_SET);
	cr_assert_eq(perf_map_read(&map, fd), 0);
	close(fd);
	cr_assert_str_eq(perf_map_find(&map, 0x7f0f), "LazyCompile:*step /app.js:3");
	cr_assert_null(perf_map_find(&map, 0x7f10));
	cr_assert_str_eq(perf_map_find(&map, 0x7f27), "new");
	cr_assert_null(perf_map_find(&map, 0x7f28));
	cr_assert_null(perf_map_find(&map, 1));
	perf_map_free(&map);
}
