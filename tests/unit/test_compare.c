// SPDX-License-Identifier: GPL-2.0-only
/* Comparing two runs: steps, noise, planted changes, and runs that do not differ. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/rhythm.h"
#include "compare/compare.h"
#include "golden.h"
#include "report/report_compare.h"
#include "timeline.h"

/* ---- runs ---- */

/* A small generator of our own, so that trials are the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return hash_mix(*state);
}

static double uniform(uint64_t *state)
{
	return (double)(next_random(state) >> 11) / 9007199254740992.0;
}

/* About normal, mean 0 and deviation 1. */
static double normal(uint64_t *state)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(state);
	return sum;
}

struct plan {
	unsigned steps;
	uint64_t sleep_ns;  /* mean of the launcher's sleep in a step */
	double spread;      /* deviation of it, as a part */
	double correlation; /* with the step before */
	uint64_t kernel_ns; /* the long kernel of a step */
	unsigned warm_up;   /* steps at the beginning that take ten times as long */
	uint64_t seed;
};

static uint32_t name_of(struct timeline *timeline, const char *name)
{
	return model_add_string(&timeline->model, name, strlen(name));
}

static void name_last(struct timeline *timeline, uint32_t name)
{
	struct device *device = &timeline->model.devices.items[0];

	device->ops.items[device->ops.count - 1].name = name;
}

/* A launcher that sleeps, then launches a long kernel and three short ones, again and again. */
static void make_run(struct timeline *timeline, struct measurement *measurement, const struct plan *plan)
{
	uint64_t now = 10 * MS, state = plan->seed;
	struct error error = {0};
	uint32_t main, first, rest;
	double drift = 0;

	timeline_begin(timeline);
	main = timeline_process(timeline, 100, 0, "main");
	first = name_of(timeline, "gemm");
	rest = name_of(timeline, "add");
	timeline->model.devices.items[0].name = name_of(timeline, "GPU of the test");
	for (unsigned step = 0; step < plan->steps; step++) {
		double scale = 1;
		uint64_t sleep;

		drift = plan->correlation * drift +
		        sqrt(1 - plan->correlation * plan->correlation) * normal(&state);
		scale += plan->spread * drift;
		scale = scale < 0.05 ? 0.05 : scale;
		sleep = (uint64_t)((double)plan->sleep_ns * scale) * (step < plan->warm_up ? 10 : 1);
		timeline_sleep(timeline, main, now, now + sleep);
		now += sleep;
		timeline_kernel(timeline, main, now, now + 5 * US, now + 5 * US + plan->kernel_ns);
		name_last(timeline, first);
		for (unsigned i = 0; i < 3; i++) {
			uint64_t start = now + 5 * US + plan->kernel_ns + i * 100 * US;

			timeline_kernel(timeline, main, now + (i + 1) * 4 * US, start, start + 100 * US);
			name_last(timeline, rest);
		}
		now += 5 * US + plan->kernel_ns + 300 * US;
	}
	timeline_analyse(timeline);
	cr_assert_eq(measurement_add(measurement, &timeline->model, &timeline->analysis, "run", &error), 0);
}

static enum compare_verdict compare_plans(const struct plan *before, const struct plan *after,
                                          struct comparison *comparison, struct measurement runs[2])
{
	struct timeline timeline;

	make_run(&timeline, &runs[0], before);
	timeline_end(&timeline);
	make_run(&timeline, &runs[1], after);
	timeline_end(&timeline);
	cr_assert_eq(comparison_make(comparison, &runs[0], &runs[1]), 0);
	return comparison->verdict;
}

static void free_runs(struct comparison *comparison, struct measurement runs[2])
{
	comparison_free(comparison);
	measurement_free(&runs[0]);
	measurement_free(&runs[1]);
	memset(runs, 0, 2 * sizeof(*runs));
}

static const struct plan usual = {
    .steps = 60, .sleep_ns = 4 * MS, .spread = 0.1, .correlation = 0.3, .kernel_ns = 2 * MS, .seed = 1};

/* ---- noise ---- */

Test(compare, student)
{
	/* From any table of the t distribution. */
	cr_assert_float_eq(student_quantile(0.975, 1), 12.7062, 1e-3);
	cr_assert_float_eq(student_quantile(0.975, 10), 2.22814, 1e-4);
	cr_assert_float_eq(student_quantile(0.995, 38), 2.71156, 1e-4);
	cr_assert_float_eq(student_quantile(0.95, 1000), 1.64638, 1e-4);
	cr_assert_float_eq(student_quantile(0.5, 7), 0, 1e-6);
}

Test(compare, ratio_of_batches)
{
	const double parts[] = {1, 2, 3, 2, 2}, wholes[] = {10, 10, 10, 10, 10};
	struct estimate estimate = estimate_ratio(parts, wholes, 5);

	cr_assert_float_eq(estimate.value, 0.2, 1e-12);
	/* Deviations -0.1 0 0.1 0 0: variance of the mean is 0.02/(5·4); neighbours are not correlated. */
	cr_assert_float_eq(estimate.error, sqrt(0.02 / 20), 1e-12);
	cr_assert_eq(estimate.batches, 5);
	cr_assert_eq(estimate_ratio(parts, wholes, 4).batches, 0, "four batches tell no spread");
	cr_assert_float_eq(estimate_ratio(parts, (const double[]){0, 0, 0, 0, 0}, 5).value, 0, 0);
}

Test(compare, neighbours_widen_the_error)
{
	const double alternating[] = {1, 3, 1, 3, 1, 3, 1, 3}, rising[] = {1, 1, 1, 1, 3, 3, 3, 3};
	const double wholes[] = {10, 10, 10, 10, 10, 10, 10, 10};

	cr_assert_gt(estimate_ratio(rising, wholes, 8).error,
	             1.5 * estimate_ratio(alternating, wholes, 8).error);
}

Test(compare, figure_floor_and_unknown)
{
	const struct estimate exact = {1, 0, 10}, near = {1.005, 0, 10}, far = {1.2, 0, 10},
	                      alone = {2, 0, 0};

	cr_assert_not(figure_make(exact, near, 0.01, 0.01).beyond, "below the floor");
	cr_assert(figure_make(exact, far, 0.01, 0.01).beyond);
	cr_assert_not(figure_make(exact, alone, 0.01, 0.01).known);
	cr_assert_not(figure_make(exact, alone, 0.01, 0.01).beyond);
}

/* ---- steps ---- */

Test(compare, steps_by_the_rhythm_of_operations)
{
	struct measurement runs[2] = {0};
	struct comparison comparison;
	const struct device_measure *device;

	compare_plans(&usual, &usual, &comparison, runs);
	device = &runs[0].devices.items[0];
	cr_assert_eq(device->origin, STEPS_RHYTHM);
	cr_assert_eq(device->period_ops, 4);
	cr_assert_eq(device->steps, 59, "from the first mark to the last");
	cr_assert_eq(device->batches, NOISE_BATCHES_MOST);
	cr_assert_eq(device->kernels.count, 2);
	cr_assert_str_eq(device->kernels.items[0].name, "gemm");
	cr_assert_eq(device->kernels.items[0].count, 59);
	cr_assert_eq(device->kernels.items[1].count, 3 * 59);
	cr_assert_eq(device->kernels.items[0].ns, 59 * usual.kernel_ns);
	free_runs(&comparison, runs);
}

Test(compare, warm_up_is_left_out)
{
	struct plan cold = usual;
	struct measurement runs[2] = {0};
	struct comparison comparison;

	cold.warm_up = 3;
	cr_assert_eq(compare_plans(&usual, &cold, &comparison, runs), COMPARE_SAME);
	cr_assert_eq(runs[1].devices.items[0].warm_up, 2, "the first sleep lies before the first operation");
	free_runs(&comparison, runs);
}

static void add_scope(struct timeline *timeline, uint32_t thread, const char *name, uint64_t start,
                      uint64_t end)
{
	struct scope *scope = array_add(&timeline->model.threads.items[thread].scopes);

	*scope = (struct scope){
	    .start_ns = start, .end_ns = end, .name = name_of(timeline, name), .kind = SCOPE_ANNOTATION};
}

Test(compare, steps_by_name)
{
	static const char *const stems[] = {"ProfilerStep#", "train_step ", "Iteration"};
	struct timeline timeline;
	struct steps steps;
	uint32_t main;
	char name[32];

	for (size_t s = 0; s < 3; s++) {
		timeline_begin(&timeline);
		main = timeline_process(&timeline, 100, 0, "main");
		for (unsigned i = 0; i < 8; i++) {
			snprintf(name, sizeof(name), "%s%u", stems[s], i + 5);
			add_scope(&timeline, main, name, i * 10 * MS, i * 10 * MS + 9 * MS);
			add_scope(&timeline, main, "forward", i * 10 * MS, i * 10 * MS + 4 * MS);
			timeline_kernel(&timeline, main, i * 10 * MS, i * 10 * MS + 1 * MS,
			                i * 10 * MS + 2 * MS);
		}
		timeline_analyse(&timeline);
		cr_assert_eq(steps_find(&steps, &timeline.model, 0, 0, 75 * MS), 0);
		cr_assert_eq(steps.origin, STEPS_NAMED, "%s", stems[s]);
		cr_assert_eq(steps.list.count, 7, "the last ends outside of the window");
		cr_assert_eq(steps.list.items[1].start_ns, 10 * MS);
		cr_assert_eq(steps.list.items[1].end_ns, 19 * MS);
		steps_free(&steps);
		timeline_end(&timeline);
	}
}

/* Layers repeat too, but a step ends in something else; a pause with other work is no step. */
Test(compare, layers_are_no_steps)
{
	struct timeline timeline;
	struct steps steps;
	uint64_t now = MS;
	uint32_t main;

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 100, 0, "main");
	for (unsigned step = 0; step < 12; step++) {
		for (unsigned layer = 0; layer < 8; layer++) {
			timeline_kernel(&timeline, main, now, now + 5 * US, now + 200 * US);
			name_last(&timeline, name_of(&timeline, "attention"));
			timeline_kernel(&timeline, main, now + 8 * US, now + 200 * US, now + 300 * US);
			name_last(&timeline, name_of(&timeline, "mlp"));
			now += 310 * US;
		}
		for (unsigned i = 0; i < 6; i++) {
			timeline_kernel(&timeline, main, now, now + 5 * US, now + 100 * US);
			name_last(&timeline, name_of(&timeline, i ? "optimizer" : "loss"));
			now += 110 * US;
		}
		for (unsigned i = 0; step == 6 && i < 30; i++) {
			timeline_kernel(&timeline, main, now, now + 5 * US, now + 100 * US);
			name_last(&timeline, name_of(&timeline, "validate"));
			now += 110 * US;
		}
		now += 2 * MS;
	}
	timeline_analyse(&timeline);
	cr_assert_eq(steps_find(&steps, &timeline.model, 0, 0, now), 0);
	cr_assert_eq(steps.origin, STEPS_RHYTHM);
	cr_assert_eq(steps.period_ops, 22);
	cr_assert(steps.list.count == 10, "%zu: eleven whole ones, of which one has the validation",
	          steps.list.count);
	steps_free(&steps);
	timeline_end(&timeline);
}

/* All names alike: the pause after every third kernel tells. */
Test(compare, steps_by_time_alone)
{
	struct timeline timeline;
	struct steps steps;
	uint64_t now = MS;
	uint32_t main;

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 100, 0, "main");
	for (unsigned i = 0; i < 60; i++) {
		timeline_kernel(&timeline, main, now, now + 5 * US, now + 400 * US);
		now += 410 * US + (i % 3 == 2 ? 5 * MS : 0);
	}
	timeline_analyse(&timeline);
	cr_assert_eq(steps_find(&steps, &timeline.model, 0, 0, now), 0);
	cr_assert_eq(steps.origin, STEPS_RHYTHM);
	cr_assert_eq(steps.period_ops, 3);
	cr_assert_geq(steps.list.count, 18);
	for (size_t i = 0; i < steps.list.count; i++)
		cr_assert_eq(steps.list.items[i].end_ns - steps.list.items[i].start_ns,
		             3 * 410 * US + 5 * MS);
	steps_free(&steps);
	timeline_end(&timeline);
}

Test(compare, no_steps_where_nothing_repeats)
{
	struct timeline timeline;
	struct steps steps;
	uint64_t now = MS, state = 3;
	uint32_t main;
	char name[16];

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 100, 0, "main");
	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "k%u", (unsigned)(next_random(&state) % 7));
		timeline_kernel(&timeline, main, now, now + 5 * US, now + 200 * US);
		name_last(&timeline, name_of(&timeline, name));
		now += 210 * US + next_random(&state) % MS;
	}
	timeline_analyse(&timeline);
	cr_assert_eq(steps_find(&steps, &timeline.model, 0, 0, now), 0);
	cr_assert_eq(steps.origin, STEPS_NONE);
	steps_free(&steps);
	timeline_end(&timeline);
}

/* ---- verdicts ---- */

Test(compare, same_run_is_the_same)
{
	struct measurement runs[2] = {0};
	struct comparison comparison;

	cr_assert_eq(compare_plans(&usual, &usual, &comparison, runs), COMPARE_SAME);
	cr_assert_eq(comparison.pairs.items[0].step.change, 0);
	free_runs(&comparison, runs);
}

/* Of 200 pairs of runs that differ in chance alone, hardly any may be called different, in step time or in
 * any cause; and a step that is 10 % longer must be found, with its cause. */
Test(compare, chance_is_no_difference_and_ten_percent_is_found, .timeout = 120)
{
	enum { TRIALS = 200 };
	unsigned false_alarms = 0, false_causes = 0, found = 0, right_cause = 0;

	for (unsigned trial = 0; trial < TRIALS; trial++) {
		struct plan before = usual, after = usual;
		struct measurement runs[2] = {0};
		struct comparison comparison;
		const struct compare_pair *pair;

		before.seed = 1000 + trial;
		after.seed = 5000 + trial;
		if (compare_plans(&before, &after, &comparison, runs) != COMPARE_SAME)
			false_alarms++;
		false_causes += comparison.pairs.items[0].causes.items[0].figure.beyond;
		free_runs(&comparison, runs);
		/* 6.3 ms a step; 630 µs more of sleep. */
		after.sleep_ns += 630 * US;
		found += compare_plans(&before, &after, &comparison, runs) == COMPARE_WORSE;
		pair = &comparison.pairs.items[0];
		right_cause += pair->causes.items[0].figure.beyond &&
		               pair->causes.items[0].code == CAUSE_WAIT_SLEEP &&
		               fabs(pair->causes.items[0].figure.change - 630e3) < 400e3;
		free_runs(&comparison, runs);
	}
	fprintf(stderr,
	        "[compare] of %d null pairs %u called different, %u with a cause; of as many with 10 %% more "
	        "%u found, %u with its cause\n",
	        TRIALS, false_alarms, false_causes, found, right_cause);
	cr_assert_leq(false_alarms, TRIALS * 5 / 100);
	cr_assert_leq(false_causes, TRIALS * 5 / 100);
	cr_assert_geq(found, TRIALS * 95 / 100);
	cr_assert_geq(right_cause, TRIALS * 90 / 100);
}

/* Without steps the idle share decides, over slices of the window. */
static void make_shapeless(struct measurement *measurement, uint64_t sleep_ns, uint64_t seed)
{
	struct timeline timeline;
	struct error error = {0};
	uint64_t now = 10 * MS, state = seed;
	uint32_t main, names[7];
	char name[16];

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 100, 0, "main");
	for (unsigned i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		names[i] = name_of(&timeline, name);
	}
	for (unsigned i = 0; i < 400; i++) {
		uint64_t sleep = (uint64_t)((double)sleep_ns * 2 * uniform(&state));
		uint64_t work = 100 * US + next_random(&state) % MS;

		timeline_sleep(&timeline, main, now, now + sleep);
		timeline_kernel(&timeline, main, now + sleep, now + sleep + 5 * US, now + sleep + work);
		name_last(&timeline, names[next_random(&state) % 7]);
		now += sleep + work;
	}
	timeline_analyse(&timeline);
	cr_assert_eq(measurement_add(measurement, &timeline.model, &timeline.analysis, "run", &error), 0);
	timeline_end(&timeline);
}

Test(compare, slices_where_there_are_no_steps, .timeout = 120)
{
	enum { TRIALS = 60 };
	unsigned false_alarms = 0, found = 0;

	for (unsigned trial = 0; trial < TRIALS; trial++) {
		struct measurement runs[3] = {0};
		struct comparison comparison;

		make_shapeless(&runs[0], 600 * US, 100 + trial);
		make_shapeless(&runs[1], 600 * US, 300 + trial);
		make_shapeless(&runs[2], 1000 * US, 500 + trial);
		cr_assert_eq(comparison_make(&comparison, &runs[0], &runs[1]), 0);
		cr_assert_eq(comparison.pairs.items[0].basis, COMPARE_PER_TIME);
		false_alarms += comparison.verdict != COMPARE_SAME;
		comparison_free(&comparison);
		cr_assert_eq(comparison_make(&comparison, &runs[0], &runs[2]), 0);
		found += comparison.verdict == COMPARE_WORSE;
		comparison_free(&comparison);
		for (int i = 0; i < 3; i++)
			measurement_free(&runs[i]);
	}
	cr_assert_leq(false_alarms, TRIALS * 5 / 100, "%u", false_alarms);
	cr_assert_geq(found, TRIALS * 95 / 100, "%u", found);
}

Test(compare, too_little_is_unknown)
{
	struct plan few = usual, other = usual;
	struct measurement runs[2] = {0};
	struct comparison comparison;

	few.steps = 4;
	other.steps = 4;
	other.seed = 77;
	cr_assert_eq(compare_plans(&few, &other, &comparison, runs), COMPARE_UNKNOWN);
	free_runs(&comparison, runs);
}

/* ---- what is printed ---- */

static char *comparison_text(const struct comparison *comparison)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(report_compare_text(out, comparison, NULL), 0);
	fclose(out);
	return text;
}

Test(compare, golden_better)
{
	struct plan after = usual;
	struct measurement runs[2] = {0};
	struct comparison comparison;
	char *text;

	after.sleep_ns /= 2;
	after.kernel_ns += 100 * US;
	after.seed = 2;
	cr_assert_eq(compare_plans(&usual, &after, &comparison, runs), COMPARE_BETTER);
	text = comparison_text(&comparison);
	golden_check("compare_better.txt", text);
	free(text);
	free_runs(&comparison, runs);
}

Test(compare, hostile_names_reach_no_terminal)
{
	struct measurement runs[2] = {0};
	struct comparison comparison;
	struct timeline timeline;
	struct error error = {0};
	char *text;

	for (int i = 0; i < 2; i++) {
		make_run(&timeline, &runs[i], &usual);
		timeline_end(&timeline);
		free(runs[i].devices.items[0].name);
		runs[i].devices.items[0].name = strdup("GPU\033[31m\n\"<script>");
		free(runs[i].devices.items[0].kernels.items[0].name);
		runs[i].devices.items[0].kernels.items[0].name = strdup("\033]0;owned\007\xff");
	}
	cr_assert_eq(comparison_make(&comparison, &runs[0], &runs[1]), 0);
	text = comparison_text(&comparison);
	cr_assert_null(strchr(text, '\033'));
	cr_assert_null(strchr(text, '\007'));
	free(text);
	text = NULL;
	{
		size_t size;
		FILE *out = open_memstream(&text, &size);

		cr_assert_eq(report_compare_json(out, &comparison, &error), 0);
		fclose(out);
	}
	cr_assert_null(strchr(text, '\033'));
	cr_assert_null(strchr(text, '\xff'));
	free(text);
	free_runs(&comparison, runs);
}
