/* SPDX-License-Identifier: GPL-2.0-only */
#include "import/nsys_database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* A row of a table takes at least a two-byte pointer and a four-byte cell. */
#define ROW_MIN_BYTES 6

/* Longest value or row that is looked at. */
#define VALUE_MAX_BYTES (64 << 20)

#define HEADER_BYTES 100 /* of a database file, sqlite.org/fileformat2.html */

static uint32_t big_endian(const uint8_t *bytes, size_t count)
{
	uint32_t value = 0;

	while (count--)
		value = value << 8 | *bytes++;
	return value;
}

static uint32_t page_bytes(const uint8_t *header)
{
	uint32_t page = big_endian(header + 16, 2);

	return page == 1 ? 65536 : page;
}

/* True if a part of the file is not there. The header's count of pages is valid only beside its own stamp. */
static bool is_cut_off(const uint8_t *header, uint64_t size)
{
	uint32_t page = page_bytes(header);

	if (!memcmp(header + 24, header + 92, 4))
		return (uint64_t)page * big_endian(header + 28, 4) > size;
	return page && size % page;
}

static int read_whole_pages(sqlite3_file *file, void *buffer, int amount, sqlite3_int64 offset)
{
	const struct nsys_whole_pages *pages = (const struct nsys_whole_pages *)file->pMethods;

	if ((uint64_t)offset + (uint64_t)amount > pages->size)
		return SQLITE_CORRUPT;
	return pages->real->xRead(file, buffer, amount, offset);
}

static void leave_out_part_of_page(struct nsys_database *database)
{
	struct nsys_whole_pages *pages = &database->whole_pages;
	sqlite3_file *file = NULL;

	if (sqlite3_file_control(database->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
	    !file || !file->pMethods)
		return;
	pages->real = file->pMethods;
	pages->methods = *pages->real;
	pages->methods.xRead = read_whole_pages;
	file->pMethods = &pages->methods;
}

/* True if `path` with this ending is a file that is not empty. */
static bool has_companion(const char *path, const char *ending)
{
	struct stat status;
	bool found = false;
	char *name;

	if (asprintf(&name, "%s%s", path, ending) < 0)
		return false;
	found = !stat(name, &status) && status.st_size > 0;
	free(name);
	return found;
}

static int look_at_file(struct nsys_database *database, struct error *error)
{
	uint8_t header[HEADER_BYTES];
	struct stat status;
	ssize_t length;
	int fd = open(database->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return error_set(error, -errno, "%s: %s", database->path, strerror(errno));
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return error_set(error, -EINVAL, "%s: not a regular file", database->path);
	}
	length = pread(fd, header, sizeof(header), 0);
	close(fd);
	if (length != sizeof(header) || memcmp(header, "SQLite format 3", 16))
		return error_set(error, -EINVAL, "%s: not an SQLite database", database->path);
	database->size = (uint64_t)status.st_size;
	database->truncated = is_cut_off(header, database->size);
	if (page_bytes(header))
		database->whole_pages.size = database->size - database->size % page_bytes(header);
	database->journal =
	    has_companion(database->path, "-wal") || has_companion(database->path, "-journal");
	return 0;
}

/* "file:" with everything escaped that has a meaning in such a name. */
static char *make_uri(const char *path)
{
	static const char digits[] = "0123456789abcdef";
	static const char ending[] = "?immutable=1";
	char *uri = malloc(strlen(path) * 3 + sizeof("file:./") + sizeof(ending));
	char *end = uri;

	if (!uri)
		return NULL;
	end = stpcpy(end, "file:");
	/* "file://host/…": two slashes at the start would be taken for a host. */
	if (path[0] != '/' || path[1] == '/')
		end = stpcpy(end, path[0] == '/' ? "/." : "./");
	for (; *path; path++) {
		uint8_t byte = (uint8_t)*path;

		if (byte == '%' || byte == '?' || byte == '#' || byte < ' ') {
			*end++ = '%';
			*end++ = digits[byte >> 4];
			*end++ = digits[byte & 15];
		} else {
			*end++ = (char)byte;
		}
	}
	memcpy(end, ending, sizeof(ending));
	return uri;
}

/* Only reads of tables; what a hostile schema hides behind a column gets no function to call. */
static int authorise(void *context, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
	(void)context;
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
		return SQLITE_OK;
	case SQLITE_PRAGMA:
		return first && !strcmp(first, "table_info") ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_FUNCTION:
		return second && !strcmp(second, "max") ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

static void restrict_connection(struct nsys_database *database)
{
	static const struct {
		int id, value;
	} limits[] = {
	    {SQLITE_LIMIT_LENGTH, VALUE_MAX_BYTES},
	    {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
	    {SQLITE_LIMIT_EXPR_DEPTH, 100},
	    {SQLITE_LIMIT_COMPOUND_SELECT, 3},
	    {SQLITE_LIMIT_VDBE_OP, 25000},
	    {SQLITE_LIMIT_FUNCTION_ARG, 8},
	    {SQLITE_LIMIT_ATTACHED, 0},
	    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
	    {SQLITE_LIMIT_VARIABLE_NUMBER, 8},
	    {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
	    {SQLITE_LIMIT_WORKER_THREADS, 0},
	};
	sqlite3 *handle = database->handle;

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		sqlite3_limit(handle, limits[i].id, limits[i].value);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	/*
	 * What is left of a shortened file can be read only with the check off that also guards against
	 * writes to the schema; nothing can be written here anyway.
	 */
	if (database->truncated) {
		sqlite3_db_config(handle, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
		leave_out_part_of_page(database);
	} else {
		sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	}
	sqlite3_exec(handle, "pragma cell_size_check = on; pragma mmap_size = 0", NULL, NULL, NULL);
	sqlite3_set_authorizer(handle, authorise, NULL);
}

int nsys_database_open(struct nsys_database *database, const char *path, struct error *error)
{
	char *uri;
	int rc;

	*database = (struct nsys_database){.path = path};
	rc = look_at_file(database, error);
	if (rc)
		return rc;
	uri = make_uri(path);
	if (!uri)
		return error_no_memory(error);
	rc = sqlite3_open_v2(
	    uri, &database->handle,
	    SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
	free(uri);
	if (rc == SQLITE_NOMEM || !database->handle)
		return error_no_memory(error);
	if (rc == SQLITE_OK) {
		restrict_connection(database);
		rc = sqlite3_exec(database->handle, "select 1 from sqlite_master", NULL, NULL, NULL);
	}
	if (rc == SQLITE_NOMEM)
		return error_no_memory(error);
	if (rc != SQLITE_OK)
		return error_set(error, -EINVAL, "%s: cannot be read as an SQLite database (%s)%s", path,
		                 sqlite3_errmsg(database->handle),
		                 database->truncated ? ": the file was cut off" : "");
	return 0;
}

void nsys_database_close(struct nsys_database *database)
{
	sqlite3_close_v2(database->handle);
	database->handle = NULL;
}

bool nsys_database_has(struct nsys_database *database, const char *table)
{
	/* Virtual tables have no root page. */
	static const char query[] =
	    "select 1 from sqlite_master where type = 'table' and rootpage > 0 and name = ?1 collate nocase";
	sqlite3_stmt *statement;
	bool found = false;

	if (sqlite3_prepare_v2(database->handle, query, sizeof(query), &statement, NULL) == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
		found = sqlite3_step(statement) == SQLITE_ROW;
	}
	sqlite3_finalize(statement);
	return found;
}

uint64_t nsys_database_rows(struct nsys_database *database, const char *table)
{
	sqlite3_stmt *statement = NULL;
	sqlite3_int64 rows = 0;
	char query[128];

	snprintf(query, sizeof(query), "select max(rowid) from \"%s\"", table);
	if (nsys_database_has(database, table) &&
	    sqlite3_prepare_v2(database->handle, query, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		rows = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	if (rows < 0)
		return 0;
	return (uint64_t)rows < database->size / ROW_MIN_BYTES ? (uint64_t)rows
	                                                       : database->size / ROW_MIN_BYTES;
}

/* Which of the columns the table has. */
static int find_columns(struct nsys_database *database, struct nsys_table *table,
                        const struct nsys_column *columns, size_t count)
{
	sqlite3_stmt *statement;
	char query[128];
	int rc;

	snprintf(query, sizeof(query), "pragma table_info(\"%s\")", table->name);
	rc = sqlite3_prepare_v2(database->handle, query, -1, &statement, NULL);
	if (rc != SQLITE_OK)
		return rc;
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 1);

		for (size_t i = 0; name && i < count; i++) {
			if (!strcasecmp(name, columns[i].name))
				table->present |= 1u << i;
		}
	}
	sqlite3_finalize(statement);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Notes why rows cannot be read. Returns 0, or -ENOMEM. */
static int note_failure(struct nsys_table *table, sqlite3 *handle, int rc)
{
	if ((rc & 0xff) == SQLITE_NOMEM)
		return -ENOMEM;
	snprintf(table->failure, sizeof(table->failure), "%s", sqlite3_errmsg(handle));
	return 0;
}

int nsys_table_open(struct nsys_database *database, struct nsys_table *table, const char *name,
                    const struct nsys_column *columns, size_t count)
{
	char query[1024];
	size_t length;
	int rc;

	*table = (struct nsys_table){.name = name, .rows_limit = database->size / ROW_MIN_BYTES};
	if (!nsys_database_has(database, name))
		return 0;
	rc = find_columns(database, table, columns, count);
	if (rc != SQLITE_OK)
		return note_failure(table, database->handle, rc);
	length = (size_t)snprintf(query, sizeof(query), "select ");
	for (size_t i = 0; i < count; i++) {
		bool present = nsys_table_has(table, (int)i);

		if (!present && columns[i].essential) {
			table->missing = columns[i].name;
			return 0;
		}
		length += (size_t)snprintf(query + length, sizeof(query) - length,
		                           present ? "%s\"%s\"" : "%snull", i ? "," : "", columns[i].name);
	}
	/* An index that covers the columns would give another order. */
	snprintf(query + length, sizeof(query) - length, " from \"%s\" not indexed", name);
	rc = sqlite3_prepare_v2(database->handle, query, -1, &table->statement, NULL);
	if (rc != SQLITE_OK)
		return note_failure(table, database->handle, rc);
	return 1;
}

int nsys_table_next(struct nsys_table *table)
{
	int rc = sqlite3_step(table->statement);

	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return note_failure(table, sqlite3_db_handle(table->statement), rc);
	if (table->rows >= table->rows_limit) {
		snprintf(table->failure, sizeof(table->failure), "more rows than the file can hold");
		return 0;
	}
	table->rows++;
	return 1;
}

void nsys_table_close(struct nsys_table *table)
{
	sqlite3_finalize(table->statement);
	table->statement = NULL;
}

static bool integer_of_text(const char *text, int64_t *value)
{
	char *end;

	if (!text || !*text)
		return false;
	errno = 0;
	*value = strtoll(text, &end, 10);
	return !errno && !*end;
}

bool nsys_integer(const struct nsys_table *table, int column, int64_t *value)
{
	double number;

	switch (sqlite3_column_type(table->statement, column)) {
	case SQLITE_INTEGER:
		*value = sqlite3_column_int64(table->statement, column);
		return true;
	case SQLITE_FLOAT:
		number = sqlite3_column_double(table->statement, column);
		if (!(number > -9e18 && number < 9e18) || number != (double)(int64_t)number)
			return false;
		*value = (int64_t)number;
		return true;
	case SQLITE_TEXT:
		return integer_of_text((const char *)sqlite3_column_text(table->statement, column), value);
	default:
		return false;
	}
}

uint32_t nsys_unsigned(const struct nsys_table *table, int column, uint32_t fallback)
{
	int64_t value;

	if (!nsys_integer(table, column, &value) || value < 0 || value > UINT32_MAX)
		return fallback;
	return (uint32_t)value;
}

const char *nsys_text(const struct nsys_table *table, int column)
{
	if (sqlite3_column_type(table->statement, column) != SQLITE_TEXT)
		return NULL;
	return (const char *)sqlite3_column_text(table->statement, column);
}
