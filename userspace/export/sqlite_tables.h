/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private to the SQLite writer: the tables of the file. Those of Nsight Systems have its columns in its
 * order (schema 3.24); the others are ours.
 */
#ifndef WHYIDLE_EXPORT_SQLITE_TABLES_H
#define WHYIDLE_EXPORT_SQLITE_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#define SCHEMA_VERSION_MAJOR "3"
#define SCHEMA_VERSION_MINOR "24"
#define SCHEMA_VERSION_MICRO "14"

enum sqlite_table {
	TABLE_STRINGS,
	TABLE_KERNEL,
	TABLE_MEMCPY,
	TABLE_MEMSET,
	TABLE_GRAPH,
	TABLE_RUNTIME,
	TABLE_SYNCHRONIZATION,
	TABLE_OVERHEAD,
	TABLE_NVTX,
	TABLE_SCHED,
	TABLE_OSRT,
	TABLE_PROCESSES,
	TABLE_THREAD_NAMES,
	TABLE_GPU,
	TABLE_CUDA_DEVICE,
	TABLE_DETAILS,
	TABLE_EXPORT,
	TABLE_CAPTURE,
	TABLE_OUR_GPUS,
	TABLE_OUR_GAPS,
	TABLE_OUR_CAUSES,
	TABLE_OUR_WAITS,
	TABLE_COUNT
};

struct sqlite_table_spec {
	const char *name;
	const char *columns; /* as in CREATE TABLE, one a comma */
	bool always;         /* made even if it stays empty */
};

extern const struct sqlite_table_spec sqlite_tables[TABLE_COUNT];

/* Values that columns refer to, in tables ENUM_… with the columns id, name and label. */
struct sqlite_enum_value {
	const char *table;
	int id;
	const char *name, *label;
};

extern const struct sqlite_enum_value sqlite_enum_values[];
extern const size_t sqlite_enum_value_count;

/* Statements that make the indices, one after the other. */
extern const char *const sqlite_indices[];
extern const size_t sqlite_index_count;

/* Values of enumerations that the writer uses. */
#define NSYS_CLASS_CUDA_RUNTIME        0
#define NSYS_CLASS_CUDA_DRIVER         1
#define NSYS_CLASS_OS_RUNTIME          27
#define NSYS_CLASS_CUDA_OVERHEAD       103
#define NSYS_TYPE_NVTX_CATEGORY        33
#define NSYS_TYPE_NVTX_RANGE           59
#define NSYS_TYPE_NVTX_STARTED         60
#define NSYS_THREAD_RUNNING            1 /* off the CPU, but it could run */
#define NSYS_THREAD_WAITING            7
#define NSYS_OVERHEAD_INSTRUMENTATION  4
#define NSYS_OVERHEAD_FUNCTION_LOADING 7
#define NSYS_LAUNCH_REGULAR            1
#define NSYS_MEMORY_UNKNOWN            7

#endif
