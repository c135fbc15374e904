/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the ranks of a communicator meet: shared memory that each has mapped.
 *
 * Each rank writes only its own places. A rank can be at most one collective ahead of another, and one
 * message ahead on a pair, since it waits for the other in each: TEAM_DEPTH places of each kind are enough.
 */
#ifndef WHYIDLE_SIM_NCCL_TEAM_H
#define WHYIDLE_SIM_NCCL_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEAM_RANKS 64
#define TEAM_DEPTH 4

struct team_pair {
	uint64_t sent, received; /* messages that the two came for */
	uint64_t sent_ns[TEAM_DEPTH], received_ns[TEAM_DEPTH];
};

/* What each rank said when the team was split, by the number of the split. */
struct team_split {
	uint32_t arrived; /* ranks, of all splits with this place; futex word */
	int32_t colors[TEAM_RANKS], keys[TEAM_RANKS];
};

struct team_memory {
	uint32_t joined; /* ranks; futex word */
	struct team_split splits[TEAM_DEPTH];
	uint32_t changes; /* +1 whenever something is complete; futex word */
	uint64_t arrived; /* at collectives, all ranks together */
	uint64_t arrival_ns[TEAM_RANKS][TEAM_DEPTH];
	struct team_pair pairs[TEAM_RANKS][TEAM_RANKS]; /* from, to */
};

struct team {
	struct team_memory *memory;
	uint32_t ranks, rank;
};

/* Maps the memory of that name and waits until all ranks have. False with errno if that failed. */
bool team_join(struct team *team, const char *name, uint32_t ranks, uint32_t rank);
void team_leave(struct team *team);

/*
 * Split number `number` of this team: waits until all ranks have said theirs. *ranks: those with this colour,
 * *rank: the place among them by key, then by rank.
 */
void team_split(struct team *team, uint32_t number, int32_t color, int32_t key, uint32_t *ranks,
                uint32_t *rank);

/* Collective number `seq` of this rank. */
void team_arrive(struct team *team, uint64_t seq, uint64_t now_ns);
/* True once all have arrived; then when the last one did, and who that was. */
bool team_complete(const struct team *team, uint64_t seq, uint64_t *last_ns, uint32_t *late);

/* The same for message number `seq` from one rank to another. */
void team_message(struct team *team, uint32_t peer, bool sends, uint64_t seq, uint64_t now_ns);
bool team_passed(const struct team *team, uint32_t peer, bool sends, uint64_t seq, uint64_t *last_ns,
                 uint32_t *late);

/* Blocks until `changes` is no longer `seen`; returns what it is. */
uint32_t team_wait(struct team *team, uint32_t seen);
/* Wakes all who wait. */
void team_wake(struct team *team);

#endif
