/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nothing planted: a GPU-bound loop. Steps of 4 ms of kernels; main launches one step ahead and then waits
 * for the step before.
 *
 * planted_ns: 0.
 */
#include "tests/sim/workloads/common_workload.h"

int main(int argc, char **argv)
{
	struct workload workload;
	struct gpu_step step;
	cudaEvent_t done[2];

	workload_begin(&workload, argc, argv, "none", "none");
	workload_name_self(&workload, workload.name, "launcher");
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, 4);
	CUDA(cudaEventCreateWithFlags(&done[0], CU_EVENT_BLOCKING_SYNC));
	CUDA(cudaEventCreateWithFlags(&done[1], CU_EVENT_BLOCKING_SYNC));
	for (workload_start(&workload); workload_goes_on(&workload); workload.steps++) {
		gpu_step_launch(&step);
		CUDA(cudaEventRecord(done[workload.steps & 1], step.stream));
		if (workload.steps)
			CUDA(cudaEventSynchronize(done[(workload.steps - 1) & 1]));
	}
	workload_account(&workload);
	return workload_end(&workload);
}
