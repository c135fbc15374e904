// SPDX-License-Identifier: GPL-2.0-only
/* Steps of a device: which are slow, and what they are longer for. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/quantity.h"
#include "timeline.h"

#define STEPS 20

/* Steps of 10 ms: two kernels of 3 ms, 2 ms of sleep behind each; `extra` is slept in one of them. */
static void make(struct timeline *timeline, unsigned slow, uint64_t extra, uint64_t warm_up)
{
	static const char *const names[] = {"first", "second"};
	uint64_t now = 1 * MS;
	uint32_t main;

	timeline_begin(timeline);
	main = timeline_process(timeline, 100, 0, "main");
	for (unsigned step = 0; step <= STEPS; step++) {
		for (unsigned i = 0; i < 2; i++) {
			struct gpu_op *op;
			uint64_t sleep = 2 * MS;

			if (step == slow && i)
				sleep += extra;
			if (!step && i)
				sleep += warm_up;
			timeline_kernel(timeline, main, now, now + 5 * US, now + 3 * MS);
			op = &timeline->model.devices.items[0]
			          .ops.items[timeline->model.devices.items[0].ops.count - 1];
			op->name = model_add_string(&timeline->model, names[i], strlen(names[i]));
			timeline_sleep(timeline, main, now + 3 * MS, now + 3 * MS + sleep);
			now += 3 * MS + sleep;
		}
	}
}

static const struct step_report *analyse(struct timeline *timeline)
{
	const struct analysis_options options = {.device = -1, .steps = true};
	struct error error = {0};

	timeline->model.end_ns = 1000 * MS;
	cr_assert_eq(model_finish(&timeline->model, &error), 0, "%s", error.text);
	cr_assert_eq(analysis_run(&timeline->analysis, &timeline->model, &options, &error), 0, "%s",
	             error.text);
	return &timeline->analysis.devices.items[0].steps;
}

Test(steps, slow_ones_are_explained)
{
	const struct step_report *report;
	const struct slow_step *slow;
	struct timeline timeline;

	make(&timeline, 7, 30 * MS, 0);
	report = analyse(&timeline);
	cr_assert_eq(report->origin, STEPS_RHYTHM);
	cr_assert_eq(report->period_ops, 2);
	cr_assert_eq(report->steps.count, STEPS);
	cr_assert_eq(report->median_ns, 10 * MS);
	cr_assert_eq(report->normal_ns, 10 * MS);
	cr_assert_eq(report->slow_count, 1);
	cr_assert_eq(report->slow_more_ns, 30 * MS);
	slow = &report->slow.items[0];
	cr_assert_eq(report->steps.items[slow->step].number, 8);
	cr_assert_eq(slow->more_ns, 30 * MS);
	cr_assert_eq(slow->busy_more_ns, 0);
	cr_assert_eq(slow->causes.items[0].code, CAUSE_WAIT_SLEEP);
	cr_assert_eq(slow->causes.items[0].more_ns, 30 * MS);
	cr_assert_eq(slow->causes.items[0].tid, 100);
	cr_assert_str_eq(slow->causes.items[0].comm, "main");
	cr_assert_eq(report->steps.items[3].largest.code, CAUSE_WAIT_SLEEP);
	timeline_end(&timeline);
}

Test(steps, figures_add_up)
{
	const struct device_report *device;
	const struct step_figures *step;
	uint64_t idle = 0, ops = 0;
	struct timeline timeline;

	make(&timeline, 7, 30 * MS, 0);
	analyse(&timeline);
	device = &timeline.analysis.devices.items[0];
	array_for_each (step, &device->steps.steps) {
		idle += step->idle_ns;
		ops += step->op_count;
	}
	/* The last period is no whole step: its two operations and the one gap between them. */
	cr_assert_eq(ops, device->op_count - 2);
	cr_assert_eq(idle, device->idle_ns - (2 * MS + 5 * US));
	timeline_end(&timeline);
}

Test(steps, steady_ones_are_not_slow)
{
	const struct step_report *report;
	struct timeline timeline;

	make(&timeline, 7, 500 * US, 0); /* 5 %: less than a tenth */
	report = analyse(&timeline);
	cr_assert_eq(report->steps.count, STEPS);
	cr_assert_eq(report->slow_count, 0);
	timeline_end(&timeline);
}

Test(steps, warm_up_is_not_slow)
{
	const struct step_report *report;
	struct timeline timeline;

	make(&timeline, 7, 5 * MS, 100 * MS);
	report = analyse(&timeline);
	cr_assert_eq(report->warm_up, 1);
	cr_assert(report->steps.items[0].warm_up && !report->steps.items[0].slow);
	cr_assert_eq(report->most_ns, 15 * MS, "without warm-up");
	cr_assert_eq(report->slow_count, 1);
	timeline_end(&timeline);
}

Test(steps, none_unless_wanted)
{
	struct timeline timeline;

	make(&timeline, 7, 30 * MS, 0);
	timeline.model.end_ns = 1000 * MS;
	timeline_analyse(&timeline);
	cr_assert_eq(timeline.analysis.devices.items[0].steps.origin, STEPS_NONE);
	timeline_end(&timeline);
}

Test(quantity, ranges)
{
	static const char *const bad[] = {"", "1", "..x", "2..1", "1...2", "a..b", "-1..2", "1..2..3"};
	struct range range;

	cr_assert_eq(quantity_range("3..7", &range), 0);
	cr_assert(range.given && range.from == 3 && range.to == 7);
	cr_assert_eq(quantity_range("..7", &range), 0);
	cr_assert(range.from == 0 && range.to == 7);
	cr_assert_eq(quantity_range("3..", &range), 0);
	cr_assert_eq(range.to, UINT64_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_neq(quantity_range(bad[i], &range), 0, "%s", bad[i]);
}
