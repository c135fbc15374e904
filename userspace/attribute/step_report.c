// SPDX-License-Identifier: GPL-2.0-only
#include "attribute/step_report.h"

#include <errno.h>

#include "attribute/walk.h"
#include "base/median.h"
#include "base/number.h"

#define SPREAD_FACTOR 5
#define LEAST_PART    10 /* of the median */
#define MAD_TO_SIGMA  1.4826

/* Idle time of one cause in one step; those of a step are neighbours. */
struct part {
	uint32_t step;
	uint8_t code, role;
	uint32_t thread;
	uint64_t ns, longest_ns;
};

struct step_tally {
	struct step_report *report;
	const struct model *model;
	uint32_t device;
	struct {
		ARRAY(struct part)
	} parts;
	size_t next; /* the first step that may still be met */
	bool failed;
};

static int copy_steps(struct step_report *report, const struct steps *steps)
{
	const struct step *step;

	report->origin = steps->origin;
	report->name = steps->name;
	report->period_ops = steps->period_ops;
	report->warm_up = steps_warm_up(&steps->list);
	array_for_each (step, &steps->list) {
		struct step_figures *figures = array_add(&report->steps);

		if (!figures)
			return -ENOMEM;
		figures->number = step->number;
		figures->start_ns = step->start_ns;
		figures->end_ns = step->end_ns;
		figures->warm_up = report->steps.count <= report->warm_up;
	}
	return 0;
}

struct step_tally *step_tally_new(struct step_report *report, const struct model *model, uint32_t device,
                                  uint64_t from_ns, uint64_t to_ns)
{
	struct step_tally *tally = calloc(1, sizeof(*tally));
	struct steps steps;
	int rc;

	if (!tally)
		return NULL;
	tally->report = report;
	tally->model = model;
	tally->device = device;
	rc = steps_find(&steps, model, device, from_ns, to_ns);
	if (!rc)
		rc = copy_steps(report, &steps);
	steps_free(&steps);
	if (rc) {
		step_tally_free(tally);
		return NULL;
	}
	return tally;
}

/* The part of a step under a cause, made if need be. Leaves come in time order: it is one of the last. */
static struct part *part_of(struct step_tally *tally, size_t step, const struct leaf *leaf)
{
	struct part *part;

	for (size_t i = tally->parts.count; i && tally->parts.items[i - 1].step == step; i--) {
		part = &tally->parts.items[i - 1];
		if (part->code == leaf->code && part->role == leaf->role)
			return part;
	}
	part = array_add(&tally->parts);
	if (part)
		*part = (struct part){
		    .step = (uint32_t)step, .code = (uint8_t)leaf->code, .role = (uint8_t)leaf->role};
	return part;
}

void step_tally_leaf(struct step_tally *tally, const struct leaf *leaf)
{
	for (size_t i = tally->next; i < tally->report->steps.count; i++) {
		struct step_figures *step = &tally->report->steps.items[i];
		uint64_t from = later(step->start_ns, leaf->start_ns);
		uint64_t to = earlier(step->end_ns, leaf->end_ns);
		struct part *part;

		if (step->start_ns >= leaf->end_ns)
			break;
		if (step->end_ns <= leaf->start_ns) {
			tally->next = i + 1;
			continue;
		}
		part = part_of(tally, i, leaf);
		if (!part) {
			tally->failed = true;
			return;
		}
		step->idle_ns += to - from;
		part->ns += to - from;
		if (to - from > part->longest_ns) {
			part->longest_ns = to - from;
			part->thread = leaf->thread;
		}
	}
}

/* ---- the end ---- */

static struct step_cause cause_of(const struct step_tally *tally, const struct part *part)
{
	struct step_cause cause = {.code = part->code, .role = part->role, .ns = part->ns, .comm = "GPU"};

	if (part->thread != MODEL_NONE) {
		const struct thread *thread = &tally->model->threads.items[part->thread];

		cause.pid = thread->pid;
		cause.tid = thread->tid;
		cause.comm = model_string(tally->model, thread->comm);
	}
	return cause;
}

static void find_largest(struct step_tally *tally)
{
	const struct part *part;

	array_for_each (part, &tally->parts) {
		struct step_figures *step = &tally->report->steps.items[part->step];

		if (step->has_cause && step->largest.ns >= part->ns)
			continue;
		step->has_cause = true;
		step->largest = cause_of(tally, part);
	}
}

static void count_ops(struct step_tally *tally)
{
	struct step_report *report = tally->report;
	const struct gpu_op *op;
	size_t at = 0;

	array_for_each (op, &tally->model->devices.items[tally->device].ops) {
		while (at < report->steps.count && report->steps.items[at].end_ns <= op->start_ns)
			at++;
		if (at < report->steps.count && report->steps.items[at].start_ns <= op->start_ns)
			report->steps.items[at].op_count++;
	}
}

static uint64_t length_of(const struct step_figures *step)
{
	return step->end_ns - step->start_ns;
}

/* Median and usual spread of all but warm-up, and from them what is slow. */
static int find_slow(struct step_report *report)
{
	size_t count = report->steps.count - report->warm_up, middle = count / 2;
	uint64_t *values = calloc(count, sizeof(*values)), spread, sum = 0;
	struct step_figures *step;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		values[i] = length_of(&report->steps.items[report->warm_up + i]);
	qsort_items(values, count, sizeof(*values), compare_unsigned);
	report->least_ns = values[0];
	report->median_ns = values[middle];
	report->most_ns = values[count - 1];
	for (size_t i = 0; i < count; i++)
		values[i] = values[i] > report->median_ns ? values[i] - report->median_ns
		                                          : report->median_ns - values[i];
	spread = (uint64_t)(SPREAD_FACTOR * MAD_TO_SIGMA * (double)median_unsigned(values, count));
	report->slow_ns = report->median_ns + later(spread, report->median_ns / LEAST_PART);
	free(values);
	array_for_each (step, &report->steps) {
		step->slow = !step->warm_up && length_of(step) > report->slow_ns;
		report->slow_count += step->slow;
		if (!step->warm_up && !step->slow)
			sum += length_of(step);
	}
	report->normal_ns = sum / (count - report->slow_count); /* the median is never slow */
	return 0;
}

static int compare_slow(const void *a, const void *b)
{
	const struct slow_step *x = a, *y = b;
	int order = (x->more_ns < y->more_ns) - (x->more_ns > y->more_ns);

	return order ? order : (x->step > y->step) - (x->step < y->step);
}

static int compare_more(const void *a, const void *b)
{
	const struct step_cause *x = a, *y = b;

	return (x->more_ns < y->more_ns) - (x->more_ns > y->more_ns);
}

static int list_slow(struct step_report *report)
{
	for (size_t i = 0; i < report->steps.count; i++) {
		const struct step_figures *step = &report->steps.items[i];
		struct slow_step *slow;

		if (!step->slow)
			continue;
		slow = array_add(&report->slow);
		if (!slow)
			return -ENOMEM;
		slow->step = i;
		slow->more_ns = length_of(step) - report->normal_ns;
		report->slow_more_ns += slow->more_ns;
	}
	array_sort(&report->slow, compare_slow);
	if (report->slow.count > STEPS_EXPLAINED)
		report->slow.count = STEPS_EXPLAINED;
	return 0;
}

/* What the slow steps have more of than the mean of the normal ones: so parts add up to the whole. */
static int explain_slow(struct step_tally *tally)
{
	struct step_report *report = tally->report;
	uint64_t normal[CAUSE_COUNT][ROLE_COUNT] = {0}, idle = 0;
	uint64_t count = report->steps.count - report->warm_up - report->slow_count;
	const struct step_figures *step;
	const struct part *part;
	struct slow_step *slow;

	array_for_each (step, &report->steps)
		idle += step->warm_up || step->slow ? 0 : step->idle_ns;
	array_for_each (part, &tally->parts) {
		step = &report->steps.items[part->step];
		normal[part->code][part->role] += step->warm_up || step->slow ? 0 : part->ns;
	}
	array_for_each (slow, &report->slow) {
		step = &report->steps.items[slow->step];
		slow->busy_more_ns =
		    (int64_t)(length_of(step) - step->idle_ns) - (int64_t)(report->normal_ns - idle / count);
		array_for_each (part, &tally->parts) {
			uint64_t usual = normal[part->code][part->role] / count;
			struct step_cause *cause;

			if (part->step != slow->step || part->ns <= usual)
				continue;
			cause = array_add(&slow->causes);
			if (!cause)
				return -ENOMEM;
			*cause = cause_of(tally, part);
			cause->more_ns = part->ns - usual;
		}
		array_sort(&slow->causes, compare_more);
	}
	return 0;
}

int step_tally_finish(struct step_tally *tally)
{
	int rc;

	if (tally->failed)
		return -ENOMEM;
	if (!tally->report->steps.count)
		return 0;
	find_largest(tally);
	count_ops(tally);
	rc = find_slow(tally->report);
	if (!rc)
		rc = list_slow(tally->report);
	return rc ? rc : explain_slow(tally);
}

void step_tally_free(struct step_tally *tally)
{
	if (tally)
		array_free(&tally->parts);
	free(tally);
}

void step_report_free(struct step_report *report)
{
	struct slow_step *slow;

	array_for_each (slow, &report->slow)
		array_free(&slow->causes);
	array_free(&report->slow);
	array_free(&report->steps);
}
