// SPDX-License-Identifier: GPL-2.0-only
/* Host threads: their CUDA calls, operators and annotations, CUPTI's own time, and what the scheduler says.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export/api_name.h"
#include "export/chrome.h"
#include "model/thread_states.h"

#define NAME_SIZE 128

static const char *scope_category(const struct scope *scope)
{
	switch (scope->kind) {
	case SCOPE_OPERATOR:
		return "cpu_op";
	case SCOPE_PYTHON:
		return "python_function";
	default:
		return "user_annotation";
	}
}

static void put_calls(struct chrome *chrome, uint32_t index)
{
	const struct thread *thread = &chrome->model->threads.items[index];

	for (size_t i = 0; i < thread->calls.count; i++) {
		const struct call *call = &thread->calls.items[i];
		const char *function = model_string(chrome->model, call->function);
		uint64_t id = chrome_correlation(chrome, thread->process, call->correlation);

		chrome_slice(chrome, api_is_driver(function) ? "cuda_driver" : "cuda_runtime", function,
		             thread->pid, thread->tid, call->enter_ns, call->exit_ns);
		if (id)
			chrome_number(chrome, "correlation", id);
		if (!call->exit_known)
			chrome_string(chrome, "end", "not recorded");
		chrome_end(chrome);
		if (launches_has(&chrome->launches, index, i))
			chrome_flow(chrome, true, id, thread->pid, thread->tid, call->enter_ns);
	}
}

static void put_scopes(struct chrome *chrome, const struct thread *thread)
{
	const struct scope *scope;

	array_for_each (scope, &thread->scopes) {
		if (scope->crosses) {
			chrome_async(chrome, scope_category(scope), model_string(chrome->model, scope->name),
			             ++chrome->asyncs, thread->pid, thread->tid, scope->start_ns,
			             scope->end_ns);
			continue;
		}
		chrome_slice(chrome, scope_category(scope), model_string(chrome->model, scope->name),
		             thread->pid, thread->tid, scope->start_ns, scope->end_ns);
		chrome_end(chrome);
	}
}

static void put_overhead(struct chrome *chrome, const struct thread *thread)
{
	const struct overhead *overhead;

	array_for_each (overhead, &thread->overhead) {
		chrome_slice(chrome, "overhead", overhead->loading ? "Lazy Function Loading" : "CUPTI",
		             thread->pid, thread->tid, overhead->start_ns, overhead->end_ns);
		chrome_end(chrome);
	}
}

struct state_row {
	struct chrome *chrome;
	const struct thread *thread;
};

static void put_wait(struct chrome *chrome, const struct offcpu *offcpu)
{
	const char *syscall = syscall_name(offcpu->syscall);

	chrome_string(chrome, "wait", wait_kind_name(offcpu->wait));
	chrome_string(chrome, "syscall", syscall);
	chrome_string(chrome, "path", model_string(chrome->model, offcpu->path));
	if (!offcpu->woken)
		return;
	chrome_string(chrome, "woken by", wake_kind_name(offcpu->wake));
	if (offcpu->waker_tid)
		chrome_thread(chrome, "waker", waker_comm(chrome->model, offcpu), offcpu->waker_tid);
}

static int put_state(void *context, const struct state_span *span)
{
	const struct state_row *row = context;
	struct chrome *chrome = row->chrome;
	const struct offcpu *offcpu = span->offcpu;
	char name[NAME_SIZE];

	if (span->state == STATE_BLOCKED)
		snprintf(name, sizeof(name), "blocked: %s", wait_kind_name(offcpu->wait));
	else
		snprintf(name, sizeof(name), "%s", thread_state_name(span->state));
	chrome_slice(chrome, "whyidle_sched", name, row->thread->pid,
	             CHROME_STATE_TID + (uint64_t)row->thread->tid, span->start_ns, span->end_ns);
	if (span->state == STATE_BLOCKED) {
		put_wait(chrome, offcpu);
	} else if (span->state == STATE_RUNNABLE) {
		if (offcpu->preempted)
			chrome_thread(chrome, "preempted by",
			              thread_comm_at(chrome->model, offcpu->next_tid, offcpu->out_ns),
			              offcpu->next_tid);
		chrome_number(chrome, "cpu", offcpu->in_cpu);
	}
	chrome_end(chrome);
	return 0;
}

static void name_thread(struct chrome *chrome, const struct thread *thread, bool has_states)
{
	const char *comm = model_string(chrome->model, thread->comm);
	char name[NAME_SIZE];

	snprintf(name, sizeof(name), "thread %u (%s)", thread->tid, comm);
	chrome_thread_name(chrome, thread->pid, thread->tid, name, 2 * (uint64_t)thread->tid);
	if (!has_states)
		return;
	snprintf(name, sizeof(name), "state of %u (%s)", thread->tid, comm);
	chrome_thread_name(chrome, thread->pid, CHROME_STATE_TID + (uint64_t)thread->tid, name,
	                   2 * (uint64_t)thread->tid + 1);
}

int chrome_threads(struct chrome *chrome)
{
	const struct model *model = chrome->model;
	const struct process *process;

	array_for_each (process, &model->processes)
		chrome_process_name(chrome, process->pid, model_string(model, process->comm), "CPU",
		                    process->pid);
	for (uint32_t i = 0; i < model->threads.count; i++) {
		const struct thread *thread = &model->threads.items[i];
		struct state_row row = {chrome, thread};

		put_scopes(chrome, thread);
		put_calls(chrome, i);
		put_overhead(chrome, thread);
		thread_states_visit(model, thread, put_state, &row);
		name_thread(chrome, thread, thread->tracked || thread->offcpu.count);
		if (chrome->out->failure)
			return chrome->out->failure;
	}
	return 0;
}
