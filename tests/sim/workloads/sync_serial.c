/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Planted: main synchronises after each step and then computes for 6 ms before it launches the next one.
 *
 * planted_ns: GPU idle time within prepare_next_step, from the synchronising call's return to the first launch.
 */
#include "tests/sim/workloads/common_workload.h"

#define HOST_WORK_NS 6000000

static __attribute__((noinline)) uint64_t prepare_next_step(void)
{
	return compute_for(HOST_WORK_NS);
}

int main(int argc, char **argv)
{
	struct interval_list stalls = {0};
	struct workload workload;
	struct gpu_step step;
	uint64_t sum = 0;

	workload_begin(&workload, argc, argv, "host.sync_then_serial", "launcher");
	workload_name_self(&workload, workload.name, "launcher");
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, 4);
	for (workload_start(&workload); workload_goes_on(&workload); workload.steps++) {
		uint64_t start;

		gpu_step_launch(&step);
		CUDA(cudaStreamSynchronize(step.stream));
		start = now_ns();
		sum ^= prepare_next_step();
		interval_add(&stalls, start, now_ns());
	}
	workload_account(&workload);
	workload.planted_ns = intervals_idle(&workload, &stalls);
	snprintf(workload.extra, sizeof(workload.extra), ", \"checksum\": %u", (unsigned int)sum);
	return workload_end(&workload);
}
