// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a user stack is about: the one line of Python and the one native function that a person would look for
 * in the program's own code. The innermost frames seldom are: they are the C library's, the interpreter's or
 * the standard library's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "symbols/demangle.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Files that a program's author did not write: what comes with Python, and what was installed into it. */
static bool is_library_python(const char *file)
{
	return strstr(file, "/lib/python3") || strstr(file, "-packages/") || *file == '<';
}

/* Libraries whose functions serve whoever called them. */
static bool is_service_library(const char *path)
{
	static const char *const names[] = {"libc.so", "libc-2",   "libpthread", "ld-linux",
	                                    "libm.so", "ld-musl",  "libpython3", "python3",
	                                    "[vdso]",  "libgcc_s", "libstdc++"};
	const char *name = base_name(path);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

static uint32_t add_text(struct model *model, struct index_map *known, uint64_t key, const char *text)
{
	uint32_t id;

	if (index_map_get(known, key, &id))
		return id;
	id = model_add_string(model, text, strlen(text));
	return id != MODEL_NONE && index_map_put(known, key, id) ? MODEL_NONE : id;
}

/* "train.py:12 step" */
static uint32_t python_text(struct model *model, struct index_map *known, const struct symbol *symbol)
{
	const uint64_t parts[] = {symbol->file, symbol->line, symbol->name};
	char text[1024];

	if (symbol->line)
		snprintf(text, sizeof(text), "%s:%u %s", base_name(model_string(model, symbol->file)),
		         symbol->line, model_string(model, symbol->name));
	else
		snprintf(text, sizeof(text), "%s %s", base_name(model_string(model, symbol->file)),
		         model_string(model, symbol->name));
	return add_text(model, known, hash_bytes(parts, sizeof(parts)), text);
}

static uint32_t function_text(struct model *model, struct index_map *known, uint32_t name)
{
	const uint64_t part = name;
	char *text = symbol_demangle(model_string(model, name));
	uint32_t id = text ? add_text(model, known, hash_bytes(&part, sizeof(part)), text) : name;

	free(text);
	return id;
}

/* Functions of CPython that collect garbage, by the versions that have them. Stripped interpreters name none,
 * nor did recordings say so by themselves before RECORD_STACK_COLLECTING. */
static bool is_collection(const char *name)
{
	static const char *const names[] = {
	    "collect_with_callback",    /* 3.9 */
	    "gc_collect_main",          /* 3.10 to 3.14; seen with 3.11 */
	    "gc_collect_generations",   /* 3.10 to 3.12 */
	    "gc_collect_with_callback", /* 3.10 to 3.12 */
	    "gc_collect_young",         /* 3.14 */
	    "gc_collect_increment",     /* 3.14 */
	    "gc_collect_full",          /* 3.14 */
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

/* Also while a finaliser, in Python again, runs within it. */
static bool is_collecting(const struct model *model, const struct stack *stack)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct symbol *symbol = model_frame(model, stack, i);

		if (symbol && !(model->frames.items[stack->first + i] & RECORD_FRAME_INTERPRETED) &&
		    is_collection(model_string(model, symbol->name)))
			return true;
	}
	return false;
}

static bool is_interpreter(const char *path)
{
	const char *name = base_name(path);

	return !strncmp(name, "python", 6) || !strncmp(name, "libpython", 9);
}

static bool is_without_python(const struct model *model, const struct stack *stack)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct symbol *symbol = model_frame(model, stack, i);

		if (model->frames.items[stack->first + i] & RECORD_FRAME_INTERPRETED || !symbol ||
		    !symbol->module || is_interpreter(model_string(model, symbol->module)))
			return false;
	}
	return stack->count && !stack->cut;
}

static int name_stack(struct model *model, struct index_map *known, struct stack *stack)
{
	const struct symbol *python = NULL, *any_python = NULL, *native = NULL, *any_native = NULL;

	for (uint32_t i = 0; i < stack->count && !python; i++) {
		const struct symbol *symbol = model_frame(model, stack, i);

		if (model->frames.items[stack->first + i] & RECORD_FRAME_INTERPRETED) {
			any_python = any_python ? any_python : symbol;
			if (symbol && !is_library_python(model_string(model, symbol->file)))
				python = symbol;
		} else if (symbol && symbol->name && !any_python) {
			/* Native code further out only called the interpreter. */
			any_native = any_native ? any_native : symbol;
			if (!native && !is_service_library(model_string(model, symbol->module)))
				native = symbol;
		}
	}
	python = python ? python : any_python;
	/* What the interpreter itself does is told by the line. */
	native = native || python ? native : any_native;
	if (python)
		stack->python = python_text(model, known, python);
	if (native)
		stack->function = function_text(model, known, native->name);
	stack->collecting = stack->collecting || is_collecting(model, stack);
	stack->without_python = is_without_python(model, stack);
	return stack->python == MODEL_NONE || stack->function == MODEL_NONE ? -ENOMEM : 0;
}

int model_name_stacks(struct model *model)
{
	struct index_map known = {0};
	struct stack *stack;
	int err = model_expand_inlined(model);

	array_for_each (stack, &model->stacks) {
		if (!err && stack->kind == RECORD_STACK_USER)
			err = name_stack(model, &known, stack);
	}
	index_map_free(&known);
	return err;
}
