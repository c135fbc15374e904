/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that is not linked with CUDA and has no CUDA runtime library: it opens the driver itself, as a
 *statically linked runtime does, and launches through it.
 *
 *	late_driver LIBRARY [--wait] [--seconds N | --steps N] [--work-us N] [--kernel-us N]
 *
 * A step is a kernel of --kernel-us (default 2000), a synchronisation, and --work-us (default 4000) of
 *computing, which the GPU idles through. SIGTERM ends it in order, after a step. --wait: says "waiting" and
 *opens the library only when a line has come on standard input. It says "running" after the first step, and
 *at the end the device's own account of the time between the first and the last operation: "busy NS idle NS".
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/cuda_sim.h"

#define DRIVER(name) static __typeof__(name) *do_##name
DRIVER(cuInit);
DRIVER(cuDevicePrimaryCtxRetain);
DRIVER(cuCtxSetCurrent);
DRIVER(cuStreamCreate);
DRIVER(cuStreamSynchronize);
DRIVER(cuLaunchKernel);
DRIVER(simKernelCreate);
DRIVER(simDeviceBusy);

static volatile sig_atomic_t over;

static void end_in_order(int signal)
{
	(void)signal;
	over = 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "late_driver: %s\n", what);
	exit(1);
}

static void *find(void *library, const char *name)
{
	void *address = dlsym(library, name);

	if (!address)
		fail(dlerror());
	return address;
}

static void open_driver(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		fail(dlerror());
	do_cuInit = find(library, "cuInit");
	do_cuDevicePrimaryCtxRetain = find(library, "cuDevicePrimaryCtxRetain");
	do_cuCtxSetCurrent = find(library, "cuCtxSetCurrent");
	do_cuStreamCreate = find(library, "cuStreamCreate");
	do_cuStreamSynchronize = find(library, "cuStreamSynchronize");
	do_cuLaunchKernel = find(library, "cuLaunchKernel");
	do_simKernelCreate = find(library, "simKernelCreate");
	do_simDeviceBusy = find(library, "simDeviceBusy");
}

static uint64_t clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static __attribute__((noinline)) uint64_t compute(uint64_t for_ns)
{
	uint64_t end = clock_of(CLOCK_THREAD_CPUTIME_ID) + for_ns, value = 1;

	while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (int i = 0; i < 1000; i++)
			value = value * 6364136223846793005ULL + 1442695040888963407ULL;
	}
	return value;
}

static void print_account(void)
{
	size_t count = do_simDeviceBusy(0, 0, NULL, 0);
	struct sim_interval *busy = calloc(count + 1, sizeof(*busy));
	uint64_t sum = 0;

	if (!busy)
		fail("no memory");
	count = do_simDeviceBusy(0, 0, busy, count);
	for (size_t i = 0; i < count; i++)
		sum += busy[i].end_ns - busy[i].start_ns;
	printf("busy %llu idle %llu\n", (unsigned long long)sum,
	       count ? (unsigned long long)(busy[count - 1].end_ns - busy[0].start_ns - sum) : 0ULL);
	free(busy);
}

int main(int argc, char **argv)
{
	uint64_t end, kernel_us = 2000, work_us = 4000, steps = UINT64_MAX, checksum = 0;
	double seconds = 2;
	const char *library = argc > 1 ? argv[1] : "libcuda.so.1";
	CUcontext context;
	CUfunction kernel;
	CUstream stream;
	char line[16];

	signal(SIGTERM, end_in_order);
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--wait")) {
			puts("waiting");
			fflush(stdout);
			if (!fgets(line, sizeof(line), stdin))
				return 1;
		} else if (i + 1 == argc) {
			fail("usage: see the head of late_driver.c");
		} else if (!strcmp(argv[i], "--seconds")) {
			seconds = atof(argv[++i]);
		} else if (!strcmp(argv[i], "--steps")) {
			steps = strtoull(argv[++i], NULL, 10);
			seconds = 3600;
		} else if (!strcmp(argv[i], "--work-us")) {
			work_us = strtoull(argv[++i], NULL, 10);
		} else if (!strcmp(argv[i], "--kernel-us")) {
			kernel_us = strtoull(argv[++i], NULL, 10);
		}
	}
	open_driver(library);
	if (do_cuInit(0) || do_cuDevicePrimaryCtxRetain(&context, 0) || do_cuCtxSetCurrent(context) ||
	    do_cuStreamCreate(&stream, CU_STREAM_DEFAULT))
		fail("CUDA does not start");
	kernel = do_simKernelCreate("_Z11late_kernelPf", kernel_us * 1000);
	end = clock_of(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
	for (uint64_t step = 0; !over && step < steps && clock_of(CLOCK_MONOTONIC) < end; step++) {
		if (do_cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) ||
		    do_cuStreamSynchronize(stream))
			fail("a launch failed");
		if (!step) {
			puts("running");
			fflush(stdout);
		}
		checksum ^= compute(work_us * 1000);
	}
	print_account();
	return checksum == 1;
}
