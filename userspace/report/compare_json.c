// SPDX-License-Identifier: GPL-2.0-only
/* The comparison as JSON: docs/compare.schema.json describes every field. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "report/json_parts.h"
#include "report/report_compare.h"

static json_t *make_number(double value)
{
	return json_real(isfinite(value) ? value : 0);
}

static json_t *make_figure(struct maker *maker, const struct figure *figure)
{
	json_t *object = json_object();

	set(maker, object, "before", make_number(figure->before.value));
	set(maker, object, "after", make_number(figure->after.value));
	set(maker, object, "change", make_number(figure->change));
	set(maker, object, "noise", figure->known ? make_number(figure->noise) : json_null());
	set(maker, object, "beyond_noise", json_boolean(figure->beyond));
	return object;
}

static json_t *make_run(struct maker *maker, const struct device_measure *device)
{
	json_t *object = json_object();
	bool stepped = device->origin != STEPS_NONE;

	set(maker, object, "path", make_text(device->path));
	set(maker, object, "device", make_integer(device->device));
	set(maker, object, "name", make_text(device->name));
	set(maker, object, "window_ns", make_integer(device->window_end_ns - device->window_start_ns));
	set(maker, object, "busy_ns", make_integer(device->busy_ns));
	set(maker, object, "idle_ns", make_integer(device->idle_ns));
	set(maker, object, "gap_count", make_integer(device->gap_count));
	set(maker, object, "op_count", make_integer(device->op_count));
	set(maker, object, "compared_ns", make_integer(measure_time_ns(device)));
	set(maker, object, "batches", make_integer(device->batches));
	set(maker, object, "steps_by", make_text(steps_origin_name(device->origin)));
	set(maker, object, "step_name", make_text(device->step_name));
	set(maker, object, "steps", make_integer(device->steps));
	set(maker, object, "warm_up_steps", make_integer(device->warm_up));
	set(maker, object, "step_ops", device->period_ops ? make_integer(device->period_ops) : json_null());
	set(maker, object, "step_least_ns", stepped ? make_integer(device->step_least_ns) : json_null());
	set(maker, object, "step_median_ns", stepped ? make_integer(device->step_median_ns) : json_null());
	set(maker, object, "step_most_ns", stepped ? make_integer(device->step_most_ns) : json_null());
	return object;
}

static json_t *make_cause(struct maker *maker, const struct compare_cause *cause)
{
	json_t *object = json_object();

	set(maker, object, "code", make_text(cause_code_name(cause->code)));
	set(maker, object, "role", make_text(cause_role_name(cause->role)));
	set(maker, object, "before_ns", make_integer(cause->before_ns));
	set(maker, object, "after_ns", make_integer(cause->after_ns));
	set(maker, object, "figure", make_figure(maker, &cause->figure));
	return object;
}

static json_t *make_kernel(struct maker *maker, const struct compare_kernel *kernel)
{
	json_t *object = json_object();

	set(maker, object, "name", make_text(kernel->name));
	set(maker, object, "before_ns", make_integer(kernel->before_ns));
	set(maker, object, "after_ns", make_integer(kernel->after_ns));
	set(maker, object, "before_count", make_integer(kernel->before_count));
	set(maker, object, "after_count", make_integer(kernel->after_count));
	set(maker, object, "figure", make_figure(maker, &kernel->figure));
	set(maker, object, "count", make_figure(maker, &kernel->count));
	return object;
}

static json_t *make_pair(struct maker *maker, const struct compare_pair *pair)
{
	json_t *object = json_object(), *causes = json_array(), *kernels = json_array();
	const struct compare_kernel *kernel;
	const struct compare_cause *cause;

	set(maker, object, "before", make_run(maker, pair->before));
	set(maker, object, "after", make_run(maker, pair->after));
	set(maker, object, "basis", make_text(compare_basis_name(pair->basis)));
	set(maker, object, "verdict", make_text(compare_verdict_name(pair->verdict)));
	set(maker, object, "step_ns",
	    pair->basis == COMPARE_PER_STEP ? make_figure(maker, &pair->step) : json_null());
	set(maker, object, "idle_share", make_figure(maker, &pair->idle_share));
	set(maker, object, "idle", make_figure(maker, &pair->idle));
	array_for_each (cause, &pair->causes)
		append(maker, causes, make_cause(maker, cause));
	set(maker, object, "causes", causes);
	array_for_each (kernel, &pair->kernels)
		append(maker, kernels, make_kernel(maker, kernel));
	set(maker, object, "kernels", kernels);
	return object;
}

json_t *make_comparison(struct maker *maker, const struct comparison *comparison)
{
	json_t *report = json_object(), *notes = json_array(), *pairs = json_array();
	const struct compare_pair *pair;
	char **line;

	set(maker, report, "schema", json_string(COMPARE_SCHEMA));
	set(maker, report, "tool", make_tool(maker));
	set(maker, report, "verdict", make_text(compare_verdict_name(comparison->verdict)));
	set(maker, report, "answer",
	    comparison->answer ? make_integer((uint64_t)(comparison->answer - comparison->pairs.items))
	                       : json_null());
	array_for_each (line, &comparison->notes)
		append(maker, notes, make_text(*line));
	set(maker, report, "notes", notes);
	array_for_each (pair, &comparison->pairs)
		append(maker, pairs, make_pair(maker, pair));
	set(maker, report, "gpus", pairs);
	return report;
}

int report_compare_json(FILE *out, const struct comparison *comparison, struct error *error)
{
	struct maker maker = {0};
	json_t *report = make_comparison(&maker, comparison);
	int err = 0;

	if (!report || maker.failed)
		err = error_no_memory(error);
	else if (json_dumpf(report, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) ||
	         fputc('\n', out) == EOF || fflush(out))
		err = error_set(error, -EIO, "cannot write the JSON report: %s", strerror(errno));
	json_decref(report);
	return err;
}
