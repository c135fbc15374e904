// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/format.h"
#include "report/report_tables.h"
#include "report/text.h"

#define ROWS_SHOWN   25  /* without --verbose */
#define NAME_LEAST   20  /* columns for the name, however narrow the terminal */
#define NARROW       120 /* columns; below that the name gets the room of what matters least */
#define CELL_WIDTH   64
#define COLUMNS_MOST 24

static const char *cell_text(char buffer[CELL_WIDTH], const struct table_column *column,
                             const struct cell *cell)
{
	switch (column->kind) {
	case CELL_TEXT:
		return format_text(buffer, CELL_WIDTH, cell->text, 14);
	case CELL_COUNT:
		return format_count(buffer, cell->number);
	case CELL_NS:
		return format_duration(buffer, cell->number);
	case CELL_MEAN_NS:
		return format_duration(buffer, (uint64_t)(cell->real + 0.5));
	case CELL_BYTES:
		return format_bytes(buffer, cell->number);
	case CELL_MEAN_BYTES:
		return format_bytes(buffer, (uint64_t)(cell->real + 0.5));
	case CELL_SHARE:
		return format_percent(buffer, (uint64_t)(cell->real * 1e12 + 0.5), (uint64_t)1e12);
	case CELL_MEAN:
		snprintf(buffer, CELL_WIDTH, "%.1f", cell->real);
		return buffer;
	}
	return "";
}

static bool is_name(const struct table_spec *spec, size_t column)
{
	return column + 1 == spec->column_count;
}

static bool is_hidden(const struct text *text, const struct table_column *column)
{
	return text->width < NARROW &&
	       (!strncmp(column->key, "stddev", 6) || !strncmp(column->key, "median", 6));
}

static void put_aligned(const struct text *text, const struct table_column *column, const char *value,
                        unsigned width)
{
	fputc(' ', text->out);
	(column->kind == CELL_TEXT ? format_left : format_right)(text->out, value, width);
	fputc(' ', text->out);
}

/* Each column is as wide as what it shows; the name has the rest. */
static void measure_columns(const struct table *table, size_t rows, unsigned widths[COLUMNS_MOST])
{
	const struct table_spec *spec = table->spec;
	char buffer[CELL_WIDTH];

	for (size_t c = 0; c + 1 < spec->column_count; c++) {
		widths[c] = format_columns(spec->columns[c].label);
		for (size_t row = 0; row < rows; row++) {
			unsigned width = format_columns(cell_text(
			    buffer, &spec->columns[c], &table->cells.items[row * spec->column_count + c]));

			widths[c] = width > widths[c] ? width : widths[c];
		}
	}
}

static void put_row(const struct text *text, const struct table *table, size_t row,
                    const unsigned widths[COLUMNS_MOST])
{
	const struct table_spec *spec = table->spec;
	const struct cell *cells = &table->cells.items[row * spec->column_count];
	char name[FORMAT_TEXT_SIZE(200)], buffer[CELL_WIDTH];
	unsigned used = 1, left;

	fputc(' ', text->out);
	for (size_t c = 0; c + 1 < spec->column_count; c++) {
		if (is_hidden(text, &spec->columns[c]))
			continue;
		put_aligned(text, &spec->columns[c], cell_text(buffer, &spec->columns[c], &cells[c]),
		            widths[c]);
		used += widths[c] + 2;
	}
	left = text->width > used + NAME_LEAST ? text->width - used - 1 : NAME_LEAST;
	left = left < 200 ? left : 200;
	fprintf(text->out, " %s\n",
	        format_name(name, sizeof(name), cells[spec->column_count - 1].text, left));
}

static void put_heading(const struct text *text, const struct table_spec *spec,
                        const unsigned widths[COLUMNS_MOST])
{
	fputc(' ', text->out);
	for (size_t c = 0; !is_name(spec, c); c++) {
		if (!is_hidden(text, &spec->columns[c]))
			put_aligned(text, &spec->columns[c], spec->columns[c].label, widths[c]);
	}
	fprintf(text->out, " %s\n", spec->columns[spec->column_count - 1].label);
}

static void put_table(const struct text *text, const struct table *table)
{
	size_t rows = text->verbose || table->rows <= ROWS_SHOWN ? table->rows : ROWS_SHOWN;
	unsigned widths[COLUMNS_MOST] = {0};
	char heading[160];

	snprintf(heading, sizeof(heading), "%s [%s]", table->spec->title, table->spec->name);
	text_heading(text, heading);
	if (!table->rows) {
		fputs("  none\n", text->out);
		return;
	}
	measure_columns(table, rows, widths);
	put_heading(text, table->spec, widths);
	for (size_t row = 0; row < rows; row++)
		put_row(text, table, row, widths);
	if (rows < table->rows)
		fprintf(text->out, "  and %zu more (--verbose shows them)\n", table->rows - rows);
}

int report_tables_text(FILE *out, const struct table *tables, size_t count,
                       const struct report_text_options *options)
{
	const struct text text = {.out = out,
	                          .width = options->width ? options->width : WIDTH_DEFAULT,
	                          .colour = options->colour,
	                          .verbose = options->verbose};

	for (size_t i = 0; i < count; i++)
		put_table(&text, &tables[i]);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
