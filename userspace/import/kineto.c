/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chrome traces of the PyTorch profiler: an object with traceEvents and members that describe the recording,
 * or the array of events alone. One pass over the text, in which members and events may come in any order.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/import.h"
#include "import/decimal.h"
#include "import/input.h"
#include "import/kineto_loader.h"

struct reader {
	struct input *input;
	struct json_scan scan;
	struct kineto_loader loader;
	struct kineto_event *event; /* used again for each one, also for names of devices */
	const struct import_progress *progress;
	bool has_events; /* there was an array that can be one of events */
	int rc;          /* -ENOMEM once memory ran out; reading then stops */
};

static size_t read_text(void *context, char *buffer, size_t size)
{
	struct reader *reader = context;

	if (reader->progress && reader->progress->report)
		reader->progress->report(reader->progress->context, input_done(reader->input),
		                         input_total(reader->input));
	return input_read(reader->input, buffer, size);
}

/* The readers below return false once reading has to stop: the text broke or ended, or memory ran out. */

/* Passes over the value of which the first token was read. */
static bool pass_over(struct json_scan *scan, enum json_token token)
{
	return token == JSON_OBJECT || token == JSON_ARRAY ? json_scan_leave(scan) : token > JSON_BROKEN;
}

/* Behind the opening bracket of the array of events. */
static bool read_events(struct reader *reader)
{
	enum json_token token;

	reader->has_events = true;
	while ((token = json_scan_next(&reader->scan)) != JSON_ARRAY_END) {
		if (token == JSON_OBJECT) {
			if (!kineto_event_read(reader->event, &reader->scan))
				return false;
			reader->rc = kineto_loader_event(&reader->loader, reader->event);
			if (reader->rc)
				return false;
		} else if (!pass_over(&reader->scan, token)) {
			return false;
		}
	}
	return true;
}

static bool key_is(const struct json_scan *scan, const char *word)
{
	return scan->length == strlen(word) && !memcmp(scan->text, word, scan->length);
}

static bool read_device(struct reader *reader)
{
	struct kineto_text *name = &reader->event->name;
	struct json_scan *scan = &reader->scan;
	struct kineto_id id = {0};
	enum json_token token;

	name->length = 0;
	name->escaped = false;
	while ((token = json_scan_next(scan)) == JSON_KEY) {
		bool is_id = key_is(scan, "id"), is_name = key_is(scan, "name");

		if (!is_id && !is_name) {
			if (!json_scan_skip(scan))
				return false;
			continue;
		}
		token = json_scan_next(scan);
		if (is_id) {
			id = kineto_id_make(scan, token);
		} else if (token == JSON_STRING) {
			name->length = scan->length;
			name->escaped = scan->escaped;
			memcpy(name->bytes, scan->text, scan->length);
		}
		if (!pass_over(scan, token))
			return false;
	}
	if (token != JSON_OBJECT_END)
		return false;
	reader->rc = kineto_loader_device(&reader->loader, &id, name);
	return !reader->rc;
}

static bool read_devices(struct reader *reader)
{
	enum json_token token = json_scan_next(&reader->scan);

	if (token != JSON_ARRAY)
		return pass_over(&reader->scan, token);
	while ((token = json_scan_next(&reader->scan)) != JSON_ARRAY_END) {
		if (!(token == JSON_OBJECT ? read_device(reader) : pass_over(&reader->scan, token)))
			return false;
	}
	return true;
}

static bool read_distributed(struct reader *reader)
{
	enum json_token token = json_scan_next(&reader->scan);
	struct json_scan *scan = &reader->scan;

	if (token != JSON_OBJECT)
		return pass_over(scan, token);
	while ((token = json_scan_next(scan)) == JSON_KEY) {
		uint32_t *value = key_is(scan, "rank")         ? &reader->loader.rank
		                  : key_is(scan, "world_size") ? &reader->loader.world_size
		                                               : NULL;
		uint64_t number;

		if (!value) {
			if (!json_scan_skip(scan))
				return false;
			continue;
		}
		token = json_scan_next(scan);
		if ((token == JSON_NUMBER || token == JSON_STRING) &&
		    decimal_whole(scan->text, scan->length, &number) && number < MODEL_NONE)
			*value = (uint32_t)number;
		if (!pass_over(scan, token))
			return false;
	}
	return token == JSON_OBJECT_END;
}

static bool read_members(struct reader *reader)
{
	struct json_scan *scan = &reader->scan;
	enum json_token token;

	while ((token = json_scan_next(scan)) == JSON_KEY) {
		bool goes_on;

		if (key_is(scan, "traceEvents")) {
			token = json_scan_next(scan);
			goes_on = token == JSON_ARRAY ? read_events(reader) : pass_over(scan, token);
		} else if (key_is(scan, "deviceProperties")) {
			goes_on = read_devices(reader);
		} else if (key_is(scan, "distributedInfo")) {
			goes_on = read_distributed(reader);
		} else {
			goes_on = json_scan_skip(scan);
		}
		if (!goes_on)
			return false;
	}
	return token == JSON_OBJECT_END;
}

/* One pass; true if the text held one whole value. */
static bool read_document(struct reader *reader)
{
	enum json_token token = json_scan_next(&reader->scan);
	bool goes_on;

	if (token == JSON_OBJECT)
		return read_members(reader);
	if (token == JSON_ARRAY) {
		goes_on = read_events(reader);
		/* Any JSON can be an array: it takes an event to tell. */
		reader->has_events = reader->loader.recognised;
		return goes_on;
	}
	return pass_over(&reader->scan, token);
}

/* Why this is not a trace at all. */
static int refuse(const struct reader *reader, const char *path, struct error *error)
{
	const struct json_scan *scan = &reader->scan;
	const char *problem = input_problem(reader->input);

	if (problem)
		return error_set(error, -EINVAL, "%s cannot be read: %s, and no event comes before that",
		                 path, problem);
	if (json_scan_whole(scan))
		return error_set(error, -EINVAL,
		                 "%s is JSON, but not a trace of the PyTorch profiler: it has no traceEvents",
		                 path);
	if (scan->problem)
		return error_set(error, -EINVAL,
		                 "%s is not a trace of the PyTorch profiler: not JSON (%s at byte %" PRIu64
		                 ")",
		                 path, scan->problem, json_scan_position(scan));
	return error_set(error, -ENODATA, "%s is cut off before its first event", path);
}

/* Notes whether the trace is whole, and says so if it is not. */
static int judge(struct reader *reader)
{
	struct kineto_loader *loader = &reader->loader;
	struct json_scan *scan = &reader->scan;
	const char *problem;
	bool whole = json_scan_whole(scan);

	if (whole)
		json_scan_next(scan); /* reads to the end, where gzip keeps its checksum */
	problem = input_problem(reader->input);
	loader->model->summary.complete = whole && !problem;
	if (problem)
		return kineto_loader_degrade(loader, "the trace is not whole: %s; read up to there", problem);
	if (!whole && scan->problem)
		return kineto_loader_degrade(
		    loader, "the trace is damaged (%s at byte %" PRIu64 "); read up to there", scan->problem,
		    json_scan_position(scan));
	if (!whole)
		return kineto_loader_degrade(loader,
		                             "the trace is cut off after %" PRIu64 " bytes; read up to there",
		                             json_scan_position(scan));
	if (scan->problem)
		return kineto_loader_degrade(loader,
		                             "something follows the end of the trace and is left out");
	return 0;
}

static int read_file(struct reader *reader, const char *path, struct error *error)
{
	const struct kineto_loader *loader = &reader->loader;

	if (!read_document(reader) && reader->rc)
		return error_no_memory(error);
	if (!reader->has_events || (loader->events && !loader->recognised) ||
	    (!loader->events && !json_scan_whole(&reader->scan)))
		return refuse(reader, path, error);
	if (judge(reader))
		return error_no_memory(error);
	return kineto_loader_finish(&reader->loader, error);
}

int import_kineto(struct model *model, const char *path, const struct import_progress *progress,
                  struct error *error)
{
	struct reader reader = {.loader.model = model, .progress = progress};
	int rc;

	*model = (struct model){.source = MODEL_KINETO};
	reader.event = malloc(sizeof(*reader.event));
	rc = reader.event ? input_open(&reader.input, path, true, error) : error_no_memory(error);
	if (!rc)
		rc = json_scan_open(&reader.scan, read_text, &reader, error);
	if (!rc)
		rc = read_file(&reader, path, error);
	json_scan_close(&reader.scan);
	kineto_loader_free(&reader.loader);
	input_close(reader.input);
	free(reader.event);
	return rc;
}
