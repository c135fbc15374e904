// SPDX-License-Identifier: GPL-2.0-only
#include "collect/job_rank.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/proc_file.h"
#include "collect/pure_job_rank.h"

#define ENVIRONMENT_MOST ((size_t)256 * 1024)

int job_rank_put(struct session_writer *writer, uint32_t pid, struct error *error)
{
	struct record_rank record = {.header = {.type = RECORD_RANK, .size = sizeof(record)}, .pid = pid};
	char path[64], *text = malloc(ENVIRONMENT_MOST);
	struct job_rank rank;
	bool known;

	if (!text)
		return 0;
	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	known = job_rank_parse(text, proc_file_read(path, text, ENVIRONMENT_MOST), &rank);
	free(text);
	if (!known)
		return 0;
	record.rank = rank.rank;
	record.world_size = rank.world_size;
	return session_writer_put(writer, &record, error);
}
