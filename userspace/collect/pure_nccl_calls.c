// SPDX-License-Identifier: GPL-2.0-only
#include "collect/pure_nccl_calls.h"

#include <stddef.h>
#include <string.h>

#include "bpf/events.h"
#include "bpf/settings.h"

#define AT(number) (CALL_PLACE_ARGUMENT + (number))
#define NONE       CALL_PLACE_NONE

static const struct {
	const char *name;
	uint8_t function, count, type, peer, comm, stream;
} table[] = {
    {"ncclAllReduce", WIRE_NCCL_ALL_REDUCE, AT(2), AT(3), NONE, AT(5), AT(6)},
    {"ncclReduce", WIRE_NCCL_REDUCE, AT(2), AT(3), AT(5), AT(6), AT(7)},
    {"ncclBroadcast", WIRE_NCCL_BROADCAST, AT(2), AT(3), AT(4), AT(5), AT(6)},
    {"ncclBcast", WIRE_NCCL_BCAST, AT(1), AT(2), AT(3), AT(4), AT(5)},
    {"ncclAllGather", WIRE_NCCL_ALL_GATHER, AT(2), AT(3), NONE, AT(4), AT(5)},
    {"ncclReduceScatter", WIRE_NCCL_REDUCE_SCATTER, AT(2), AT(3), NONE, AT(5), AT(6)},
    {"ncclAlltoAll", WIRE_NCCL_ALL_TO_ALL, AT(2), AT(3), NONE, AT(4), AT(5)},
    {"ncclGather", WIRE_NCCL_GATHER, AT(2), AT(3), AT(4), AT(5), AT(6)},
    {"ncclScatter", WIRE_NCCL_SCATTER, AT(2), AT(3), AT(4), AT(5), AT(6)},
    {"ncclSend", WIRE_NCCL_SEND, AT(1), AT(2), AT(3), AT(4), AT(5)},
    {"ncclRecv", WIRE_NCCL_RECV, AT(1), AT(2), AT(3), AT(4), AT(5)},
    {"ncclGroupStart", WIRE_NCCL_GROUP_START, NONE, NONE, NONE, NONE, NONE},
    {"ncclGroupEnd", WIRE_NCCL_GROUP_END, NONE, NONE, NONE, NONE, NONE},
    {"ncclCommInitRank", WIRE_NCCL_INIT, NONE, NONE, NONE, NONE, NONE},
    {"ncclCommInitRankConfig", WIRE_NCCL_INIT, NONE, NONE, NONE, NONE, NONE},
    {"ncclCommInitRankScalable", WIRE_NCCL_INIT_SCALABLE, NONE, NONE, NONE, NONE, NONE},
    {"ncclCommSplit", WIRE_NCCL_SPLIT, NONE, NONE, NONE, NONE, NONE},
    {"ncclCommDestroy", WIRE_NCCL_DESTROY, NONE, NONE, NONE, AT(0), NONE},
    {"ncclCommAbort", WIRE_NCCL_DESTROY, NONE, NONE, NONE, AT(0), NONE},
};

uint64_t nccl_call_cookie(const char *name, bool *creates)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(name, table[i].name))
			continue;
		*creates = table[i].function >= WIRE_NCCL_INIT && table[i].function <= WIRE_NCCL_SPLIT;
		return NCCL_COOKIE(table[i].function, table[i].count, table[i].type, table[i].peer,
		                   table[i].comm, table[i].stream);
	}
	return 0;
}
