/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Library for CUDA_INJECTION64_PATH: notes in the environment how often and in which thread it was started,
 * and whether CUDA could be used from inside.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/cuda_sim.h"

int InitializeInjection(void);

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	static int calls;
	char text[64];
	int version = 0;

	snprintf(text, sizeof(text), "%d calls, thread %ld, cuInit %d, version %d", ++calls,
	         syscall(SYS_gettid), (int)cuInit(0), cuDriverGetVersion(&version) ? -1 : version);
	setenv("SIM_TEST_INJECTED", text, 1);
	return 1;
}
