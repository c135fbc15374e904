// SPDX-License-Identifier: GPL-2.0-only
#include "report/json_parts.h"

static json_t *make_step_cause(struct maker *maker, const struct step_cause *cause)
{
	json_t *object = json_object();

	set(maker, object, "code", make_text(cause_code_name(cause->code)));
	set(maker, object, "role", make_text(cause_role_name(cause->role)));
	set(maker, object, "ns", make_integer(cause->ns));
	set(maker, object, "more_ns", make_integer(cause->more_ns));
	set(maker, object, "pid", make_integer(cause->pid));
	set(maker, object, "tid", make_integer(cause->tid));
	set(maker, object, "comm", make_text(cause->comm));
	return object;
}

static json_t *make_slow(struct maker *maker, const struct step_report *report, const struct slow_step *slow)
{
	const struct step_figures *step = &report->steps.items[slow->step];
	json_t *object = json_object(), *causes = json_array();
	const struct step_cause *cause;

	set(maker, object, "number", make_integer(step->number));
	set(maker, object, "start_ns", make_integer(step->start_ns));
	set(maker, object, "end_ns", make_integer(step->end_ns));
	set(maker, object, "idle_ns", make_integer(step->idle_ns));
	set(maker, object, "op_count", make_integer(step->op_count));
	set(maker, object, "more_ns", make_integer(slow->more_ns));
	set(maker, object, "busy_more_ns", json_integer(slow->busy_more_ns));
	array_for_each (cause, &slow->causes)
		append(maker, causes, make_step_cause(maker, cause));
	set(maker, object, "causes", causes);
	return object;
}

json_t *make_steps(struct maker *maker, const struct step_report *report)
{
	json_t *object, *list;
	const struct slow_step *slow;

	if (report->origin == STEPS_NONE)
		return json_null();
	object = json_object();
	list = json_array();
	set(maker, object, "origin", make_text(steps_origin_name(report->origin)));
	set(maker, object, "name", make_text(report->name));
	set(maker, object, "period_ops", report->period_ops ? make_integer(report->period_ops) : json_null());
	set(maker, object, "count", make_integer(report->steps.count));
	set(maker, object, "warm_up", make_integer(report->warm_up));
	set(maker, object, "least_ns", make_integer(report->least_ns));
	set(maker, object, "median_ns", make_integer(report->median_ns));
	set(maker, object, "most_ns", make_integer(report->most_ns));
	set(maker, object, "normal_ns", make_integer(report->normal_ns));
	set(maker, object, "slow_above_ns", make_integer(report->slow_ns));
	set(maker, object, "slow_count", make_integer(report->slow_count));
	set(maker, object, "slow_more_ns", make_integer(report->slow_more_ns));
	array_for_each (slow, &report->slow)
		append(maker, list, make_slow(maker, report, slow));
	set(maker, object, "slow", list);
	return object;
}
