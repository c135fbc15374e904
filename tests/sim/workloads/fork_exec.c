/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that does not use CUDA itself: it forks, the child executes this program again, and that uses
 * CUDA. Ends with the child's status.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/workloads/common_workload.h"

#define CHILD_STEPS 50

static int use_cuda(void)
{
	struct gpu_step step;

	gpu_step_create(&step, "_Z12child_kernelPf", 1000000, 2);
	for (int i = 0; i < CHILD_STEPS; i++) {
		gpu_step_launch(&step);
		CUDA(cudaStreamSynchronize(step.stream));
	}
	printf("fork_exec: child %d made %d steps\n", (int)getpid(), CHILD_STEPS);
	return 0;
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	if (argc > 1 && !strcmp(argv[1], "--child"))
		return use_cuda();
	child = fork();
	check(child >= 0, "fork");
	if (!child) {
		execl("/proc/self/exe", argv[0], "--child", (char *)NULL);
		_exit(127);
	}
	check(waitpid(child, &status, 0) == child, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
