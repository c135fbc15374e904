/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to the stand-in of NCCL: communicators, and the kernels in which their ranks meet. */
#ifndef WHYIDLE_SIM_NCCL_KERNEL_H
#define WHYIDLE_SIM_NCCL_KERNEL_H

#include <pthread.h>

#include "tests/sim/nccl/team.h"
#include "tests/sim/nccl_sim.h"
#include "tests/sim/trace.h"

enum nccl_operation {
	NCCL_ALL_REDUCE,
	NCCL_REDUCE,
	NCCL_BROADCAST,
	NCCL_ALL_GATHER,
	NCCL_REDUCE_SCATTER,
	NCCL_ALL_TO_ALL,
	NCCL_SEND,
	NCCL_RECV,
	NCCL_OPERATIONS
};

/* One call of the program. */
struct nccl_call {
	enum nccl_operation operation;
	ncclRedOp_t reduction;
	ncclDataType_t type;
	size_t count;
	uint32_t peer; /* send and receive */
	ncclComm_t comm;
	cudaStream_t stream;
};

/* What is known of a kernel when it is over. */
struct nccl_log {
	uint64_t start_ns, last_ns, end_ns;
	uint64_t bytes;
	enum nccl_operation operation; /* of its first call */
	uint32_t late;                 /* rank that came last */
	uint32_t calls;
};

struct ncclComm {
	struct team team;
	char name[NCCL_UNIQUE_ID_BYTES + 1];
	uint64_t collectives; /* numbers given out */
	uint32_t splits;
	uint64_t sends[TEAM_RANKS], receives[TEAM_RANKS];
	pthread_mutex_t lock;
	pthread_cond_t quiet;
	uint32_t pending;      /* kernels that are not over; lock */
	bool closing, watched; /* the watch is to end; runs. lock */
	struct nccl_log *log;  /* lock */
	size_t log_count, log_capacity;
};

/* Launches one kernel for calls on the same communicator and stream. */
ncclResult_t kernel_launch(const struct nccl_call *calls, size_t count);

/* Waits until no kernel of the communicator runs. */
void kernel_drain(ncclComm_t comm);

/* Writes the account where SIM_NCCL_TRUTH asks for it. */
void truth_write(const struct ncclComm *comm);

const char *nccl_operation_name(enum nccl_operation operation); /* "AllReduce" */

#endif
