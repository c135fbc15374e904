// SPDX-License-Identifier: GPL-2.0-only
#include "collect/pure_job_rank.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The nearest to the program first: torchrun may itself have been started by Slurm, once a host. */
static const struct {
	const char *rank, *size;
} pairs[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

/* The number that a variable holds; false if it is not there or is not just a number. */
static bool find_number(const char *environment, size_t size, const char *name, uint32_t *number)
{
	size_t length = strlen(name), end;

	for (size_t at = 0; at < size; at = end + 1) {
		const char *entry = environment + at;
		unsigned long value = 0;

		end = at + strnlen(entry, size - at);
		if (end == size || end - at <= length || memcmp(entry, name, length) || entry[length] != '=')
			continue;
		for (entry += length + 1; isdigit((unsigned char)*entry) && value <= JOB_RANKS_MOST; entry++)
			value = value * 10 + (unsigned long)(*entry - '0');
		if (*entry || entry[-1] == '=' || value > JOB_RANKS_MOST)
			return false;
		*number = (uint32_t)value;
		return true;
	}
	return false;
}

bool job_rank_parse(const char *environment, size_t size, struct job_rank *rank)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (find_number(environment, size, pairs[i].rank, &rank->rank) &&
		    find_number(environment, size, pairs[i].size, &rank->world_size))
			return rank->rank < rank->world_size;
	}
	return false;
}
