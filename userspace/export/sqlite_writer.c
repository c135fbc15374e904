// SPDX-License-Identifier: GPL-2.0-only
#include "export/sqlite_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/kernel_name.h"
#include "base/utf8.h"

#define STATEMENT_SIZE 4096
#define ALIAS_ID       0x800000 /* + index: ids that are taken or do not fit; above all that Linux gives out */

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return -EACCES;
	default:
		return -EIO;
	}
}

static void fail(struct sqlite_writer *writer, int code)
{
	if (writer->failure)
		return;
	writer->failure = errno_of(code);
	snprintf(writer->failure_text, sizeof(writer->failure_text), "%s",
	         writer->database ? sqlite3_errmsg(writer->database) : sqlite3_errstr(code));
}

static void no_memory(struct sqlite_writer *writer)
{
	if (!writer->failure)
		writer->failure = -ENOMEM;
}

static void execute(struct sqlite_writer *writer, const char *statement)
{
	int code;

	if (writer->failure)
		return;
	code = sqlite3_exec(writer->database, statement, NULL, NULL, NULL);
	if (code != SQLITE_OK)
		fail(writer, code);
}

static int make_ids(struct sqlite_writer *writer)
{
	const struct model *model = writer->model;
	struct index_map taken = {0};

	writer->pids = calloc(model->processes.count + 1, sizeof(*writer->pids));
	writer->strings_used = calloc(model->strings.count + 1, sizeof(*writer->strings_used));
	writer->base_names = calloc(model->strings.count + 1, sizeof(*writer->base_names));
	if (!writer->pids || !writer->strings_used || !writer->base_names)
		return -ENOMEM;
	for (uint32_t i = 0; i < model->processes.count; i++) {
		uint32_t pid = model->processes.items[i].pid, other;

		/* Correlation ids are matched within a process: two must not look like one. */
		if (pid > GLOBAL_ID_MAX || index_map_get(&taken, pid, &other))
			pid = ALIAS_ID | i;
		writer->pids[i] = pid;
		if (index_map_put(&taken, pid, i)) {
			index_map_free(&taken);
			return -ENOMEM;
		}
	}
	index_map_free(&taken);
	return launches_find(&writer->launches, model);
}

static size_t count_columns(const char *columns)
{
	size_t count = 1;

	for (; *columns; columns++)
		count += *columns == ',';
	return count;
}

static sqlite3_stmt *insert_into(struct sqlite_writer *writer, enum sqlite_table table)
{
	const struct sqlite_table_spec *spec = &sqlite_tables[table];
	char statement[STATEMENT_SIZE];
	size_t used, count;
	int code;

	if (writer->inserts[table])
		return writer->inserts[table];
	snprintf(statement, sizeof(statement), "CREATE TABLE %s (%s)", spec->name, spec->columns);
	execute(writer, statement);
	count = count_columns(spec->columns);
	used = (size_t)snprintf(statement, sizeof(statement), "INSERT INTO %s VALUES (", spec->name);
	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(statement + used, sizeof(statement) - used, i ? ",?" : "?");
	snprintf(statement + used, sizeof(statement) - used, ")");
	if (writer->failure)
		return NULL;
	code = sqlite3_prepare_v2(writer->database, statement, -1, &writer->inserts[table], NULL);
	if (code != SQLITE_OK)
		fail(writer, code);
	return writer->inserts[table];
}

static void make_tables(struct sqlite_writer *writer)
{
	const char *last = "";
	char statement[STATEMENT_SIZE];

	for (int i = 0; i < TABLE_COUNT; i++) {
		if (sqlite_tables[i].always)
			insert_into(writer, i);
	}
	for (size_t i = 0; i < sqlite_enum_value_count; i++) {
		const struct sqlite_enum_value *value = &sqlite_enum_values[i];

		if (strcmp(value->table, last)) {
			snprintf(statement, sizeof(statement),
			         "CREATE TABLE %s (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)",
			         value->table);
			execute(writer, statement);
			last = value->table;
		}
		snprintf(statement, sizeof(statement), "INSERT INTO %s VALUES (%d, '%s', '%s')", value->table,
		         value->id, value->name, value->label);
		execute(writer, statement);
	}
}

int sqlite_writer_open(struct sqlite_writer *writer, const char *path)
{
	int code =
	    sqlite3_open_v2(path, &writer->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

	if (code != SQLITE_OK) {
		fail(writer, code);
		return writer->failure;
	}
	if (make_ids(writer)) {
		no_memory(writer);
		return writer->failure;
	}
	/* Nothing to roll back to: a file that is not finished is removed. */
	execute(writer, "PRAGMA journal_mode = OFF");
	execute(writer, "PRAGMA synchronous = OFF");
	execute(writer, "PRAGMA locking_mode = EXCLUSIVE");
	execute(writer, "BEGIN");
	make_tables(writer);
	return writer->failure;
}

/* TEXT must be UTF-8: readers refuse the whole row otherwise. */
static int bind_text(sqlite3_stmt *insert, int column, const char *text)
{
	char *copy;

	if (!text || utf8_is_valid(text))
		return sqlite3_bind_text(insert, column, text, -1, SQLITE_STATIC);
	copy = utf8_copy(text);
	return copy ? sqlite3_bind_text(insert, column, copy, -1, free) : SQLITE_NOMEM;
}

void sqlite_row(struct sqlite_writer *writer, enum sqlite_table table, const int64_t *values, size_t count,
                const char *const *texts)
{
	sqlite3_stmt *insert;
	int code = SQLITE_OK;

	if (writer->failure)
		return;
	insert = insert_into(writer, table);
	for (size_t i = 0; insert && i < count && code == SQLITE_OK; i++) {
		int column = (int)i + 1;

		if (values[i] == COLUMN_NULL)
			code = sqlite3_bind_null(insert, column);
		else if (values[i] != COLUMN_TEXT)
			code = sqlite3_bind_int64(insert, column, values[i]);
		else
			code = bind_text(insert, column, *texts++);
	}
	if (code == SQLITE_OK && insert) {
		code = sqlite3_step(insert);
		sqlite3_reset(insert);
	}
	if (insert && code != SQLITE_DONE)
		fail(writer, code);
}

int64_t sqlite_string(struct sqlite_writer *writer, uint32_t string)
{
	if (string >= writer->model->strings.count)
		string = 0;
	writer->strings_used[string] = true;
	return string;
}

int64_t sqlite_string_or_null(struct sqlite_writer *writer, uint32_t string)
{
	return string ? sqlite_string(writer, string) : COLUMN_NULL;
}

int64_t sqlite_text(struct sqlite_writer *writer, const char *text, size_t length)
{
	uint64_t key = hash_bytes(text, length);
	size_t first = writer->model->strings.count;
	uint32_t index;
	char **slot;

	/* Another text with the same hash is kept under the next key. */
	for (; index_map_get(&writer->more_by_hash, key, &index); key++) {
		const char *known = writer->more_strings.items[index];

		if (!strncmp(known, text, length) && !known[length])
			return (int64_t)(first + index);
	}
	index = (uint32_t)writer->more_strings.count;
	slot = array_add(&writer->more_strings);
	if (slot)
		*slot = strndup(text, length);
	if (!slot || !*slot || index_map_put(&writer->more_by_hash, key, index)) {
		no_memory(writer);
		return 0;
	}
	return (int64_t)(first + index);
}

int64_t sqlite_text_or_null(struct sqlite_writer *writer, const char *text)
{
	return text && *text ? sqlite_text(writer, text, strlen(text)) : COLUMN_NULL;
}

int64_t sqlite_base_name(struct sqlite_writer *writer, uint32_t string)
{
	const char *name = model_string(writer->model, string);
	struct name_part part;

	if (string >= writer->model->strings.count)
		return sqlite_string(writer, 0);
	if (!writer->base_names[string]) {
		part = kernel_base_name(name);
		if (part.length == strlen(name))
			writer->base_names[string] = (uint32_t)sqlite_string(writer, string);
		else
			writer->base_names[string] = (uint32_t)sqlite_text(writer, part.start, part.length);
	}
	return writer->base_names[string];
}

int64_t sqlite_global_pid(const struct sqlite_writer *writer, uint32_t process)
{
	return process == MODEL_NONE ? COLUMN_NULL
	                             : GLOBAL_MACHINE | (int64_t)writer->pids[process] << GLOBAL_PID_SHIFT;
}

int64_t sqlite_global_tid(const struct sqlite_writer *writer, uint32_t thread)
{
	const struct thread *known;
	uint32_t tid;

	if (thread == MODEL_NONE)
		return COLUMN_NULL;
	known = &writer->model->threads.items[thread];
	tid = known->tid > GLOBAL_ID_MAX ? ALIAS_ID | (thread & (ALIAS_ID - 1)) : known->tid;
	return sqlite_global_pid(writer, known->process) | tid;
}

static void put_string(struct sqlite_writer *writer, size_t id, const char *text)
{
	const int64_t row[] = {(int64_t)id, COLUMN_TEXT};

	put_row(writer, TABLE_STRINGS, row, &text);
}

void sqlite_writer_finish(struct sqlite_writer *writer)
{
	size_t first = writer->model->strings.count;

	for (size_t i = 0; i < first; i++) {
		if (writer->strings_used[i])
			put_string(writer, i, writer->model->strings.items[i]);
	}
	for (size_t i = 0; i < writer->more_strings.count; i++)
		put_string(writer, first + i, writer->more_strings.items[i]);
	for (size_t i = 0; i < sqlite_index_count; i++)
		execute(writer, sqlite_indices[i]);
	execute(writer, "COMMIT");
}

void sqlite_writer_close(struct sqlite_writer *writer)
{
	char **text;

	for (int i = 0; i < TABLE_COUNT; i++)
		sqlite3_finalize(writer->inserts[i]);
	if (sqlite3_close(writer->database) != SQLITE_OK && !writer->failure)
		writer->failure = -EIO;
	array_for_each (text, &writer->more_strings)
		free(*text);
	array_free(&writer->more_strings);
	index_map_free(&writer->more_by_hash);
	launches_free(&writer->launches);
	free(writer->pids);
	free(writer->strings_used);
	free(writer->base_names);
}
