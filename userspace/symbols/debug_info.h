/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Debug information (DWARF 2 to 5): its units, and the entries that they consist of. It is not trusted: every
 * read is bounded by its section, and there are limits to the work of one question and of all.
 *
 * Why not libdw: docs/names.md.
 */
#ifndef WHYIDLE_SYMBOLS_DEBUG_INFO_H
#define WHYIDLE_SYMBOLS_DEBUG_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/hash.h"
#include "symbols/byte_reader.h"
#include "symbols/debug_sections.h"

#define DEBUG_TEXT_MAX 65536 /* bytes of a name; a longer one is not known */

/* The attributes that are read. */
enum debug_field {
	DEBUG_NAME,
	DEBUG_LINKAGE_NAME,
	DEBUG_LOW,
	DEBUG_HIGH,
	DEBUG_RANGE_LIST,
	DEBUG_ORIGIN,        /* entry that says the rest: of the function that was inlined */
	DEBUG_SPECIFICATION, /* or of its declaration */
	DEBUG_CALL_FILE,
	DEBUG_CALL_LINE,
	DEBUG_SIBLING,
	DEBUG_LINES,
	DEBUG_DIRECTORY,
	DEBUG_STR_OFFSETS_BASE,
	DEBUG_ADDR_BASE,
	DEBUG_RNGLISTS_BASE,
	DEBUG_FIELDS,
};

struct debug_value {
	uint16_t form;   /* DW_FORM_…, 0: there is none */
	uint64_t number; /* constant, address, offset or index, by the form */
	const char *text;
};

/* How values are stored in a unit or a line table. */
struct debug_form {
	uint16_t version;
	uint8_t offset_size; /* 4 or 8 */
};

struct debug_unit {
	uint64_t offset, end, entries; /* in .debug_info: of its head, its end, its first entry */
	uint64_t abbreviations;
	struct debug_form form;
	uint64_t low; /* what addresses in its range lists are relative to */
	uint64_t str_offsets, addresses, range_lists;
	bool has_lines, searched;
	uint64_t lines;                     /* in .debug_line */
	const char *directory;              /* that it was compiled in, NULL */
	uint32_t first_function, functions; /* once it was searched: in debug_info.functions */
	uint32_t first_row, rows, rows_of;  /* in debug_info.rows, if rows_of is its rows_serial */
};

struct debug_entry {
	uint64_t offset,
	    next;     /* in .debug_info: its own, and that of what is behind it: its children, if any */
	uint16_t tag; /* DW_TAG_…, 0: the end of a list of children */
	bool children;
	struct debug_value values[DEBUG_FIELDS];
};

struct debug_span {
	uint64_t start, end; /* addresses */
	uint64_t what;
};

/* Of a line table: holds until the next one. */
struct debug_row {
	uint64_t address;
	uint32_t file;
	int32_t line; /* 0: none; DEBUG_NO_ROW: nothing is said from here on */
};

#define DEBUG_NO_ROW (-1)

struct debug_abbreviation {
	uint64_t code;
	uint16_t tag;
	bool children;
	uint64_t attributes; /* offset of their list in .debug_abbrev */
};

struct debug_info {
	struct debug_sections sections;
	struct {
		ARRAY(struct debug_unit)
	} units; /* by offset */
	struct {
		ARRAY(struct debug_span)
	} unit_spans; /* of code → index of the unit; by start */
	struct {
		ARRAY(struct debug_span)
	} functions; /* of code → offset of the entry; a run for each unit that was searched, by start */
	struct {
		ARRAY(struct debug_row)
	} rows; /* a run for each unit that was asked for, by address */
	uint32_t rows_serial;
	/* Of the unit that was read last. */
	struct {
		ARRAY(struct debug_abbreviation)
	} abbreviations;
	struct index_map abbreviation_at; /* code → index, of those whose code is not their index + 1 */
	uint64_t abbreviations_of;        /* offset of the table */
	struct byte_reader abbreviations_left;
	struct index_map file_at; /* hash of line table and number → index in `files` */
	struct {
		ARRAY(char *)
	} files;
	uint64_t file_bytes;
	uint64_t steps, all_steps; /* that may still be taken for this question, and ever */
};

/* Takes over `sections`. NULL if memory ran out. */
struct debug_info *debug_info_open(struct debug_sections *sections);

/* NULL is allowed. */
void debug_info_free(struct debug_info *info);

/* To be called before each question: what follows may take so much work, and no more. */
void debug_info_begin(struct debug_info *info);

/* Takes `count` steps of work; false if no more may be done. */
bool debug_info_spend(struct debug_info *info, uint64_t count);

/* By start, inner ones behind those around them; and the innermost that holds an address, NULL. */
void debug_spans_sort(struct debug_span *spans, size_t count);
const struct debug_span *debug_span_find(const struct debug_span *spans, size_t count, uint64_t address);

/* The unit whose code holds the address, NULL. */
struct debug_unit *debug_info_unit(struct debug_info *info, uint64_t address);

/* Reads the entry at `offset` of the unit. False if there is none. */
bool debug_info_entry(struct debug_info *info, const struct debug_unit *unit, uint64_t offset,
                      struct debug_entry *entry);

/* Follows a reference to another entry: changes the unit too. False if it leads nowhere. */
bool debug_info_follow(struct debug_info *info, const struct debug_unit **unit,
                       const struct debug_value *value, struct debug_entry *entry);

/* Calls `take` for each run of addresses of an entry, until it returns false. */
void debug_info_ranges(struct debug_info *info, const struct debug_unit *unit,
                       const struct debug_entry *entry,
                       bool (*take)(void *context, uint64_t start, uint64_t end), void *context);

/* A value that is a text; NULL. It belongs to the sections. */
const char *debug_info_text(const struct debug_info *info, const struct debug_unit *unit,
                            const struct debug_value *value);

/* A value that is an address; false if it is something else. */
bool debug_info_address(const struct debug_info *info, const struct debug_unit *unit,
                        const struct debug_value *value, uint64_t *address);

/* Number `index`, of `size` bytes, of the table at `base` of a section; false if there is none. */
bool debug_info_indexed(const struct debug_info *info, enum debug_section section, uint64_t base,
                        uint64_t index, unsigned size, uint64_t *number);

/* A section from `offset` on. */
struct byte_reader debug_info_section(const struct debug_info *info, enum debug_section section,
                                      uint64_t offset);

/* A value of the next bytes; false if its form is not known or it does not fit. `implicit`: what the
 * abbreviation says. */
bool debug_value_read(struct byte_reader *reader, uint64_t form, struct debug_form how, int64_t implicit,
                      struct debug_value *value);

#endif
