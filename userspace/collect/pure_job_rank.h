/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which rank of a distributed job a process is, as its launcher told it by the environment: torchrun and what
 * follows it (RANK, WORLD_SIZE), Open MPI, MPICH and others with PMI, Slurm. What the process has changed
 * itself since it began is not seen.
 */
#ifndef WHYIDLE_COLLECT_PURE_JOB_RANK_H
#define WHYIDLE_COLLECT_PURE_JOB_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_RANKS_MOST 1048576 /* what claims to be more is not believed */

struct job_rank {
	uint32_t rank, world_size; /* rank < world_size */
};

/*
 * Reads the block of NUL-separated NAME=value of /proc/PID/environ, of which the last may be cut. False if it
 * names no rank, or one that cannot be.
 */
bool job_rank_parse(const char *environment, size_t size, struct job_rank *rank);

#endif
