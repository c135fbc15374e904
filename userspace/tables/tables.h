/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables that users of `nsys stats` expect: what a recording holds, added up by name. Plain data for
 * report/, which prints them as text, CSV and JSON, and for the page of the HTML report.
 *
 * An item counts, with its whole length, in a table whose window it touches. Sums are exact; means, medians
 * and deviations (of the sample, divided by n - 1) are floating point. Texts are names of the recorded
 * program: show them only through an escaping function.
 */
#ifndef WHYIDLE_TABLES_TABLES_H
#define WHYIDLE_TABLES_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "attribute/analysis.h"
#include "base/array.h"
#include "base/error.h"
#include "model/model.h"

enum table_id {
	TABLE_KERNELS,
	TABLE_API,
	TABLE_COPY_TIME,
	TABLE_COPY_SIZE,
	TABLE_RANGES,
	TABLE_RANGES_GPU,
	TABLE_OS_CALLS,
	TABLE_OFF_CPU,
	TABLE_STEPS,
	TABLE_IDS
};

/* What the cells of a column hold: the member of struct cell. */
enum cell_kind {
	CELL_TEXT,       /* text */
	CELL_COUNT,      /* number */
	CELL_NS,         /* number */
	CELL_BYTES,      /* number */
	CELL_SHARE,      /* real, 0 to 1 */
	CELL_MEAN,       /* real */
	CELL_MEAN_NS,    /* real */
	CELL_MEAN_BYTES, /* real */
};

struct table_column {
	const char *key;     /* in JSON: "total_ns" */
	const char *heading; /* in CSV: as nsys writes it where it has such a column, "Total Time (ns)" */
	const char *label;   /* in text: short */
	enum cell_kind kind;
};

struct table_spec {
	const char *name;      /* "kernels" */
	const char *nsys_name; /* "cuda_gpu_kern_sum", NULL where nsys has none */
	const char *title;
	const struct table_column *columns; /* the last one is a text: what the row is about */
	size_t column_count;
};

struct cell {
	union {
		const char *text; /* owned by the model or the table; NULL: none */
		uint64_t number;
		double real;
	};
};

struct table {
	const struct table_spec *spec;
	struct {
		ARRAY(struct cell)
	} cells; /* row by row, the largest first; steps in time order */
	size_t rows;
	struct {
		ARRAY(char *)
	} owned;
};

/* Index of a table by our name or nsys', -1. */
int table_find(const char *name);
extern const struct table_spec table_specs[TABLE_IDS];

/* What a table is made from. */
struct table_source {
	const struct model *model;
	uint64_t from_ns, to_ns;
	uint32_t device;                 /* index of the model, MODEL_NONE: all */
	const struct analysis *analysis; /* of the model, with steps; NULL: the table of steps stays empty */
};

/* The window of all tables of a report: the options' window, else the whole recording. */
struct table_source table_source_of(const struct model *model, const struct analysis_options *options);

/* Makes one table. Returns 0 or -ENOMEM; table_free in either case. */
int table_make(struct table *table, enum table_id id, const struct table_source *source);
void table_free(struct table *table);

/* The cell in a row and the column of that key, which must be there. */
const struct cell *table_cell(const struct table *table, size_t row, const char *key);

#endif
