/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Read-only access to an SQLite file that nobody vouches for.
 *
 * Nothing is written, also not beside the file (no journal, no shared memory, no lock), so read-only media
 * work. Only ordinary tables are read, row by row in rowid order; views, triggers, virtual tables, functions
 * and extensions are off. A table may lack columns, hold any type in any of them, or break off in the middle.
 * How many rows are given is bounded by the size of the file, whatever its pages point at.
 */
#ifndef WHYIDLE_IMPORT_NSYS_DATABASE_H
#define WHYIDLE_IMPORT_NSYS_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * What stands in for the methods of a shortened file: of its last page only a part may be there, which cannot
 * be read, or rows would be made of the zeros in place of the rest.
 */
struct nsys_whole_pages {
	sqlite3_io_methods methods;
	const sqlite3_io_methods *real;
	uint64_t size; /* bytes of whole pages */
};

struct nsys_database {
	sqlite3 *handle;
	const char *path; /* the caller's */
	uint64_t size;    /* bytes of the file */
	bool truncated;   /* the file is shorter than its header says */
	struct nsys_whole_pages whole_pages;
	bool journal; /* a write-ahead log or a rollback journal with content lies beside it */
};

#define NSYS_COLUMNS 16

/* A column to read. Where an essential one is missing, the table is of no use; others read as NULL. */
struct nsys_column {
	const char *name;
	bool essential;
};

/* A table being read. */
struct nsys_table {
	sqlite3_stmt *statement;
	const char *name;
	const char *missing; /* the essential column that it lacks */
	uint64_t rows;       /* given so far */
	uint64_t rows_limit;
	uint32_t present;  /* bit per column */
	char failure[128]; /* why the rows broke off, "" if they did not */
};

/* Returns 0 or a negative errno with `error`; nsys_database_close in either case. */
int nsys_database_open(struct nsys_database *database, const char *path, struct error *error);
void nsys_database_close(struct nsys_database *database);

/* True if there is an ordinary table of this name. */
bool nsys_database_has(struct nsys_database *database, const char *table);

/* Largest rowid of a table, 0 if there is none: about how many rows it has, at no cost. */
uint64_t nsys_database_rows(struct nsys_database *database, const char *table);

/*
 * Begins to read a table. Returns 1 if it can be read; 0 if it is not there, or lacks an essential column
 * (`missing`), or cannot be read at all (`failure`); or -ENOMEM. `name` and `columns` must be constants that
 * hold no quotes. nsys_table_close in any case.
 */
int nsys_table_open(struct nsys_database *database, struct nsys_table *table, const char *name,
                    const struct nsys_column *columns, size_t count);
/* Returns 1 with the next row, 0 after the last one or where the rows break off (`failure`), or -ENOMEM. */
int nsys_table_next(struct nsys_table *table);
void nsys_table_close(struct nsys_table *table);

static inline bool nsys_table_has(const struct nsys_table *table, int column)
{
	return table->present & 1u << column;
}

/* Value of the current row's column if it is a whole number, also one written as text or as a float. */
bool nsys_integer(const struct nsys_table *table, int column, int64_t *value);
/* The same within 32 bits, `fallback` for anything else. */
uint32_t nsys_unsigned(const struct nsys_table *table, int column, uint32_t fallback);
/* Text of the current row's column, NULL if it is none. Valid until the next row. */
const char *nsys_text(const struct nsys_table *table, int column);

#endif
