/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/pure_call_arguments.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/settings.h"

/*
 * Counted in registers and words of the stack, from 0: a dim3 passed by value takes two. CONFIG: in the
 * struct that the first argument points to; cudaLaunchConfig_t and CUlaunchConfig have the stream at the same
 * place.
 */
#define AT(number)    (CALL_PLACE_ARGUMENT + (number))
#define NONE          CALL_PLACE_NONE
#define CONFIG        (CALL_PLACE_FIELD + 32)
#define BYTES(number) (CALL_SIZE_ARGUMENT + (number))
#define UNKNOWN       CALL_SIZE_NONE

/* Sorted by name (checked by a unit test). */
static const struct call_arguments table[] = {
    {"cuEventQuery", NONE, AT(0), UNKNOWN},
    {"cuEventRecord", AT(1), AT(0), UNKNOWN},
    {"cuEventRecordWithFlags", AT(1), AT(0), UNKNOWN},
    {"cuEventSynchronize", NONE, AT(0), UNKNOWN},
    {"cuGraphLaunch", AT(1), AT(0), UNKNOWN},
    {"cuLaunchCooperativeKernel", AT(8), AT(0), CALL_SIZE_NUMBERS},
    {"cuLaunchKernel", AT(8), AT(0), CALL_SIZE_NUMBERS},
    {"cuLaunchKernelEx", CONFIG, AT(1), CALL_SIZE_CONFIG},
    {"cuMemcpy2DAsync", AT(1), NONE, UNKNOWN},
    {"cuMemcpy3DAsync", AT(1), NONE, UNKNOWN},
    {"cuMemcpyAsync", AT(3), NONE, BYTES(2)},
    {"cuMemcpyDtoDAsync", AT(3), NONE, BYTES(2)},
    {"cuMemcpyDtoHAsync", AT(3), NONE, BYTES(2)},
    {"cuMemcpyHtoDAsync", AT(3), NONE, BYTES(2)},
    {"cuMemcpyPeerAsync", AT(5), NONE, BYTES(4)},
    {"cuMemsetD16Async", AT(3), NONE, BYTES(2)},
    {"cuMemsetD32Async", AT(3), NONE, BYTES(2)},
    {"cuMemsetD8Async", AT(3), NONE, BYTES(2)},
    {"cuStreamQuery", AT(0), NONE, UNKNOWN},
    {"cuStreamSynchronize", AT(0), NONE, UNKNOWN},
    {"cuStreamWaitEvent", AT(0), AT(1), UNKNOWN},
    {"cudaEventQuery", NONE, AT(0), UNKNOWN},
    {"cudaEventRecord", AT(1), AT(0), UNKNOWN},
    {"cudaEventRecordWithFlags", AT(1), AT(0), UNKNOWN},
    {"cudaEventSynchronize", NONE, AT(0), UNKNOWN},
    {"cudaGraphLaunch", AT(1), AT(0), UNKNOWN},
    {"cudaLaunchCooperativeKernel", AT(7), AT(0), CALL_SIZE_DIM3},
    {"cudaLaunchKernel", AT(7), AT(0), CALL_SIZE_DIM3},
    {"cudaLaunchKernelExC", CONFIG, AT(1), CALL_SIZE_CONFIG},
    {"cudaMemcpy", NONE, AT(3), BYTES(2)},
    {"cudaMemcpy2DAsync", AT(7), AT(6), UNKNOWN},
    {"cudaMemcpyAsync", AT(4), AT(3), BYTES(2)},
    {"cudaMemcpyPeerAsync", AT(5), NONE, BYTES(4)},
    {"cudaMemset2DAsync", AT(5), NONE, UNKNOWN},
    {"cudaMemsetAsync", AT(3), NONE, BYTES(2)},
    {"cudaStreamQuery", AT(0), NONE, UNKNOWN},
    {"cudaStreamSynchronize", AT(0), NONE, UNKNOWN},
    {"cudaStreamWaitEvent", AT(0), AT(1), UNKNOWN},
};

static int compare(const void *key, const void *item)
{
	return strcmp(key, ((const struct call_arguments *)item)->name);
}

const struct call_arguments *call_arguments_find(const char *stem)
{
	return bsearch(stem, table, sizeof(table) / sizeof(table[0]), sizeof(table[0]), compare);
}
