// SPDX-License-Identifier: GPL-2.0-only
#include "compare/measure.h"

#include <errno.h>
#include <string.h>

#include "attribute/gap_chains.h"
#include "base/number.h"
#include "model/copy_name.h"

#define NAME_MOST 4096 /* bytes of a kernel's name */

/* Slices of a window without steps: as many as leave each with some gaps, so that a slice is longer than what
 * repeats in it. */
#define GAPS_A_SLICE 10

/* A stretch that is counted, and into which batch. */
struct stretch {
	uint64_t start_ns, end_ns;
	uint32_t batch;
};

struct cutter {
	struct device_measure *measure;
	struct {
		ARRAY(struct stretch)
	} stretches; /* disjoint, in time order */
	size_t next; /* the first that may still be met: gaps come in time order */
};

static int add_stretch(struct cutter *cutter, uint64_t start_ns, uint64_t end_ns, uint64_t batch)
{
	struct stretch *stretch = array_add(&cutter->stretches);

	if (!stretch)
		return -ENOMEM;
	*stretch = (struct stretch){start_ns, end_ns, (uint32_t)batch};
	cutter->measure->batch[batch].time_ns += end_ns - start_ns;
	return 0;
}

/* ---- cutting ---- */

static int sort_durations(const struct step_list *list, uint64_t **durations)
{
	*durations = calloc(list->count, sizeof(**durations));
	if (!*durations)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++)
		(*durations)[i] = list->items[i].end_ns - list->items[i].start_ns;
	qsort_items(*durations, list->count, sizeof(**durations), compare_unsigned);
	return 0;
}

/* Compilation, caches and a cold start make the first steps long; that is not what is compared. */
static int drop_warm_up(struct device_measure *measure, struct step_list *list)
{
	size_t drop = steps_warm_up(list);
	uint64_t *durations;
	int rc;

	list->count -= drop;
	memmove(list->items, list->items + drop, list->count * sizeof(*list->items));
	measure->warm_up = drop;
	rc = sort_durations(list, &durations);
	if (!rc) {
		measure->step_least_ns = durations[0];
		measure->step_median_ns = durations[list->count / 2];
		measure->step_most_ns = durations[list->count - 1];
		free(durations);
	}
	return rc;
}

static int cut_by_steps(struct cutter *cutter, struct steps *steps)
{
	struct device_measure *measure = cutter->measure;
	int rc = drop_warm_up(measure, &steps->list);

	measure->origin = steps->origin;
	measure->period_ops = steps->period_ops;
	measure->steps = steps->list.count;
	if (!rc && steps->name) {
		measure->step_name = strndup(steps->name, NAME_MOST);
		rc = measure->step_name ? 0 : -ENOMEM;
	}
	measure->batches =
	    steps->list.count < NOISE_BATCHES_MOST ? (unsigned)steps->list.count : NOISE_BATCHES_MOST;
	for (size_t i = 0; !rc && i < steps->list.count; i++) {
		size_t batch = i * measure->batches / steps->list.count;

		measure->batch[batch].steps++;
		rc = add_stretch(cutter, steps->list.items[i].start_ns, steps->list.items[i].end_ns, batch);
	}
	return rc;
}

/* One slice, with which figures can be given but no noise, where there is too little for more. */
static int cut_by_time(struct cutter *cutter)
{
	struct device_measure *measure = cutter->measure;
	uint64_t slices = earlier(measure->gap_count / GAPS_A_SLICE, NOISE_BATCHES_MOST);
	uint64_t start = measure->window_start_ns, length = measure->window_end_ns - start;
	int rc = 0;

	slices = slices < NOISE_BATCHES_LEAST ? 1 : slices;
	measure->batches = (unsigned)slices;
	for (uint64_t i = 0; !rc && i < slices; i++)
		rc = add_stretch(cutter, start + length / slices * i,
		                 i + 1 == slices ? start + length : start + length / slices * (i + 1), i);
	return rc;
}

/* ---- counting ---- */

static void count_leaf(struct cutter *cutter, const struct leaf *leaf)
{
	for (size_t i = cutter->next; i < cutter->stretches.count; i++) {
		const struct stretch *stretch = &cutter->stretches.items[i];
		struct batch *batch = &cutter->measure->batch[stretch->batch];
		uint64_t from = later(stretch->start_ns, leaf->start_ns);
		uint64_t to = earlier(stretch->end_ns, leaf->end_ns);

		if (stretch->start_ns >= leaf->end_ns)
			break;
		if (stretch->end_ns <= leaf->start_ns) {
			cutter->next = i + 1;
			continue;
		}
		batch->idle_ns += to - from;
		batch->cause_ns[leaf->code][leaf->role] += to - from;
	}
}

static int count_gap(void *context, const struct gap_chain *chain)
{
	for (size_t i = 0; i < chain->count; i++)
		count_leaf(context, &chain->leaves[i]);
	return 0;
}

/* Batch of a time, -1: it is not counted. */
static int batch_at(const struct cutter *cutter, uint64_t ns)
{
	size_t low = 0, high = cutter->stretches.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cutter->stretches.items[middle].start_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || cutter->stretches.items[low - 1].end_ns <= ns)
		return -1;
	return (int)cutter->stretches.items[low - 1].batch;
}

static const char *op_name(char copy[COPY_NAME_SIZE], const struct model *model, const struct gpu_op *op)
{
	if (op->kind == OP_MEMCPY || op->kind == OP_MEMSET)
		return copy_name(copy, op);
	return op->name ? model_string(model, op->name) : "?";
}

static struct kernel_measure *kernel_of(struct device_measure *measure, struct index_map *by_name,
                                        const char *name)
{
	uint64_t key = hash_bytes(name, strnlen(name, NAME_MOST));
	struct kernel_measure *kernel;
	uint32_t at;

	if (index_map_get(by_name, key, &at))
		return &measure->kernels.items[at];
	kernel = array_add(&measure->kernels);
	if (!kernel)
		return NULL;
	kernel->name = strndup(name, NAME_MOST);
	if (!kernel->name || index_map_put(by_name, key, (uint32_t)measure->kernels.count - 1))
		return NULL;
	return kernel;
}

static int compare_ns(const void *a, const void *b)
{
	const struct kernel_measure *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static int count_ops(struct cutter *cutter, const struct model *model, const struct device *device)
{
	struct device_measure *measure = cutter->measure;
	struct index_map by_name = {0};
	char copy[COPY_NAME_SIZE];
	const struct gpu_op *op;
	int rc = 0;

	array_for_each (op, &device->ops) {
		int batch = batch_at(cutter, op->start_ns);
		struct kernel_measure *kernel;

		if (rc || batch < 0)
			continue;
		kernel = kernel_of(measure, &by_name, op_name(copy, model, op));
		if (!kernel) {
			rc = -ENOMEM;
			continue;
		}
		kernel->count++;
		kernel->ns += op->end_ns - op->start_ns;
		kernel->batch_count[batch]++;
		kernel->batch_ns[batch] += op->end_ns - op->start_ns;
	}
	index_map_free(&by_name);
	array_sort(&measure->kernels, compare_ns);
	return rc;
}

static int measure_device(struct device_measure *measure, const struct model *model,
                          const struct device_report *report, const char *path)
{
	struct cutter cutter = {.measure = measure};
	uint32_t index = gap_chains_device(model, report);
	struct steps steps;
	int rc;

	measure->device = report->device;
	measure->name = strndup(report->name, NAME_MOST);
	measure->path = strdup(path);
	measure->window_start_ns = report->window_start_ns;
	measure->window_end_ns = report->window_end_ns;
	measure->busy_ns = report->busy_ns;
	measure->idle_ns = report->idle_ns;
	measure->gap_count = report->gap_count;
	measure->op_count = report->op_count;
	if (!measure->name || !measure->path)
		return -ENOMEM;
	rc = steps_find(&steps, model, index, measure->window_start_ns, measure->window_end_ns);
	if (!rc)
		rc = steps.origin != STEPS_NONE ? cut_by_steps(&cutter, &steps) : cut_by_time(&cutter);
	if (!rc)
		rc = gap_chains_visit(model, report, count_gap, &cutter);
	if (!rc)
		rc = count_ops(&cutter, model, &model->devices.items[index]);
	steps_free(&steps);
	array_free(&cutter.stretches);
	return rc;
}

int measurement_add(struct measurement *measurement, const struct model *model,
                    const struct analysis *analysis, const char *path, struct error *error)
{
	const struct device_report *report;
	const struct loss_report *losses = &analysis->losses;

	if (!measurement->source)
		measurement->source = analysis->source;
	measurement->simulated |= analysis->simulated;
	measurement->incomplete |= analysis->incomplete;
	measurement->lost +=
	    losses->bpf_ring + losses->bridge_ring + losses->cupti + losses->storage + losses->file;
	array_for_each (report, &analysis->devices) {
		struct device_measure *measure;

		if (report->window_end_ns <= report->window_start_ns)
			continue;
		measure = array_add(&measurement->devices);
		if (!measure || measure_device(measure, model, report, path))
			return error_no_memory(error);
	}
	return 0;
}

void measurement_free(struct measurement *measurement)
{
	struct device_measure *device;
	struct kernel_measure *kernel;

	array_for_each (device, &measurement->devices) {
		array_for_each (kernel, &device->kernels)
			free(kernel->name);
		array_free(&device->kernels);
		free(device->name);
		free(device->path);
		free(device->step_name);
	}
	array_free(&measurement->devices);
}

uint64_t measure_time_ns(const struct device_measure *device)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < device->batches; i++)
		sum += device->batch[i].time_ns;
	return sum;
}

uint64_t measure_cause_ns(const struct device_measure *device, enum cause_code code, enum cause_role role)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < device->batches; i++)
		sum += device->batch[i].cause_ns[code][role];
	return sum;
}
