/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions without names, found later by build id in a folder. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/model.h"
#include "session_fixture.h"
#include "symbols/symbol_folder.h"

#define ADDRESS 0x7f0000001000

static struct binary *open_fixture(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", UNIT_FIXTURES, name);
	fd = open(path, O_RDONLY);
	cr_assert_geq(fd, 0, "%s", path);
	return binary_open(fd);
}

/* A session of one stack of one frame, in a file with this build id. */
static const char *write_session(const char *build_id, uint64_t module_address)
{
	const char *path = fixture_path("resolve");
	struct session_writer *writer;
	const uint64_t frame = ADDRESS;
	struct record_stack stack = {
	    .header = {.type = RECORD_STACK, .size = sizeof(stack) + sizeof(frame)},
	    .id = 1,
	    .kind = RECORD_STACK_USER,
	    .pid = 100,
	    .count = 1,
	};
	struct record_symbol symbol = {
	    .header = {.type = RECORD_SYMBOL, .size = sizeof(symbol)},
	    .address = ADDRESS,
	    .pid = 100,
	    .module_address = module_address,
	};

	cr_assert_eq(session_writer_open(&writer, path, NULL), 0);
	symbol.module = session_writer_cstring(writer, "/opt/lib/names.so");
	symbol.build_id = session_writer_cstring(writer, build_id);
	cr_assert_eq(session_writer_put(writer, &symbol, NULL), 0);
	cr_assert_eq(session_writer_put_tail(writer, &stack, sizeof(stack), &frame, sizeof(frame), NULL), 0);
	cr_assert_eq(session_writer_close(writer, NULL), 0);
	return path;
}

/* What the frame is called after a search in `folder`, "" if it still has no name. */
static const char *resolved_by(const char *build_id, uint64_t address, const char *folder, bool whole)
{
	static char name[256];
	struct error error = {0};
	struct model model;
	uint64_t functions;

	cr_assert_eq(model_load_session(&model, write_session(build_id, address), &error), 0, "%s",
	             error.text);
	cr_assert_eq(model_resolve(&model, folder, whole, &functions, &error), 0, "%s", error.text);
	snprintf(name, sizeof(name), "%s", model_symbol(&model, 100, ADDRESS) ?: "");
	cr_assert_eq(functions, *name ? 1 : 0);
	cr_assert_str_eq(model_string(&model, model.stacks.items[0].function), name,
	                 "the stack is named anew");
	model_free(&model);
	return name;
}

static const char *resolved(const char *build_id, uint64_t address, const char *folder)
{
	return resolved_by(build_id, address, folder, true);
}

static void link_as(const char *folder, const char *format, const char *first, const char *rest)
{
	char path[512], *from = realpath(UNIT_FIXTURES "/names.so", NULL);

	cr_assert(from);
	snprintf(path, sizeof(path), format, folder, first, rest);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		cr_assert(!mkdir(path, 0700) || errno == EEXIST);
		*slash = '/';
	}
	cr_assert_eq(symlink(from, path), 0, "%s", path);
	free(from);
}

Test(resolve, by_build_id)
{
	struct binary *binary = open_fixture("names.so");
	uint64_t exported = binary_symbol(binary, "fixture_exported");
	const char *id = binary_build_id(binary);
	char folder[] = "/tmp/whyidle-symbols-XXXXXX", other[] = "/tmp/whyidle-symbols-XXXXXX";

	cr_assert(exported && strlen(id) > 8, "the fixture has no build id");
	cr_assert_str_eq(resolved(id, exported + 1, UNIT_FIXTURES), "fixture_exported");
	cr_assert_str_eq(resolved(id, 1, UNIT_FIXTURES), "", "nothing lies there");
	cr_assert_str_eq(resolved("0123456789abcdef", exported + 1, UNIT_FIXTURES), "", "another file");
	cr_assert(mkdtemp(folder) && mkdtemp(other));
	cr_assert_str_eq(resolved(id, exported + 1, folder), "", "an empty folder");
	link_as(folder, "%s/.build-id/%.2s/%s.debug", id, id + 2);
	cr_assert_str_eq(resolved(id, exported + 1, folder), "fixture_exported");
	link_as(other, "%s/%s/%s", id, "debuginfo");
	cr_assert_str_eq(resolved(id, exported + 1, other), "fixture_exported");
	cr_assert_str_eq(resolved_by(id, exported + 1, folder, false), "fixture_exported");
	cr_assert_str_eq(resolved_by(id, exported + 1, UNIT_FIXTURES, false), "", "in none of the layouts");
	binary_free(binary);
}

/* The stripped file and the whole one have one build id: both are asked. */
Test(resolve, several_files_of_one_build_id)
{
	struct binary *whole = open_fixture("names.so"), *stripped = open_fixture("names-stripped.so"),
	              *found;
	struct symbol_folder *folder;
	uint32_t at = 0, count = 0, named = 0;
	uint64_t exported = binary_symbol(whole, "fixture_exported");

	cr_assert_str_eq(binary_build_id(whole), binary_build_id(stripped));
	cr_assert_eq(symbol_folder_open(&folder, UNIT_FIXTURES, true, NULL), 0);
	while ((found = symbol_folder_find(folder, binary_build_id(whole), &at))) {
		count++;
		named += binary_function(found, exported) != NULL;
	}
	cr_assert_geq(count, 2);
	cr_assert_geq(named, 1);
	symbol_folder_close(folder);
	binary_free(whole);
	binary_free(stripped);
}

/* Build ids come from a file that anybody may have made. */
Test(resolve, build_ids_are_no_paths)
{
	const char *const ids[] = {
	    "", "a", "../../../../etc", "ab/../../../../etc/passwd", "ABCDEF0123456789", "%s%s%n%s%s%n"};
	struct symbol_folder *folder;
	struct error error = {0};
	uint32_t at;

	cr_assert_eq(symbol_folder_open(&folder, "/nowhere", true, &error), -ENOENT);
	cr_assert(strstr(error.text, "/nowhere"));
	cr_assert_eq(symbol_folder_open(&folder, "/dev/null", true, &error), -ENOTDIR);
	cr_assert_eq(symbol_folder_open(&folder, UNIT_FIXTURES, true, &error), 0);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		at = 0;
		cr_assert_null(symbol_folder_find(folder, ids[i], &at), "%s", ids[i]);
	}
	symbol_folder_close(folder);
}

/* Functions that were inlined get frames of their own, also those that are known only now; once. */
Test(resolve, inlined_functions)
{
	struct binary *binary = open_fixture("names.so");
	uint64_t address = binary_symbol(binary, "fixture_around");
	struct source_place places[SOURCE_PLACES_MAX];
	static const char *const names[] = {"fixture_innermost", "fixture_between", "fixture_around"};
	const struct stack *stack;
	struct model model;
	uint64_t functions;

	while (binary_places(binary, address, places) < 3)
		address++;
	cr_assert_eq(model_load_session(&model, write_session(binary_build_id(binary), address), NULL), 0);
	for (int again = 0; again < 2; again++) {
		cr_assert_eq(model_resolve(&model, UNIT_FIXTURES, true, &functions, NULL), 0);
		stack = &model.stacks.items[0];
		cr_assert_eq(stack->count, 3);
		for (uint32_t i = 0; i < 3; i++) {
			const struct symbol *symbol = model_frame(&model, stack, i);

			cr_assert_str_eq(model_string(&model, symbol->name), names[i]);
			cr_assert_eq(symbol->line, (uint32_t)places[i].line);
			cr_assert_str_eq(model_string(&model, symbol->module), "/opt/lib/names.so");
		}
	}
	model_free(&model);
	binary_free(binary);
}
