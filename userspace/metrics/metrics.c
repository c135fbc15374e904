// SPDX-License-Identifier: GPL-2.0-only
#include "metrics/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/utf8.h"

struct series {
	char labels[METRICS_LABELS][METRICS_LABEL];
	uint64_t hash;
	uint64_t used_ns;
	double value;
};

struct family_values {
	ARRAY(struct series)
};

struct metrics {
	const struct metric_family *families;
	size_t count;
	struct family_values *values; /* one a family */
	double nowhere;               /* takes what there was no memory for */
	uint64_t folded;
};

struct metrics *metrics_new(const struct metric_family *families, size_t count)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (!metrics)
		return NULL;
	metrics->families = families;
	metrics->count = count;
	metrics->values = calloc(count, sizeof(*metrics->values));
	if (!metrics->values) {
		free(metrics);
		return NULL;
	}
	return metrics;
}

void metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	for (size_t i = 0; i < metrics->count; i++)
		array_free(&metrics->values[i]);
	free(metrics->values);
	free(metrics);
}

static size_t label_count(const struct metric_family *family)
{
	size_t count = 0;

	while (count < METRICS_LABELS && family->labels[count])
		count++;
	return count;
}

/* A name as a label's value: whole characters of valid UTF-8, as many as fit. */
static void label_set(char *label, const char *text)
{
	size_t at = 0;

	while (text && *text) {
		unsigned length = utf8_length(text);
		const char *from = length ? text : UTF8_REPLACEMENT;
		size_t size = length ? length : strlen(UTF8_REPLACEMENT);

		if (at + size >= METRICS_LABEL)
			break;
		memcpy(label + at, from, size);
		at += size;
		text += length ? length : 1;
	}
	memset(label + at, 0, METRICS_LABEL - at);
}

static struct series *series_find(const struct family_values *values, const struct series *wanted)
{
	struct series *series;

	array_for_each (series, values) {
		if (series->hash == wanted->hash &&
		    !memcmp(series->labels, wanted->labels, sizeof(wanted->labels)))
			return series;
	}
	return NULL;
}

static struct series *series_add(struct family_values *values, const struct series *wanted)
{
	struct series *series = array_add(values);

	if (series)
		*series = *wanted;
	return series;
}

double *metrics_value(struct metrics *metrics, size_t family, uint64_t now_ns, const char *const *labels)
{
	const struct metric_family *description = &metrics->families[family];
	struct family_values *values = &metrics->values[family];
	size_t count = label_count(description);
	size_t max = description->max_series ? description->max_series : METRICS_SERIES;
	struct series wanted = {0}, *series;

	for (size_t i = 0; i < count; i++)
		label_set(wanted.labels[i], labels[i]);
	wanted.hash = hash_bytes(wanted.labels, sizeof(wanted.labels));
	series = series_find(values, &wanted);
	if (!series && count && values->count + 1 >= max) {
		metrics->folded++;
		for (size_t i = 0; i < count; i++)
			label_set(wanted.labels[i], METRICS_LABEL_FOLDED);
		wanted.hash = hash_bytes(wanted.labels, sizeof(wanted.labels));
		series = series_find(values, &wanted);
	}
	if (!series)
		series = series_add(values, &wanted);
	if (!series)
		return &metrics->nowhere;
	series->used_ns = now_ns;
	return &series->value;
}

void metrics_clear(struct metrics *metrics, size_t family)
{
	metrics->values[family].count = 0;
}

void metrics_expire(struct metrics *metrics, uint64_t before_ns)
{
	for (size_t i = 0; i < metrics->count; i++) {
		struct family_values *values = &metrics->values[i];
		size_t kept = 0;

		if (!metrics->families[i].labels[0])
			continue;
		for (size_t j = 0; j < values->count; j++) {
			if (values->items[j].used_ns >= before_ns)
				values->items[kept++] = values->items[j];
		}
		values->count = kept;
	}
}

uint64_t metrics_folded(const struct metrics *metrics)
{
	return metrics->folded;
}

/* ---- text ---- */

static void put_escaped(FILE *out, const char *text, bool quotes)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '\\' || (quotes && *text == '"'))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

/* Whole numbers as such, others with all their digits. */
static void put_number(FILE *out, double value)
{
	if (isnan(value))
		fputs("NaN", out);
	else if (isinf(value))
		fputs(value > 0 ? "+Inf" : "-Inf", out);
	else if (value == floor(value) && fabs(value) < 1e15)
		fprintf(out, "%.0f", value);
	else
		fprintf(out, "%.15g", value);
}

static void put_series(FILE *out, const struct metric_family *family, const struct series *series)
{
	size_t count = label_count(family);

	fprintf(out, "%s%s", family->name, family->type == METRIC_COUNTER ? "_total" : "");
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "%s%s=\"", i ? "," : "{", family->labels[i]);
		put_escaped(out, series->labels[i], true);
		fputc('"', out);
	}
	fputs(count ? "} " : " ", out);
	put_number(out, series->value);
	fputc('\n', out);
}

static void put_family(FILE *out, const struct metric_family *family, const struct family_values *values,
                       enum metrics_format format)
{
	bool counter = family->type == METRIC_COUNTER;
	/* The old format knows a counter by the whole name of its sample. */
	const char *suffix = counter && format == METRICS_TEXT ? "_total" : "";
	const struct series *series;

	if (!values->count)
		return;
	fprintf(out, "# TYPE %s%s %s\n", family->name, suffix, counter ? "counter" : "gauge");
	if (family->unit && format == METRICS_OPENMETRICS)
		fprintf(out, "# UNIT %s %s\n", family->name, family->unit);
	fprintf(out, "# HELP %s%s ", family->name, suffix);
	put_escaped(out, family->help, format == METRICS_OPENMETRICS);
	fputc('\n', out);
	array_for_each (series, values)
		put_series(out, family, series);
}

char *metrics_text(const struct metrics *metrics, enum metrics_format format, size_t *length)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, length);

	if (!out)
		return NULL;
	for (size_t i = 0; i < metrics->count; i++)
		put_family(out, &metrics->families[i], &metrics->values[i], format);
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

const char *metrics_content_type(enum metrics_format format)
{
	return format == METRICS_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
	                                     : "text/plain; version=0.0.4; charset=utf-8";
}

enum metrics_format metrics_accepted(const char *accept)
{
	return accept && strstr(accept, "application/openmetrics-text") ? METRICS_OPENMETRICS : METRICS_TEXT;
}
