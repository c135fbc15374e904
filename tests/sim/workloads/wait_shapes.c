/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loops whose waits show little of when the GPU was busy, for the timeline that is inferred from calls:
 *
 *	wait_shapes SHAPE [--seconds N] [--truth FILE]
 *
 * "behind": a copy and a step every 15 ms, then a wait for the step before, which was over long ago.
 * "drained": a step launched slowly, so that the GPU idles between launches too, a copy back and a wait for
 * it, then 8 ms of the host's own.
 * "bound": a step ahead of a GPU that is always busy.
 * "rare": launched ahead without a wait, but for one after every 20 steps and 8 ms of the host's own.
 * "polled": a step, then its event is asked until it is ready, then 8 ms of the host's own: nothing is waited
 *for. "asked": like "bound", but events are asked instead of waited for. "larger": like "behind", with four
 *times the blocks that are measured.
 *
 * All launch ten steps in one go and wait for them, and the same for one step, as a program does that
 * measures how long a step takes: at first, and again after every 64 steps, as probes may not be set in time
 * for the first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/workloads/common_workload.h"

#define KERNELS     6
#define BATCH_BYTES (64 << 10)
#define PERIOD_NS   15000000
#define HOST_NS     8000000
#define POLL_NS     200000
#define BLOCKS      128 /* of a grid */
#define LARGER      4

struct program {
	struct workload workload;
	CUfunction kernels[KERNELS];
	cudaStream_t stream;
	cudaEvent_t done[2];
	void *pinned, *device;
	const char *shape;
};

static const uint64_t lengths[KERNELS] = {100000, 700000, 50000, 1200000, 300000, 650000};

static void wait_ns(uint64_t length)
{
	struct timespec time = {0, (long)length};

	while (nanosleep(&time, &time))
		;
}

static void launch(struct program *program, unsigned int blocks, uint64_t apart_cpu_ns)
{
	const dim3 grid = {blocks, 1, 1}, block = {256, 1, 1};

	for (int i = 0; i < KERNELS; i++) {
		CUDA(cudaLaunchKernel(program->kernels[i], grid, block, NULL, 0, program->stream));
		if (apart_cpu_ns)
			compute_for(apart_cpu_ns);
	}
}

static void copy_in(struct program *program)
{
	CUDA(cudaMemcpyAsync(program->device, program->pinned, BATCH_BYTES, cudaMemcpyHostToDevice,
	                     program->stream));
}

/* Records that a step was launched, and waits for the step before. */
static void wait_behind(struct program *program)
{
	uint64_t n = program->workload.steps;

	CUDA(cudaEventRecord(program->done[n & 1], program->stream));
	if (n)
		CUDA(cudaEventSynchronize(program->done[(n - 1) & 1]));
}

static void run_behind(struct program *program, unsigned int blocks)
{
	wait_ns(PERIOD_NS);
	copy_in(program);
	launch(program, blocks, 0);
	wait_behind(program);
}

static void step_behind(struct program *program)
{
	run_behind(program, BLOCKS);
}

static void step_larger(struct program *program)
{
	run_behind(program, LARGER * BLOCKS);
}

static void step_drained(struct program *program)
{
	launch(program, BLOCKS, 1000000);
	CUDA(cudaMemcpyAsync(program->pinned, program->device, 4, cudaMemcpyDeviceToHost, program->stream));
	CUDA(cudaStreamSynchronize(program->stream));
	compute_for(HOST_NS);
}

static void step_bound(struct program *program)
{
	launch(program, BLOCKS, 0);
	wait_behind(program);
}

static void step_rare(struct program *program)
{
	launch(program, BLOCKS, 0);
	if (program->workload.steps % 20 == 19) {
		CUDA(cudaStreamSynchronize(program->stream));
		wait_ns(HOST_NS);
	}
}

/* As the compiler of CUDA 13 has it. */
static void launch_plain(struct program *program)
{
	const dim3 grid = {BLOCKS, 1, 1}, block = {256, 1, 1};

	for (int i = 0; i < KERNELS; i++)
		CUDA(__cudaLaunchKernel(program->kernels[i], grid, block, NULL, 0, program->stream));
}

static void ask(cudaEvent_t event)
{
	cudaError_t result;

	while ((result = cudaEventQuery(event)) == cudaErrorNotReady)
		wait_ns(POLL_NS);
	CUDA(result);
}

static void step_polled(struct program *program)
{
	launch_plain(program);
	CUDA(cudaEventRecord(program->done[0], program->stream));
	ask(program->done[0]);
	compute_for(HOST_NS);
}

static void step_asked(struct program *program)
{
	uint64_t n = program->workload.steps;

	launch_plain(program);
	CUDA(cudaEventRecord(program->done[n & 1], program->stream));
	if (n)
		ask(program->done[(n - 1) & 1]);
}

static const struct {
	const char *name;
	void (*step)(struct program *program);
} shapes[] = {
    {"behind", step_behind}, {"drained", step_drained}, {"bound", step_bound}, {"rare", step_rare},
    {"larger", step_larger}, {"polled", step_polled},   {"asked", step_asked},
};

static void prepare(struct program *program)
{
	for (int i = 0; i < KERNELS; i++) {
		program->kernels[i] = simGridKernelCreate("_Z12train_kernelPfS_i", lengths[i] / BLOCKS);
		check(program->kernels[i], "simGridKernelCreate");
	}
	CUDA(cudaStreamCreateWithFlags(&program->stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 2; i++)
		CUDA(cudaEventCreateWithFlags(&program->done[i], CU_EVENT_BLOCKING_SYNC));
	CUDA(cudaHostAlloc(&program->pinned, BATCH_BYTES, 0));
	CUDA(cudaMalloc(&program->device, BATCH_BYTES));
}

static void measure(struct program *program)
{
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < 10; i++)
		launch(program, BLOCKS, 0);
	CUDA(cudaDeviceSynchronize());
	copy_in(program);
	launch(program, BLOCKS, 0);
	CUDA(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
	void (*step)(struct program * program) = NULL;
	static struct program program;

	for (size_t i = 0; argc > 1 && i < sizeof(shapes) / sizeof(shapes[0]); i++)
		step = strcmp(argv[1], shapes[i].name) ? step : shapes[i].step;
	if (!step) {
		fprintf(stderr, "wait_shapes: give a shape\n");
		return 2;
	}
	argv[1] = argv[0];
	workload_begin(&program.workload, argc - 1, argv + 1, "none", "none");
	program.workload.tells_busy = true;
	workload_name_self(&program.workload, program.workload.name, "launcher");
	prepare(&program);
	measure(&program);
	for (workload_start(&program.workload); workload_goes_on(&program.workload);
	     program.workload.steps++) {
		if (program.workload.steps % 64 == 32)
			measure(&program);
		step(&program);
	}
	workload_account(&program.workload);
	return workload_end(&program.workload);
}
