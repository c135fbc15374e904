/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Works on the GPU for --steps N (default 100) steps of 2 ms and then kills itself with --signal
 * KILL|SEGV|TERM|INT|ABRT (default KILL), in the middle of a step.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/workloads/common_workload.h"

static int signal_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
	    {"KILL", SIGKILL}, {"SEGV", SIGSEGV}, {"TERM", SIGTERM}, {"INT", SIGINT}, {"ABRT", SIGABRT},
	};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!strcmp(signals[i].name, name))
			return signals[i].number;
	return 0;
}

int main(int argc, char **argv)
{
	int steps = 100, number = SIGKILL;
	struct gpu_step step;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--steps"))
			steps = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--signal"))
			number = signal_number(argv[i + 1]);
		else
			number = 0;
	}
	if (!number || argc % 2 == 0) {
		fprintf(stderr, "usage: %s [--steps N] [--signal KILL|SEGV|TERM|INT|ABRT]\n", argv[0]);
		return 2;
	}
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, 2);
	for (int i = 0; i < steps; i++) {
		gpu_step_launch(&step);
		CUDA(cudaStreamSynchronize(step.stream));
	}
	gpu_step_launch(&step);
	fprintf(stderr, "self_kill: %d steps made\n", steps);
	kill(getpid(), number);
	pause(); /* until the signal is there */
	return 1;
}
