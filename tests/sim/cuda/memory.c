/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Device memory and pinned host memory. Device memory is ordinary memory of the process, so that copies can
 * really be made; only addresses inside an allocation are taken.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/sim/cuda/driver.h"

#define SLEEP_FROM_NS 100000

struct range {
	uintptr_t start;
	size_t bytes;
	enum sim_memory kind;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges; /* sorted, disjoint */
static size_t range_count, range_capacity;
static uint64_t device_bytes;

/* Number of ranges that start at or before the address. */
static size_t ranges_up_to(uintptr_t address)
{
	size_t low = 0, high = range_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

enum sim_memory sim_memory_kind(const void *pointer, size_t bytes)
{
	uintptr_t address = (uintptr_t)pointer;
	enum sim_memory kind = SIM_MEMORY_NONE;
	size_t i;

	pthread_mutex_lock(&lock);
	i = ranges_up_to(address);
	if (i-- && address - ranges[i].start < ranges[i].bytes &&
	    bytes <= ranges[i].bytes - (address - ranges[i].start))
		kind = ranges[i].kind;
	pthread_mutex_unlock(&lock);
	return kind;
}

static CUresult add_range(void *pointer, size_t bytes, enum sim_memory kind)
{
	struct range new = {(uintptr_t)pointer, bytes, kind};
	CUresult error = CUDA_SUCCESS;
	size_t i;

	pthread_mutex_lock(&lock);
	i = ranges_up_to(new.start);
	if ((i && new.start - ranges[i - 1].start < ranges[i - 1].bytes) ||
	    (i < range_count && ranges[i].start - new.start < bytes)) {
		error = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	} else if (range_count == range_capacity) {
		size_t capacity = range_capacity ? 2 * range_capacity : 64;
		struct range *more = realloc(ranges, capacity * sizeof(*more));

		if (more) {
			ranges = more;
			range_capacity = capacity;
		} else {
			error = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (!error) {
		memmove(&ranges[i + 1], &ranges[i], (range_count - i) * sizeof(*ranges));
		ranges[i] = new;
		range_count++;
		if (kind == SIM_MEMORY_DEVICE)
			device_bytes += bytes;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

/* Returns the size of the range of that kind that starts there and forgets it; 0: there is none. */
static size_t remove_range(const void *pointer, enum sim_memory kind)
{
	size_t bytes = 0, i;

	pthread_mutex_lock(&lock);
	i = ranges_up_to((uintptr_t)pointer);
	if (i-- && ranges[i].start == (uintptr_t)pointer && ranges[i].kind == kind) {
		bytes = ranges[i].bytes;
		range_count--;
		memmove(&ranges[i], &ranges[i + 1], (range_count - i) * sizeof(*ranges));
		if (kind == SIM_MEMORY_DEVICE)
			device_bytes -= bytes;
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}

void sim_take_time(uint64_t duration_ns)
{
	struct timespec t = {(time_t)(duration_ns / 1000000000ULL), (long)(duration_ns % 1000000000ULL)};

	if (duration_ns < SLEEP_FROM_NS)
		sim_spend(duration_ns);
	else
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static CUresult allocate(void **pointer, size_t bytes, enum sim_memory kind)
{
	CUresult error;

	if (!sim_current_context(&error))
		return error;
	if (!pointer || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (kind == SIM_MEMORY_DEVICE) {
		sim_api_lock();
		sim_take_time(sim_options.alloc_ns);
		sim_api_unlock();
		pthread_mutex_lock(&lock);
		if (bytes > (sim_options.memory_mb << 20) - device_bytes)
			error = CUDA_ERROR_OUT_OF_MEMORY;
		pthread_mutex_unlock(&lock);
		if (error)
			return error;
	}
	*pointer = mmap(
	    NULL, bytes, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | (kind == SIM_MEMORY_DEVICE ? MAP_NORESERVE : MAP_POPULATE), -1, 0);
	if (*pointer == MAP_FAILED) {
		*pointer = NULL;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	error = add_range(*pointer, bytes, kind);
	if (error)
		munmap(*pointer, bytes);
	return error;
}

static CUresult release(void *pointer, enum sim_memory kind)
{
	CUresult error;
	struct sim_context *context = sim_current_context(&error);
	size_t bytes;

	if (!context)
		return error;
	if (!pointer)
		return CUDA_SUCCESS;
	/* Freeing waits for the device, as in CUDA: work that is queued may use the memory. */
	engine_wait_context(context);
	bytes = remove_range(pointer, kind);
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (kind == SIM_MEMORY_DEVICE) {
		sim_api_lock();
		sim_take_time(sim_options.free_ns);
		sim_api_unlock();
	}
	munmap(pointer, bytes);
	return CUDA_SUCCESS;
}

static CUresult host_register(void *pointer, size_t bytes)
{
	CUresult error;

	if (!sim_current_context(&error))
		return error;
	return pointer && bytes ? add_range(pointer, bytes, SIM_MEMORY_REGISTERED) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult host_unregister(void *pointer)
{
	CUresult error;

	if (!sim_current_context(&error))
		return error;
	return remove_range(pointer, SIM_MEMORY_REGISTERED) ? CUDA_SUCCESS
	                                                    : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
	SIM_TRACED(cuMemAlloc_v2, allocate((void **)pointer, bytes, SIM_MEMORY_DEVICE));
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	SIM_TRACED(cuMemFree_v2, release((void *)pointer, SIM_MEMORY_DEVICE));
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes)
{
	SIM_TRACED(cuMemAllocHost_v2, allocate(pointer, bytes, SIM_MEMORY_PINNED));
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	SIM_TRACED(cuMemHostAlloc, allocate(pointer, bytes, SIM_MEMORY_PINNED));
}

CUresult cuMemFreeHost(void *pointer)
{
	SIM_TRACED(cuMemFreeHost, release(pointer, SIM_MEMORY_PINNED));
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	SIM_TRACED(cuMemHostRegister_v2, host_register(pointer, bytes));
}

CUresult cuMemHostUnregister(void *pointer)
{
	SIM_TRACED(cuMemHostUnregister, host_unregister(pointer));
}
