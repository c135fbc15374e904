// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile for pprof, as its profile.proto has it: gzip around one message. Each stack is a sample with a
 * value for each kind of time, of which one is not zero.
 */
#include <errno.h>
#include <string.h>

#include "export/byte_out.h"
#include "export/export.h"
#include "export/profile.h"
#include "export/protobuf.h"

/* Numbers of fields. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_DURATION = 10,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
	VALUE_TYPE = 1,
	VALUE_UNIT = 2,
	SAMPLE_LOCATIONS = 1,
	SAMPLE_VALUES = 2,
	LOCATION_ID = 1,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
};

struct pprof {
	struct profile *profile;
	struct protobuf message;
	struct byte_out *out;
};

/* Fields of the outermost message may come in any order and in pieces. */
static void flush(struct pprof *pprof)
{
	byte_out_put(pprof->out, pprof->message.bytes, pprof->message.size);
	protobuf_clear(&pprof->message);
}

static void put_types(struct pprof *pprof, uint32_t unit)
{
	for (uint32_t kind = 0; kind < PROFILE_KINDS; kind++) {
		size_t mark = protobuf_begin(&pprof->message, PROFILE_SAMPLE_TYPE);

		protobuf_number(&pprof->message, VALUE_TYPE, pprof->profile->nodes.items[kind].name);
		protobuf_number(&pprof->message, VALUE_UNIT, unit);
		protobuf_end(&pprof->message, mark);
	}
	protobuf_number(&pprof->message, PROFILE_DEFAULT_TYPE,
	                pprof->profile->nodes.items[PROFILE_IDLE].name);
}

/* The innermost frame first, without the root, which is the type of the value. */
static void put_sample(struct pprof *pprof, const struct profile_node *node)
{
	const struct profile *profile = pprof->profile;
	struct protobuf *message = &pprof->message;
	uint32_t kind = node->kind;
	uint64_t ns = node->ns;
	size_t sample = protobuf_begin(message, PROFILE_SAMPLE), mark;

	mark = protobuf_begin(message, SAMPLE_LOCATIONS);
	for (; node->parent != MODEL_NONE; node = &profile->nodes.items[node->parent])
		protobuf_packed(message, node->name);
	protobuf_end(message, mark);
	mark = protobuf_begin(message, SAMPLE_VALUES);
	for (uint32_t i = 0; i < PROFILE_KINDS; i++)
		protobuf_packed(message, i == kind ? ns : 0);
	protobuf_end(message, mark);
	protobuf_end(message, sample);
}

/* Nothing has an address: a name is a function, and a place within it. */
static void put_function(struct pprof *pprof, uint32_t name)
{
	struct protobuf *message = &pprof->message;
	size_t location = protobuf_begin(message, PROFILE_LOCATION), mark;

	protobuf_number(message, LOCATION_ID, name);
	mark = protobuf_begin(message, LOCATION_LINE);
	protobuf_number(message, LINE_FUNCTION, name);
	protobuf_end(message, mark);
	protobuf_end(message, location);
	mark = protobuf_begin(message, PROFILE_FUNCTION);
	protobuf_number(message, FUNCTION_ID, name);
	protobuf_number(message, FUNCTION_NAME, name);
	protobuf_number(message, FUNCTION_SYSTEM_NAME, name);
	protobuf_end(message, mark);
}

static int put_file(struct byte_out *out, void *context)
{
	struct pprof pprof = {.profile = context, .out = out};
	struct profile *profile = pprof.profile;
	const struct model *model = profile->model;
	uint32_t unit = profile_text(profile, "nanoseconds");
	uint32_t command = profile_string(profile, model->command);
	const struct profile_node *node;
	int rc;

	if (unit == MODEL_NONE || command == MODEL_NONE)
		return -ENOMEM;
	put_types(&pprof, unit);
	protobuf_number(&pprof.message, PROFILE_DURATION, model->end_ns - model->start_ns);
	if (command)
		protobuf_number(&pprof.message, PROFILE_COMMENT, command);
	array_for_each (node, &profile->nodes) {
		if (node->ns)
			put_sample(&pprof, node);
		flush(&pprof);
	}
	for (uint32_t name = 0; name < profile->names.count; name++) {
		protobuf_string(&pprof.message, PROFILE_STRING, profile->names.items[name]);
		/* Number 0 is "" and no id. */
		if (name)
			put_function(&pprof, name);
		flush(&pprof);
	}
	rc = pprof.message.failed ? -ENOMEM : 0;
	protobuf_free(&pprof.message);
	return rc;
}

int export_pprof(const char *path, const struct model *model, const struct analysis *analysis,
                 struct error *error)
{
	struct profile profile;
	int rc = profile_make(&profile, model, analysis);

	rc = rc ? error_no_memory(error) : byte_out_file(path, true, put_file, &profile, error);
	profile_free(&profile);
	return rc;
}
