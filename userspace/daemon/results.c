// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/results.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/families.h"

#define SECONDS(ns) ((double)(ns) / 1e9)

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

static int take_processes(struct window_result *result)
{
	json_t *process;
	size_t i;

	json_array_foreach(json_object_get(result->document, "processes"), i, process)
	{
		struct process_result *slot = array_add(&result->processes);

		if (!slot)
			return -ENOMEM;
		*slot = (struct process_result){.pid = number(process, "pid"),
		                                .launches = number(process, "launches")};
	}
	return 0;
}

static void take_gpus(struct window_result *result)
{
	json_t *gpu, *gap;
	size_t i, j;

	json_array_foreach(json_object_get(result->report, "gpus"), i, gpu)
	{
		uint64_t busy = number(gpu, "busy_ns"), idle = number(gpu, "idle_ns");

		if (!i || idle > result->idle_ns) {
			result->idle_ns = idle;
			result->observed_ns = busy + idle;
		}
		json_array_foreach(json_object_get(gpu, "top_gaps"), j, gap)
		{
			uint64_t length = number(gap, "end_ns") - number(gap, "start_ns");

			if (length > result->longest_gap_ns)
				result->longest_gap_ns = length;
		}
	}
}

int window_result_parse(struct window_result *result, const char *json, size_t length, struct error *error)
{
	json_error_t what;
	const json_t *steps, *cost;

	*result = (struct window_result){0};
	if (length > RESULT_LIMIT)
		return error_set(error, -EFBIG, "the result of a window is too large");
	result->document = json_loadb(json, length, JSON_ALLOW_NUL, &what);
	result->report = json_object_get(result->document, "report");
	if (!json_is_object(result->report))
		return error_set(error, -EINVAL, "the result of a window makes no sense%s%s",
		                 result->document ? "" : ": ", result->document ? "" : what.text);
	steps = json_object_get(result->document, "steps");
	result->steps = number(steps, "count");
	result->step_median_ns = number(steps, "median_ns");
	result->step_longest_ns = number(steps, "longest_ns");
	cost = json_object_get(result->document, "cost");
	result->probes_ns = number(cost, "probes_ns");
	result->length_ns = number(cost, "length_ns");
	result->slowdown = json_number_value(json_object_get(cost, "slowdown"));
	take_gpus(result);
	return take_processes(result) ? error_no_memory(error) : 0;
}

void window_result_free(struct window_result *result)
{
	json_decref(result->document);
	array_free(&result->processes);
	memset(result, 0, sizeof(*result));
}

/* ---- metrics ---- */

struct counting {
	struct metrics *metrics;
	uint64_t now_ns;
	result_identity identify;
	void *context;
};

static void add(const struct counting *counting, enum family family, double value, const char *const *labels)
{
	*metrics_value(counting->metrics, family, counting->now_ns, labels) += value;
}

#define add_at(counting, family, value, ...)                                                                 \
	add(counting, family, value, (const char *const[METRICS_LABELS + 1]){__VA_ARGS__})

/* A cause, split by the processes to blame; what no thread has is of no process. */
static void count_cause(const struct counting *counting, const char *gpu, const json_t *cause)
{
	uint64_t left = number(cause, "ns");
	const char *code = text(cause, "code"), *role = text(cause, "role");
	json_t *thread;
	size_t i;

	json_array_foreach(json_object_get(cause, "threads"), i, thread)
	{
		const struct identity *who = counting->identify(counting->context, number(thread, "pid"));
		uint64_t ns = number(thread, "ns");

		if (ns > left)
			ns = left;
		left -= ns;
		add_at(counting, FAMILY_GPU_IDLE, SECONDS(ns), gpu, code, role, who->process, who->container,
		       who->pod);
	}
	if (left)
		add_at(counting, FAMILY_GPU_IDLE, SECONDS(left), gpu, code, role, "", "", "");
}

/* A GPU is known by its UUID; where that is not known, by its number. */
static void count_gpu(const struct counting *counting, const json_t *gpu, const char *timeline)
{
	uint64_t busy = number(gpu, "busy_ns"), idle = number(gpu, "idle_ns"), longest = 0;
	const char *name = text(gpu, "uuid");
	char index[24];
	json_t *item;
	size_t i;

	if (!*name) {
		snprintf(index, sizeof(index), "%llu", (unsigned long long)number(gpu, "device"));
		name = index;
	}
	add_at(counting, FAMILY_GPU_OBSERVED, SECONDS(busy + idle), name, timeline);
	add_at(counting, FAMILY_GPU_BUSY, SECONDS(busy), name);
	add_at(counting, FAMILY_GPU_GAPS, number(gpu, "gap_count"), name);
	add_at(counting, FAMILY_GPU_OPERATIONS, number(gpu, "op_count"), name);
	if (busy + idle)
		add_at(counting, FAMILY_GPU_IDLE_RATIO, (double)idle / (busy + idle), name);
	json_array_foreach(json_object_get(gpu, "causes"), i, item)
	{
		count_cause(counting, name, item);
		if (busy + idle)
			add_at(counting, FAMILY_GPU_CAUSE_RATIO, (double)number(item, "ns") / (busy + idle),
			       name, text(item, "code"), text(item, "role"));
	}
	json_array_foreach(json_object_get(gpu, "top_gaps"), i, item)
	{
		uint64_t length = number(item, "end_ns") - number(item, "start_ns");

		if (length > longest)
			longest = length;
	}
	add_at(counting, FAMILY_GPU_LONGEST_GAP, SECONDS(longest), name);
}

void window_result_count(const struct window_result *result, struct metrics *metrics, uint64_t now_ns,
                         uint64_t length_ns, result_identity identify, void *context)
{
	struct counting counting = {metrics, now_ns, identify, context};
	const char *timeline = text(json_object_get(result->report, "source"), "gpu_timeline");
	const struct process_result *process;
	json_t *item;
	const char *place;
	size_t i;

	metrics_clear(metrics, FAMILY_GPU_IDLE_RATIO);
	metrics_clear(metrics, FAMILY_GPU_CAUSE_RATIO);
	metrics_clear(metrics, FAMILY_GPU_LONGEST_GAP);
	json_array_foreach(json_object_get(result->report, "gpus"), i, item)
	    count_gpu(&counting, item, timeline);
	array_for_each (process, &result->processes) {
		const struct identity *who = identify(context, process->pid);

		add_at(&counting, FAMILY_LAUNCHES, process->launches, who->process, who->container, who->pod);
		add_at(&counting, FAMILY_PROCESS_OBSERVED, SECONDS(length_ns), who->process, who->container,
		       who->pod);
	}
	json_object_foreach(json_object_get(result->report, "losses"), place, item)
	    add_at(&counting, FAMILY_LOST, json_integer_value(item), place);
}
