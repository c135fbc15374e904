/* SPDX-License-Identifier: GPL-2.0-only */
/* The sessions of docs/samples stay readable, and stay explained as their programs' own accounts say. */
#include <criterion/criterion.h>

#include "attribute/analysis.h"
#include "model/model.h"

#define SAMPLE "docs/samples/starved-h200.whyidle"
/* start_ns and end_ns of docs/samples/starved-h200.truth.json */
#define START_NS 93397452832ULL
#define END_NS   96399870315ULL

Test(samples, starved_h200_is_explained_as_planted)
{
	struct analysis_options options = {
	    .device = -1, .has_window = true, .window_start_ns = START_NS, .window_end_ns = END_NS};
	struct analysis analysis;
	struct error error = {0};
	struct model model;
	const struct device_report *device;
	const struct cause *cause;
	uint64_t sum = 0;

	cr_assert_eq(model_load_session(&model, SAMPLE, &error), 0, "%s", error.text);
	cr_assert(model.summary.complete);
	cr_assert_eq(model.summary.version, 1);
	cr_assert_eq(model.summary.unknown_records, 0);
	cr_assert_eq(analysis_run(&analysis, &model, &options, &error), 0, "%s", error.text);
	cr_assert_eq(analysis.devices.count, 1);
	device = &analysis.devices.items[0];
	cr_assert_str_eq(device->name, "NVIDIA H200");
	cr_assert_not(device->simulated);
	/* The union of the operations, as computed by hand from `whyidle dump`. */
	cr_assert_eq(device->busy_ns, 591460326ULL);
	cr_assert_eq(device->idle_ns, END_NS - START_NS - device->busy_ns);
	cause = &device->causes.items[0];
	cr_assert_eq(cause->code, CAUSE_HOST_USER_CODE);
	cr_assert_eq(cause->role, ROLE_WORKER);
	cr_assert_gt(cause->ns, device->idle_ns / 2);
	cr_assert_eq(cause->group.count, 2);
	cr_assert_gt(cause->group.running, 0.95);
	array_for_each (cause, &device->causes)
		sum += cause->ns;
	cr_assert_eq(sum, device->idle_ns);
	analysis_free(&analysis);
	model_free(&model);
}
