// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chrome JSON as the PyTorch profiler writes it (Kineto), with what only this tool knows in categories of its
 * own: whyidle_sched, whyidle_gap, whyidle_cause. docs/exports.md has the whole mapping.
 */
#include <errno.h>
#include <string.h>

#include "export/chrome.h"
#include "export/export.h"
#include "export/target_file.h"

#define SCHEMA_VERSION 1

static void member(struct json_out *out, const char *key, const char *value)
{
	json_out_literal(out, ",\"");
	json_out_put(out, key, strlen(key));
	json_out_literal(out, "\":");
	json_out_string(out, value);
}

static void put_devices(struct json_out *out, const struct model *model)
{
	const struct device *device;

	json_out_literal(out, "\"deviceProperties\":[");
	array_for_each (device, &model->devices) {
		if (device != model->devices.items)
			json_out_literal(out, ",");
		json_out_literal(out, "{\"id\":");
		json_out_number(out, device->number);
		member(out, "name", model_string(model, device->name));
		json_out_literal(out, "}");
	}
	json_out_literal(out, "],\n");
}

static void put_figure(struct json_out *out, const char *key, uint64_t value)
{
	json_out_literal(out, ",\"");
	json_out_put(out, key, strlen(key));
	json_out_literal(out, "\":");
	json_out_number(out, value);
}

/* What the analysis says of each device, so that a reader can check its own figures. */
static void put_summary(struct json_out *out, const struct analysis *analysis)
{
	const struct device_report *report;

	json_out_literal(out, ",\"gpus\":[");
	array_for_each (report, &analysis->devices) {
		if (report != analysis->devices.items)
			json_out_literal(out, ",");
		json_out_literal(out, "{\"gpu\":");
		json_out_number(out, report->device);
		put_figure(out, "window_start_ns", report->window_start_ns);
		put_figure(out, "window_end_ns", report->window_end_ns);
		put_figure(out, "busy_ns", report->busy_ns);
		put_figure(out, "idle_ns", report->idle_ns);
		put_figure(out, "gaps", report->gap_count);
		put_figure(out, "operations", report->op_count);
		json_out_literal(out, "}");
	}
	json_out_literal(out, "]");
}

static void put_head(struct chrome *chrome)
{
	static const char *const sources[] = {
	    [MODEL_SESSION] = "session", [MODEL_KINETO] = "kineto", [MODEL_NSYS] = "nsys"};
	struct json_out *out = &chrome->out;
	const struct model *model = chrome->model;
	const uint32_t *line;

	json_out_literal(out, "{\n\"schemaVersion\":");
	json_out_number(out, SCHEMA_VERSION);
	json_out_literal(out, ",\n");
	put_devices(out, model);
	if (model->world_size) {
		json_out_literal(out, "\"distributedInfo\":{\"rank\":");
		json_out_number(out, model->rank);
		put_figure(out, "world_size", model->world_size);
		json_out_literal(out, "},\n");
	}
	json_out_literal(out, "\"whyidle\":{\"version\":");
	json_out_string(out, WHYIDLE_VERSION);
	member(out, "source", sources[model->source]);
	member(out, "clock", model->source == MODEL_SESSION ? "CLOCK_MONOTONIC" : "as in the source");
	member(out, "command", model_string(model, model->command));
	json_out_literal(out, ",\"complete\":");
	json_out_put(out, model->summary.complete ? "true" : "false", model->summary.complete ? 4 : 5);
	json_out_literal(out, ",\"degraded\":[");
	array_for_each (line, &model->degraded) {
		if (line != model->degraded.items)
			json_out_literal(out, ",");
		json_out_string(out, model_string(model, *line));
	}
	json_out_literal(out, "]");
	if (chrome->analysis)
		put_summary(out, chrome->analysis);
	json_out_literal(out, "},\n\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[\n");
}

/* The name of the file alone: a folder's name is nobody's business. */
static void put_tail(struct chrome *chrome, const char *path)
{
	const char *slash = strrchr(path, '/');

	json_out_literal(&chrome->out, "\n],\n\"traceName\":");
	json_out_string(&chrome->out, slash ? slash + 1 : path);
	json_out_literal(&chrome->out, "\n}\n");
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

static bool is_compressed(const char *path)
{
	size_t length = strlen(path);

	return length >= 3 && !strcmp(path + length - 3, ".gz");
}

int export_chrome(const char *path, const struct model *model, const struct analysis *analysis,
                  struct error *error)
{
	struct chrome chrome = {.model = model, .analysis = analysis, .out.fd = -1};
	struct target_file file;
	int rc = target_file_create(&file, path, error), closed;

	if (rc) {
		target_file_discard(&file);
		return rc;
	}
	rc = launches_find(&chrome.launches, model);
	if (!rc)
		rc = chrome_ids_make(&chrome);
	if (!rc) {
		rc = json_out_open(&chrome.out, file.fd, is_compressed(path));
		file.fd = -1;
	}
	if (!rc) {
		put_head(&chrome);
		rc = put_events(&chrome);
		put_tail(&chrome, path);
	}
	closed = json_out_close(&chrome.out);
	if (!rc)
		rc = closed;
	chrome_ids_free(&chrome);
	launches_free(&chrome.launches);
	if (rc) {
		error_set(error, rc, "cannot write %s: %s", path, strerror(-rc));
		target_file_discard(&file);
		return rc;
	}
	return target_file_commit(&file, error);
}
