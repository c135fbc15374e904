/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the simulated libcuda share beside the engine.
 */
#ifndef WHYIDLE_SIM_DRIVER_H
#define WHYIDLE_SIM_DRIVER_H

#include "tests/sim/calls.h"
#include "tests/sim/cuda/engine.h"

#define SIM_CUDA_VERSION 13000

/* Body of an exported function: `expression` gives its result and runs inside the recorded call. */
#define SIM_TRACED(function, expression)                                                                     \
	do {                                                                                                 \
		struct sim_call call;                                                                        \
                                                                                                             \
		simCallEnter(&call, CUPTI_ABI_DOMAIN_DRIVER, CBID_##function);                               \
		return simCallExit(&call, (int)(expression));                                                \
	} while (0)

const struct sim_tracer *sim_tracer(void); /* NULL: none */
uint32_t sim_correlation(void);            /* of the call that this thread is in */

/* False before cuInit and in a child forked after it. */
bool sim_ready(void);

/* The calling thread's context, NULL if it has none or CUDA cannot be used; then *error says which. */
struct sim_context *sim_current_context(CUresult *error);

/* The stream behind a handle, which may be NULL for the default stream. NULL with *error if there is none. */
struct sim_stream *sim_find_stream(CUstream handle, CUresult *error);
struct sim_stream *sim_new_stream(struct sim_context *context, unsigned int flags);

/*
 * The real driver holds its context's lock over an allocation, however long that takes, and every launch
 * takes the lock too: a thread that launches waits for one that allocates.
 */
void sim_api_lock(void);
void sim_api_unlock(void);

/* memory.c: the caller is kept for that long; long times are slept in the kernel, as the real driver does. */
void sim_take_time(uint64_t duration_ns);
enum sim_memory {
	SIM_MEMORY_NONE,
	SIM_MEMORY_DEVICE,
	SIM_MEMORY_PINNED,
	SIM_MEMORY_REGISTERED,
};
/* What [pointer, pointer + bytes) lies in as a whole. */
enum sim_memory sim_memory_kind(const void *pointer, size_t bytes);

/* launch.c: adds an operation to the graph that a stream records. */
CUresult sim_capture(struct sim_stream *stream, const struct sim_work *work);

#endif
