/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/sim/nccl/team.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void sleep_on(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void wake_all(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool team_join(struct team *team, const char *name, uint32_t ranks, uint32_t rank)
{
	int file = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	uint32_t joined;

	*team = (struct team){.ranks = ranks, .rank = rank};
	if (file < 0)
		return false;
	if (ftruncate(file, sizeof(*team->memory))) {
		close(file);
		return false;
	}
	team->memory = mmap(NULL, sizeof(*team->memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (team->memory == MAP_FAILED)
		return false;
	joined = __atomic_add_fetch(&team->memory->joined, 1, __ATOMIC_SEQ_CST);
	/* Nobody needs the name any more: nothing is left behind, however the ranks end. */
	if (joined == ranks)
		shm_unlink(name);
	wake_all(&team->memory->joined);
	for (; joined < ranks; joined = __atomic_load_n(&team->memory->joined, __ATOMIC_SEQ_CST))
		sleep_on(&team->memory->joined, joined);
	return true;
}

void team_leave(struct team *team)
{
	munmap(team->memory, sizeof(*team->memory));
}

void team_wake(struct team *team)
{
	__atomic_add_fetch(&team->memory->changes, 1, __ATOMIC_SEQ_CST);
	wake_all(&team->memory->changes);
}

uint32_t team_wait(struct team *team, uint32_t seen)
{
	uint32_t now;

	while ((now = __atomic_load_n(&team->memory->changes, __ATOMIC_SEQ_CST)) == seen)
		sleep_on(&team->memory->changes, seen);
	return now;
}

void team_arrive(struct team *team, uint64_t seq, uint64_t now_ns)
{
	struct team_memory *memory = team->memory;

	__atomic_store_n(&memory->arrival_ns[team->rank][seq % TEAM_DEPTH], now_ns, __ATOMIC_SEQ_CST);
	if (__atomic_add_fetch(&memory->arrived, 1, __ATOMIC_SEQ_CST) == (seq + 1) * team->ranks)
		team_wake(team);
}

bool team_complete(const struct team *team, uint64_t seq, uint64_t *last_ns, uint32_t *late)
{
	const struct team_memory *memory = team->memory;

	if (__atomic_load_n(&memory->arrived, __ATOMIC_SEQ_CST) < (seq + 1) * team->ranks)
		return false;
	*last_ns = 0;
	for (uint32_t rank = 0; rank < team->ranks; rank++) {
		uint64_t arrival =
		    __atomic_load_n(&memory->arrival_ns[rank][seq % TEAM_DEPTH], __ATOMIC_SEQ_CST);

		if (arrival > *last_ns) {
			*last_ns = arrival;
			*late = rank;
		}
	}
	return true;
}

static struct team_pair *pair_of(const struct team *team, uint32_t peer, bool sends)
{
	return sends ? &team->memory->pairs[team->rank][peer] : &team->memory->pairs[peer][team->rank];
}

void team_message(struct team *team, uint32_t peer, bool sends, uint64_t seq, uint64_t now_ns)
{
	struct team_pair *pair = pair_of(team, peer, sends);
	uint64_t *times = sends ? pair->sent_ns : pair->received_ns,
	         *mine = sends ? &pair->sent : &pair->received;
	const uint64_t *other = sends ? &pair->received : &pair->sent;

	__atomic_store_n(&times[seq % TEAM_DEPTH], now_ns, __ATOMIC_SEQ_CST);
	__atomic_store_n(mine, seq + 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(other, __ATOMIC_SEQ_CST) > seq)
		team_wake(team);
}

bool team_passed(const struct team *team, uint32_t peer, bool sends, uint64_t seq, uint64_t *last_ns,
                 uint32_t *late)
{
	const struct team_pair *pair = pair_of(team, peer, sends);
	uint64_t mine, others;

	if (__atomic_load_n(&pair->sent, __ATOMIC_SEQ_CST) <= seq ||
	    __atomic_load_n(&pair->received, __ATOMIC_SEQ_CST) <= seq)
		return false;
	mine =
	    __atomic_load_n(&(sends ? pair->sent_ns : pair->received_ns)[seq % TEAM_DEPTH], __ATOMIC_SEQ_CST);
	others =
	    __atomic_load_n(&(sends ? pair->received_ns : pair->sent_ns)[seq % TEAM_DEPTH], __ATOMIC_SEQ_CST);
	*last_ns = mine > others ? mine : others;
	*late = mine > others ? team->rank : peer;
	return true;
}

void team_split(struct team *team, uint32_t number, int32_t color, int32_t key, uint32_t *ranks,
                uint32_t *rank)
{
	struct team_split *split = &team->memory->splits[number % TEAM_DEPTH];
	uint32_t all = (number / TEAM_DEPTH + 1) * team->ranks, arrived;

	split->colors[team->rank] = color;
	split->keys[team->rank] = key;
	arrived = __atomic_add_fetch(&split->arrived, 1, __ATOMIC_SEQ_CST);
	wake_all(&split->arrived);
	for (; arrived < all; arrived = __atomic_load_n(&split->arrived, __ATOMIC_SEQ_CST))
		sleep_on(&split->arrived, arrived);
	*ranks = *rank = 0;
	for (uint32_t other = 0; other < team->ranks; other++) {
		if (split->colors[other] != color)
			continue;
		*ranks += 1;
		*rank += split->keys[other] < key || (split->keys[other] == key && other < team->rank);
	}
}
