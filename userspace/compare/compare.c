// SPDX-License-Identifier: GPL-2.0-only
#include "compare/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Chance of a false alarm, for the figures of the answer; for tables, over all of their rows together. */
#define RISK 0.01

/* Differences that no recording can be held to: see docs/compare.md. */
#define STEP_FLOOR   0.01  /* of the time of a step before */
#define SHARE_FLOOR  0.005 /* of the time */
#define KERNEL_FLOOR 0.01  /* of the kernel's own time before */

#define STEP_OPS_FACTOR 2 /* steps that differ more than this in operations may be of different kinds */

/* ---- figures ---- */

typedef double (*batch_value)(const struct device_measure *device, unsigned batch, const void *context);

static double batch_time(const struct device_measure *device, unsigned batch, const void *context)
{
	(void)context;
	return (double)device->batch[batch].time_ns;
}

static double batch_steps(const struct device_measure *device, unsigned batch, const void *context)
{
	(void)context;
	return (double)device->batch[batch].steps;
}

static double batch_idle(const struct device_measure *device, unsigned batch, const void *context)
{
	(void)context;
	return (double)device->batch[batch].idle_ns;
}

struct cause_pick {
	enum cause_code code;
	enum cause_role role;
};

static double batch_cause(const struct device_measure *device, unsigned batch, const void *context)
{
	const struct cause_pick *pick = context;

	return (double)device->batch[batch].cause_ns[pick->code][pick->role];
}

static double batch_kernel_ns(const struct device_measure *device, unsigned batch, const void *context)
{
	(void)device;
	return (double)((const struct kernel_measure *)context)->batch_ns[batch];
}

static double batch_kernel_count(const struct device_measure *device, unsigned batch, const void *context)
{
	(void)device;
	return (double)((const struct kernel_measure *)context)->batch_count[batch];
}

static double batch_seconds(const struct device_measure *device, unsigned batch, const void *context)
{
	return batch_time(device, batch, context) / 1e9;
}

static struct estimate measure_ratio(const struct device_measure *device, batch_value part, batch_value whole,
                                     const void *context)
{
	double parts[NOISE_BATCHES_MOST], wholes[NOISE_BATCHES_MOST];

	for (unsigned i = 0; i < device->batches; i++) {
		parts[i] = part(device, i, context);
		wholes[i] = whole(device, i, context);
	}
	return estimate_ratio(parts, wholes, device->batches);
}

static batch_value basis_of(const struct compare_pair *pair)
{
	return pair->basis == COMPARE_PER_STEP ? batch_steps : batch_time;
}

static struct figure make_figure(const struct compare_pair *pair, batch_value part, batch_value whole,
                                 const void *before, const void *after, double risk, double floor)
{
	return figure_make(measure_ratio(pair->before, part, whole, before),
	                   measure_ratio(pair->after, part, whole, after), risk, floor);
}

/* The least change of an amount of time that counts, on the pair's basis. */
static double amount_floor(const struct compare_pair *pair)
{
	return pair->basis == COMPARE_PER_STEP ? SHARE_FLOOR * pair->step.before.value : SHARE_FLOOR;
}

static struct figure cause_figure(const struct compare_pair *pair, const struct cause_pick *pick, double risk)
{
	return make_figure(pair, batch_cause, basis_of(pair), pick, pick, risk, amount_floor(pair));
}

static double batch_causes(const struct device_measure *device, unsigned batch, const void *context)
{
	double sum = 0;

	for (int code = 0; code < CAUSE_COUNT; code++) {
		for (int role = 0; role < ROLE_COUNT; role++) {
			if (cause_set_holds(context, code, role))
				sum += (double)device->batch[batch].cause_ns[code][role];
		}
	}
	return sum;
}

struct figure compare_causes_share(const struct compare_pair *pair, const struct cause_set *causes)
{
	return make_figure(pair, batch_causes, batch_time, causes, causes, RISK, SHARE_FLOOR);
}

const struct figure *compare_main_figure(const struct compare_pair *pair)
{
	return pair->basis == COMPARE_PER_STEP ? &pair->step : &pair->idle_share;
}

/* ---- tables ---- */

static int compare_change(const struct figure *a, const struct figure *b)
{
	double x = fabs(a->change), y = fabs(b->change);

	if (a->beyond != b->beyond)
		return a->beyond ? -1 : 1;
	return (x < y) - (x > y);
}

static int compare_causes(const void *a, const void *b)
{
	const struct compare_cause *x = a, *y = b;
	int order = compare_change(&x->figure, &y->figure);

	if (!order)
		order = (x->before_ns < y->before_ns) - (x->before_ns > y->before_ns);
	return order ? order : x->code != y->code ? (int)x->code - (int)y->code : (int)x->role - (int)y->role;
}

static int compare_kernels(const void *a, const void *b)
{
	const struct compare_kernel *x = a, *y = b;
	int order = compare_change(&x->figure, &y->figure);

	if (!order)
		order = (x->before_ns < y->before_ns) - (x->before_ns > y->before_ns);
	return order ? order : strcmp(x->name, y->name);
}

static int make_causes(struct compare_pair *pair)
{
	struct compare_cause *cause;

	for (int code = 0; code < CAUSE_COUNT; code++) {
		for (int role = 0; role < ROLE_COUNT; role++) {
			uint64_t before = measure_cause_ns(pair->before, code, role);
			uint64_t after = measure_cause_ns(pair->after, code, role);

			if (!before && !after)
				continue;
			cause = array_add(&pair->causes);
			if (!cause)
				return -ENOMEM;
			*cause = (struct compare_cause){
			    .code = code, .role = role, .before_ns = before, .after_ns = after};
		}
	}
	array_for_each (cause, &pair->causes) {
		const struct cause_pick pick = {cause->code, cause->role};

		cause->figure = cause_figure(pair, &pick, RISK / (double)pair->causes.count);
	}
	array_sort(&pair->causes, compare_causes);
	return 0;
}

static int kernel_index(struct index_map *by_name, const struct device_measure *device)
{
	for (size_t i = 0; i < device->kernels.count; i++) {
		const char *name = device->kernels.items[i].name;

		if (index_map_put(by_name, hash_bytes(name, strlen(name)), (uint32_t)i))
			return -ENOMEM;
	}
	return 0;
}

static const struct kernel_measure *kernel_find(const struct index_map *by_name,
                                                const struct device_measure *device, const char *name)
{
	static const struct kernel_measure none;
	uint32_t at;

	return index_map_get(by_name, hash_bytes(name, strlen(name)), &at) ? &device->kernels.items[at]
	                                                                   : &none;
}

static int add_kernel(struct compare_pair *pair, const char *name, const struct kernel_measure *before,
                      const struct kernel_measure *after, double risk)
{
	struct compare_kernel *kernel = array_add(&pair->kernels);
	batch_value whole = basis_of(pair);
	double floor = amount_floor(pair) / 10;
	double own = measure_ratio(pair->before, batch_kernel_ns, whole, before).value * KERNEL_FLOOR;

	if (!kernel)
		return -ENOMEM;
	*kernel = (struct compare_kernel){
	    .name = name,
	    .before_ns = before->ns,
	    .after_ns = after->ns,
	    .before_count = before->count,
	    .after_count = after->count,
	    .figure =
	        make_figure(pair, batch_kernel_ns, whole, before, after, risk, own > floor ? own : floor),
	    .count = make_figure(pair, batch_kernel_count,
	                         pair->basis == COMPARE_PER_STEP ? batch_steps : batch_seconds, before, after,
	                         risk, 0),
	};
	return 0;
}

static int make_kernels(struct compare_pair *pair)
{
	struct index_map before = {0}, after = {0};
	const struct kernel_measure *kernel;
	double rows = (double)(pair->before->kernels.count + pair->after->kernels.count);
	int rc = kernel_index(&before, pair->before);

	if (!rc)
		rc = kernel_index(&after, pair->after);
	array_for_each (kernel, &pair->before->kernels) {
		if (!rc)
			rc = add_kernel(pair, kernel->name, kernel,
			                kernel_find(&after, pair->after, kernel->name), RISK / rows);
	}
	array_for_each (kernel, &pair->after->kernels) {
		const struct kernel_measure *other = kernel_find(&before, pair->before, kernel->name);

		if (!rc && !other->name)
			rc = add_kernel(pair, kernel->name, other, kernel, RISK / rows);
	}
	index_map_free(&before);
	index_map_free(&after);
	array_sort(&pair->kernels, compare_kernels);
	return rc;
}

/* ---- pairs ---- */

static enum compare_verdict judge(const struct figure *figure)
{
	if (figure->change == 0)
		return COMPARE_SAME;
	if (!figure->known)
		return COMPARE_UNKNOWN;
	return !figure->beyond ? COMPARE_SAME : figure->change < 0 ? COMPARE_BETTER : COMPARE_WORSE;
}

static int make_pair(struct compare_pair *pair, const struct device_measure *before,
                     const struct device_measure *after)
{
	bool stepped = before->origin != STEPS_NONE && after->origin != STEPS_NONE;
	int rc;

	*pair = (struct compare_pair){
	    .before = before, .after = after, .basis = stepped ? COMPARE_PER_STEP : COMPARE_PER_TIME};
	if (stepped) {
		struct estimate steps = measure_ratio(before, batch_time, batch_steps, NULL);

		pair->step =
		    make_figure(pair, batch_time, batch_steps, NULL, NULL, RISK, STEP_FLOOR * steps.value);
	}
	pair->idle_share = make_figure(pair, batch_idle, batch_time, NULL, NULL, RISK, SHARE_FLOOR);
	pair->idle = make_figure(pair, batch_idle, basis_of(pair), NULL, NULL, RISK, amount_floor(pair));
	rc = make_causes(pair);
	if (!rc)
		rc = make_kernels(pair);
	pair->verdict = judge(compare_main_figure(pair));
	return rc;
}

/* How much a pair changed, so that different devices can be ordered. */
static double weight(const struct compare_pair *pair)
{
	const struct figure *figure = compare_main_figure(pair);
	double whole = pair->basis == COMPARE_PER_STEP ? figure->before.value : 1;

	return whole > 0 ? fabs(figure->change) / whole : 0;
}

static const struct compare_pair *find_answer(const struct comparison *comparison)
{
	const struct compare_pair *pair, *best = NULL;

	array_for_each (pair, &comparison->pairs) {
		bool changed = pair->verdict == COMPARE_BETTER || pair->verdict == COMPARE_WORSE;
		bool best_changed =
		    best && (best->verdict == COMPARE_BETTER || best->verdict == COMPARE_WORSE);

		if (!best || changed > best_changed ||
		    (changed == best_changed && weight(pair) > weight(best)))
			best = pair;
	}
	return best;
}

/* ---- notes ---- */

static int note(struct comparison *comparison, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int note(struct comparison *comparison, const char *format, ...)
{
	char **slot = array_add(&comparison->notes);
	va_list args;
	int length;

	if (!slot)
		return -ENOMEM;
	va_start(args, format);
	length = vasprintf(slot, format, args);
	va_end(args);
	if (length < 0)
		*slot = NULL;
	return *slot ? 0 : -ENOMEM;
}

static int note_run(struct comparison *comparison, const struct measurement *run, const char *name)
{
	int rc = 0;

	if (run->simulated)
		rc = note(comparison, "%s: the GPU was simulated.", name);
	if (!rc && run->incomplete)
		rc = note(comparison, "%s: the recording is incomplete.", name);
	if (!rc && run->lost)
		rc = note(comparison,
		          "%s: %" PRIu64 " records were lost; idle time over them is unknown.lost.", name,
		          run->lost);
	return rc;
}

static int note_pair(struct comparison *comparison, const struct compare_pair *pair)
{
	uint64_t before = pair->before->period_ops, after = pair->after->period_ops;

	if (pair->basis == COMPARE_PER_TIME && pair->before->origin != pair->after->origin)
		return note(comparison,
		            "GPU %" PRIu32
		            ": only one of the runs has steps, so shares of the time are compared.",
		            pair->before->device);
	if (before && after && (before > STEP_OPS_FACTOR * after || after > STEP_OPS_FACTOR * before))
		return note(comparison,
		            "GPU %" PRIu32 ": a step has %" PRIu64 " operations before and %" PRIu64
		            " after; check that both are the same step.",
		            pair->before->device, before, after);
	return 0;
}

static int make_notes(struct comparison *comparison)
{
	const struct measurement *before = comparison->before, *after = comparison->after;
	const struct compare_pair *pair;
	int rc = note_run(comparison, before, "BEFORE");

	if (!rc)
		rc = note_run(comparison, after, "AFTER");
	if (!rc && before->source && after->source && strcmp(before->source, after->source) != 0)
		rc = note(comparison,
		          "BEFORE is a %s recording and AFTER a %s one: they do not see the same causes.",
		          before->source, after->source);
	if (!rc && before->devices.count != after->devices.count)
		rc = note(comparison,
		          "BEFORE has %zu GPUs and AFTER %zu: the first %zu are compared, in order.",
		          before->devices.count, after->devices.count, comparison->pairs.count);
	array_for_each (pair, &comparison->pairs) {
		if (!rc)
			rc = note_pair(comparison, pair);
	}
	return rc;
}

int comparison_make(struct comparison *comparison, const struct measurement *before,
                    const struct measurement *after)
{
	size_t count =
	    before->devices.count < after->devices.count ? before->devices.count : after->devices.count;
	int rc = 0;

	*comparison = (struct comparison){.before = before, .after = after, .verdict = COMPARE_UNKNOWN};
	for (size_t i = 0; !rc && i < count; i++) {
		struct compare_pair *pair = array_add(&comparison->pairs);

		rc = pair ? make_pair(pair, &before->devices.items[i], &after->devices.items[i]) : -ENOMEM;
	}
	comparison->answer = find_answer(comparison);
	if (comparison->answer)
		comparison->verdict = comparison->answer->verdict;
	return rc ? rc : make_notes(comparison);
}

void comparison_free(struct comparison *comparison)
{
	struct compare_pair *pair;
	char **line;

	array_for_each (pair, &comparison->pairs) {
		array_free(&pair->causes);
		array_free(&pair->kernels);
	}
	array_for_each (line, &comparison->notes)
		free(*line);
	array_free(&comparison->pairs);
	array_free(&comparison->notes);
}

const char *compare_verdict_name(enum compare_verdict verdict)
{
	static const char *const names[] = {"same", "better", "worse", "unknown"};

	return names[verdict];
}

const char *compare_basis_name(enum compare_basis basis)
{
	return basis == COMPARE_PER_STEP ? "step" : "time";
}
