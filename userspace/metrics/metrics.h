/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Metrics kept by name and labels, and their text for Prometheus: OpenMetrics 1.0, or the older text format
 * 0.0.4 for readers that do not ask for it.
 *
 * The number of series of a family is bounded: when it is full, a new set of labels is counted under "other"
 * in each of its labels, and metrics_folded tells. Values from a target (names) may hold any byte: what is
 * written is valid UTF-8, escaped, and cut to METRICS_LABEL bytes.
 *
 * Used by one thread at a time.
 */
#ifndef WHYIDLE_METRICS_METRICS_H
#define WHYIDLE_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METRICS_LABELS       6   /* of a family at most */
#define METRICS_LABEL        64  /* bytes of a label's value */
#define METRICS_SERIES       256 /* of a family, where the table does not say otherwise */
#define METRICS_LABEL_FOLDED "other"

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
};

/* A family, from a table of constants. */
struct metric_family {
	const char *name; /* without "_total"; ends with the unit, if it has one */
	const char *unit; /* "seconds", "bytes", "ratio" or NULL */
	const char *help;
	enum metric_type type;
	unsigned max_series;                /* 0: METRICS_SERIES */
	const char *labels[METRICS_LABELS]; /* names, the first NULL ends them */
};

enum metrics_format { METRICS_OPENMETRICS, METRICS_TEXT, METRICS_FORMATS };

struct metrics;

/* The table must outlive it. NULL if memory ran out. */
struct metrics *metrics_new(const struct metric_family *families, size_t count);
void metrics_free(struct metrics *metrics);

/*
 * The value of a series, made with 0 if it is new; as many label values as the family has labels, NULL as "".
 * Never NULL: where memory ran out or the family is full it is that of the folded series. Valid until the
 * next call. `now_ns` is noted as its last use.
 */
double *metrics_value(struct metrics *metrics, size_t family, uint64_t now_ns, const char *const *labels);

/* metrics_value with labels as arguments: metrics_at(metrics, FAMILY, now, "a", "b"). */
#define metrics_at(metrics, family, now, ...)                                                                \
	metrics_value(metrics, family, now, (const char *const[METRICS_LABELS + 1]){__VA_ARGS__})

/* Takes out all series of a family; for gauges that are set anew as a whole. */
void metrics_clear(struct metrics *metrics, size_t family);

/* Takes out the series of families with labels that were last used before `before_ns`. */
void metrics_expire(struct metrics *metrics, uint64_t before_ns);

/* How often a value went to a folded series so far. */
uint64_t metrics_folded(const struct metrics *metrics);

/* The text; the caller frees it. NULL if memory ran out. */
char *metrics_text(const struct metrics *metrics, enum metrics_format format, size_t *length);

/* What the format is called in HTTP. */
const char *metrics_content_type(enum metrics_format format);

/* The format that an Accept header asks for; NULL: none was sent. */
enum metrics_format metrics_accepted(const char *accept);

#endif
