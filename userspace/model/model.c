/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/model.h"

#include <errno.h>
#include <string.h>

uint32_t model_add_string(struct model *model, const char *text, size_t length)
{
	const char **slot;
	char **owned, *copy = malloc(length + 1);

	if (!copy)
		return MODEL_NONE;
	memcpy(copy, text, length);
	copy[length] = '\0';
	owned = array_add(&model->owned);
	if (!owned) {
		free(copy);
		return MODEL_NONE;
	}
	*owned = copy;
	if (!model->strings.count) {
		slot = array_add(&model->strings);
		if (!slot)
			return MODEL_NONE;
		*slot = "";
	}
	slot = array_add(&model->strings);
	if (!slot)
		return MODEL_NONE;
	*slot = copy;
	return model->strings.count - 1;
}

const char *model_string(const struct model *model, uint32_t id)
{
	if (!id || id >= model->strings.count || !model->strings.items[id])
		return "";
	return model->strings.items[id];
}

uint32_t model_new_process(struct model *model, uint32_t pid, uint32_t parent)
{
	struct process *process = array_add(&model->processes);
	uint32_t index = model->processes.count - 1;

	if (!process || index_map_put(&model->process_by_pid, pid, index))
		return MODEL_NONE;
	process->pid = pid;
	process->parent = parent;
	process->born = true;
	process->end_ns = UINT64_MAX;
	return index;
}

uint32_t model_get_process(struct model *model, uint32_t pid)
{
	uint32_t index;

	if (index_map_get(&model->process_by_pid, pid, &index))
		return index;
	index = model_new_process(model, pid, MODEL_NONE);
	if (index != MODEL_NONE)
		model->processes.items[index].born = false;
	return index;
}

uint32_t model_new_thread(struct model *model, uint32_t pid, uint32_t tid, uint64_t start_ns)
{
	uint32_t process = model_get_process(model, pid);
	uint32_t previous = MODEL_NONE;
	struct thread *thread;

	if (process == MODEL_NONE)
		return MODEL_NONE;
	index_map_get(&model->thread_by_tid, tid, &previous);
	thread = array_add(&model->threads);
	if (!thread || index_map_put(&model->thread_by_tid, tid, model->threads.count - 1))
		return MODEL_NONE;
	thread->pid = pid;
	thread->tid = tid;
	thread->process = process;
	thread->previous = previous;
	thread->start_ns = start_ns;
	thread->end_ns = UINT64_MAX;
	return model->threads.count - 1;
}

uint32_t model_get_thread(struct model *model, uint32_t pid, uint32_t tid)
{
	uint32_t index;

	if (index_map_get(&model->thread_by_tid, tid, &index) && model->threads.items[index].pid == pid)
		return index;
	return model_new_thread(model, pid, tid, 0);
}

/* The last one that began with this tid before `time`, whether it had ended by then or not. */
static uint32_t thread_begun(const struct model *model, uint32_t tid, uint64_t time_ns)
{
	uint32_t index;

	if (!tid || !index_map_get(&model->thread_by_tid, tid, &index))
		return MODEL_NONE;
	while (index != MODEL_NONE && model->threads.items[index].start_ns > time_ns)
		index = model->threads.items[index].previous;
	return index;
}

uint32_t model_thread_at(const struct model *model, uint32_t tid, uint64_t time_ns)
{
	uint32_t index = thread_begun(model, tid, time_ns);

	return index != MODEL_NONE && model->threads.items[index].end_ns >= time_ns ? index : MODEL_NONE;
}

/*
 * A thread's last wakes come after the record of its end: of who waits for it (since Linux 6.16, which moved
 * sched_process_exit before exit_mm), of who reads what it closes, of its parent. Its id is not given to
 * others before, but where the records of a later thread were lost, the time between tells.
 */
#define LAST_WAKE_NS 1000000000ULL

uint32_t model_waker(const struct model *model, const struct offcpu *offcpu)
{
	uint32_t index = offcpu->woken ? thread_begun(model, offcpu->waker_tid, offcpu->wake_ns) : MODEL_NONE;
	const struct thread *thread;

	if (index == MODEL_NONE)
		return MODEL_NONE;
	thread = &model->threads.items[index];
	if (thread->end_ns >= offcpu->wake_ns)
		return index;
	return offcpu->waker_ending && thread->pid == offcpu->waker_pid &&
	               offcpu->wake_ns - thread->end_ns <= LAST_WAKE_NS
	           ? index
	           : MODEL_NONE;
}

static uint64_t symbol_key(uint32_t pid, uint64_t address)
{
	return pid ? hash_mix(address) ^ ((uint64_t)pid << 32 | pid) : address;
}

int model_add_symbol(struct model *model, const struct symbol *symbol)
{
	struct symbol *slot = array_add(&model->symbols);

	if (!slot)
		return -ENOMEM;
	*slot = *symbol;
	return index_map_put(&model->symbol_by_address, symbol_key(symbol->pid, symbol->address),
	                     model->symbols.count - 1);
}

const struct symbol *model_find_symbol(const struct model *model, uint32_t pid, uint64_t address)
{
	const struct symbol *symbol;
	uint32_t index;

	if (!index_map_get(&model->symbol_by_address, symbol_key(pid, address), &index))
		return NULL;
	symbol = &model->symbols.items[index];
	return symbol->pid == pid && symbol->address == address ? symbol : NULL;
}

const char *model_symbol(const struct model *model, uint32_t pid, uint64_t address)
{
	const struct symbol *symbol = model_find_symbol(model, pid, address);

	return symbol && symbol->name ? model_string(model, symbol->name) : NULL;
}

const struct symbol *model_frame(const struct model *model, const struct stack *stack, uint32_t index)
{
	uint64_t address = model->frames.items[stack->first + index];
	bool elsewhere =
	    stack->kind == RECORD_STACK_USER && address & (RECORD_FRAME_INTERPRETED | RECORD_FRAME_INLINED);

	return model_find_symbol(model, elsewhere ? 0 : stack->pid, address);
}

void model_free(struct model *model)
{
	struct thread *thread;
	struct process *process;
	struct device *device;
	char **text;

	array_for_each (thread, &model->threads) {
		array_free(&thread->offcpu);
		array_free(&thread->samples);
		array_free(&thread->stolen);
		array_free(&thread->calls);
		array_free(&thread->overhead);
		array_free(&thread->scopes);
		array_free(&thread->nccl_calls);
	}
	array_for_each (process, &model->processes)
		array_free(&process->threads);
	array_for_each (device, &model->devices) {
		array_free(&device->ops);
		array_free(&device->others);
	}
	array_for_each (text, &model->owned)
		free(*text);
	array_free(&model->owned);
	array_free(&model->strings);
	array_free(&model->threads);
	array_free(&model->processes);
	array_free(&model->devices);
	array_free(&model->stacks);
	array_free(&model->frames);
	array_free(&model->symbols);
	array_free(&model->losses);
	array_free(&model->gpu_holes);
	array_free(&model->callers);
	array_free(&model->degraded);
	array_free(&model->syncs);
	array_free(&model->nccl_works);
	index_map_free(&model->thread_by_tid);
	index_map_free(&model->process_by_pid);
	index_map_free(&model->symbol_by_address);
	index_map_free(&model->call_by_id);
	*model = (struct model){0};
}
