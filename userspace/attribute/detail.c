// SPDX-License-Identifier: GPL-2.0-only
#include "attribute/detail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/tally.h"
#include "symbols/demangle.h"

void leaf_take_stack(struct leaf *leaf, const struct model *model, uint32_t stack)
{
	if (stack == MODEL_NONE || model->stacks.items[stack].kind != RECORD_STACK_USER)
		return;
	leaf->stack = stack;
	if (!leaf->python)
		leaf->python = model->stacks.items[stack].python;
	if (!leaf->function)
		leaf->function = model->stacks.items[stack].function;
}

/* "step (/home/me/train.py:12)", "read (libc.so.6)"; without a name "libfoo.so+0x1f12", as the file counts.
 */
static const char *describe_frame(struct analysis *analysis, const struct model *model,
                                  const struct stack *stack, uint32_t index)
{
	uint64_t address = model->frames.items[stack->first + index];
	const struct symbol *symbol = model_frame(model, stack, index);
	const char *name = symbol ? model_string(model, symbol->name) : "";
	const char *file = symbol ? model_string(model, symbol->file) : "";
	const char *module = symbol ? model_string(model, symbol->module) : "";
	char *words = symbol_demangle(name), unnamed[24];
	const char *text;

	snprintf(unnamed, sizeof(unnamed), "0x%" PRIx64, address);
	module = strrchr(module, '/') ? strrchr(module, '/') + 1 : module;
	if (symbol && !words && !*name && *module && symbol->module_address)
		return analysis_text(analysis, "%s+0x%" PRIx64, module, symbol->module_address);
	name = words ? words : *name ? name : unnamed;
	if (symbol && *file && symbol->line)
		text = analysis_text(analysis, "%s (%s:%" PRIu32 ")", name, file, symbol->line);
	else if (*file || *module)
		text = analysis_text(analysis, "%s (%s)", name, *file ? file : module);
	else
		text = analysis_text(analysis, "%s", name);
	free(words);
	return text;
}

static int describe_stack(struct analysis *analysis, const struct model *model, uint32_t index,
                          struct cause_detail *detail)
{
	const struct stack *stack = &model->stacks.items[index];
	const char **frames = calloc(stack->count + 1, sizeof(*frames));
	char **slot = frames ? array_add(&analysis->owned) : NULL;

	if (!slot) {
		free(frames);
		return -ENOMEM;
	}
	*slot = (char *)frames;
	for (uint32_t i = 0; i < stack->count; i++) {
		frames[i] = describe_frame(analysis, model, stack, i);
		if (!frames[i])
			return -ENOMEM;
	}
	detail->stack = frames;
	detail->stack_count = stack->count;
	/* What is missing is said where it would stand. */
	if (stack->cut) {
		frames[stack->count] = "… (cut)";
		detail->stack_count++;
	}
	return 0;
}

int leaf_describe(struct analysis *analysis, const struct model *model, const struct leaf *leaf,
                  struct cause_detail *detail)
{
	*detail = (struct cause_detail){0};
	if (leaf->syscall >= 0) {
		detail->syscall = analysis_text(analysis, "%s", syscall_name(leaf->syscall));
		if (!detail->syscall)
			return -ENOMEM;
	}
	if (leaf->path)
		detail->path = model_string(model, leaf->path);
	if (leaf->device)
		detail->device = model_string(model, leaf->device);
	if (leaf->function)
		detail->function = model_string(model, leaf->function);
	if (leaf->python)
		detail->python = model_string(model, leaf->python);
	if (leaf->lock) {
		detail->lock = analysis_text(analysis, "%sfutex 0x%" PRIx64,
		                             leaf->lock_shared ? "shared " : "", leaf->lock);
		if (!detail->lock)
			return -ENOMEM;
	}
	if (leaf->holder != MODEL_NONE) {
		const struct thread *holder = &model->threads.items[leaf->holder];

		detail->holder =
		    analysis_text(analysis, "%s (%u)", model_string(model, holder->comm), holder->tid);
		if (!detail->holder)
			return -ENOMEM;
	}
	return leaf->stack == MODEL_NONE ? 0 : describe_stack(analysis, model, leaf->stack, detail);
}
