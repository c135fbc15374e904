// SPDX-License-Identifier: GPL-2.0-only
/*
 * SQLite with the tables and columns of Nsight Systems' export, so that scripts and queries for it work, and
 * tables WHYIDLE_… with what only this tool knows. docs/exports.md has the whole mapping.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "export/export.h"
#include "export/sqlite_writer.h"
#include "export/target_file.h"

static void put_pair(struct sqlite_writer *writer, enum sqlite_table table, const char *name,
                     const char *value)
{
	static const int64_t row[] = {COLUMN_TEXT, COLUMN_TEXT};

	put_row(writer, table, row, ((const char *[]){name, value}));
}

static void put_details(struct sqlite_writer *writer)
{
	static const char *const sources[] = {
	    [MODEL_SESSION] = "session", [MODEL_KINETO] = "kineto", [MODEL_NSYS] = "nsys"};
	const struct model *model = writer->model;
	const int64_t row[] = {GLOBAL_MACHINE, (int64_t)(model->end_ns - model->start_ns),
	                       (int64_t)model->start_ns, (int64_t)model->end_ns};
	const uint32_t *line;

	put_row(writer, TABLE_DETAILS, row, NULL);
	put_pair(writer, TABLE_EXPORT, "EXPORT_PRODUCT_NAME", "whyidle");
	put_pair(writer, TABLE_EXPORT, "EXPORT_PRODUCT_VERSION", WHYIDLE_VERSION);
	put_pair(writer, TABLE_EXPORT, "EXPORT_SCHEMA_VERSION",
	         SCHEMA_VERSION_MAJOR "." SCHEMA_VERSION_MINOR "." SCHEMA_VERSION_MICRO);
	put_pair(writer, TABLE_EXPORT, "EXPORT_SCHEMA_VERSION_MAJOR", SCHEMA_VERSION_MAJOR);
	put_pair(writer, TABLE_EXPORT, "EXPORT_SCHEMA_VERSION_MINOR", SCHEMA_VERSION_MINOR);
	put_pair(writer, TABLE_EXPORT, "EXPORT_SCHEMA_VERSION_MICRO", SCHEMA_VERSION_MICRO);
	put_pair(writer, TABLE_CAPTURE, "WHYIDLE_SOURCE", sources[model->source]);
	if (model->command)
		put_pair(writer, TABLE_CAPTURE, "WHYIDLE_COMMAND", model_string(model, model->command));
	array_for_each (line, &model->degraded)
		put_pair(writer, TABLE_CAPTURE, "WHYIDLE_DEGRADED", model_string(model, *line));
}

static int fill(struct sqlite_writer *writer, const char *path)
{
	if (sqlite_writer_open(writer, path))
		return writer->failure;
	put_details(writer);
	sqlite_put_host(writer);
	sqlite_put_gpus(writer);
	sqlite_put_gaps(writer);
	sqlite_writer_finish(writer);
	return writer->failure;
}

int export_sqlite(const char *path, const struct model *model, const struct analysis *analysis,
                  struct error *error)
{
	struct sqlite_writer writer = {.model = model, .analysis = analysis};
	struct target_file file;
	int rc = target_file_create(&file, path, error);

	if (!rc && !file.written)
		rc = error_set(error, -EINVAL, "%s is not a regular file: a database needs one", path);
	if (rc) {
		target_file_discard(&file);
		return rc;
	}
	close(file.fd);
	file.fd = -1;
	fill(&writer, file.written);
	sqlite_writer_close(&writer);
	if (!writer.failure)
		return target_file_commit(&file, error);
	error_set(error, writer.failure, "cannot write %s: %s", path,
	          writer.failure_text[0] ? writer.failure_text : strerror(-writer.failure));
	target_file_discard(&file);
	return writer.failure;
}
