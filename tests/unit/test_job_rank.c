// SPDX-License-Identifier: GPL-2.0-only
/* Which rank a process is, from the environment that it began with. */
#include <criterion/criterion.h>
#include <string.h>

#include "collect/pure_job_rank.h"

/* A literal holds its own last NUL as well: what ends the last entry. */
#define PARSE(text, rank) job_rank_parse(text, sizeof(text), rank)

Test(job_rank, of_torchrun)
{
	struct job_rank rank;

	cr_assert(PARSE("HOME=/\0RANK=3\0LOCAL_RANK=1\0WORLD_SIZE=16", &rank));
	cr_assert_eq(rank.rank, 3);
	cr_assert_eq(rank.world_size, 16);
}

Test(job_rank, of_other_launchers)
{
	struct job_rank rank;

	cr_assert(PARSE("OMPI_COMM_WORLD_SIZE=4\0OMPI_COMM_WORLD_RANK=2", &rank));
	cr_assert_eq(rank.rank, 2);
	cr_assert(PARSE("PMI_RANK=0\0PMI_SIZE=2", &rank));
	cr_assert_eq(rank.world_size, 2);
	cr_assert(PARSE("SLURM_PROCID=7\0SLURM_NTASKS=8", &rank));
	cr_assert_eq(rank.rank, 7);
}

/* torchrun starts several processes in one task of Slurm: the nearer launcher counts. */
Test(job_rank, the_nearer_launcher_counts)
{
	struct job_rank rank;

	cr_assert(PARSE("SLURM_PROCID=1\0SLURM_NTASKS=2\0RANK=9\0WORLD_SIZE=16", &rank));
	cr_assert_eq(rank.rank, 9);
	cr_assert_eq(rank.world_size, 16);
}

Test(job_rank, what_makes_no_sense_is_no_rank)
{
	struct job_rank rank;

	cr_assert_not(PARSE("", &rank));
	cr_assert_not(PARSE("RANK=3", &rank));
	cr_assert_not(PARSE("RANK=\0WORLD_SIZE=4", &rank));
	cr_assert_not(PARSE("RANK=4\0WORLD_SIZE=4", &rank));
	cr_assert_not(PARSE("RANK=-1\0WORLD_SIZE=4", &rank));
	cr_assert_not(PARSE("RANK=1x\0WORLD_SIZE=4", &rank));
	cr_assert_not(PARSE("RANK=1\0WORLD_SIZE=99999999999999999999", &rank));
	cr_assert_not(PARSE("XRANK=1\0WORLD_SIZE=4", &rank));
	cr_assert_not(job_rank_parse("RANK=1\0WORLD_SIZE=4", 19, &rank), "the last entry is cut");
	cr_assert_not(job_rank_parse(NULL, 0, &rank));
}
