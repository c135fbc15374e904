/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plants inside CUDA calls and on the device.
 */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/workloads/planted/planted.h"

#define LAUNCHER (1u << PLACE_LAUNCHER)

static void set_option(const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	check(!setenv(name, text, 1), "setenv");
}

/* Allocating: the pieces are small and stay until the end. */
static void slow_allocation(struct plant *plant)
{
	if (plant->duration_ns)
		set_option("SIM_ALLOC_NS", plant->duration_ns);
}

static void allocate(struct plant *plant)
{
	void *piece;

	(void)plant;
	CUDA(cudaMalloc(&piece, 256));
}

static void slow_free(struct plant *plant)
{
	if (plant->duration_ns)
		set_option("SIM_FREE_NS", plant->duration_ns);
	set_option("SIM_ALLOC_NS", 1000);
}

static void allocate_piece(struct plant *plant)
{
	CUDA(cudaMalloc(&plant->state, 256));
}

static void free_piece(struct plant *plant)
{
	CUDA(cudaFree(plant->state));
}

/* A copy from memory that is not pinned; its staging, about 0.1 ms a MiB, is slower than the bus. */
struct pageable {
	char *source;
	void *target;
	size_t bytes;
};

#define COPY_BYTES_PER_MS (8ull << 20)
#define BUS_MBPS          64000 /* as fast as host links get */

static void fast_bus(struct plant *plant)
{
	(void)plant;
	set_option("SIM_COPY_MBPS", BUS_MBPS);
}

static void make_pageable(struct plant *plant)
{
	struct pageable *pageable = calloc(1, sizeof(*pageable));

	check(pageable, "calloc");
	plant->state = pageable;
	pageable->bytes = (size_t)(plant->duration_ns * COPY_BYTES_PER_MS / 1000000) + 4096;
	pageable->source = malloc(pageable->bytes);
	check(pageable->source, "malloc");
	memset(pageable->source, 1, pageable->bytes);
	CUDA(cudaMalloc(&pageable->target, pageable->bytes));
}

static void copy_pageable(struct plant *plant)
{
	struct pageable *pageable = plant->state;

	CUDA(cudaMemcpyAsync(pageable->target, pageable->source, pageable->bytes, cudaMemcpyHostToDevice,
	                     plant->step->stream));
	plant->device_ns += pageable->bytes * 1000 / BUS_MBPS;
}

/* Kernels that are shorter than their launches, one after the other for so long. */
#define SHORT_NS   1000
#define BETWEEN_NS 1000 /* SIM_FLOOR_NS, the device's own time from one operation to the next */

static void *create_short_kernel(void)
{
	void *kernel = simKernelCreate("_Z12short_kernelPf", SHORT_NS);

	check(kernel, "simKernelCreate");
	return kernel;
}

static void launch_short_kernel(struct plant *plant, void *kernel)
{
	const dim3 grid = {1, 1, 1}, block = {32, 1, 1};

	CUDA(cudaLaunchKernel(kernel, grid, block, NULL, 0, plant->step->stream));
	plant->device_ns += SHORT_NS + BETWEEN_NS;
}

static void launch_short_kernels(struct plant *plant)
{
	uint64_t end = now_ns() + plant->duration_ns;

	do {
		launch_short_kernel(plant, plant->state);
	} while (now_ns() < end);
}

static void make_short_kernel(struct plant *plant)
{
	plant->state = create_short_kernel();
}

/* A thread allocates, with the driver's lock, while the launcher launches. */
struct allocator {
	pthread_t thread;
	sem_t wanted, begun;
	void *kernel;
	uint32_t finished, asked;
	bool over;
};

static void *allocate_on_request(void *argument)
{
	struct allocator *allocator = argument;
	void *piece;

	for (;;) {
		while (sem_wait(&allocator->wanted))
			;
		if (__atomic_load_n(&allocator->over, __ATOMIC_ACQUIRE))
			return NULL;
		sem_post(&allocator->begun);
		CUDA(cudaMalloc(&piece, 256));
		__atomic_add_fetch(&allocator->finished, 1, __ATOMIC_RELEASE);
	}
}

static void start_allocator(struct plant *plant)
{
	struct allocator *allocator = calloc(1, sizeof(*allocator));

	check(allocator, "calloc");
	plant->state = allocator;
	sem_init(&allocator->wanted, 0, 0);
	sem_init(&allocator->begun, 0, 0);
	allocator->kernel = create_short_kernel();
	allocator->thread = start_thread("allocator", allocate_on_request, allocator);
}

static void begin_allocation(struct plant *plant)
{
	struct allocator *allocator = plant->state;

	allocator->asked++;
	sem_post(&allocator->wanted);
	while (sem_wait(&allocator->begun))
		;
}

static void launch_meanwhile(struct plant *plant)
{
	struct allocator *allocator = plant->state;

	do {
		launch_short_kernel(plant, allocator->kernel);
	} while (__atomic_load_n(&allocator->finished, __ATOMIC_ACQUIRE) != allocator->asked);
}

static void end_allocator(struct plant *plant)
{
	struct allocator *allocator = plant->state;

	__atomic_store_n(&allocator->over, true, __ATOMIC_RELEASE);
	sem_post(&allocator->wanted);
	pthread_join(allocator->thread, NULL);
	free(allocator);
}

/* A synchronisation that comes back long after the device is done. */
static void slow_synchronisation(struct plant *plant)
{
	if (plant->duration_ns)
		set_option("SIM_SYNC_NS", plant->duration_ns);
}

static void synchronise(struct plant *plant)
{
	CUDA(cudaStreamSynchronize(plant->step->stream));
}

/* Code that is loaded within the loop, as kernels compiled for a new shape are. */
static void slow_loading(struct plant *plant)
{
	if (plant->duration_ns)
		set_option("SIM_LOAD_NS", plant->duration_ns);
}

static void load_code(struct plant *plant)
{
	static const char image[] = "no code";
	CUmodule module;

	(void)plant;
	check(cuModuleLoadData(&module, image) == CUDA_SUCCESS, "cuModuleLoadData");
}

/* The device takes that long from one queued operation to the next. */
static void slow_device(struct plant *plant)
{
	if (plant->duration_ns)
		set_option("SIM_FLOOR_NS", plant->duration_ns);
}

static void do_nothing(struct plant *plant)
{
	(void)plant;
}

/* The same between operations of which every other one is a copy, from pinned memory. */
#define PINNED_BYTES 4096

static void make_pinned(struct plant *plant)
{
	struct pageable *pinned = calloc(1, sizeof(*pinned));
	void *source;

	check(pinned, "calloc");
	plant->state = pinned;
	pinned->bytes = PINNED_BYTES;
	CUDA(cudaMallocHost(&source, PINNED_BYTES));
	pinned->source = source;
	CUDA(cudaMalloc(&pinned->target, PINNED_BYTES));
}

static void copy_pinned(struct plant *plant)
{
	struct pageable *pinned = plant->state;

	CUDA(cudaMemcpyAsync(pinned->target, pinned->source, pinned->bytes, cudaMemcpyHostToDevice,
	                     plant->step->stream));
}

const struct plant_kind kinds_of_cuda[] = {
    {.name = "cuda_alloc",
     .code = "host.cuda_alloc",
     .places = LAUNCHER,
     .configure = slow_allocation,
     .run = allocate},
    {.name = "cuda_free",
     .code = "host.cuda_alloc",
     .places = LAUNCHER,
     .configure = slow_free,
     .prepare = allocate_piece,
     .run = free_piece},
    {.name = "pageable_copy",
     .code = "host.pageable_copy",
     .places = LAUNCHER,
     .configure = fast_bus,
     .set_up = make_pageable,
     .run = copy_pageable},
    {.name = "launch_bound",
     .code = "host.launch_bound",
     .places = LAUNCHER,
     .set_up = make_short_kernel,
     .run = launch_short_kernels},
    {.name = "cuda_lock",
     .code = "host.cuda_lock",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .configure = slow_allocation,
     .set_up = start_allocator,
     .prepare = begin_allocation,
     .run = launch_meanwhile,
     .tear_down = end_allocator},
    {.name = "cuda_api",
     .code = "host.cuda_api",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .configure = slow_synchronisation,
     .run = synchronise},
    {.name = "compile",
     .code = "host.compile",
     .places = LAUNCHER,
     .configure = slow_loading,
     .run = load_code},
    {.name = "copy_gap",
     .code = "device.copy",
     .role = "device",
     .measure = MEASURE_DEVICE,
     .places = LAUNCHER,
     .configure = slow_device,
     .set_up = make_pinned,
     .run = copy_pinned},
    {.name = "dependency",
     .code = "device.dependency",
     .role = "device",
     .measure = MEASURE_DEVICE,
     .places = LAUNCHER,
     .configure = slow_device,
     .run = do_nothing},
    {.name = NULL},
};
