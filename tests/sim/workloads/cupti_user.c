/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that profiles itself: subscribes to CUPTI before it initialises CUDA, so that whoever is injected
 * then finds CUPTI taken, and counts the records of its own kernels. Fails if its own profile is disturbed.
 *
 *   cupti_user takeover   starts after CUDA and does not subscribe: takes the records over from whoever was
 * there
 */
#include <stdlib.h>
#include <string.h>

#include "cupti_bridge/cupti_abi.h"
#include "tests/sim/workloads/common_workload.h"

#define DECLARE(name, parameters) cupti_abi_result name parameters;
CUPTI_ABI_REQUIRED_FUNCTIONS(DECLARE)
CUPTI_ABI_OPTIONAL_FUNCTIONS(DECLARE)
#undef DECLARE

#define STEPS   200
#define KERNELS 2

static int kernel_records; /* written by CUPTI's thread, read after a flush */

static void give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*size = 64 << 10;
	*max_records = 0;
	*buffer = aligned_alloc(8, *size);
}

static void take_buffer(cupti_abi_context context, uint32_t stream, uint8_t *buffer, size_t size,
                        size_t valid_size)
{
	struct cupti_abi_record *record = NULL;

	(void)context, (void)stream, (void)size;
	while (!cuptiActivityGetNextRecord(buffer, valid_size, &record))
		kernel_records += record->kind == CUPTI_ABI_KIND_CONCURRENT_KERNEL;
	free(buffer);
}

static void check_cupti(cupti_abi_result result, const char *what)
{
	if (result) {
		fprintf(stderr, "cupti_user: %s failed: %d\n", what, (int)result);
		exit(1);
	}
}

#define CUPTI(call) check_cupti(call, #call)

int main(int argc, char **argv)
{
	cupti_abi_subscriber subscriber;
	struct gpu_step step;
	bool takeover = argc > 1 && !strcmp(argv[1], "takeover");

	if (takeover)
		CUDA(cudaFree(NULL)); /* initialises CUDA */
	else
		CUPTI(cuptiSubscribe(&subscriber, NULL, NULL));
	CUPTI(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
	CUPTI(cuptiActivityEnable(CUPTI_ABI_KIND_CONCURRENT_KERNEL));
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, KERNELS);
	for (int i = 0; i < STEPS; i++) {
		gpu_step_launch(&step);
		CUDA(cudaStreamSynchronize(step.stream));
	}
	CUPTI(cuptiActivityFlushAll(CUPTI_ABI_FLUSH_FORCED));
	printf("cupti_user: %d kernel records of %d kernels\n", kernel_records, STEPS * KERNELS);
	return kernel_records == STEPS * KERNELS ? 0 : 1;
}
