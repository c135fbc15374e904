/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private to the SQLite writer: rows into tables, names into StringIds. The first failure is kept and
 * everything after it is dropped.
 */
#ifndef WHYIDLE_EXPORT_SQLITE_WRITER_H
#define WHYIDLE_EXPORT_SQLITE_WRITER_H

#include <sqlite3.h>

#include "attribute/analysis.h"
#include "base/error.h"
#include "export/launches.h"
#include "export/sqlite_tables.h"
#include "model/model.h"

/* Values of a row that are no integers. */
#define COLUMN_NULL INT64_MIN
#define COLUMN_TEXT (INT64_MIN + 1) /* the next of the texts */

#define COLUMN_NULL_2 COLUMN_NULL, COLUMN_NULL
#define COLUMN_NULL_3 COLUMN_NULL, COLUMN_NULL_2
#define COLUMN_NULL_5 COLUMN_NULL_2, COLUMN_NULL_3

/* Ids in nsys have 8 bits for hardware, 8 for the (virtual) machine, 24 for the process, 24 for the thread.
 */
#define GLOBAL_MACHINE   (INT64_C(1) << 48)
#define GLOBAL_PID_SHIFT 24
#define GLOBAL_ID_MAX    0xffffff

struct sqlite_writer {
	sqlite3 *database;
	sqlite3_stmt *inserts[TABLE_COUNT]; /* NULL: the table was not made yet */
	const struct model *model;
	const struct analysis *analysis;
	struct launches launches;
	uint32_t *pids;       /* of each process, as shown */
	bool *strings_used;   /* for each string of the model */
	uint32_t *base_names; /* for each string of the model: its short name once asked for, 0 */
	struct {
		ARRAY(char *)
	} more_strings; /* ids follow those of the model */
	struct index_map more_by_hash;
	int64_t gap;            /* id of the last one */
	int failure;            /* negative errno */
	char failure_text[160]; /* SQLite's words, "" none */
};

/* Opens an empty file and begins the transaction. sqlite_writer_close in either case. */
int sqlite_writer_open(struct sqlite_writer *writer, const char *path);
/* Strings, indices, end of the transaction. */
void sqlite_writer_finish(struct sqlite_writer *writer);
void sqlite_writer_close(struct sqlite_writer *writer);

/* Adds a row: the columns behind the last value get NULL; texts may be NULL ones
 * and need not be UTF-8. */
void sqlite_row(struct sqlite_writer *writer, enum sqlite_table table, const int64_t *values, size_t count,
                const char *const *texts);
#define put_row(writer, table, values, texts)                                                                \
	sqlite_row(writer, table, values, sizeof(values) / sizeof(*(values)), texts)

/* Id in StringIds of a string of the model, of any text. */
int64_t sqlite_string(struct sqlite_writer *writer, uint32_t string);
int64_t sqlite_text(struct sqlite_writer *writer, const char *text, size_t length);
/* COLUMN_NULL for none. */
int64_t sqlite_string_or_null(struct sqlite_writer *writer, uint32_t string);
int64_t sqlite_text_or_null(struct sqlite_writer *writer, const char *text);
/* Of a kernel's own name. */
int64_t sqlite_base_name(struct sqlite_writer *writer, uint32_t string);

/* Indices of the model, MODEL_NONE gives COLUMN_NULL. */
int64_t sqlite_global_pid(const struct sqlite_writer *writer, uint32_t process);
int64_t sqlite_global_tid(const struct sqlite_writer *writer, uint32_t thread);

/* sqlite_host.c, sqlite_gpu.c: rows of one kind. */
void sqlite_put_host(struct sqlite_writer *writer);
void sqlite_put_gpus(struct sqlite_writer *writer);
void sqlite_put_gaps(struct sqlite_writer *writer);

#endif
