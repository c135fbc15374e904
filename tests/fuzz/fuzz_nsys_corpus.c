/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the inputs from which fuzz_nsys starts into a directory: fuzz_nsys_corpus DIRECTORY */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_nsys.h"
#include "tests/fuzz/corpus.h"

static int save(const char *directory, const char *name, enum fuzz_form form, const void *bytes, size_t size)
{
	uint8_t head = (uint8_t)form;

	return corpus_save(directory, name, &head, sizeof(head), bytes, size);
}

/* ---- rows ---- */

struct rows {
	uint8_t bytes[4096];
	size_t size;
};

static void add(struct rows *rows, const void *bytes, size_t size)
{
	if (rows->size + size > sizeof(rows->bytes))
		abort();
	memcpy(rows->bytes + rows->size, bytes, size);
	rows->size += size;
}

static void add_table(struct rows *rows, enum fuzz_table table)
{
	add(rows, &(uint8_t){(uint8_t)table}, 1);
}

static void add_number(struct rows *rows, uint16_t value)
{
	add(rows, (uint8_t[]){FUZZ_SHORT, value & 0xff, value >> 8}, 3);
}

static void add_thread(struct rows *rows, uint8_t process, uint8_t thread)
{
	add(rows, (uint8_t[]){FUZZ_THREAD, process, thread}, 3);
}

static void add_text(struct rows *rows, const char *text)
{
	add(rows, (uint8_t[]){FUZZ_TEXT, (uint8_t)strlen(text)}, 2);
	add(rows, text, strlen(text));
}

static void add_null(struct rows *rows)
{
	add(rows, &(uint8_t){FUZZ_NULL}, 1);
}

static void add_string(struct rows *rows, uint16_t id, const char *text)
{
	add_table(rows, FUZZ_STRINGS);
	add_number(rows, id);
	add_text(rows, text);
}

static void add_call(struct rows *rows, uint16_t start, uint8_t process, uint16_t correlation, uint16_t name)
{
	add_table(rows, FUZZ_RUNTIME);
	add_number(rows, start);
	add_number(rows, start + 10);
	add_thread(rows, process, process);
	add_number(rows, correlation);
	add_number(rows, name);
}

/* What all operations have in common. */
static void add_operation(struct rows *rows, enum fuzz_table table, uint16_t start, uint8_t process,
                          uint16_t correlation)
{
	add_table(rows, table);
	add_number(rows, start);
	add_number(rows, start + 50);
	add_number(rows, process);
	add_number(rows, 7);
	add_number(rows, correlation);
	add_thread(rows, process, 0);
}

/* Two processes, every kind of operation. */
static void add_operations(struct rows *rows)
{
	add_string(rows, 1, "cudaLaunchKernel_v7000");
	add_string(rows, 2, "cudaMemcpyAsync_v3020");
	add_string(rows, 3, "ncclDevKernel");
	for (uint8_t process = 1; process < 3; process++) {
		add_call(rows, 100, process, 1, 1);
		add_call(rows, 300, process, 2, 2);
		add_call(rows, 500, process, 3, 1);
		add_operation(rows, FUZZ_KERNEL, 120, process, 1);
		add_number(rows, 3);
		add_null(rows);
		add_operation(rows, FUZZ_MEMCPY, 350, process, 2);
		for (uint16_t i = 0; i < 4; i++)
			add_number(rows, i);
		add_operation(rows, FUZZ_MEMSET, 450, process, 9);
		add_number(rows, 64);
		add_number(rows, 2);
		add_operation(rows, FUZZ_GRAPH, 600, process, 3);
		add_number(rows, 5);
	}
}

static void add_waits(struct rows *rows)
{
	add_string(rows, 4, "pthread_mutex_lock");
	for (uint16_t i = 0; i < 6; i++) {
		add_table(rows, FUZZ_SCHED);
		add_number(rows, 150 + i * 40);
		add_number(rows, 1);
		add_number(rows, i % 2);
		add_thread(rows, 1, 1);
		add_number(rows, i % 3);
	}
	add_table(rows, FUZZ_OSRT);
	add_number(rows, 140);
	add_number(rows, 200);
	add_thread(rows, 1, 1);
	add_number(rows, 4);
	add_table(rows, FUZZ_OVERHEAD);
	add_number(rows, 300);
	add_number(rows, 305);
	add_thread(rows, 1, 1);
	add_number(rows, 6);
	add_table(rows, FUZZ_NVTX);
	add_number(rows, 90);
	add_number(rows, 700);
	add_text(rows, "aten::add, op_id = 3");
	add_thread(rows, 1, 1);
	add_null(rows);
	add_table(rows, FUZZ_SYNC);
	add_number(rows, 400);
	add_number(rows, 410);
	add_thread(rows, 1, 0);
	for (uint16_t i = 0; i < 3; i++)
		add_number(rows, 3);
}

static void add_devices(struct rows *rows)
{
	for (uint16_t i = 1; i < 3; i++) {
		add_table(rows, FUZZ_CUDA_DEVICE);
		add_number(rows, i);
		add_number(rows, 1);
		add_number(rows, i);
		add_table(rows, FUZZ_GPU);
		add_number(rows, i);
		add_text(rows, "GPU of a kind");
		add_text(rows, "GPU-00112233-4455-6677-8899-aabbccddeeff");
		add_null(rows);
	}
}

static int save_rows(const char *directory)
{
	struct rows rows = {.size = 0};
	int failed = 0;

	add_operations(&rows);
	failed |= save(directory, "operations", FUZZ_ROWS, rows.bytes, rows.size);
	add_waits(&rows);
	failed |= save(directory, "waits", FUZZ_ROWS, rows.bytes, rows.size);
	add_devices(&rows);
	failed |= save(directory, "devices", FUZZ_ROWS, rows.bytes, rows.size);
	return failed;
}

/* ---- files ---- */

static int save_database(const char *directory, const char *name, const char *sql)
{
	unsigned char *image = NULL;
	sqlite3_int64 size = 0;
	sqlite3 *database;
	int failed = 1;

	if (sqlite3_open(":memory:", &database) == SQLITE_OK &&
	    sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK)
		image = sqlite3_serialize(database, "main", &size, 0);
	if (image)
		failed = save(directory, name, FUZZ_FILE, image, (size_t)size);
	else
		fprintf(stderr, "%s: %s\n", name, sqlite3_errmsg(database));
	sqlite3_free(image);
	sqlite3_close(database);
	return failed;
}

#define SCHEMA                                                                                               \
	"pragma page_size = 512;"                                                                            \
	"create table StringIds (id integer primary key, value text);"                                       \
	"create table CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);"           \
	"create table CUPTI_ACTIVITY_KIND_KERNEL (start integer, end integer, deviceId integer, "            \
	"streamId integer, correlationId integer, globalPid integer, demangledName integer);"
#define ROWS                                                                                                 \
	"insert into StringIds values (1, 'cudaLaunchKernel_v7000'), (2, 'kernel');"                         \
	"with recursive c(n) as (select 1 union all select n + 1 from c where n < 60) "                      \
	"insert into CUPTI_ACTIVITY_KIND_RUNTIME select n * 100, n * 100 + 9, 281474976710657, n, 1 from c;" \
	"with recursive c(n) as (select 1 union all select n + 1 from c where n < 60) "                      \
	"insert into CUPTI_ACTIVITY_KIND_KERNEL select n * 100 + 20, n * 100 + 50, 0, 7, n, "                \
	"281474976710656, 2 from c;"

static int save_databases(const char *directory)
{
	return save_database(directory, "empty", SCHEMA) | save_database(directory, "ordinary", SCHEMA ROWS) |
	       save_database(directory, "long",
	                     SCHEMA ROWS
	                     "update StringIds set value = printf('%.*c', 3000, 'x') where id = 2") |
	       save_database(directory, "view",
	                     SCHEMA ROWS "create view CUPTI_ACTIVITY_KIND_MEMCPY as select * from "
	                                 "CUPTI_ACTIVITY_KIND_KERNEL; create index i on "
	                                 "CUPTI_ACTIVITY_KIND_KERNEL (start, end)") |
	       save_database(
	           directory, "computed",
	           "pragma page_size = 512; create table StringIds (id, value as (abs(id)));"
	           "create table CUPTI_ACTIVITY_KIND_KERNEL (start primary key, end, deviceId) "
	           "without rowid; insert into CUPTI_ACTIVITY_KIND_KERNEL values (1, 2, 0), (5, 6, 0)") |
	       save_database(directory, "other", "create table t (a); insert into t values (1)");
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	return save_rows(argv[1]) | save_databases(argv[1]);
}
