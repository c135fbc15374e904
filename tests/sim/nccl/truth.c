/* SPDX-License-Identifier: GPL-2.0-only */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/nccl/kernel.h"

void truth_write(const struct ncclComm *comm)
{
	const char *folder = getenv("SIM_NCCL_TRUTH"), *name = strrchr(comm->name, '/');
	char path[512];
	FILE *file;

	if (!folder || !*folder)
		return;
	snprintf(path, sizeof(path), "%s/%s-%" PRIu32 ".json", folder, name ? name + 1 : comm->name,
	         comm->team.rank);
	file = fopen(path, "w");
	if (!file) {
		fprintf(stderr, "simulated NCCL: cannot write %s: %m\n", path);
		return;
	}
	fprintf(file,
	        "{\"simulated\": true, \"ranks\": %" PRIu32 ", \"rank\": %" PRIu32
	        ", \"pid\": %d, \"kernels\": [",
	        comm->team.ranks, comm->team.rank, (int)getpid());
	for (size_t i = 0; i < comm->log_count; i++) {
		const struct nccl_log *log = &comm->log[i];

		fprintf(file,
		        "%s\n {\"operation\": \"%s\", \"calls\": %" PRIu32 ", \"bytes\": %" PRIu64
		        ", \"start_ns\": %" PRIu64 ", \"last_ns\": %" PRIu64 ", \"late\": %" PRIu32
		        ", \"end_ns\": %" PRIu64 "}",
		        i ? "," : "", nccl_operation_name(log->operation), log->calls, log->bytes,
		        log->start_ns, log->last_ns, log->late, log->end_ns);
	}
	fputs("\n]}\n", file);
	if (ferror(file) | fclose(file))
		fprintf(stderr, "simulated NCCL: cannot write %s: %m\n", path);
}
