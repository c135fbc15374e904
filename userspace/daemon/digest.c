// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/digest.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "attribute/analysis.h"
#include "attribute/steps.h"
#include "base/number.h"
#include "model/model.h"
#include "report/report.h"

/*
 * How much of its time the thread with the most CUDA calls spent in probes on them. Where the kernel does not
 * count the hits, there was one for each call.
 */
double digest_slowdown(const struct model *model, const struct digest_cost *cost)
{
	uint64_t calls = 0, most = 0, spent;
	const struct thread *thread;

	array_for_each (thread, &model->threads) {
		calls += thread->calls.count;
		most = later(most, thread->calls.count);
	}
	if (!calls || !cost->length_ns)
		return 0;
	spent = cost->call_ns + (cost->call_hits ? cost->call_hits : calls) * cost->hit_ns;
	return (double)spent * most / calls / cost->length_ns;
}

/* CPU time of all probes: of the programs and of the traps to those on CUDA calls. */
static uint64_t probes_ns(const struct digest_cost *cost)
{
	return cost->programs_ns + cost->call_hits * cost->hit_ns;
}

/* Processes that were recorded, with what they launched. */
static json_t *make_processes(const struct model *model)
{
	json_t *list = json_array();
	const struct process *process;

	array_for_each (process, &model->processes) {
		if (!process->launches)
			continue;
		json_array_append_new(list, json_pack("{sI sI}", "pid", (json_int_t)process->pid, "launches",
		                                      (json_int_t)process->launches));
	}
	return list;
}

static int compare_steps(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	uint64_t first = x->end_ns - x->start_ns, second = y->end_ns - y->start_ns;

	return (first > second) - (first < second);
}

/* Steps of the first device that has some. */
static json_t *make_steps(const struct model *model, const struct analysis *analysis)
{
	uint64_t median = 0, longest = 0, count = 0;
	const struct device_report *device;

	array_for_each (device, &analysis->devices) {
		struct steps steps = {0};
		uint32_t index = (uint32_t)(device - analysis->devices.items);

		if (!count &&
		    !steps_find(&steps, model, index, device->window_start_ns, device->window_end_ns) &&
		    steps.list.count) {
			const struct step *items = steps.list.items;

			array_sort(&steps.list, compare_steps);
			count = steps.list.count;
			median = items[count / 2].end_ns - items[count / 2].start_ns;
			longest = items[count - 1].end_ns - items[count - 1].start_ns;
		}
		steps_free(&steps);
	}
	return json_pack("{sI sI sI}", "count", (json_int_t)count, "median_ns", (json_int_t)median,
	                 "longest_ns", (json_int_t)longest);
}

/* A member of the document that is small; returns -ENOMEM if it could not be made. */
static int put_member(FILE *out, const char *key, json_t *value)
{
	int err = -ENOMEM;

	if (value && fprintf(out, "\"%s\": ", key) > 0 && !json_dumpf(value, out, JSON_COMPACT) &&
	    fputs(",\n", out) >= 0)
		err = 0;
	json_decref(value);
	return err;
}

static int write_document(FILE *out, const struct model *model, const struct analysis *analysis,
                          const struct digest_cost *cost, struct error *error)
{
	int err;

	fputc('{', out);
	err = put_member(out, "processes", make_processes(model));
	err = err ?: put_member(out, "steps", make_steps(model, analysis));
	err = err
	          ?: put_member(out, "cost",
	                        json_pack("{sI sI sf}", "length_ns", (json_int_t)cost->length_ns, "probes_ns",
	                                  (json_int_t)probes_ns(cost), "slowdown",
	                                  digest_slowdown(model, cost)));
	if (err)
		return error_no_memory(error);
	fputs("\"report\": ", out);
	err = report_json(out, analysis, error);
	if (err)
		return err;
	return fputs("}\n", out) < 0 || fflush(out)
	           ? error_set(error, -EIO, "cannot hand over the result of a window")
	           : 0;
}

int digest_write(FILE *out, const char *session, const struct digest_cost *cost, struct error *error)
{
	struct analysis_options options = {.device = -1};
	struct analysis analysis = {0};
	struct model model = {0};
	int err = model_load_session(&model, session, error);

	if (!err)
		err = analysis_run(&analysis, &model, &options, error);
	if (!err)
		err = write_document(out, &model, &analysis, cost, error);
	analysis_free(&analysis);
	model_free(&model);
	return err;
}
