// SPDX-License-Identifier: GPL-2.0-only
#include "collect/job_rank.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect/pure_job_rank.h"

#define ENVIRONMENT_MOST ((size_t)256 * 1024)

/* Size of what was read, 0 if nothing could be. */
static size_t read_environment(uint32_t pid, char *text, size_t most)
{
	char path[64];
	size_t size = 0;
	ssize_t got = 1;
	int file;

	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	while (size < most && (got = read(file, text + size, most - size)) > 0)
		size += (size_t)got;
	close(file);
	return size;
}

int job_rank_put(struct session_writer *writer, uint32_t pid, struct error *error)
{
	struct record_rank record = {.header = {.type = RECORD_RANK, .size = sizeof(record)}, .pid = pid};
	char *text = malloc(ENVIRONMENT_MOST);
	struct job_rank rank;
	bool known;

	if (!text)
		return 0;
	known = job_rank_parse(text, read_environment(pid, text, ENVIRONMENT_MOST), &rank);
	free(text);
	if (!known)
		return 0;
	record.rank = rank.rank;
	record.world_size = rank.world_size;
	return session_writer_put(writer, &record, error);
}
