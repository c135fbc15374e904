/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/cuda_call.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Sorted by name (checked by a unit test): cuda_function_find searches it by halves. */
const struct cuda_function cuda_functions[] = {
    {"cuCtxSynchronize", CUDA_SYNC, true},
    {"cuEventQuery", CUDA_QUERY, true},
    {"cuEventRecord", CUDA_EVENT, false},
    {"cuEventRecordWithFlags", CUDA_EVENT, false},
    {"cuEventSynchronize", CUDA_SYNC, true},
    {"cuGraphLaunch", CUDA_GRAPH_LAUNCH, false},
    {"cuLaunchCooperativeKernel", CUDA_LAUNCH, false},
    {"cuLaunchHostFunc", CUDA_HOST_FUNCTION, false},
    {"cuLaunchKernel", CUDA_LAUNCH, false},
    {"cuLaunchKernelEx", CUDA_LAUNCH, false},
    {"cuLibraryLoadData", CUDA_MODULE, true},
    {"cuLinkComplete", CUDA_MODULE, true},
    {"cuMemAlloc", CUDA_ALLOC, true},
    {"cuMemAllocAsync", CUDA_ALLOC, true},
    {"cuMemAllocHost", CUDA_HOST_ALLOC, true},
    {"cuMemAllocPitch", CUDA_ALLOC, true},
    {"cuMemCreate", CUDA_ALLOC, true},
    {"cuMemFree", CUDA_ALLOC, true},
    {"cuMemFreeAsync", CUDA_ALLOC, true},
    {"cuMemFreeHost", CUDA_HOST_ALLOC, true},
    {"cuMemHostAlloc", CUDA_HOST_ALLOC, true},
    {"cuMemHostRegister", CUDA_HOST_ALLOC, true},
    {"cuMemHostUnregister", CUDA_HOST_ALLOC, true},
    {"cuMemMap", CUDA_ALLOC, true},
    {"cuMemRelease", CUDA_ALLOC, true},
    {"cuMemUnmap", CUDA_ALLOC, true},
    {"cuMemcpy", CUDA_COPY, true},
    {"cuMemcpy2D", CUDA_COPY, true},
    {"cuMemcpy2DAsync", CUDA_COPY, true},
    {"cuMemcpy3D", CUDA_COPY, true},
    {"cuMemcpy3DAsync", CUDA_COPY, true},
    {"cuMemcpyAsync", CUDA_COPY, true},
    {"cuMemcpyDtoD", CUDA_COPY, true},
    {"cuMemcpyDtoDAsync", CUDA_COPY, true},
    {"cuMemcpyDtoH", CUDA_COPY, true},
    {"cuMemcpyDtoHAsync", CUDA_COPY, true},
    {"cuMemcpyHtoD", CUDA_COPY, true},
    {"cuMemcpyHtoDAsync", CUDA_COPY, true},
    {"cuMemcpyPeerAsync", CUDA_COPY, true},
    {"cuMemsetD16Async", CUDA_MEMSET, false},
    {"cuMemsetD32", CUDA_MEMSET, false},
    {"cuMemsetD32Async", CUDA_MEMSET, false},
    {"cuMemsetD8", CUDA_MEMSET, false},
    {"cuMemsetD8Async", CUDA_MEMSET, false},
    {"cuModuleGetFunction", CUDA_MODULE, true},
    {"cuModuleLoad", CUDA_MODULE, true},
    {"cuModuleLoadData", CUDA_MODULE, true},
    {"cuModuleLoadDataEx", CUDA_MODULE, true},
    {"cuModuleLoadFatBinary", CUDA_MODULE, true},
    {"cuStreamQuery", CUDA_QUERY, true},
    {"cuStreamSynchronize", CUDA_SYNC, true},
    {"cuStreamWaitEvent", CUDA_EVENT, false},
    {"cudaDeviceSynchronize", CUDA_SYNC, true},
    {"cudaEventQuery", CUDA_QUERY, true},
    {"cudaEventRecord", CUDA_EVENT, false},
    {"cudaEventRecordWithFlags", CUDA_EVENT, false},
    {"cudaEventSynchronize", CUDA_SYNC, true},
    {"cudaFree", CUDA_ALLOC, true},
    {"cudaFreeAsync", CUDA_ALLOC, true},
    {"cudaFreeHost", CUDA_HOST_ALLOC, true},
    {"cudaGraphLaunch", CUDA_GRAPH_LAUNCH, false},
    {"cudaHostAlloc", CUDA_HOST_ALLOC, true},
    {"cudaHostRegister", CUDA_HOST_ALLOC, true},
    {"cudaHostUnregister", CUDA_HOST_ALLOC, true},
    {"cudaLaunchCooperativeKernel", CUDA_LAUNCH, false},
    {"cudaLaunchHostFunc", CUDA_HOST_FUNCTION, false},
    {"cudaLaunchKernel", CUDA_LAUNCH, false},
    {"cudaLaunchKernelExC", CUDA_LAUNCH, false},
    {"cudaMalloc", CUDA_ALLOC, true},
    {"cudaMalloc3D", CUDA_ALLOC, true},
    {"cudaMallocAsync", CUDA_ALLOC, true},
    {"cudaMallocHost", CUDA_HOST_ALLOC, true},
    {"cudaMallocManaged", CUDA_ALLOC, true},
    {"cudaMallocPitch", CUDA_ALLOC, true},
    {"cudaMemcpy", CUDA_COPY, true},
    {"cudaMemcpy2D", CUDA_COPY, true},
    {"cudaMemcpy2DAsync", CUDA_COPY, true},
    {"cudaMemcpy3D", CUDA_COPY, true},
    {"cudaMemcpy3DAsync", CUDA_COPY, true},
    {"cudaMemcpyAsync", CUDA_COPY, true},
    {"cudaMemcpyPeer", CUDA_COPY, true},
    {"cudaMemcpyPeerAsync", CUDA_COPY, true},
    {"cudaMemset", CUDA_MEMSET, false},
    {"cudaMemset2DAsync", CUDA_MEMSET, false},
    {"cudaMemsetAsync", CUDA_MEMSET, false},
    {"cudaStreamQuery", CUDA_QUERY, true},
    {"cudaStreamSynchronize", CUDA_SYNC, true},
    {"cudaStreamWaitEvent", CUDA_EVENT, false},
    {"hipDeviceSynchronize", CUDA_SYNC, true},
    {"hipEventQuery", CUDA_QUERY, true},
    {"hipEventRecord", CUDA_EVENT, false},
    {"hipEventSynchronize", CUDA_SYNC, true},
    {"hipExtLaunchKernel", CUDA_LAUNCH, false},
    {"hipExtModuleLaunchKernel", CUDA_LAUNCH, false},
    {"hipFree", CUDA_ALLOC, true},
    {"hipFreeAsync", CUDA_ALLOC, true},
    {"hipFreeHost", CUDA_HOST_ALLOC, true},
    {"hipGraphLaunch", CUDA_GRAPH_LAUNCH, false},
    {"hipHostAlloc", CUDA_HOST_ALLOC, true},
    {"hipHostFree", CUDA_HOST_ALLOC, true},
    {"hipHostMalloc", CUDA_HOST_ALLOC, true},
    {"hipHostRegister", CUDA_HOST_ALLOC, true},
    {"hipHostUnregister", CUDA_HOST_ALLOC, true},
    {"hipLaunchCooperativeKernel", CUDA_LAUNCH, false},
    {"hipLaunchHostFunc", CUDA_HOST_FUNCTION, false},
    {"hipLaunchKernel", CUDA_LAUNCH, false},
    {"hipLaunchKernelExC", CUDA_LAUNCH, false},
    {"hipMalloc", CUDA_ALLOC, true},
    {"hipMallocAsync", CUDA_ALLOC, true},
    {"hipMallocManaged", CUDA_ALLOC, true},
    {"hipMallocPitch", CUDA_ALLOC, true},
    {"hipMemcpy", CUDA_COPY, true},
    {"hipMemcpy2D", CUDA_COPY, true},
    {"hipMemcpy2DAsync", CUDA_COPY, true},
    {"hipMemcpyAsync", CUDA_COPY, true},
    {"hipMemcpyDtoD", CUDA_COPY, true},
    {"hipMemcpyDtoDAsync", CUDA_COPY, true},
    {"hipMemcpyDtoH", CUDA_COPY, true},
    {"hipMemcpyDtoHAsync", CUDA_COPY, true},
    {"hipMemcpyHtoD", CUDA_COPY, true},
    {"hipMemcpyHtoDAsync", CUDA_COPY, true},
    {"hipMemcpyPeerAsync", CUDA_COPY, true},
    {"hipMemcpyWithStream", CUDA_COPY, true},
    {"hipMemset", CUDA_MEMSET, false},
    {"hipMemsetAsync", CUDA_MEMSET, false},
    {"hipMemsetD32Async", CUDA_MEMSET, false},
    {"hipMemsetD8Async", CUDA_MEMSET, false},
    {"hipModuleLaunchKernel", CUDA_LAUNCH, false},
    {"hipModuleLoad", CUDA_MODULE, true},
    {"hipModuleLoadData", CUDA_MODULE, true},
    {"hipModuleLoadDataEx", CUDA_MODULE, true},
    {"hipStreamQuery", CUDA_QUERY, true},
    {"hipStreamSynchronize", CUDA_SYNC, true},
    {"hipStreamWaitEvent", CUDA_EVENT, false},
};
const size_t cuda_function_count = sizeof(cuda_functions) / sizeof(cuda_functions[0]);

static bool has_suffix(const char *name, size_t length, const char *suffix)
{
	size_t n = strlen(suffix);

	return length > n && !strncmp(name + length - n, suffix, n);
}

/* Length of `name` without the suffixes that only tell versions and stream flavours apart. */
static size_t stem_length(const char *name)
{
	size_t length = strlen(name);

	for (;;) {
		size_t digits = 0;

		if (has_suffix(name, length, "_ptsz") || has_suffix(name, length, "_ptds")) {
			length -= 5;
			continue;
		}
		while (digits < length && isdigit((unsigned char)name[length - 1 - digits]))
			digits++;
		if (digits && length > digits + 2 && !strncmp(name + length - digits - 2, "_v", 2)) {
			length -= digits + 2;
			continue;
		}
		return length;
	}
}

struct stem {
	const char *name;
	size_t length;
};

static int compare_stem(const void *key, const void *item)
{
	const struct stem *stem = key;
	const struct cuda_function *function = item;
	int order = strncmp(stem->name, function->name, stem->length);

	return order ? order : -(int)(function->name[stem->length] != '\0');
}

const struct cuda_function *cuda_function_find(const char *symbol)
{
	struct stem stem = {symbol, stem_length(symbol)};

	return bsearch(&stem, cuda_functions, cuda_function_count, sizeof(cuda_functions[0]), compare_stem);
}

#define VERSION_DIGITS_MIN 4

size_t cuda_name_length(const char *function)
{
	size_t length = strlen(function), digits = 0;

	while (digits < length && isdigit((unsigned char)function[length - digits - 1]))
		digits++;
	if (strncmp(function, "cuda", 4) || digits < VERSION_DIGITS_MIN || length < digits + 2 ||
	    memcmp(function + length - digits - 2, "_v", 2))
		return length;
	return length - digits - 2;
}

enum cuda_class cuda_classify(const char *symbol)
{
	const struct cuda_function *found = cuda_function_find(symbol);

	return found ? found->class : CUDA_OTHER;
}

bool cuda_class_submits(enum cuda_class class)
{
	return class == CUDA_LAUNCH || class == CUDA_GRAPH_LAUNCH || class == CUDA_COPY ||
	       class == CUDA_MEMSET;
}
