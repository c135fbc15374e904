// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chrome JSON as the PyTorch profiler writes it (Kineto), with what only this tool knows in categories of its
 * own: whyidle_sched, whyidle_gap, whyidle_cause. docs/exports.md has the whole mapping.
 */
#include <errno.h>
#include <string.h>

#include "export/chrome.h"
#include "export/export.h"

#define SCHEMA_VERSION 1

static void member(struct byte_out *out, const char *key, const char *value)
{
	byte_out_literal(out, ",\"");
	byte_out_put(out, key, strlen(key));
	byte_out_literal(out, "\":");
	json_out_string(out, value);
}

static void put_devices(struct byte_out *out, const struct model *model)
{
	const struct device *device;

	byte_out_literal(out, "\"deviceProperties\":[");
	array_for_each (device, &model->devices) {
		if (device != model->devices.items)
			byte_out_literal(out, ",");
		byte_out_literal(out, "{\"id\":");
		byte_out_number(out, device->number);
		member(out, "name", model_string(model, device->name));
		byte_out_literal(out, "}");
	}
	byte_out_literal(out, "],\n");
}

static void put_figure(struct byte_out *out, const char *key, uint64_t value)
{
	byte_out_literal(out, ",\"");
	byte_out_put(out, key, strlen(key));
	byte_out_literal(out, "\":");
	byte_out_number(out, value);
}

/* What the analysis says of each device, so that a reader can check its own figures. */
static void put_summary(struct byte_out *out, const struct analysis *analysis)
{
	const struct device_report *report;

	byte_out_literal(out, ",\"gpus\":[");
	array_for_each (report, &analysis->devices) {
		if (report != analysis->devices.items)
			byte_out_literal(out, ",");
		byte_out_literal(out, "{\"gpu\":");
		byte_out_number(out, report->device);
		put_figure(out, "window_start_ns", report->window_start_ns);
		put_figure(out, "window_end_ns", report->window_end_ns);
		put_figure(out, "busy_ns", report->busy_ns);
		put_figure(out, "idle_ns", report->idle_ns);
		put_figure(out, "gaps", report->gap_count);
		put_figure(out, "operations", report->op_count);
		byte_out_literal(out, "}");
	}
	byte_out_literal(out, "]");
}

/*
 * HTA refuses a trace that names no rank (create_rank_to_trace_dict in hta/common/trace_file.py). Where it is
 * not known, or where a session holds several, it is 0, and nothing is said of the size of the job.
 */
static void put_rank(struct byte_out *out, const struct model *model)
{
	uint32_t rank = model->rank, world_size = model->world_size, found = 0;
	const struct process *process;

	array_for_each (process, &model->processes) {
		if (model->world_size || !process->world_size || !process->launches)
			continue;
		rank = process->rank;
		world_size = process->world_size;
		found++;
	}
	if (found > 1)
		rank = world_size = 0;
	byte_out_literal(out, "\"distributedInfo\":{\"rank\":");
	byte_out_number(out, rank);
	if (world_size)
		put_figure(out, "world_size", world_size);
	byte_out_literal(out, "},\n");
}

static void put_head(struct chrome *chrome)
{
	static const char *const sources[] = {
	    [MODEL_SESSION] = "session", [MODEL_KINETO] = "kineto", [MODEL_NSYS] = "nsys"};
	struct byte_out *out = chrome->out;
	const struct model *model = chrome->model;
	const uint32_t *line;

	byte_out_literal(out, "{\n\"schemaVersion\":");
	byte_out_number(out, SCHEMA_VERSION);
	byte_out_literal(out, ",\n");
	put_devices(out, model);
	put_rank(out, model);
	byte_out_literal(out, "\"whyidle\":{\"version\":");
	json_out_string(out, WHYIDLE_VERSION);
	member(out, "source", sources[model->source]);
	member(out, "clock", model->source == MODEL_SESSION ? "CLOCK_MONOTONIC" : "as in the source");
	member(out, "command", model_string(model, model->command));
	byte_out_literal(out, ",\"complete\":");
	byte_out_put(out, model->summary.complete ? "true" : "false", model->summary.complete ? 4 : 5);
	byte_out_literal(out, ",\"degraded\":[");
	array_for_each (line, &model->degraded) {
		if (line != model->degraded.items)
			byte_out_literal(out, ",");
		json_out_string(out, model_string(model, *line));
	}
	byte_out_literal(out, "]");
	if (chrome->analysis)
		put_summary(out, chrome->analysis);
	byte_out_literal(out, "},\n\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[\n");
}

/* The name of the file alone: a folder's name is nobody's business. */
static void put_tail(struct chrome *chrome, const char *path)
{
	const char *slash = strrchr(path, '/');

	byte_out_literal(chrome->out, "\n],\n\"traceName\":");
	json_out_string(chrome->out, slash ? slash + 1 : path);
	byte_out_literal(chrome->out, "\n}\n");
}

static int put_events(struct chrome *chrome)
{
	int rc = chrome_threads(chrome);

	if (!rc)
		rc = chrome_operations(chrome);
	if (!rc)
		rc = chrome_synchronisations(chrome);
	if (!rc)
		rc = chrome_gaps(chrome);
	if (!rc)
		rc = chrome_gpu_names(chrome);
	return rc;
}

struct chrome_file {
	struct chrome chrome;
	const char *path;
};

static int put_file(struct byte_out *out, void *context)
{
	struct chrome_file *file = context;
	int rc;

	file->chrome.out = out;
	put_head(&file->chrome);
	rc = put_events(&file->chrome);
	put_tail(&file->chrome, file->path);
	return rc;
}

int export_chrome(const char *path, const struct model *model, const struct analysis *analysis,
                  struct error *error)
{
	struct chrome_file file = {{.model = model, .analysis = analysis}, path};
	int rc = launches_find(&file.chrome.launches, model);

	if (!rc)
		rc = chrome_ids_make(&file.chrome);
	if (rc)
		error_no_memory(error);
	else
		rc = byte_out_file(path, byte_out_is_compressed(path), put_file, &file, error);
	chrome_ids_free(&file.chrome);
	launches_free(&file.chrome.launches);
	return rc;
}
