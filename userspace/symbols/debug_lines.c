// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/debug_lines.h"

#include <stdio.h>
#include <stdlib.h>

#include <dwarf.h>

#define MAX_PATH       4096        /* bytes of a file's path */
#define MAX_FILE_BYTES (64u << 20) /* of all paths that are kept */
#define MAX_COLUMNS    16          /* of what is said of a file: five are known */
#define MAX_ROWS       (4u << 20)  /* that are kept */
#define LAST_STANDARD  DW_LNS_set_isa

/* The head of a table. */
struct line_table {
	struct debug_form form;
	uint8_t instruction_length, line_range, first_special;
	int8_t line_base;
	const uint8_t *operands; /* of each standard operation how many, from the first on */
	struct byte_reader head; /* from the folders on */
	struct byte_reader program;
};

static bool open_table(const struct debug_info *info, const struct debug_unit *unit, struct line_table *table)
{
	const struct debug_bytes *section = &info->sections.items[DEBUG_LINE];
	struct byte_reader reader = byte_reader_at(section->bytes, section->size, unit->lines);
	uint64_t length = read_fixed(&reader, 4), head_length, most_operations = 1;

	*table = (struct line_table){.form.offset_size = 4};
	if (length == UINT32_MAX) {
		length = read_fixed(&reader, 8);
		table->form.offset_size = 8;
	}
	if (!unit->has_lines || reader.wrong || length > byte_reader_left(&reader))
		return false;
	reader.end = reader.at + length;
	table->form.version = (uint16_t)read_fixed(&reader, 2);
	if (table->form.version < 2 || table->form.version > 5)
		return false;
	if (table->form.version == 5)
		read_bytes(&reader, 2); /* sizes of addresses and of segments */
	head_length = read_fixed(&reader, table->form.offset_size);
	if (reader.wrong || head_length > byte_reader_left(&reader))
		return false;
	table->program = (struct byte_reader){reader.at + head_length, reader.end, false};
	reader.end = reader.at + head_length;
	table->instruction_length = (uint8_t)read_fixed(&reader, 1);
	if (table->form.version >= 4)
		most_operations = read_fixed(&reader, 1);
	read_bytes(&reader, 1); /* whether lines begin statements at first */
	table->line_base = (int8_t)read_fixed(&reader, 1);
	table->line_range = (uint8_t)read_fixed(&reader, 1);
	table->first_special = (uint8_t)read_fixed(&reader, 1);
	/* More than one is for processors with several instructions in a word. */
	if (reader.wrong || most_operations != 1 || !table->line_range || !table->first_special)
		return false;
	table->operands = read_bytes(&reader, table->first_special - 1);
	table->head = reader;
	return !reader.wrong;
}

/* ---- lines ---- */

struct row {
	uint64_t address, file;
	int64_t line;
};

/* The rows of a unit, as they are being made. */
struct rows {
	struct debug_info *info;
	bool in_sequence, dropped, full;
};

static void take_row(struct rows *rows, const struct row *row, bool end)
{
	struct debug_info *info = rows->info;
	struct debug_row *slot = info->rows.count ? &info->rows.items[info->rows.count - 1] : NULL;

	/* Linkers put what they have dropped at 0 or 1. */
	if (!rows->in_sequence)
		rows->dropped = row->address <= 1;
	/* Of several rows for one address the last counts. */
	if (!rows->dropped && (!rows->in_sequence || !slot || slot->address != row->address))
		slot = info->rows.count < MAX_ROWS ? array_add(&info->rows) : NULL;
	rows->in_sequence = !end;
	rows->full = rows->full || !slot;
	if (rows->dropped || rows->full)
		return;
	slot->address = row->address;
	slot->file = row->file < UINT32_MAX ? (uint32_t)row->file : UINT32_MAX;
	slot->line = end ? DEBUG_NO_ROW : row->line > 0 && row->line < INT32_MAX ? (int32_t)row->line : 0;
}

/* Those whose first byte is 0: their length follows. */
static void extended_operation(struct rows *rows, struct byte_reader *program, struct row *row)
{
	uint64_t length = read_unsigned(program);
	const uint8_t *bytes = read_bytes(program, length);
	struct byte_reader operation;

	if (!bytes || !length)
		return;
	operation = (struct byte_reader){bytes, bytes + length, false};
	switch (read_fixed(&operation, 1)) {
	case DW_LNE_end_sequence:
		take_row(rows, row, true);
		*row = (struct row){.file = 1, .line = 1};
		break;
	case DW_LNE_set_address:
		if (length == 9)
			row->address = read_fixed(&operation, 8);
		break;
	default:
		break;
	}
}

/* Operations with a number of their own: the first one is DW_LNS_copy. */
static void standard_operation(const struct line_table *table, struct rows *rows, struct byte_reader *program,
                               uint8_t operation, struct row *row)
{
	switch (operation <= LAST_STANDARD ? operation : 0) {
	case DW_LNS_copy:
		take_row(rows, row, false);
		break;
	case DW_LNS_advance_pc:
		row->address += read_unsigned(program) * table->instruction_length;
		break;
	case DW_LNS_advance_line:
		row->line += (int32_t)read_signed(program);
		break;
	case DW_LNS_set_file:
		row->file = read_unsigned(program);
		break;
	case DW_LNS_const_add_pc:
		row->address +=
		    (uint64_t)((255 - table->first_special) / table->line_range) * table->instruction_length;
		break;
	case DW_LNS_fixed_advance_pc:
		row->address += read_fixed(program, 2);
		break;
	default:
		for (uint8_t i = 0; i < table->operands[operation - 1]; i++)
			read_unsigned(program);
		break;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct debug_row *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	/* Where one run of code ends another may begin. */
	return (y->line == DEBUG_NO_ROW) - (x->line == DEBUG_NO_ROW);
}

static void run_program(struct debug_info *info, struct line_table *table)
{
	struct byte_reader *program = &table->program;
	struct row row = {.file = 1, .line = 1};
	struct rows rows = {.info = info};

	while (byte_reader_left(program) && !rows.full && debug_info_spend(info, 1)) {
		uint8_t operation = (uint8_t)read_fixed(program, 1);

		if (operation >= table->first_special) {
			uint8_t special = operation - table->first_special;

			row.address += (uint64_t)(special / table->line_range) * table->instruction_length;
			row.line += table->line_base + special % table->line_range;
			take_row(&rows, &row, false);
		} else if (operation) {
			standard_operation(table, &rows, program, operation, &row);
		} else {
			extended_operation(&rows, program, &row);
		}
	}
	/* What was not ended covers nothing. */
	if (rows.in_sequence && !rows.dropped && info->rows.count)
		info->rows.items[info->rows.count - 1].line = DEBUG_NO_ROW;
}

/* Makes the rows of a unit, unless they are there. When there are too many, those of all units are made anew.
 */
static void read_rows(struct debug_info *info, struct debug_unit *unit)
{
	struct line_table table;

	if (unit->rows_of == info->rows_serial)
		return;
	if (info->rows.count >= MAX_ROWS / 2) {
		array_free(&info->rows);
		info->rows_serial++;
	}
	unit->rows_of = info->rows_serial;
	unit->first_row = info->rows.count;
	if (open_table(info, unit, &table))
		run_program(info, &table);
	unit->rows = info->rows.count - unit->first_row;
	if (unit->rows)
		qsort_items(info->rows.items + unit->first_row, unit->rows, sizeof(struct debug_row),
		            compare_rows);
}

bool debug_lines_find(struct debug_info *info, struct debug_unit *unit, uint64_t address, uint64_t *file,
                      int *line)
{
	const struct debug_row *rows;
	size_t low = 0, high;

	read_rows(info, unit);
	if (!unit->rows)
		return false;
	rows = info->rows.items + unit->first_row;
	high = unit->rows;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || rows[low - 1].line == DEBUG_NO_ROW)
		return false;
	*file = rows[low - 1].file;
	*line = rows[low - 1].line;
	return true;
}

/* ---- files ---- */

struct file_entry {
	const char *name;
	uint64_t folder;
};

/* Until DWARF 4: names that an empty one ends, from 1 on. Passes those before `wanted`; of files, three
 * numbers follow the name. */
static bool old_entry(struct debug_info *info, struct byte_reader *head, bool files, uint64_t wanted,
                      struct file_entry *entry)
{
	*entry = (struct file_entry){0};
	for (uint64_t i = 1; debug_info_spend(info, 1); i++) {
		const char *name = read_cstring(head, DEBUG_TEXT_MAX);
		uint64_t folder = 0;

		if (!name || !*name)
			return false;
		if (files) {
			folder = read_unsigned(head);
			read_unsigned(head);
			read_unsigned(head);
		}
		if (i == wanted && !head->wrong) {
			*entry = (struct file_entry){name, folder};
			return true;
		}
	}
	return false;
}

/* From DWARF 5 on: which columns there are and in which form, then the entries, from 0 on. */
static bool new_entry(struct debug_info *info, const struct debug_unit *unit, const struct line_table *table,
                      struct byte_reader *head, uint64_t wanted, struct file_entry *entry)
{
	uint64_t columns = read_fixed(head, 1), kinds[MAX_COLUMNS], forms[MAX_COLUMNS], count;
	struct debug_unit strings = *unit;
	bool found = false;

	strings.form = table->form;
	*entry = (struct file_entry){0};
	if (columns > MAX_COLUMNS)
		return false;
	for (uint64_t i = 0; i < columns; i++) {
		kinds[i] = read_unsigned(head);
		forms[i] = read_unsigned(head);
	}
	count = read_unsigned(head);
	for (uint64_t i = 0; i < count && columns && !head->wrong; i++) {
		if (!debug_info_spend(info, columns))
			return false;
		for (uint64_t c = 0; c < columns; c++) {
			struct debug_value value;

			if (!debug_value_read(head, forms[c], table->form, 0, &value))
				return false;
			if (i == wanted && kinds[c] == DW_LNCT_path)
				entry->name = debug_info_text(info, &strings, &value);
			if (i == wanted && kinds[c] == DW_LNCT_directory_index)
				entry->folder = value.number;
		}
		found = found || i == wanted;
	}
	return found;
}

/* The folder stays as the compiler was given it, also relative to the one that it ran in. */
static char *join(const char *folder, const char *name)
{
	char path[MAX_PATH];
	int length;

	if (*name == '/' || !folder || !*folder)
		length = snprintf(path, sizeof(path), "%s", name);
	else
		length = snprintf(path, sizeof(path), "%s/%s", folder, name);
	return length > 0 && length < MAX_PATH ? strdup(path) : NULL;
}

static char *file_path(struct debug_info *info, const struct debug_unit *unit, uint64_t number)
{
	const char *folder = NULL;
	struct byte_reader folders, rest;
	struct file_entry file, entry;
	struct line_table table;

	if (!open_table(info, unit, &table))
		return NULL;
	folders = rest = table.head;
	if (table.form.version < 5) {
		old_entry(info, &rest, false, UINT64_MAX, &entry); /* passes the folders */
		if (!old_entry(info, &rest, true, number, &file))
			return NULL;
		/* Folder 0 is the one that the unit was compiled in. */
		if (!file.folder)
			folder = unit->directory;
		else if (old_entry(info, &folders, false, file.folder, &entry))
			folder = entry.name;
		return join(folder, file.name);
	}
	new_entry(info, unit, &table, &rest, UINT64_MAX, &entry);
	if (rest.wrong || !new_entry(info, unit, &table, &rest, number, &file) || !file.name)
		return NULL;
	if (new_entry(info, unit, &table, &folders, file.folder, &entry))
		folder = entry.name;
	return join(folder, file.name);
}

const char *debug_lines_file(struct debug_info *info, const struct debug_unit *unit, uint64_t file)
{
	const uint64_t parts[] = {unit->lines, file};
	uint64_t key = hash_bytes(parts, sizeof(parts));
	char *path, **slot;
	uint32_t at;

	if (index_map_get(&info->file_at, key, &at))
		return info->files.items[at];
	path = info->file_bytes < MAX_FILE_BYTES ? file_path(info, unit, file) : NULL;
	slot = path ? array_add(&info->files) : NULL;
	if (!slot || index_map_put(&info->file_at, key, info->files.count - 1)) {
		if (slot)
			info->files.count--;
		free(path);
		return NULL;
	}
	info->file_bytes += strlen(path) + 1;
	*slot = path;
	return path;
}
