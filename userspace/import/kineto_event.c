/* SPDX-License-Identifier: GPL-2.0-only */
#include "import/kineto_event.h"

#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "import/decimal.h"

struct word {
	const char *text;
	int value;
};

/* Value of the word that is equal but for case; `other` if none is. */
static int find_word(const struct word *words, size_t count, const struct json_scan *scan, int other)
{
	for (size_t i = 0; i < count; i++) {
		const char *text = words[i].text;

		/* The text may hold zero bytes, so its length is asked first. */
		if ((*text | 0x20) == (*scan->text | 0x20) && strlen(text) == scan->length &&
		    !strncasecmp(text, scan->text, scan->length))
			return words[i].value;
	}
	return other;
}

#define FIND_WORD(words, scan, other) find_word(words, sizeof(words) / sizeof((words)[0]), scan, other)

/* Of all versions: since 2022 they are in small letters, with "gpu_" or "cuda_" where the device is meant. */
static const struct word categories[] = {
    {"cpu_op", KINETO_OPERATOR},   {"python_function", KINETO_PYTHON},
    {"cuda_runtime", KINETO_CALL}, {"kernel", KINETO_KERNEL},
    {"gpu_memcpy", KINETO_MEMCPY}, {"gpu_memset", KINETO_MEMSET},
    {"cuda_driver", KINETO_CALL},  {"user_annotation", KINETO_ANNOTATION},
    {"overhead", KINETO_OVERHEAD}, {"cuda_sync", KINETO_SYNC},
    {"trace", KINETO_SPAN},        {"memcpy", KINETO_MEMCPY},
    {"memset", KINETO_MEMSET},     {"runtime", KINETO_CALL},
    {"operator", KINETO_OPERATOR}, {"python function", KINETO_PYTHON},
};

enum field {
	FIELD_NONE,
	FIELD_PHASE,
	FIELD_CATEGORY,
	FIELD_NAME,
	FIELD_PID,
	FIELD_TID,
	FIELD_START,
	FIELD_DURATION,
	FIELD_ARGS,
};

static enum field find_field(const struct json_scan *scan)
{
#define IS(word) (!memcmp(scan->text, word, sizeof(word) - 1))
	switch (scan->length) {
	case 2:
		return IS("ts") ? FIELD_START : IS("ph") ? FIELD_PHASE : FIELD_NONE;
	case 3:
		return IS("dur")   ? FIELD_DURATION
		       : IS("pid") ? FIELD_PID
		       : IS("tid") ? FIELD_TID
		       : IS("cat") ? FIELD_CATEGORY
		                   : FIELD_NONE;
	case 4:
		return IS("name") ? FIELD_NAME : IS("args") ? FIELD_ARGS : FIELD_NONE;
	default:
		return FIELD_NONE;
	}
#undef IS
}

struct kineto_id kineto_id_make(const struct json_scan *scan, enum json_token token)
{
	struct kineto_id id = {KINETO_ID_MISSING, 0};

	if (token != JSON_STRING && token != JSON_NUMBER)
		return id;
	if (decimal_whole(scan->text, scan->length, &id.value)) {
		id.form = KINETO_ID_NUMBER;
	} else if (scan->length) {
		id.form = KINETO_ID_ODD;
		id.value = hash_bytes(scan->text, scan->length);
	}
	return id;
}

static void keep_text(struct kineto_text *text, const struct json_scan *scan)
{
	text->length = scan->length;
	text->escaped = scan->escaped;
	memcpy(text->bytes, scan->text, scan->length);
}

/* The next value; one with something inside is passed over, and its opening bracket returned. */
static enum json_token next_plain(struct json_scan *scan)
{
	enum json_token token = json_scan_next(scan);

	if ((token == JSON_OBJECT || token == JSON_ARRAY) && !json_scan_leave(scan))
		return JSON_BROKEN;
	return token;
}

static bool read_id(struct kineto_id *id, struct json_scan *scan)
{
	enum json_token token = next_plain(scan);

	*id = kineto_id_make(scan, token);
	return token > JSON_BROKEN;
}

static bool read_text(struct kineto_text *text, struct json_scan *scan)
{
	enum json_token token = next_plain(scan);

	if (token == JSON_STRING || token == JSON_NUMBER)
		keep_text(text, scan);
	return token > JSON_BROKEN;
}

/* Microseconds to ns. */
static bool read_time(struct kineto_event *event, int64_t *ns, bool *has, struct json_scan *scan)
{
	enum json_token token = next_plain(scan);

	if (token == JSON_STRING || token == JSON_NUMBER) {
		if (decimal_scaled(scan->text, scan->length, 3, ns))
			*has = true;
		else
			event->bad_time = true;
	}
	return token > JSON_BROKEN;
}

/* "External id" and its older spelling. */
static bool is_external(const struct json_scan *scan)
{
	return (scan->text[0] | 0x20) == 'e' && !memcmp(scan->text + 1, "xternal id", 10);
}

static bool read_argument(struct kineto_event *event, struct json_scan *scan)
{
#define IS(word) (!memcmp(scan->text, word, sizeof(word) - 1))
	switch (scan->length) {
	case 4:
		if (IS("name"))
			return read_text(&event->label, scan);
		if (IS("kind") && event->category == KINETO_MEMCPY)
			return read_text(&event->label, scan);
		break;
	case 5:
		if (IS("bytes"))
			return read_id(&event->bytes, scan);
		break;
	case 6:
		if (IS("device"))
			return read_id(&event->device, scan);
		if (IS("stream"))
			return read_id(&event->stream, scan);
		break;
	case 7:
		if (IS("context"))
			return read_id(&event->context, scan);
		break;
	case 8:
		if (IS("graph id"))
			return read_id(&event->graph, scan);
		break;
	case 11:
		if (IS("correlation"))
			return read_id(&event->correlation, scan);
		if (is_external(scan))
			return read_id(&event->external, scan);
		break;
	case 14:
		if (IS("cuda_sync_kind"))
			return read_text(&event->label, scan);
		break;
	}
	return json_scan_skip(scan);
#undef IS
}

static bool wants_arguments(const struct kineto_event *event)
{
	switch (event->category) {
	case KINETO_OPERATOR:
	case KINETO_ANNOTATION:
	case KINETO_PYTHON:
	case KINETO_SPAN:
	case KINETO_OVERHEAD:
		return false;
	default:
		return true;
	}
}

static bool read_arguments(struct kineto_event *event, struct json_scan *scan)
{
	enum json_token token;

	if (!wants_arguments(event))
		return json_scan_skip(scan);
	token = json_scan_next(scan);
	if (token == JSON_ARRAY)
		return json_scan_leave(scan);
	if (token != JSON_OBJECT)
		return token > JSON_BROKEN;
	while ((token = json_scan_next(scan)) == JSON_KEY) {
		if (!read_argument(event, scan))
			return false;
	}
	return token == JSON_OBJECT_END;
}

static bool read_phase(struct kineto_event *event, struct json_scan *scan)
{
	enum json_token token = next_plain(scan);

	event->phase = token == JSON_STRING && scan->length == 1 ? *scan->text : '?';
	if (event->phase != 'X' && event->phase != 'M')
		event->useless = true;
	return token > JSON_BROKEN;
}

static bool read_category(struct kineto_event *event, struct json_scan *scan)
{
	enum json_token token = next_plain(scan);

	event->category = token == JSON_STRING ? FIND_WORD(categories, scan, KINETO_OTHER) : KINETO_OTHER;
	if (event->category == KINETO_OTHER)
		event->useless = true;
	return token > JSON_BROKEN;
}

static bool read_field(struct kineto_event *event, enum field field, struct json_scan *scan)
{
	bool given;

	switch (field) {
	case FIELD_PHASE:
		return read_phase(event, scan);
	case FIELD_CATEGORY:
		return read_category(event, scan);
	case FIELD_NAME:
		return read_text(&event->name, scan);
	case FIELD_PID:
		return read_id(&event->pid, scan);
	case FIELD_TID:
		return read_id(&event->tid, scan);
	case FIELD_START:
		return read_time(event, &event->start_ns, &event->has_time, scan);
	case FIELD_DURATION:
		return read_time(event, &event->duration_ns, &given, scan);
	case FIELD_ARGS:
		return read_arguments(event, scan);
	default:
		return json_scan_skip(scan);
	}
}

static void reset(struct kineto_event *event)
{
	static const struct kineto_id missing;

	event->phase = 0;
	event->useless = event->has_time = event->bad_time = false;
	event->category = KINETO_NONE;
	event->start_ns = event->duration_ns = 0;
	event->pid = event->tid = event->device = event->stream = event->context = missing;
	event->correlation = event->external = event->bytes = event->graph = missing;
	event->name.length = event->label.length = 0;
	event->name.escaped = event->label.escaped = false;
}

bool kineto_event_read(struct kineto_event *event, struct json_scan *scan)
{
	enum json_token token;

	reset(event);
	while ((token = json_scan_next(scan)) == JSON_KEY) {
		if (!read_field(event, find_field(scan), scan))
			return false;
		/* A metadata event is of use whatever its category. */
		if (event->useless && event->phase && event->phase != 'M')
			return json_scan_leave(scan);
	}
	return token == JSON_OBJECT_END;
}
