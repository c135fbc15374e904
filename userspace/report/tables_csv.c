// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "report/format.h"
#include "report/report_tables.h"

#define CELL_COLUMNS 4096 /* of a name */

/*
 * Spreadsheets take cells that begin so for formulas, quoted or not (OWASP, "CSV Injection"), and some also
 * the wide forms of these characters. Spaces before them may be trimmed.
 */
static bool begins_formula(const char *text)
{
	static const char *const wide[] = {"\uff1d", "\uff0b", "\uff0d", "\uff20"};

	text += strspn(text, " ");
	if (*text && strchr("=+-@|%", *text))
		return true;
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
		if (!strncmp(text, wide[i], strlen(wide[i])))
			return true;
	}
	return false;
}

static void put_cell_text(FILE *out, const char *text)
{
	char shown[FORMAT_TEXT_SIZE(CELL_COLUMNS)];
	bool formula, quoted;

	format_text(shown, sizeof(shown), text, CELL_COLUMNS);
	formula = begins_formula(shown);
	quoted = formula || strpbrk(shown, ",\";'") || shown[0] == ' ';
	if (quoted)
		fputc('"', out);
	if (formula)
		fputc('\'', out);
	for (const char *c = shown; *c; c++) {
		if (*c == '"')
			fputc('"', out);
		fputc(*c, out);
	}
	if (quoted)
		fputc('"', out);
}

static void put_cell(FILE *out, const struct table_column *column, const struct cell *cell)
{
	switch (column->kind) {
	case CELL_TEXT:
		put_cell_text(out, cell->text);
		break;
	case CELL_COUNT:
	case CELL_NS:
		fprintf(out, "%" PRIu64, cell->number);
		break;
	case CELL_BYTES: /* MB, exact */
		fprintf(out, "%" PRIu64 ".%06" PRIu64, cell->number / 1000000, cell->number % 1000000);
		break;
	case CELL_SHARE:
		fprintf(out, "%.1f", 100 * cell->real);
		break;
	case CELL_MEAN:
	case CELL_MEAN_NS:
		fprintf(out, "%.1f", cell->real);
		break;
	case CELL_MEAN_BYTES:
		fprintf(out, "%.6f", cell->real / 1e6);
		break;
	}
}

static void put_table(FILE *out, const struct table *table)
{
	const struct table_spec *spec = table->spec;

	for (size_t c = 0; c < spec->column_count; c++)
		fprintf(out, "%s%s", c ? "," : "", spec->columns[c].heading);
	fputc('\n', out);
	for (size_t row = 0; row < table->rows; row++) {
		for (size_t c = 0; c < spec->column_count; c++) {
			if (c)
				fputc(',', out);
			put_cell(out, &spec->columns[c], &table->cells.items[row * spec->column_count + c]);
		}
		fputc('\n', out);
	}
}

int report_tables_csv(FILE *out, const struct table *tables, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (count > 1)
			fprintf(out, "%s# %s\n", i ? "\n" : "", tables[i].spec->name);
		put_table(out, &tables[i]);
	}
	return fflush(out) || ferror(out) ? -EIO : 0;
}
