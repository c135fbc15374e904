/* SPDX-License-Identifier: GPL-2.0-only */
/* The exported functions: communicators, groups, operations. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/clock.h"
#include "tests/sim/nccl/kernel.h"

static __thread unsigned int group_depth;
static __thread struct nccl_call *group_calls;
static __thread size_t group_count, group_capacity;

ncclResult_t ncclGetVersion(int *version)
{
	if (!version)
		return ncclInvalidArgument;
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[] = {
	    "no error",       "unhandled cuda error", "unhandled system error",
	    "internal error", "invalid argument",     "invalid usage",
	};

	return (size_t)result < sizeof(texts) / sizeof(texts[0]) ? texts[result] : "unknown result code";
}

/* ---- communicators ---- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	static uint32_t count;

	if (!id)
		return ncclInvalidArgument;
	memset(id, 0, sizeof(*id));
	snprintf(id->internal, sizeof(id->internal), "/whyidle-sim-nccl-%d-%u-%llu", (int)getpid(),
	         __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED),
	         (unsigned long long)clock_ns(CLOCK_MONOTONIC));
	return ncclSuccess;
}

/* Tells the device when others have come, as its network would. */
static void *watch(void *argument)
{
	ncclComm_t comm = argument;
	uint32_t seen = 0;
	bool closing = false;

	while (!closing) {
		seen = team_wait(&comm->team, seen);
		simMeetingsChanged();
		pthread_mutex_lock(&comm->lock);
		closing = comm->closing;
		pthread_mutex_unlock(&comm->lock);
	}
	pthread_mutex_lock(&comm->lock);
	comm->watched = false;
	pthread_cond_broadcast(&comm->quiet);
	pthread_mutex_unlock(&comm->lock);
	return NULL;
}

static ncclResult_t make_comm(ncclComm_t *result, int nranks, const char *name, int rank)
{
	ncclComm_t comm;
	CUcontext context;

	if (!result || nranks < 1 || nranks > TEAM_RANKS || rank < 0 || rank >= nranks || !*name)
		return ncclInvalidArgument;
	if (cuCtxGetCurrent(&context))
		return ncclUnhandledCudaError;
	comm = calloc(1, sizeof(*comm));
	if (!comm)
		return ncclSystemError;
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->quiet, NULL);
	memcpy(comm->name, name, strnlen(name, NCCL_UNIQUE_ID_BYTES));
	if (!team_join(&comm->team, comm->name, (uint32_t)nranks, (uint32_t)rank)) {
		free(comm);
		return ncclSystemError;
	}
	comm->watched = true;
	if (simHardwareThread("sim-nccl", watch, comm)) {
		team_leave(&comm->team);
		free(comm);
		return ncclSystemError;
	}
	*result = comm;
	return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	return make_comm(comm, nranks, id.internal, rank);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
	(void)config;
	return make_comm(comm, nranks, id.internal, rank);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *result, ncclConfig_t *config)
{
	char name[NCCL_UNIQUE_ID_BYTES + 32];
	uint32_t number, ranks, rank;

	(void)config;
	if (!comm || !result || (color < 0 && color != NCCL_SPLIT_NOCOLOR))
		return ncclInvalidArgument;
	number = comm->splits++;
	team_split(&comm->team, number, color, key, &ranks, &rank);
	*result = NULL;
	if (color == NCCL_SPLIT_NOCOLOR)
		return ncclSuccess;
	snprintf(name, sizeof(name), "%s.%u.%d", comm->name, number, color);
	return make_comm(result, (int)ranks, name, (int)rank);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	if (!comm)
		return ncclInvalidArgument;
	kernel_drain(comm);
	truth_write(comm);
	pthread_mutex_lock(&comm->lock);
	comm->closing = true;
	/* Others look and find nothing new. */
	team_wake(&comm->team);
	while (comm->watched)
		pthread_cond_wait(&comm->quiet, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
	team_leave(&comm->team);
	free(comm->log);
	free(comm);
	return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
	if (!comm || !count)
		return ncclInvalidArgument;
	*count = (int)comm->team.ranks;
	return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
	if (!comm || !rank)
		return ncclInvalidArgument;
	*rank = (int)comm->team.rank;
	return ncclSuccess;
}

/* ---- groups ---- */

ncclResult_t ncclGroupStart(void)
{
	group_depth++;
	return ncclSuccess;
}

static bool belong_together(const struct nccl_call *a, const struct nccl_call *b)
{
	return a->comm == b->comm && a->stream == b->stream;
}

/* Launches the first call that is left with all that belong to it; they go out of the list. */
static ncclResult_t launch_first(void)
{
	struct nccl_call *calls = calloc(group_count, sizeof(*calls));
	size_t count = 0, kept = 0;
	ncclResult_t result;

	if (!calls)
		return ncclSystemError;
	for (size_t i = 0; i < group_count; i++) {
		if (!count || belong_together(&calls[0], &group_calls[i]))
			calls[count++] = group_calls[i];
		else
			group_calls[kept++] = group_calls[i];
	}
	group_count = kept;
	result = kernel_launch(calls, count);
	free(calls);
	return result;
}

ncclResult_t ncclGroupEnd(void)
{
	ncclResult_t result = ncclSuccess;

	if (!group_depth)
		return ncclInvalidUsage;
	if (--group_depth)
		return ncclSuccess;
	while (group_count && !result)
		result = launch_first();
	group_count = 0;
	return result;
}

static ncclResult_t enqueue(const struct nccl_call *call)
{
	if (!call->comm || (size_t)call->type > ncclBfloat16 || call->peer >= call->comm->team.ranks)
		return ncclInvalidArgument;
	if (!group_depth)
		return kernel_launch(call, 1);
	if (group_count == group_capacity) {
		size_t capacity = group_capacity ? 2 * group_capacity : 16;
		struct nccl_call *more = realloc(group_calls, capacity * sizeof(*more));

		if (!more)
			return ncclSystemError;
		group_calls = more;
		group_capacity = capacity;
	}
	group_calls[group_count++] = *call;
	return ncclSuccess;
}

/* ---- operations ---- */

#define CALL(...)                                                                                            \
	&(struct nccl_call)                                                                                  \
	{                                                                                                    \
		.count = count, .type = type, .comm = comm, .stream = stream, __VA_ARGS__                    \
	}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)receive;
	return enqueue(CALL(.operation = NCCL_ALL_REDUCE, .reduction = operation));
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)receive, (void)root;
	return enqueue(CALL(.operation = NCCL_REDUCE, .reduction = operation));
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)receive, (void)root;
	return enqueue(CALL(.operation = NCCL_BROADCAST));
}

/* The older form, which sends from where it receives. */
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAlltoAll(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream)
{
	(void)send, (void)receive;
	return enqueue(CALL(.operation = NCCL_ALL_TO_ALL));
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)receive;
	return enqueue(CALL(.operation = NCCL_ALL_GATHER));
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)receive;
	return enqueue(CALL(.operation = NCCL_REDUCE_SCATTER, .reduction = operation));
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
	(void)send;
	return enqueue(CALL(.operation = NCCL_SEND, .peer = (uint32_t)peer));
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
	(void)receive;
	return enqueue(CALL(.operation = NCCL_RECV, .peer = (uint32_t)peer));
}
