/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What programs written for the simulated GPUs include for collectives: the part of NCCL's interface (names,
 * argument order and values as in NCCL 2) that the stand-in libnccl.so.2 of tests/sim provides.
 *
 * Ranks are processes of one machine, each with a device of its own; they meet in shared memory. Nothing is
 * computed and no bytes move: a collective is a kernel that starts as others do, goes on until those of all
 * ranks have started, and then for as long as the bytes would take. Its times are exact: the end is counted
 * from the last start, however late a host thread learns of it. As with NCCL, a rank that never comes makes
 * the others wait for ever.
 *
 * The calls of a group (ncclGroupStart … ncclGroupEnd) on one communicator and stream become one kernel.
 *
 * Environment, read at the first call (default):
 *
 *	SIM_NCCL_MBPS    bandwidth, MB/s (50000)
 *	SIM_NCCL_BASE_NS what every collective takes beside its bytes (20000)
 *	SIM_NCCL_SKEW_NS ranks leave a collective within this time of each other (3000)
 *	SIM_NCCL_TRUTH   folder for the account of each communicator and rank, COMMUNICATOR-RANK.json
 *
 * An account is written by ncclCommDestroy: per kernel when it started, when the last rank came and which it
 * was, when it ended, its operations and bytes (CLOCK_MONOTONIC), in the order in which they ended; and the
 *process.
 */
#ifndef WHYIDLE_SIM_NCCL_H
#define WHYIDLE_SIM_NCCL_H

#include "tests/sim/cuda_sim.h"

#define NCCL_UNIQUE_ID_BYTES 128
#define NCCL_SPLIT_NOCOLOR   (-1)
#define NCCL_MAJOR           2
#define NCCL_VERSION_CODE    22703

#pragma GCC visibility push(default)

typedef struct ncclComm *ncclComm_t;
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;
typedef struct ncclConfig ncclConfig_t; /* not looked at */

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
} ncclResult_t;

typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;

typedef enum {
	ncclInt8 = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclFloat32 = 7,
	ncclFloat64 = 8,
	ncclBfloat16 = 9,
} ncclDataType_t;

ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);

/* The id is a name that has not been used before; passing it on is up to the program. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
/* Blocks until all ranks have called it. The current device becomes the rank's. */
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
/* Blocks until all ranks of `comm` have called it. One communicator for each colour; NULL for no colour. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *result, ncclConfig_t *config);
/* Waits for what the communicator still does on this rank. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommCount(ncclComm_t comm, int *count);
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank);

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t ncclAlltoAll(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
/* In a group with each other, or alone. Only the two ranks meet. */
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);

#pragma GCC visibility pop

#endif
