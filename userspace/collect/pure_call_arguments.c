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
#define AT(number) (CALL_PLACE_ARGUMENT + (number))
#define NONE       CALL_PLACE_NONE
#define CONFIG     (CALL_PLACE_FIELD + 32)

/* Sorted by name (checked by a unit test). */
static const struct call_arguments table[] = {
    {"cuEventQuery", NONE, AT(0)},
    {"cuEventRecord", AT(1), AT(0)},
    {"cuEventRecordWithFlags", AT(1), AT(0)},
    {"cuEventSynchronize", NONE, AT(0)},
    {"cuGraphLaunch", AT(1), AT(0)},
    {"cuLaunchCooperativeKernel", AT(8), AT(0)},
    {"cuLaunchKernel", AT(8), AT(0)},
    {"cuLaunchKernelEx", CONFIG, AT(1)},
    {"cuMemcpy2DAsync", AT(1), NONE},
    {"cuMemcpy3DAsync", AT(1), NONE},
    {"cuMemcpyAsync", AT(3), NONE},
    {"cuMemcpyDtoDAsync", AT(3), NONE},
    {"cuMemcpyDtoHAsync", AT(3), NONE},
    {"cuMemcpyHtoDAsync", AT(3), NONE},
    {"cuMemcpyPeerAsync", AT(5), NONE},
    {"cuMemsetD16Async", AT(3), NONE},
    {"cuMemsetD32Async", AT(3), NONE},
    {"cuMemsetD8Async", AT(3), NONE},
    {"cuStreamQuery", AT(0), NONE},
    {"cuStreamSynchronize", AT(0), NONE},
    {"cuStreamWaitEvent", AT(0), AT(1)},
    {"cudaEventQuery", NONE, AT(0)},
    {"cudaEventRecord", AT(1), AT(0)},
    {"cudaEventRecordWithFlags", AT(1), AT(0)},
    {"cudaEventSynchronize", NONE, AT(0)},
    {"cudaGraphLaunch", AT(1), AT(0)},
    {"cudaLaunchCooperativeKernel", AT(7), AT(0)},
    {"cudaLaunchKernel", AT(7), AT(0)},
    {"cudaLaunchKernelExC", CONFIG, AT(1)},
    {"cudaMemcpy", NONE, AT(3)},
    {"cudaMemcpy2DAsync", AT(7), AT(6)},
    {"cudaMemcpyAsync", AT(4), AT(3)},
    {"cudaMemcpyPeerAsync", AT(5), NONE},
    {"cudaMemset2DAsync", AT(5), NONE},
    {"cudaMemsetAsync", AT(3), NONE},
    {"cudaStreamQuery", AT(0), NONE},
    {"cudaStreamSynchronize", AT(0), NONE},
    {"cudaStreamWaitEvent", AT(0), AT(1)},
};

static int compare(const void *key, const void *item)
{
	return strcmp(key, ((const struct call_arguments *)item)->name);
}

const struct call_arguments *call_arguments_find(const char *stem)
{
	return bsearch(stem, table, sizeof(table) / sizeof(table[0]), sizeof(table[0]), compare);
}
