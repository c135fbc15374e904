// SPDX-License-Identifier: GPL-2.0-only
/* Host threads: calls, ranges, overhead and what the scheduler says. */
#include <string.h>

#include "export/api_name.h"
#include "export/sqlite_writer.h"
#include "model/thread_states.h"

static void put_processes(struct sqlite_writer *writer)
{
	const struct model *model = writer->model;

	for (uint32_t i = 0; i < model->processes.count; i++) {
		const struct process *process = &model->processes.items[i];
		const char *name = model_string(model, process->comm);
		const int64_t row[] = {sqlite_global_pid(writer, i), process->pid, COLUMN_TEXT};

		put_row(writer, TABLE_PROCESSES, row, &name);
	}
	for (uint32_t i = 0; i < model->threads.count; i++) {
		const int64_t row[] = {sqlite_string(writer, model->threads.items[i].comm), COLUMN_NULL,
		                       sqlite_global_tid(writer, i)};

		put_row(writer, TABLE_THREAD_NAMES, row, NULL);
	}
}

static void put_calls(struct sqlite_writer *writer, uint32_t thread)
{
	const struct call *call;

	array_for_each (call, &writer->model->threads.items[thread].calls) {
		bool driver = api_is_driver(model_string(writer->model, call->function));
		const int64_t row[] = {
		    (int64_t)call->enter_ns,
		    (int64_t)call->exit_ns,
		    driver ? NSYS_CLASS_CUDA_DRIVER : NSYS_CLASS_CUDA_RUNTIME,
		    sqlite_global_tid(writer, thread),
		    call->correlation,
		    sqlite_string(writer, call->function),
		    0,           /* returnValue */
		    COLUMN_NULL, /* callchainId */
		};

		put_row(writer, TABLE_RUNTIME, row, NULL);
	}
}

static void put_range(struct sqlite_writer *writer, uint64_t start_ns, int64_t end_ns, int type, int category,
                      int64_t global_tid, const char *text)
{
	const int64_t row[] = {
	    (int64_t)start_ns,
	    end_ns,
	    type,
	    COLUMN_NULL, /* rangeId */
	    category,
	    COLUMN_NULL, /* color */
	    COLUMN_TEXT,
	    global_tid,
	    COLUMN_NULL_2, /* endGlobalTid, textId */
	    0,             /* domainId */
	};

	put_row(writer, TABLE_NVTX, row, &text);
}

static void put_scopes(struct sqlite_writer *writer, uint32_t thread)
{
	const struct scope *scope;

	array_for_each (scope, &writer->model->threads.items[thread].scopes)
		put_range(writer, scope->start_ns, (int64_t)scope->end_ns,
		          scope->kind == SCOPE_RANGE ? NSYS_TYPE_NVTX_STARTED : NSYS_TYPE_NVTX_RANGE,
		          scope->kind == SCOPE_RANGE ? SCOPE_ANNOTATION : (int)scope->kind,
		          sqlite_global_tid(writer, thread), model_string(writer->model, scope->name));
}

/* Ranges of each kind are a category of their own. */
static void name_categories(struct sqlite_writer *writer)
{
	static const char *const names[] = {
	    [SCOPE_OPERATOR] = "operator", [SCOPE_ANNOTATION] = "annotation", [SCOPE_PYTHON] = "python"};

	if (!writer->inserts[TABLE_NVTX])
		return;
	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
		put_range(writer, writer->model->start_ns, COLUMN_NULL, NSYS_TYPE_NVTX_CATEGORY, i,
		          COLUMN_NULL, names[i]);
}

static void put_overhead(struct sqlite_writer *writer, uint32_t thread)
{
	const struct overhead *overhead;

	array_for_each (overhead, &writer->model->threads.items[thread].overhead) {
		const char *name = overhead->loading ? "Lazy function loading" : "CUPTI";
		const int64_t row[] = {
		    (int64_t)overhead->start_ns,
		    (int64_t)overhead->end_ns,
		    NSYS_CLASS_CUDA_OVERHEAD,
		    sqlite_global_tid(writer, thread),
		    COLUMN_NULL, /* correlationId */
		    sqlite_text(writer, name, strlen(name)),
		    overhead->loading ? NSYS_OVERHEAD_FUNCTION_LOADING : NSYS_OVERHEAD_INSTRUMENTATION,
		};

		put_row(writer, TABLE_OVERHEAD, row, NULL);
	}
}

/* Off the CPU and on it again, as the scheduler saw it. */
static void put_switches(struct sqlite_writer *writer, const struct offcpu *offcpu, int64_t global_tid)
{
	const int64_t out[] = {(int64_t)offcpu->out_ns,
	                       offcpu->out_cpu,
	                       0,
	                       global_tid,
	                       offcpu->preempted ? NSYS_THREAD_RUNNING : NSYS_THREAD_WAITING,
	                       COLUMN_NULL};
	const int64_t in[] = {
	    (int64_t)offcpu->in_ns, offcpu->in_cpu, 1, global_tid, COLUMN_NULL, COLUMN_NULL};

	put_row(writer, TABLE_SCHED, out, NULL);
	if (!offcpu->open)
		put_row(writer, TABLE_SCHED, in, NULL);
}

/* Nsight records calls of the C library; this is the part of a system call in which the thread waited. */
static void put_blocking_call(struct sqlite_writer *writer, const struct offcpu *offcpu, int64_t global_tid)
{
	const char *name = syscall_name(offcpu->syscall);
	const int64_t row[] = {
	    (int64_t)offcpu->out_ns,
	    (int64_t)offcpu->in_ns,
	    NSYS_CLASS_OS_RUNTIME,
	    global_tid,
	    sqlite_text_or_null(writer, name),
	    0, /* returnValue */
	    0, /* nestingLevel */
	    0, /* callchainId */
	};

	if (name && !offcpu->preempted)
		put_row(writer, TABLE_OSRT, row, NULL);
}

static void put_wait(struct sqlite_writer *writer, const struct offcpu *offcpu, int64_t global_tid)
{
	uint32_t waker = model_waker(writer->model, offcpu);
	const char *texts[] = {offcpu->preempted ? "preempted" : wait_kind_name(offcpu->wait),
	                       offcpu->woken ? wake_kind_name(offcpu->wake) : NULL};
	const int64_t row[] = {
	    (int64_t)offcpu->out_ns,
	    offcpu->woken ? (int64_t)offcpu->wake_ns : COLUMN_NULL,
	    (int64_t)offcpu->in_ns,
	    global_tid,
	    COLUMN_TEXT,
	    offcpu->preempted,
	    sqlite_text_or_null(writer, syscall_name(offcpu->syscall)),
	    sqlite_string_or_null(writer, offcpu->path),
	    COLUMN_TEXT,
	    sqlite_global_tid(writer, waker),
	};

	put_row(writer, TABLE_OUR_WAITS, row, texts);
}

static void put_offcpu(struct sqlite_writer *writer, uint32_t thread)
{
	int64_t global_tid = sqlite_global_tid(writer, thread);
	const struct offcpu *offcpu;

	array_for_each (offcpu, &writer->model->threads.items[thread].offcpu) {
		put_switches(writer, offcpu, global_tid);
		put_blocking_call(writer, offcpu, global_tid);
		put_wait(writer, offcpu, global_tid);
	}
}

void sqlite_put_host(struct sqlite_writer *writer)
{
	put_processes(writer);
	for (uint32_t i = 0; i < writer->model->threads.count && !writer->failure; i++) {
		put_calls(writer, i);
		put_scopes(writer, i);
		put_overhead(writer, i);
		put_offcpu(writer, i);
	}
	name_categories(writer);
}
