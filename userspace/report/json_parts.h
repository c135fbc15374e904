/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the makers of JSON reports share. Every maker may return NULL if memory ran out. json_object_set_new
 * and json_array_append_new take that and return -1, which `set` and `append` remember, so that it is looked
 * at once, at the end.
 */
#ifndef WHYIDLE_REPORT_JSON_PARTS_H
#define WHYIDLE_REPORT_JSON_PARTS_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "attribute/step_report.h"
#include "compare/compare.h"
#include "ranks/ranks.h"
#include "report/format.h"
#include "tables/tables.h"

#define JSON_TEXT_LIMIT 4096 /* bytes of a name that are kept */

struct maker {
	const struct ranks_report *ranks; /* for the part about ranks only */
	bool failed;
};

static inline void set(struct maker *maker, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value))
		maker->failed = true;
}

static inline void append(struct maker *maker, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value))
		maker->failed = true;
}

/* At most `limit` bytes; null without a text. */
static inline json_t *make_limited_text(const char *text, size_t limit)
{
	char *valid;
	json_t *value;

	if (!text)
		return json_null();
	valid = format_json_text(text, limit);
	value = valid ? json_string(valid) : NULL;
	free(valid);
	return value;
}

static inline json_t *make_text(const char *text)
{
	return make_limited_text(text, JSON_TEXT_LIMIT);
}

static inline json_t *make_integer(uint64_t value)
{
	return json_integer(value > (uint64_t)LLONG_MAX ? LLONG_MAX : (json_int_t)value);
}

/* Who made the document: name and version. */
json_t *make_tool(struct maker *maker);

/* A table with its first `most` rows; texts are cut to `limit` bytes. */
json_t *make_table(struct maker *maker, const struct table *table, size_t most, size_t limit);

/* null where no steps were found. */
json_t *make_steps(struct maker *maker, const struct step_report *report);

/* The document about two runs. */
json_t *make_comparison(struct maker *maker, const struct comparison *comparison);

/* The part about ranks, of maker->ranks. */
json_t *make_ranks(struct maker *maker);

#endif
