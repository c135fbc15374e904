/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_TESTS_FUZZ_NSYS_H
#define WHYIDLE_TESTS_FUZZ_NSYS_H

/* What an input is after its first byte, which is one of these. */
enum fuzz_form {
	FUZZ_FILE = 0, /* an SQLite file */
	FUZZ_ROWS =
	    1, /* rows of an export: the number of a table, then for each column a kind and the value */
	FUZZ_FORM_COUNT = 2,
};

/* Kinds of values. */
enum fuzz_value {
	FUZZ_NULL = 0,
	FUZZ_BYTE = 1,   /* a byte follows */
	FUZZ_SHORT = 2,  /* two */
	FUZZ_LONG = 3,   /* eight */
	FUZZ_THREAD = 4, /* two: a process and a thread */
	FUZZ_TEXT = 5,   /* a length and that many bytes */
	FUZZ_FLOAT = 6,  /* eight */
	FUZZ_VALUE_COUNT = 7,
};

/* Numbers of the tables. */
enum fuzz_table {
	FUZZ_STRINGS,
	FUZZ_RUNTIME,
	FUZZ_KERNEL,
	FUZZ_MEMCPY,
	FUZZ_MEMSET,
	FUZZ_GRAPH,
	FUZZ_SYNC,
	FUZZ_OVERHEAD,
	FUZZ_NVTX,
	FUZZ_SCHED,
	FUZZ_OSRT,
	FUZZ_CUDA_DEVICE,
	FUZZ_GPU,
	FUZZ_PROCESSES,
	FUZZ_THREADS,
	FUZZ_TABLE_COUNT,
};

#define FUZZ_COLUMNS_MAX 12

/* The columns of no affinity keep a value of any type as it is. */
static const struct {
	const char *name, *columns;
	int count;
} fuzz_tables[FUZZ_TABLE_COUNT] = {
    [FUZZ_STRINGS] = {"StringIds", "id, value", 2},
    [FUZZ_RUNTIME] = {"CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, globalTid, correlationId, nameId", 5},
    [FUZZ_KERNEL] = {"CUPTI_ACTIVITY_KIND_KERNEL",
                     "start, end, deviceId, streamId, correlationId, globalPid, demangledName, graphNodeId",
                     8},
    [FUZZ_MEMCPY] = {"CUPTI_ACTIVITY_KIND_MEMCPY",
                     "start, end, deviceId, streamId, correlationId, globalPid, bytes, copyKind, srcKind, "
                     "dstKind",
                     10},
    [FUZZ_MEMSET] = {"CUPTI_ACTIVITY_KIND_MEMSET",
                     "start, end, deviceId, streamId, correlationId, globalPid, bytes, memKind", 8},
    [FUZZ_GRAPH] = {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                    "start, end, deviceId, streamId, correlationId, globalPid, graphId", 7},
    [FUZZ_SYNC] = {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                   "start, end, globalPid, syncType, streamId, correlationId", 6},
    [FUZZ_OVERHEAD] = {"CUPTI_ACTIVITY_KIND_OVERHEAD", "start, end, globalTid, overheadType", 4},
    [FUZZ_NVTX] = {"NVTX_EVENTS", "start, end, text, globalTid, textId", 5},
    [FUZZ_SCHED] = {"SCHED_EVENTS", "start, cpu, isSchedIn, globalTid, threadState", 5},
    [FUZZ_OSRT] = {"OSRT_API", "start, end, globalTid, nameId", 4},
    [FUZZ_CUDA_DEVICE] = {"TARGET_INFO_CUDA_DEVICE", "gpuId, cudaId, pid", 3},
    [FUZZ_GPU] = {"TARGET_INFO_GPU", "id, name, uuid, cuDevice", 4},
    [FUZZ_PROCESSES] = {"PROCESSES", "globalPid, name", 2},
    [FUZZ_THREADS] = {"ThreadNames", "nameId, globalTid", 2},
};

#endif
