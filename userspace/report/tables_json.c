// SPDX-License-Identifier: GPL-2.0-only
/* docs/tables.schema.json describes every field. */
#include <errno.h>
#include <string.h>

#include "report/json_parts.h"
#include "report/report_tables.h"

static json_t *make_columns(struct maker *maker, const struct table_spec *spec)
{
	static const char *const units[] = {
	    [CELL_TEXT] = "text",   [CELL_COUNT] = "count",     [CELL_NS] = "ns",
	    [CELL_BYTES] = "bytes", [CELL_SHARE] = "share",     [CELL_MEAN] = "count",
	    [CELL_MEAN_NS] = "ns",  [CELL_MEAN_BYTES] = "bytes"};
	json_t *list = json_array();

	for (size_t c = 0; c < spec->column_count; c++)
		append(maker, list,
		       json_pack("{s:s, s:s, s:s}", "key", spec->columns[c].key, "unit",
		                 units[spec->columns[c].kind], "label", spec->columns[c].label));
	return list;
}

static json_t *make_cell(const struct table_column *column, const struct cell *cell, size_t limit)
{
	switch (column->kind) {
	case CELL_TEXT:
		return make_limited_text(cell->text, limit);
	case CELL_COUNT:
	case CELL_NS:
	case CELL_BYTES:
		return make_integer(cell->number);
	default:
		return json_real(cell->real);
	}
}

json_t *make_table(struct maker *maker, const struct table *table, size_t most, size_t limit)
{
	const struct table_spec *spec = table->spec;
	json_t *object = json_object(), *rows = json_array();

	for (size_t row = 0; row < table->rows && row < most; row++) {
		json_t *line = json_object();

		for (size_t c = 0; c < spec->column_count; c++)
			set(maker, line, spec->columns[c].key,
			    make_cell(&spec->columns[c], &table->cells.items[row * spec->column_count + c],
			              limit));
		append(maker, rows, line);
	}
	set(maker, object, "name", json_string(spec->name));
	set(maker, object, "nsys_name", make_text(spec->nsys_name));
	set(maker, object, "title", json_string(spec->title));
	set(maker, object, "columns", make_columns(maker, spec));
	set(maker, object, "row_count", make_integer(table->rows));
	set(maker, object, "rows", rows);
	return object;
}

int report_tables_json(FILE *out, const struct table *tables, size_t count, struct error *error)
{
	struct maker maker = {0};
	json_t *report = json_object(), *list = json_array();
	int err = 0;

	for (size_t i = 0; i < count; i++)
		append(&maker, list, make_table(&maker, &tables[i], SIZE_MAX, JSON_TEXT_LIMIT));
	set(&maker, report, "schema", json_string(REPORT_TABLES_SCHEMA));
	set(&maker, report, "tool", make_tool(&maker));
	set(&maker, report, "tables", list);
	if (!report || maker.failed)
		err = error_no_memory(error);
	else if (json_dumpf(report, out, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) ||
	         fputc('\n', out) == EOF || fflush(out))
		err = error_set(error, -EIO, "cannot write the tables: %s", strerror(errno));
	json_decref(report);
	return err;
}
