// SPDX-License-Identifier: GPL-2.0-only
/* What host threads did. */
#include <errno.h>
#include <stdio.h>

#include "model/thread_states.h"
#include "tables/group.h"

int fill_api(struct table *table, const struct table_source *source)
{
	const struct model *model = source->model;
	struct groups groups = {0};
	const struct thread *thread;
	const struct call *call;

	array_for_each (thread, &model->threads) {
		array_for_each (call, &thread->calls) {
			if (source_has(source, call->enter_ns, call->exit_ns))
				group_add(&groups, model_string(model, call->function), NULL, NULL,
				          call->exit_ns - call->enter_ns);
		}
	}
	return fill_by_time(table, &groups, false);
}

const char *range_style(const struct scope *scope)
{
	static const char *const names[] = {[SCOPE_OPERATOR] = "Operator",
	                                    [SCOPE_ANNOTATION] = "PushPop",
	                                    [SCOPE_PYTHON] = "Python",
	                                    [SCOPE_RANGE] = "StartEnd"};

	return names[scope->kind];
}

int fill_ranges(struct table *table, const struct table_source *source)
{
	const struct model *model = source->model;
	struct groups groups = {0};
	const struct thread *thread;
	const struct scope *scope;

	array_for_each (thread, &model->threads) {
		array_for_each (scope, &thread->scopes) {
			if (source_has(source, scope->start_ns, scope->end_ns))
				group_add(&groups, model_string(model, scope->name), range_style(scope), NULL,
				          scope->end_ns - scope->start_ns);
		}
	}
	return fill_by_time(table, &groups, true);
}

/* The part of a call in which the thread waited, as the export to SQLite has it. */
int fill_os_calls(struct table *table, const struct table_source *source)
{
	const struct model *model = source->model;
	struct groups groups = {0};
	const struct thread *thread;
	const struct offcpu *offcpu;

	array_for_each (thread, &model->threads) {
		array_for_each (offcpu, &thread->offcpu) {
			const char *name = syscall_name(offcpu->syscall);

			if (name && !offcpu->preempted && source_has(source, offcpu->out_ns, offcpu->in_ns))
				group_add(&groups, name, NULL, table, offcpu->in_ns - offcpu->out_ns);
		}
	}
	return fill_by_time(table, &groups, false);
}

/* ---- off the CPU ---- */

struct off_cpu {
	const struct table_source *source;
	struct table *table;
	struct groups groups;
	uint64_t thread; /* index and one */
};

static int add_span(void *context, const struct state_span *span)
{
	struct off_cpu *off = context;
	char name[64] = "runnable: preempted";
	struct group *group;

	if ((span->state != STATE_BLOCKED && span->state != STATE_RUNNABLE) ||
	    !source_has(off->source, span->start_ns, span->end_ns))
		return 0;
	if (span->state == STATE_BLOCKED)
		snprintf(name, sizeof(name), "blocked: %s", wait_kind_name(span->offcpu->wait));
	else if (!span->offcpu->preempted)
		snprintf(name, sizeof(name), "runnable: woken");
	group = group_add(&off->groups, name, NULL, off->table, span->end_ns - span->start_ns);
	if (!group)
		return -ENOMEM;
	if (group->seen != off->thread) {
		group->seen = off->thread;
		group->extra++;
	}
	return 0;
}

int fill_off_cpu(struct table *table, const struct table_source *source)
{
	const struct model *model = source->model;
	struct off_cpu off = {.source = source, .table = table};
	struct group *group;
	uint64_t all;
	int rc = 0;

	for (uint32_t t = 0; !rc && t < model->threads.count; t++) {
		off.thread = (uint64_t)t + 1;
		rc = thread_states_visit(model, &model->threads.items[t], add_span, &off);
	}
	all = groups_total(&off.groups);
	groups_sort(&off.groups);
	array_for_each (group, &off.groups) {
		if (rc)
			break;
		rc = put_group(table, group, all);
		if (!rc)
			rc = put_number(table, group->extra);
		if (!rc)
			rc = put_text(table, group->name);
	}
	table_groups_free(&off.groups);
	return rc;
}
