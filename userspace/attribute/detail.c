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

/* The thread of the process of `waiter` that has this id for the program itself, MODEL_NONE. */
static uint32_t find_holder(const struct model *model, uint32_t waiter, const struct offcpu *offcpu)
{
	const struct process *process = &model->processes.items[model->threads.items[waiter].process];
	const uint32_t *index;

	array_for_each (index, &process->threads) {
		const struct thread *thread = &model->threads.items[*index];
		uint32_t tid = thread->namespace_tid ? thread->namespace_tid : thread->tid;

		if (tid == offcpu->lock_holder && thread->start_ns <= offcpu->out_ns &&
		    thread->end_ns >= offcpu->out_ns && *index != waiter)
			return *index;
	}
	return MODEL_NONE;
}

/* "main waits for the condition variable queue_ready (app)", "…for the mutex 0x7f…, held by flusher (12)" */
static int describe_lock(struct analysis *analysis, const struct model *model, const struct leaf *leaf,
                         struct cause_detail *detail)
{
	static const char *const kinds[] = {
	    [RECORD_LOCK_CONDITION] = "the condition variable",
	    [RECORD_LOCK_SEMAPHORE] = "the semaphore",
	    [RECORD_LOCK_JOIN] = "the end of the thread",
	    [RECORD_LOCK_READ] = "the read-write lock (to read)",
	    [RECORD_LOCK_WRITE] = "the read-write lock (to write)",
	    [RECORD_LOCK_MUTEX] = "the mutex",
	};
	const struct offcpu *wait = leaf->lock_wait;
	const struct thread *waiter = &model->threads.items[leaf->lock_waiter];
	const char *name = model_string(model, wait->path), *holder = "";
	uint32_t by = MODEL_NONE;
	char address[24];

	/* A join's futex is the thread's id, and its address says nothing to anybody. */
	snprintf(address, sizeof(address), "0x%" PRIx64, wait->lock);
	if (wait->lock_kind == RECORD_LOCK_JOIN) {
		snprintf(address, sizeof(address), "%" PRIu32, (uint32_t)wait->args[2]);
		name = "";
	}
	if (wait->lock_holder)
		by = find_holder(model, leaf->lock_waiter, wait);
	if (by != MODEL_NONE) {
		const struct thread *thread = &model->threads.items[by];

		holder = analysis_text(analysis, ", held by %s (%" PRIu32 ") when it began",
		                       model_string(model, thread->comm), thread->tid);
		if (!holder)
			return -ENOMEM;
	}
	detail->waits_for = analysis_text(analysis, "%s waits for %s %s%s", model_string(model, waiter->comm),
	                                  kinds[wait->lock_kind], *name ? name : address, holder);
	return detail->waits_for ? 0 : -ENOMEM;
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
	if (leaf->lock_wait && describe_lock(analysis, model, leaf, detail))
		return -ENOMEM;
	if (leaf->holder != MODEL_NONE) {
		const struct thread *holder = &model->threads.items[leaf->holder];

		detail->holder =
		    analysis_text(analysis, "%s (%u)", model_string(model, holder->comm), holder->tid);
		if (!detail->holder)
			return -ENOMEM;
	}
	return leaf->stack == MODEL_NONE ? 0 : describe_stack(analysis, model, leaf->stack, detail);
}
