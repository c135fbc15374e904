/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names what it does with NVTX, in every way that there is, and prints what it did on its own clock: a line
 * "range NAME START END" for each, with times taken just outside, and "skipped NAME" for what a profiler
 * cannot know. With an argument N it calls cudaProfilerStart before its third step and cudaProfilerStop after
 * its sixth, and "cost N" prints how long a push and a pop take together.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/nvtx_client.h"
#include "tests/sim/workloads/common_workload.h"

#define STEPS 8
#define DEPTH 100

static void told(const char *name, uint64_t start_ns)
{
	printf("range %s %llu %llu\n", name, (unsigned long long)start_ns, (unsigned long long)now_ns());
}

static void expect(int value, int wanted, const char *what)
{
	/* Without a profiler every call says -2. */
	if (value != wanted && value != -2) {
		fprintf(stderr, "nvtx_ranges: %s: %d, not %d\n", what, value, wanted);
		exit(1);
	}
}

static void *end_it(void *id)
{
	nvtxRangeEnd(*(nvtxRangeId_t *)id);
	return NULL;
}

/* Ranges of two domains that cross, one of them with a registered name. */
static void cross_domains(void)
{
	nvtxDomainHandle_t loader = nvtxDomainCreateA("loader");
	nvtxEventAttributes_t event = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
	uint64_t outer, inner;

	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = nvtxDomainRegisterStringA(loader, "fetch");
	outer = now_ns();
	expect(nvtxRangePushA("crossing"), 1, "level in train_step");
	inner = now_ns();
	expect(nvtxDomainRangePushEx(loader, &event), 0, "level in another domain");
	expect(nvtxRangePop(), 1, "pop of the outer one first");
	told("crossing", outer);
	expect(nvtxDomainRangePop(loader), 0, "pop of the other domain");
	told("fetch", inner);
	event.messageType = NVTX_MESSAGE_TYPE_ASCII;
	event.message.ascii = "event";
	outer = now_ns();
	expect(nvtxRangePushEx(&event), 1, "level of an event");
	expect(nvtxRangePop(), 1, "pop of an event");
	told("event", outer);
	outer = now_ns();
	nvtxRangePushW(L"gr\u00fc\u00dfe\U0001f600");
	nvtxRangePop();
	told("gr\u00fc\u00dfe\U0001f600", outer);
}

static void nest_deeply(void)
{
	for (int i = 0; i < DEPTH; i++)
		nvtxRangePushA("deep");
	for (int i = 0; i < DEPTH; i++)
		nvtxRangePop();
	nvtxRangePushA(NULL);
	nvtxRangePop();
}

static void measure_cost(int pairs)
{
	uint64_t start = now_ns();

	for (int i = 0; i < pairs; i++) {
		nvtxRangePushA("cost");
		nvtxRangePop();
	}
	printf("cost %.1f\n", (double)(now_ns() - start) / pairs);
}

int main(int argc, char **argv)
{
	bool profiled = argc > 1 && !strcmp(argv[1], "profiled");
	uint64_t before = now_ns(), epoch;
	struct gpu_step step;
	nvtxRangeId_t id;
	pthread_t thread;

	expect(nvtxRangePop(), -2, "pop of nothing");
	nvtxRangePushA("before_cuda"); /* still open when CUDA begins */
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 500000, 2);
	gpu_step_launch(&step);
	CUDA(cudaStreamSynchronize(step.stream));
	nvtxRangePop();
	told("before_cuda", before);
	epoch = now_ns();
	id = nvtxRangeStartA("epoch");
	for (int i = 0; i < STEPS; i++) {
		uint64_t begun;

		if (profiled && i == 2)
			CUDA(cudaProfilerStart());
		begun = now_ns();
		expect(nvtxRangePushA("train_step"), 0, "level of a step");
		gpu_step_launch(&step);
		CUDA(cudaStreamSynchronize(step.stream));
		if (i == 1)
			cross_domains();
		nvtxRangePop();
		told("train_step", begun);
		if (profiled && i == 5)
			CUDA(cudaProfilerStop());
	}
	check(!pthread_create(&thread, NULL, end_it, &id), "pthread_create");
	pthread_join(thread, NULL);
	told("epoch", epoch);
	nest_deeply();
	if (argc > 2 && !strcmp(argv[1], "cost"))
		measure_cost(atoi(argv[2]));
	nvtxRangePushA("never_popped");
	if (!fork()) { /* a child is silent */
		nvtxRangePushA("of_a_child");
		nvtxRangePop();
		_exit(0);
	}
	return 0;
}
