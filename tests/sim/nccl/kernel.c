/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/sim/nccl/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES   128
#define KERNELS_MOST 256

/* A kernel under way. */
struct kernel {
	struct sim_meeting meeting; /* first */
	ncclComm_t comm;
	struct nccl_log log;
	bool collective; /* all ranks meet, in number `seq`; else only the pairs of its calls */
	uint64_t seq;
	size_t count;
	struct {
		uint32_t peer;
		bool sends;
		uint64_t seq;
	} messages[];
};

static struct {
	char name[NAME_BYTES];
	CUfunction function;
} functions[KERNELS_MOST];
static pthread_mutex_t functions_lock = PTHREAD_MUTEX_INITIALIZER;

const char *nccl_operation_name(enum nccl_operation operation)
{
	static const char *const names[NCCL_OPERATIONS] = {
	    "AllReduce",     "Reduce",   "Broadcast", "AllGather",
	    "ReduceScatter", "AlltoAll", "SendRecv",  "SendRecv",
	};

	return names[operation];
}

static size_t type_bytes(ncclDataType_t type)
{
	static const uint8_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

	return (size_t)type < sizeof(bytes) ? bytes[type] : 1;
}

/* The names of NCCL's kernels, mangled as CUPTI gives them. */
static void kernel_name(char *name, const struct nccl_call *call)
{
	static const char *const types[] = {"i8",  "u8",  "i32", "u32", "i64",
	                                    "u64", "f16", "f32", "f64", "bf16"};
	static const char *const reductions[] = {"Sum", "Prod", "MinMax", "MinMax", "PreMulSum"};
	const char *operation = nccl_operation_name(call->operation);
	char text[NAME_BYTES / 2];

	switch (call->operation) {
	case NCCL_ALL_REDUCE:
	case NCCL_REDUCE:
	case NCCL_REDUCE_SCATTER:
		snprintf(text, sizeof(text), "ncclDevKernel_%s_%s_%s_RING_LL", operation,
		         reductions[call->reduction], types[call->type]);
		break;
	case NCCL_SEND:
	case NCCL_RECV:
		snprintf(text, sizeof(text), "ncclDevKernel_%s", operation);
		break;
	default:
		snprintf(text, sizeof(text), "ncclDevKernel_%s_RING_LL", operation);
	}
	snprintf(name, NAME_BYTES, "_Z%zu%s24ncclDevKernelArgsStorageILm4096EE", strlen(text), text);
}

static CUfunction find_function(const char *name)
{
	CUfunction found = NULL;

	pthread_mutex_lock(&functions_lock);
	for (size_t i = 0; i < KERNELS_MOST && !found; i++) {
		if (functions[i].function && strcmp(functions[i].name, name))
			continue;
		if (!functions[i].function) {
			snprintf(functions[i].name, NAME_BYTES, "%s", name);
			functions[i].function = simKernelCreateMeeting(name);
		}
		found = functions[i].function;
	}
	pthread_mutex_unlock(&functions_lock);
	return found;
}

/* ---- the meeting ---- */

static void arrive(struct sim_meeting *meeting, uint64_t start_ns)
{
	struct kernel *kernel = (struct kernel *)meeting;

	kernel->log.start_ns = start_ns;
	if (kernel->collective)
		team_arrive(&kernel->comm->team, kernel->seq, start_ns);
	for (size_t i = 0; i < kernel->count; i++)
		team_message(&kernel->comm->team, kernel->messages[i].peer, kernel->messages[i].sends,
		             kernel->messages[i].seq, start_ns);
}

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 31) * 0x9e3779b97f4a7c15ULL;
	return value ^ value >> 29;
}

static uint64_t transfer_ns(const struct kernel *kernel)
{
	uint64_t speed = simOption("SIM_NCCL_MBPS", 50000), skew = simOption("SIM_NCCL_SKEW_NS", 3000);
	uint64_t time = simOption("SIM_NCCL_BASE_NS", 20000) + kernel->log.bytes * 1000 / (speed ? speed : 1);

	/* The same in every run. */
	return time + (skew ? mix(kernel->seq * TEAM_RANKS + kernel->comm->team.rank + 1) % skew : 0);
}

static uint64_t meeting_end(struct sim_meeting *meeting)
{
	struct kernel *kernel = (struct kernel *)meeting;
	uint64_t last = 0;
	uint32_t late = 0;

	kernel->log.last_ns = kernel->log.start_ns;
	kernel->log.late = kernel->comm->team.rank;
	if (kernel->collective) {
		if (!team_complete(&kernel->comm->team, kernel->seq, &last, &late))
			return UINT64_MAX;
		kernel->log.last_ns = last;
		kernel->log.late = late;
	}
	for (size_t i = 0; i < kernel->count; i++) {
		if (!team_passed(&kernel->comm->team, kernel->messages[i].peer, kernel->messages[i].sends,
		                 kernel->messages[i].seq, &last, &late))
			return UINT64_MAX;
		if (last > kernel->log.last_ns) {
			kernel->log.last_ns = last;
			kernel->log.late = late;
		}
	}
	kernel->log.end_ns = kernel->log.last_ns + transfer_ns(kernel);
	return kernel->log.end_ns;
}

static void keep_log(ncclComm_t comm, const struct nccl_log *log)
{
	if (comm->log_count == comm->log_capacity) {
		size_t capacity = comm->log_capacity ? 2 * comm->log_capacity : 1024;
		struct nccl_log *more = realloc(comm->log, capacity * sizeof(*more));

		if (!more)
			return;
		comm->log = more;
		comm->log_capacity = capacity;
	}
	comm->log[comm->log_count++] = *log;
}

static void over(struct sim_meeting *meeting)
{
	struct kernel *kernel = (struct kernel *)meeting;
	ncclComm_t comm = kernel->comm;

	pthread_mutex_lock(&comm->lock);
	keep_log(comm, &kernel->log);
	comm->pending--;
	pthread_cond_broadcast(&comm->quiet);
	pthread_mutex_unlock(&comm->lock);
	free(kernel);
}

/* ---- launching ---- */

static void add_call(struct kernel *kernel, const struct nccl_call *call)
{
	ncclComm_t comm = kernel->comm;
	uint64_t bytes = call->count * type_bytes(call->type);

	if (call->operation == NCCL_SEND || call->operation == NCCL_RECV) {
		bool sends = call->operation == NCCL_SEND;

		kernel->messages[kernel->count].peer = call->peer;
		kernel->messages[kernel->count].sends = sends;
		kernel->messages[kernel->count++].seq =
		    sends ? comm->sends[call->peer]++ : comm->receives[call->peer]++;
	} else if (!kernel->collective) {
		kernel->collective = true;
		kernel->seq = comm->collectives++;
	}
	kernel->log.bytes += bytes;
}

ncclResult_t kernel_launch(const struct nccl_call *calls, size_t count)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel) + count * sizeof(kernel->messages[0]));
	void *argument = kernel;
	char name[NAME_BYTES];
	CUfunction function;
	CUresult error;

	kernel_name(name, &calls[0]);
	function = find_function(name);
	if (!kernel || !function) {
		free(kernel);
		return ncclSystemError;
	}
	kernel->meeting = (struct sim_meeting){arrive, meeting_end, over};
	kernel->comm = calls[0].comm;
	kernel->log.operation = calls[0].operation;
	kernel->log.calls = (uint32_t)count;
	pthread_mutex_lock(&kernel->comm->lock);
	for (size_t i = 0; i < count; i++)
		add_call(kernel, &calls[i]);
	kernel->comm->pending++;
	pthread_mutex_unlock(&kernel->comm->lock);
	error = cuLaunchKernel(function, 16, 1, 1, 512, 1, 1, 0, calls[0].stream, &argument, NULL);
	/* The numbers are given out: after a failure the ranks no longer agree, as with NCCL. */
	if (error)
		over(&kernel->meeting);
	return error ? ncclUnhandledCudaError : ncclSuccess;
}

void kernel_drain(ncclComm_t comm)
{
	pthread_mutex_lock(&comm->lock);
	while (comm->pending)
		pthread_cond_wait(&comm->quiet, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}
