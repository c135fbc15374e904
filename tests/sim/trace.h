/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the simulated libcuda and libcudart tell the simulated libcupti what happens. It stands for the private
 * interface between NVIDIA's driver and CUPTI.
 *
 * Correlation ids: each outermost API call of a thread takes a new one; calls inside it (a driver call made
 * by the runtime) and the operations that it submits share that id. A call inside one that makes a record
 * makes none of its own, as was seen with CUDA 13.0 (docs/bridge.md); one whose enclosing call is not wanted
 * does.
 */
#ifndef WHYIDLE_SIM_TRACE_H
#define WHYIDLE_SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/cupti_abi.h"
#include "tests/sim/cuda_sim.h"

#pragma GCC visibility push(default)

/* An API call under way; lives on the caller's stack. */
struct sim_call {
	uint64_t start;        /* tracer's time, 0: makes no record */
	uint32_t domain, cbid; /* CUPTI's numbers */
	uint32_t correlation;
};

enum sim_operation_kind {
	SIM_KERNEL,
	SIM_COPY,
	SIM_MEMSET,
	SIM_MARKER, /* event record or wait: takes no time and gives no record */
};

/*
 * What a kernel of the simulated NCCL waits for: it begins like others, but ends when this says so. Both are
 * called with the engine's lock held and must not block; the object must outlive the kernel.
 */
struct sim_meeting {
	/* The kernel begins at start_ns, which may be a little ahead. */
	void (*arrive)(struct sim_meeting *meeting, uint64_t start_ns);
	/* When it ends; UINT64_MAX: somebody is still missing. */
	uint64_t (*end)(struct sim_meeting *meeting);
	/* It has ended: the last call. */
	void (*over)(struct sim_meeting *meeting);
};

/* What the device does. */
struct sim_work {
	enum sim_operation_kind kind;
	uint64_t duration_ns;
	uint64_t floor_ns; /* least distance from the operation before in its stream */
	const char *name;  /* kernels */
	uint32_t grid[3], block[3], shared_bytes;
	void *target;
	const void *source;
	uint64_t bytes;
	uint8_t copy_kind, source_kind, target_kind; /* CUPTI_ABI_MEMCPY_*, CUPTI_ABI_MEMORY_* */
	uint8_t value;                               /* memset */
	bool asynchronous;
	void *staging;                    /* freed once done, or NULL */
	uint64_t copy_offset, copy_bytes; /* of the copy that it is a piece of; 0, 0: it is a whole one */
	uint32_t graph;
	uint64_t graph_node;
	struct sim_meeting *meeting; /* NULL: it takes duration_ns */
};

/* A finished operation, on CLOCK_MONOTONIC. */
struct sim_operation {
	const struct sim_work *work;
	uint64_t submit_ns, start_ns, end_ns;
	uint32_t device, context, stream, correlation;
};

struct sim_synchronization {
	uint64_t start, end; /* tracer's time */
	uint32_t type;       /* CUPTI_ABI_SYNC_* */
	uint32_t context, stream, event, correlation;
	int result;
};

struct sim_device_info {
	char name[64];
	uint8_t uuid[16];
	uint64_t memory_bytes;
	uint32_t multiprocessors;
	uint32_t compute_major, compute_minor;
	uint32_t clock_khz;
};

struct sim_tracer {
	uint64_t (*now)(void);
	bool (*wants_call)(uint32_t domain, uint32_t cbid);
	bool (*wants_synchronization)(void);
	/* Begin and end (CUPTI_ABI_API_*) of every call, also of those inside others. */
	void (*callback)(uint32_t domain, uint32_t cbid, uint32_t site);
	void (*call)(const struct sim_call *call, uint64_t end, int result);
	void (*synchronization)(const struct sim_synchronization *synchronization);
	void (*operation)(const struct sim_operation *operation);
};

/* NULL: none. The tracer must stay valid for ever: calls may be under way. */
void simTraceAttach(const struct sim_tracer *tracer);

/* Around every API call. simCallExit returns `result`. */
void simCallEnter(struct sim_call *call, uint32_t domain, uint32_t cbid);
int simCallExit(const struct sim_call *call, int result);

/* The number in an environment variable, `otherwise` if there is none. */
uint64_t simOption(const char *name, uint64_t otherwise);

/* A kernel whose one argument (params[0]) is a struct sim_meeting. NULL: no memory. */
CUfunction simKernelCreateMeeting(const char *name);
/* Somebody came to a meeting: kernels that wait are looked at again. */
void simMeetingsChanged(void);
/* A thread that stands for a piece of hardware: it takes no signals, may run on any CPU and goes first.
 * Returns 0 or an errno. */
int simHardwareThread(const char *name, void *(*run)(void *), void *argument);

/* Number of devices, 0 if CUDA cannot be used in this process; does not initialise CUDA. */
uint32_t simDeviceCount(void);
void simDeviceInfo(uint32_t device, struct sim_device_info *info);

#pragma GCC visibility pop

#endif
