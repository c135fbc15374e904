/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fuzzes the reader of Nsight Systems exports, and the analysis of what it reads. Mutations of a file mostly
 * break SQLite's own structures; to reach the meaning of rows, an input can also be rows (enum fuzz_form),
 * from which a file is made.
 *
 * Build and run: make fuzz [FUZZ_SECONDS=60]
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attribute/analysis.h"
#include "fuzz_nsys.h"
#include "import/import.h"
#include "tests/fuzz/require.h"

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

static void make_path(void)
{
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/fuzz-nsys-XXXXXX");
	fd = mkstemp(path);
	REQUIRE(fd >= 0);
	close(fd);
	atexit(remove_file);
}

static void write_file(const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

/* The rest of an input. */
struct source {
	const uint8_t *at, *end;
};

static uint64_t take(struct source *source, size_t count)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count && source->at < source->end; i++)
		value |= (uint64_t)*source->at++ << 8 * i;
	return value;
}

static void bind_value(sqlite3_stmt *statement, int column, struct source *source)
{
	size_t left, length;
	uint64_t value;
	double number;

	switch (take(source, 1) % FUZZ_VALUE_COUNT) {
	case FUZZ_BYTE:
		sqlite3_bind_int64(statement, column, (int64_t)take(source, 1));
		break;
	case FUZZ_SHORT:
		sqlite3_bind_int64(statement, column, (int64_t)take(source, 2));
		break;
	case FUZZ_LONG:
		sqlite3_bind_int64(statement, column, (int64_t)take(source, 8));
		break;
	case FUZZ_THREAD:
		value = (uint64_t)1 << 48 | take(source, 1) % 4 << 24;
		sqlite3_bind_int64(statement, column, (int64_t)(value | take(source, 1) % 4));
		break;
	case FUZZ_TEXT:
		length = take(source, 1);
		left = (size_t)(source->end - source->at);
		length = length < left ? length : left;
		sqlite3_bind_text(statement, column, (const char *)source->at, (int)length, SQLITE_TRANSIENT);
		source->at += length;
		break;
	case FUZZ_FLOAT:
		value = take(source, 8);
		memcpy(&number, &value, sizeof(number));
		sqlite3_bind_double(statement, column, number);
		break;
	default:
		sqlite3_bind_null(statement, column);
	}
}

/* A database in memory with the tables of an export, all empty; kept from run to run. */
static sqlite3 *database;
static sqlite3_stmt *inserts[FUZZ_TABLE_COUNT];

static void make_tables(void)
{
	static const char marks[] = "?,?,?,?,?,?,?,?,?,?,?,?";
	char query[512];

	REQUIRE(sqlite3_open(":memory:", &database) == SQLITE_OK);
	sqlite3_exec(database, "pragma page_size = 512", NULL, NULL, NULL);
	for (int i = 0; i < FUZZ_TABLE_COUNT; i++) {
		snprintf(query, sizeof(query), "create table %s (%s)", fuzz_tables[i].name,
		         fuzz_tables[i].columns);
		REQUIRE(sqlite3_exec(database, query, NULL, NULL, NULL) == SQLITE_OK);
		snprintf(query, sizeof(query), "insert into %s values (%.*s)", fuzz_tables[i].name,
		         fuzz_tables[i].count * 2 - 1, marks);
		REQUIRE(sqlite3_prepare_v2(database, query, -1, &inserts[i], NULL) == SQLITE_OK);
	}
}

static void write_rows(const uint8_t *data, size_t size)
{
	struct source source = {data, data + size};
	sqlite3_int64 length;
	unsigned char *image;

	if (!database)
		make_tables();
	REQUIRE(sqlite3_exec(database, "begin", NULL, NULL, NULL) == SQLITE_OK);
	while (source.at < source.end) {
		size_t table = take(&source, 1) % FUZZ_TABLE_COUNT;

		for (int i = 0; i < fuzz_tables[table].count; i++)
			bind_value(inserts[table], i + 1, &source);
		sqlite3_step(inserts[table]);
		sqlite3_reset(inserts[table]);
	}
	REQUIRE(sqlite3_exec(database, "commit", NULL, NULL, NULL) == SQLITE_OK);
	image = sqlite3_serialize(database, "main", &length, 0);
	REQUIRE(image);
	write_file(image, (size_t)length);
	sqlite3_free(image);
	for (int i = 0; i < FUZZ_TABLE_COUNT; i++) {
		char query[128];

		snprintf(query, sizeof(query), "delete from %s", fuzz_tables[i].name);
		sqlite3_exec(database, query, NULL, NULL, NULL);
	}
}

/* What model.h promises of operations and threads. */
static void check_model(const struct model *model)
{
	const struct device *device;
	const struct thread *thread;

	array_for_each (device, &model->devices) {
		for (size_t i = 0; i < device->ops.count; i++) {
			const struct gpu_op *op = &device->ops.items[i];

			REQUIRE(op->end_ns >= op->start_ns && op->process < model->processes.count);
			REQUIRE(op->start_ns >= model->start_ns && op->end_ns <= model->end_ns);
			REQUIRE(op->name < model->strings.count || !op->name);
			REQUIRE(!i || op[-1].start_ns <= op->start_ns);
			if (op->launch_thread == MODEL_NONE)
				continue;
			REQUIRE(op->launch_thread < model->threads.count);
			REQUIRE(op->launch_call < model->threads.items[op->launch_thread].calls.count);
		}
	}
	array_for_each (thread, &model->threads) {
		for (size_t i = 0; i < thread->offcpu.count; i++) {
			const struct offcpu *offcpu = &thread->offcpu.items[i];

			REQUIRE(offcpu->out_ns <= offcpu->wake_ns && offcpu->wake_ns <= offcpu->in_ns);
			REQUIRE(!i || offcpu[-1].in_ns <= offcpu->out_ns);
		}
		for (size_t i = 0; i < thread->overhead.count; i++) {
			const struct overhead *overhead = &thread->overhead.items[i];

			REQUIRE(overhead->start_ns <= overhead->end_ns);
			REQUIRE(!i || overhead[-1].end_ns <= overhead->start_ns);
		}
		REQUIRE(thread->process < model->processes.count);
	}
}

static void check_analysis(const struct model *model)
{
	struct analysis_options options = {.device = -1};
	struct analysis analysis = {0};
	const struct device_report *device;
	struct error error = {0};

	REQUIRE(analysis_run(&analysis, model, &options, &error) == 0);
	array_for_each (device, &analysis.devices) {
		const struct cause *cause;
		uint64_t sum = 0;

		array_for_each (cause, &device->causes)
			sum += cause->ns;
		REQUIRE(sum == device->idle_ns);
		REQUIRE(device->queued_ns + device->late_ns + device->unknown_ns == device->idle_ns);
	}
	analysis_free(&analysis);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = {0};
	struct model model;
	int rc;

	if (!path[0])
		make_path();
	if (!size)
		return 0;
	if (data[0] % FUZZ_FORM_COUNT == FUZZ_ROWS)
		write_rows(data + 1, size - 1);
	else
		write_file(data + 1, size - 1);
	rc = import_nsys(&model, path, NULL, &error);
	REQUIRE(rc <= 0 && (rc == 0) == (error.code == 0) && !strchr(error.text, '\n'));
	if (!rc) {
		check_model(&model);
		check_analysis(&model);
	}
	model_free(&model);
	return 0;
}
