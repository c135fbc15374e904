/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Planted: main synchronises after each step and then computes for 6 ms before it launches the next one.
 *
 * planted_ns: GPU idle time within prepare_next_step, which begins when the synchronising call has returned
 * and ends before the first launch, without its run delay.
 */
#include "tests/sim/workloads/common_workload.h"

#define HOST_WORK_NS 6000000

static __attribute__((noinline)) uint64_t prepare_next_step(void)
{
	return compute_for(HOST_WORK_NS);
}

int main(int argc, char **argv)
{
	struct stall_list stalls = {0};
	struct workload workload;
	struct gpu_step step;
	uint64_t sum = 0;

	workload_begin(&workload, argc, argv, "host.sync_then_serial", "launcher");
	workload_name_self(&workload, workload.name, "launcher");
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, 4);
	for (workload_start(&workload); workload_goes_on(&workload); workload.steps++) {
		struct stall stall;

		gpu_step_launch(&step);
		CUDA(cudaStreamSynchronize(step.stream));
		stall = stall_begin();
		sum ^= prepare_next_step();
		stall_end(&stalls, stall);
	}
	workload_account(&workload);
	workload.planted_ns = stalls_planted(&workload, &stalls, &workload.contended_ns);
	snprintf(workload.extra, sizeof(workload.extra), ", \"checksum\": %u", (unsigned int)sum);
	return workload_end(&workload);
}
