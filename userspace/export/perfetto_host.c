// SPDX-License-Identifier: GPL-2.0-only
/* Host threads: CUDA calls, what they did and waited for, operators and annotations, CUPTI's own time. */
#include <stdio.h>

#include "base/number.h"
#include "export/api_name.h"
#include "export/perfetto.h"
#include "model/thread_states.h"

#define NAME_SIZE 128

/* First flow that starts in a call. */
static size_t first_flow(const struct perfetto *perfetto, uint64_t call)
{
	size_t low = 0, high = perfetto->flows.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (perfetto->flows.items[middle].call < call)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void put_calls(struct perfetto *perfetto, uint32_t index)
{
	const struct thread *thread = &perfetto->model->threads.items[index];
	uint64_t track = perfetto_thread_track(perfetto, index, TRACK_CALLS);
	size_t flow = first_flow(perfetto, (uint64_t)index << 32);

	for (size_t i = 0; i < thread->calls.count; i++) {
		const struct call *call = &thread->calls.items[i];
		const char *function = model_string(perfetto->model, call->function);

		perfetto_slice(perfetto, track, call->enter_ns,
		               api_is_driver(function) ? "cuda_driver" : "cuda_runtime",
		               perfetto_name(perfetto, function));
		if (call->correlation)
			perfetto_number(perfetto, "correlation", call->correlation);
		if (!call->exit_known)
			perfetto_word(perfetto, "end", "not recorded");
		for (; flow < perfetto->flows.count &&
		       perfetto->flows.items[flow].call == ((uint64_t)index << 32 | i);
		     flow++)
			perfetto_flow(perfetto, perfetto->flows.items[flow].flow, false);
		perfetto_commit(perfetto);
		perfetto_slice_end(perfetto, track, call->exit_ns);
	}
}

static const char *scope_category(const struct scope *scope)
{
	return scope->kind == SCOPE_OPERATOR ? "operator"
	       : scope->kind == SCOPE_PYTHON ? "python"
	                                     : "annotation";
}

/* A row of a thread, `track`, placed among the thread's rows as `which` says. */
static void describe_row(struct perfetto *perfetto, uint32_t thread, uint64_t track, uint32_t which,
                         const char *name)
{
	size_t mark =
	    perfetto_track(perfetto, track, perfetto_thread_track(perfetto, thread, TRACK_CALLS), name);

	perfetto_track_order(perfetto, which);
	perfetto_track_end(perfetto, mark);
}

/* Ends of the scopes that are open, the innermost last; or of the last one in each further row. */
struct scope_ends {
	ARRAY(uint64_t)
};

static void close_scopes(struct perfetto *perfetto, uint64_t track, struct scope_ends *open, uint64_t time_ns)
{
	while (open->count && open->items[open->count - 1] <= time_ns)
		perfetto_slice_end(perfetto, track, open->items[--open->count]);
}

/* Index of a row that is free at the scope's start, a new one if none is; MODEL_NONE if memory ran out. */
static uint32_t free_row(struct scope_ends *rows, const struct scope *scope)
{
	uint64_t *end;

	for (uint32_t i = 0; i < rows->count; i++) {
		if (rows->items[i] <= scope->start_ns) {
			rows->items[i] = scope->end_ns;
			return i;
		}
	}
	end = array_add(rows);
	if (!end)
		return MODEL_NONE;
	*end = scope->end_ns;
	return (uint32_t)rows->count - 1;
}

/* Slices of a row must nest: scopes that cross others get as many further rows as they need. */
static void put_crossing_scopes(struct perfetto *perfetto, uint32_t index)
{
	const struct thread *thread = &perfetto->model->threads.items[index];
	uint64_t first = perfetto->next_track;
	struct scope_ends rows = {0};
	const struct scope *scope;

	array_for_each (scope, &thread->scopes) {
		size_t before = rows.count;
		uint32_t row;

		if (!scope->crosses)
			continue;
		row = free_row(&rows, scope);
		if (row == MODEL_NONE) {
			perfetto->failed = true;
			break;
		}
		if (rows.count > before)
			describe_row(perfetto, index, perfetto->next_track++, TRACK_SCOPES,
			             "ranges that cross");
		perfetto_slice(perfetto, first + row, scope->start_ns, scope_category(scope),
		               perfetto_string_name(perfetto, scope->name));
		perfetto_commit(perfetto);
		perfetto_slice_end(perfetto, first + row, scope->end_ns);
	}
	array_free(&rows);
}

static void put_scopes(struct perfetto *perfetto, uint32_t index)
{
	const struct thread *thread = &perfetto->model->threads.items[index];
	uint64_t track = perfetto_thread_track(perfetto, index, TRACK_SCOPES);
	struct scope_ends open = {0};
	const struct scope *scope;

	array_for_each (scope, &thread->scopes) {
		uint64_t *end;

		if (scope->crosses)
			continue;
		close_scopes(perfetto, track, &open, scope->start_ns);
		perfetto_slice(perfetto, track, scope->start_ns, scope_category(scope),
		               perfetto_string_name(perfetto, scope->name));
		perfetto_commit(perfetto);
		end = array_add(&open);
		if (!end) {
			perfetto->failed = true;
			break;
		}
		*end = scope->end_ns;
	}
	close_scopes(perfetto, track, &open, UINT64_MAX);
	array_free(&open);
	put_crossing_scopes(perfetto, index);
}

static void put_overhead(struct perfetto *perfetto, uint32_t index)
{
	const struct thread *thread = &perfetto->model->threads.items[index];
	uint64_t track = perfetto_thread_track(perfetto, index, TRACK_OVERHEAD);
	const struct overhead *overhead;

	array_for_each (overhead, &thread->overhead) {
		perfetto_slice(perfetto, track, overhead->start_ns, "overhead",
		               perfetto_name(perfetto, overhead->loading ? "loading code" : "CUPTI"));
		perfetto_commit(perfetto);
		perfetto_slice_end(perfetto, track, overhead->end_ns);
	}
}

/* ---- states and wakers ---- */

/* Thread that woke another one, MODEL_NONE where there is nothing to draw an arrow between. */
static uint32_t waker_of(const struct model *model, const struct offcpu *offcpu)
{
	if (!offcpu->woken || !offcpu->waker_tid || offcpu->preempted || offcpu->in_ns <= offcpu->wake_ns)
		return MODEL_NONE;
	return model_waker(model, offcpu);
}

/*
 * Where arrows from wakers begin: an instant in the waker's row. They come before all states, so that of two
 * events at one time the beginning of an arrow is read first.
 */
static void put_wakes(struct perfetto *perfetto)
{
	const struct model *model = perfetto->model;
	uint64_t flow = perfetto->wake_flows;

	for (uint32_t i = 0; i < model->threads.count; i++) {
		const struct thread *thread = &model->threads.items[i];
		const struct offcpu *offcpu;

		array_for_each (offcpu, &thread->offcpu) {
			uint32_t waker = waker_of(model, offcpu);

			if (waker != MODEL_NONE) {
				perfetto_instant(perfetto,
				                 perfetto_thread_track(perfetto, waker, TRACK_STATE),
				                 offcpu->wake_ns, "wake", perfetto_name(perfetto, "wakes"));
				perfetto_thread(perfetto, "thread", model_string(model, thread->comm),
				                thread->tid);
				perfetto_flow(perfetto, flow, false);
				perfetto_commit(perfetto);
				perfetto->has_states[waker] = 1;
			}
			flow++;
		}
	}
}

struct state_row {
	struct perfetto *perfetto;
	const struct thread *thread;
	uint64_t track;
	uint64_t first_flow; /* of the thread's first interval */
};

static void put_wait(struct perfetto *perfetto, const struct offcpu *offcpu)
{
	perfetto_word(perfetto, "syscall", syscall_name(offcpu->syscall));
	perfetto_text(perfetto, "path", model_string(perfetto->model, offcpu->path));
	if (!offcpu->woken)
		return;
	perfetto_word(perfetto, "woken by", wake_kind_name(offcpu->wake));
	if (offcpu->waker_tid)
		perfetto_thread(perfetto, "waker", waker_comm(perfetto->model, offcpu), offcpu->waker_tid);
}

static int put_state(void *context, const struct state_span *span)
{
	const struct state_row *row = context;
	struct perfetto *perfetto = row->perfetto;
	const struct offcpu *offcpu = span->offcpu;
	char name[NAME_SIZE];

	if (span->state == STATE_BLOCKED)
		snprintf(name, sizeof(name), "blocked: %s", wait_kind_name(offcpu->wait));
	else
		snprintf(name, sizeof(name), "%s", thread_state_name(span->state));
	perfetto_slice(perfetto, row->track, span->start_ns, "state", perfetto_name(perfetto, name));
	if (span->state == STATE_BLOCKED) {
		put_wait(perfetto, offcpu);
	} else if (span->state == STATE_RUNNABLE) {
		if (offcpu->preempted)
			perfetto_thread(perfetto, "preempted by",
			                thread_comm_at(perfetto->model, offcpu->next_tid, offcpu->out_ns),
			                offcpu->next_tid);
		perfetto_number(perfetto, "cpu", offcpu->in_cpu);
		if (waker_of(perfetto->model, offcpu) != MODEL_NONE)
			perfetto_flow(perfetto,
			              row->first_flow + (uint64_t)(offcpu - row->thread->offcpu.items), true);
	}
	perfetto_commit(perfetto);
	perfetto_slice_end(perfetto, row->track, span->end_ns);
	return perfetto->failed;
}

/* ---- names of rows ---- */

static void describe_thread(struct perfetto *perfetto, uint32_t index)
{
	const struct thread *thread = &perfetto->model->threads.items[index];
	size_t mark = perfetto_track(perfetto, perfetto_thread_track(perfetto, index, TRACK_CALLS),
	                             perfetto_process_track(perfetto, thread->process),
	                             model_string(perfetto->model, thread->comm));

	perfetto_track_thread(perfetto, thread);
	perfetto_track_orders_children(perfetto);
	perfetto_track_end(perfetto, mark);
	if (perfetto->has_states[index])
		describe_row(perfetto, index, perfetto_thread_track(perfetto, index, TRACK_STATE),
		             TRACK_STATE, "state");
	if (thread->scopes.count)
		describe_row(perfetto, index, perfetto_thread_track(perfetto, index, TRACK_SCOPES),
		             TRACK_SCOPES, "operators and annotations");
	if (thread->overhead.count)
		describe_row(perfetto, index, perfetto_thread_track(perfetto, index, TRACK_OVERHEAD),
		             TRACK_OVERHEAD, "CUPTI and loading of code");
}

void perfetto_hosts(struct perfetto *perfetto)
{
	const struct model *model = perfetto->model;
	uint64_t flow = perfetto->wake_flows;

	put_wakes(perfetto);
	for (uint32_t i = 0; i < model->processes.count; i++) {
		const struct process *process = &model->processes.items[i];
		size_t mark = perfetto_track(perfetto, perfetto_process_track(perfetto, i), 0,
		                             model_string(model, process->comm));

		perfetto_track_process(perfetto, process);
		perfetto_track_end(perfetto, mark);
	}
	for (uint32_t i = 0; i < model->threads.count; i++) {
		const struct thread *thread = &model->threads.items[i];
		struct state_row row = {perfetto, thread, perfetto_thread_track(perfetto, i, TRACK_STATE),
		                        flow};

		perfetto->has_states[i] |= thread->tracked || thread->offcpu.count;
		describe_thread(perfetto, i);
		put_calls(perfetto, i);
		put_scopes(perfetto, i);
		put_overhead(perfetto, i);
		thread_states_visit(model, thread, put_state, &row);
		flow += thread->offcpu.count;
	}
}
