/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Works on the GPU for a moment and ends with the exit status that its argument says.
 */
#include <stdlib.h>

#include "tests/sim/workloads/common_workload.h"

int main(int argc, char **argv)
{
	struct gpu_step step;

	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, 2);
	for (int i = 0; i < 20; i++) {
		gpu_step_launch(&step);
		CUDA(cudaStreamSynchronize(step.stream));
	}
	return argc > 1 ? atoi(argv[1]) : 0;
}
