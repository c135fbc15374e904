/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CUDA API functions and what they do to a host thread: the one table behind uprobes, imports and
 * attribution.
 */
#ifndef WHYIDLE_MODEL_CUDA_CALL_H
#define WHYIDLE_MODEL_CUDA_CALL_H

#include <stdbool.h>
#include <stddef.h>

enum cuda_class {
	CUDA_OTHER,
	CUDA_LAUNCH, /* kernel launch */
	CUDA_GRAPH_LAUNCH,
	CUDA_COPY, /* memcpy family, also the asynchronous ones */
	CUDA_MEMSET,
	CUDA_SYNC,          /* waits until the device, a stream or an event is done */
	CUDA_QUERY,         /* asks for the same without waiting */
	CUDA_EVENT,         /* records an event or makes a stream wait for one */
	CUDA_ALLOC,         /* device memory: malloc, free, pools, mapping */
	CUDA_HOST_ALLOC,    /* pinned memory: alloc, register, free */
	CUDA_MODULE,        /* loads or links code */
	CUDA_HOST_FUNCTION, /* queues a host function on a stream */
};

struct cuda_function {
	const char *name; /* stem: without _v2, _v3020, _ptsz, _ptds */
	enum cuda_class class;
	bool both_ends; /* worth an entry and a return probe, for its length or (queries) for its result;
	                   launches get the entry only */
};

extern const struct cuda_function cuda_functions[];
extern const size_t cuda_function_count;

/*
 * Entry of the table for an exported symbol ("cuMemcpyHtoD_v2_ptds"), a CUPTI callback name
 * ("cudaLaunchKernel_v7000") or a HIP runtime function in an imported trace ("hipLaunchKernel"). NULL if it
 * is not in the table.
 */
const struct cuda_function *cuda_function_find(const char *symbol);

/*
 * Bytes of a function's name without the version that CUPTI appends to those of the runtime: of
 * "cudaLaunchKernel_v7000" the first 16. ("_v2" is part of a driver function's name.)
 */
size_t cuda_name_length(const char *function);

/* Class of the same, CUDA_OTHER if it is not in the table. */
enum cuda_class cuda_classify(const char *symbol);

/* True if calls of this class put an operation on a stream that carries the call's correlation id. */
bool cuda_class_submits(enum cuda_class class);

#endif
