// SPDX-License-Identifier: GPL-2.0-only
/* What the stacks of profile.h are made of. */
#include <stdlib.h>
#include <string.h>

#include "attribute/gap_chains.h"
#include "base/number.h"
#include "export/kernel_name.h"
#include "export/launches.h"
#include "export/profile.h"
#include "model/thread_states.h"
#include "symbols/demangle.h"

static uint32_t gpu_node(struct profile *profile, enum profile_kind kind, const struct device *device)
{
	return profile_child(profile, kind, profile_format(profile, "GPU %u", device->number));
}

static uint32_t process_node(struct profile *profile, uint32_t parent, uint32_t index)
{
	const struct process *process = &profile->model->processes.items[index];
	uint32_t name =
	    profile_format(profile, "%s (%u)", model_string(profile->model, process->comm), process->pid);

	return profile_child(profile, parent, name);
}

static uint32_t thread_node(struct profile *profile, uint32_t parent, uint32_t index)
{
	const struct thread *thread = &profile->model->threads.items[index];
	uint32_t name =
	    profile_format(profile, "%s [%u]", model_string(profile->model, thread->comm), thread->tid);

	return profile_child(profile, process_node(profile, parent, thread->process), name);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "function", "function (file.py)" of an interpreter, "[library.so]" where that is all that is known. */
static uint32_t make_frame_name(struct profile *profile, const struct stack *stack, uint32_t index)
{
	const struct model *model = profile->model;
	const struct symbol *symbol = model_frame(model, stack, index);
	uint32_t name;
	char *text;

	if (!symbol || !(symbol->name || symbol->module))
		return profile_text(profile, "[unknown]");
	if (!symbol->name)
		return profile_format(profile, "[%s]", base_name(model_string(model, symbol->module)));
	if (stack->kind == RECORD_STACK_USER &&
	    model->frames.items[stack->first + index] & RECORD_FRAME_INTERPRETED)
		return profile_format(profile, "%s (%s)", model_string(model, symbol->name),
		                      base_name(model_string(model, symbol->file)));
	text = symbol_demangle(model_string(model, symbol->name));
	name = text ? profile_text(profile, text) : profile_string(profile, symbol->name);
	free(text);
	return name;
}

/* Adds the frames of a recorded stack, the outermost first. */
static uint32_t stack_node(struct profile *profile, uint32_t parent, uint32_t index)
{
	const struct stack *stack;

	if (index == MODEL_NONE)
		return parent;
	stack = &profile->model->stacks.items[index];
	for (uint32_t i = stack->count; i-- > 0;) {
		uint32_t *name = &profile->name_by_frame.items[stack->first + i];

		if (!*name)
			*name = make_frame_name(profile, stack, i);
		parent = profile_child(profile, parent, *name);
	}
	return parent;
}

static uint32_t text_node(struct profile *profile, uint32_t parent, const char *text)
{
	return text ? profile_child(profile, parent, profile_text(profile, text)) : parent;
}

static uint32_t string_node(struct profile *profile, uint32_t parent, uint32_t string)
{
	return string ? profile_child(profile, parent, profile_string(profile, string)) : parent;
}

/* User stack, system call, kernel stack: from the outside to where the thread stopped. */
static uint32_t wait_node(struct profile *profile, uint32_t parent, const struct offcpu *offcpu)
{
	parent = stack_node(profile, parent, offcpu->ustack);
	parent = text_node(profile, parent, syscall_name(offcpu->syscall));
	return stack_node(profile, parent, offcpu->kstack);
}

/* ---- idle time ---- */

/* Without a stack the walk may know where the thread was: from an operator or a CUDA call. */
static uint32_t place_node(struct profile *profile, uint32_t parent, const struct leaf *leaf, uint32_t stack)
{

	if (stack != MODEL_NONE)
		return parent;
	parent = string_node(profile, parent, leaf->python);
	if (!leaf->function)
		return parent;
	return text_node(profile, parent, model_string(profile->model, leaf->function));
}

static void add_blocked(struct profile *profile, uint32_t parent, const struct leaf *leaf)
{
	const struct thread *thread = &profile->model->threads.items[leaf->thread];
	size_t at = thread_offcpu_after(thread, leaf->start_ns);
	uint64_t ns = leaf->end_ns - leaf->start_ns;

	if (at < thread->offcpu.count && thread->offcpu.items[at].out_ns < leaf->end_ns) {
		const struct offcpu *offcpu = &thread->offcpu.items[at];

		parent = place_node(profile, parent, leaf, offcpu->ustack);
		profile_add(profile, wait_node(profile, parent, offcpu), ns);
		return;
	}
	parent = place_node(profile, parent, leaf, MODEL_NONE);
	profile_add(profile, text_node(profile, parent, syscall_name(leaf->syscall)), ns);
}

/* First sample at or after a time. */
static size_t sample_after(const struct thread *thread, uint64_t time_ns)
{
	size_t low = 0, high = thread->samples.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->samples.items[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The samples that were taken within share the time; without any it stays whole. */
static void add_running(struct profile *profile, uint32_t parent, const struct leaf *leaf)
{
	const struct thread *thread = &profile->model->threads.items[leaf->thread];
	size_t first = sample_after(thread, leaf->start_ns), end = sample_after(thread, leaf->end_ns);
	uint64_t left = leaf->end_ns - leaf->start_ns;

	for (size_t at = first; at < end; at++) {
		const struct sample *sample = &thread->samples.items[at];
		uint64_t part = left / (end - at);
		uint32_t node = place_node(profile, parent, leaf, sample->ustack);

		node = stack_node(profile, node, sample->ustack);
		node = text_node(profile, node, syscall_name(sample->syscall));
		profile_add(profile, stack_node(profile, node, sample->kstack), part);
		left -= part;
	}
	if (!left)
		return;
	parent = place_node(profile, parent, leaf, MODEL_NONE);
	profile_add(profile, text_node(profile, parent, syscall_name(leaf->syscall)), left);
}

static void add_leaf(struct profile *profile, uint32_t parent, const struct leaf *leaf)
{
	uint32_t node = profile_child(
	    profile, parent,
	    profile_format(profile, "%s (%s)", cause_code_name(leaf->code), cause_role_name(leaf->role)));

	if (leaf->thread != MODEL_NONE)
		node = thread_node(profile, node, leaf->thread);
	if (leaf->thread != MODEL_NONE && leaf->state == LEAF_BLOCKED)
		add_blocked(profile, node, leaf);
	else if (leaf->thread != MODEL_NONE && leaf->state == LEAF_RUNNING)
		add_running(profile, node, leaf);
	else
		profile_add(profile, place_node(profile, node, leaf, MODEL_NONE),
		            leaf->end_ns - leaf->start_ns);
}

static int add_gap(void *context, const struct gap_chain *chain)
{
	struct profile *profile = context;
	uint32_t parent = gpu_node(profile, PROFILE_IDLE, chain->device);

	for (size_t i = 0; i < chain->count; i++)
		add_leaf(profile, parent, &chain->leaves[i]);
	return profile->failed;
}

void profile_collect_idle(struct profile *profile, const struct analysis *analysis)
{
	const struct device_report *report;

	array_for_each (report, &analysis->devices) {
		if (gap_chains_visit(profile->model, report, add_gap, profile))
			profile->failed = true;
	}
}

/* ---- operations ---- */

/* The scopes that were open at a time, the outermost first. */
static uint32_t scope_node(struct profile *profile, uint32_t parent, const struct thread *thread,
                           uint32_t scope, uint64_t time_ns)
{
	uint32_t chain[256], depth = 0;

	for (; scope != MODEL_NONE && depth < sizeof(chain) / sizeof(*chain);
	     scope = thread->scopes.items[scope].outer) {
		if (thread->scopes.items[scope].end_ns > time_ns)
			chain[depth++] = thread->scopes.items[scope].name;
	}
	while (depth)
		parent = string_node(profile, parent, chain[--depth]);
	return parent;
}

static uint32_t last_scope_before(const struct thread *thread, uint64_t time_ns)
{
	size_t low = 0, high = thread->scopes.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->scopes.items[middle].start_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low ? (uint32_t)low - 1 : MODEL_NONE;
}

static uint32_t call_node(struct profile *profile, uint32_t parent, const struct gpu_op *op)
{
	const struct call *call = op_launch_call(profile->model, op);
	const struct thread *thread;
	uint64_t launch_ns;

	if (!call)
		return op->process == MODEL_NONE ? parent : process_node(profile, parent, op->process);
	thread = &profile->model->threads.items[op->launch_thread];
	launch_ns = op->launch_ns ? op->launch_ns : call->enter_ns;
	parent = thread_node(profile, parent, op->launch_thread);
	parent = scope_node(profile, parent, thread, last_scope_before(thread, launch_ns), launch_ns);
	return text_node(profile, parent, model_string(profile->model, call->function));
}

void profile_collect_gpu(struct profile *profile)
{
	const struct device *device;

	array_for_each (device, &profile->model->devices) {
		uint32_t parent = gpu_node(profile, PROFILE_GPU, device);
		const struct gpu_op *op;

		array_for_each (op, &device->ops) {
			char name[COPY_NAME_SIZE];
			uint32_t node = call_node(profile, parent, op);

			if (op->name)
				node = string_node(profile, node, op->name);
			else
				node = text_node(profile, node, op_title(name, profile->model, op));
			profile_add(profile, node, op->end_ns - op->start_ns);
			if (profile->failed)
				return;
		}
	}
}

/* ---- off the CPU ---- */

struct thread_row {
	struct profile *profile;
	uint32_t thread;
};

static int add_state(void *context, const struct state_span *span)
{
	struct thread_row *row = context;
	struct profile *profile = row->profile;
	const char *state = thread_state_name(span->state);
	uint32_t node;

	if (!span->offcpu)
		return 0;
	node = thread_node(profile, PROFILE_OFF_CPU, row->thread);
	if (span->state == STATE_BLOCKED)
		node = profile_child(
		    profile, node,
		    profile_format(profile, "%s: %s", state, wait_kind_name(span->offcpu->wait)));
	else
		node = text_node(profile, node, state);
	profile_add(profile, wait_node(profile, node, span->offcpu), span->end_ns - span->start_ns);
	return profile->failed;
}

void profile_collect_off_cpu(struct profile *profile)
{
	for (uint32_t i = 0; i < profile->model->threads.count; i++) {
		struct thread_row row = {profile, i};

		thread_states_visit(profile->model, &profile->model->threads.items[i], add_state, &row);
	}
}
