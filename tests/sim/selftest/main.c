/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/sim/selftest/selftest.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/clock.h"

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

CUfunction kernel(uint64_t duration_ns)
{
	CUfunction function = simKernelCreate("_Z6kernelPf", duration_ns);

	CHECK(function);
	return function;
}

void launch(CUfunction function, cudaStream_t stream)
{
	const dim3 grid = {4, 2, 1}, block = {32, 1, 1};

	CHECK_EQUAL(cudaLaunchKernel(function, grid, block, NULL, 0, stream), cudaSuccess);
}

cudaStream_t new_stream(unsigned int flags)
{
	cudaStream_t stream;

	CHECK_EQUAL(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
	return stream;
}

struct sim_interval *busy_intervals(size_t *count)
{
	struct sim_interval *intervals;

	*count = simDeviceBusy(0, 0, NULL, 0);
	intervals = calloc(*count + 1, sizeof(*intervals));
	CHECK(intervals);
	CHECK_EQUAL(simDeviceBusy(0, 0, intervals, *count), *count);
	return intervals;
}

uint64_t busy_sum(void)
{
	size_t count;
	struct sim_interval *busy = busy_intervals(&count);
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += busy[i].end_ns - busy[i].start_ns;
	free(busy);
	return sum;
}

/* True if the case did what it should. */
static bool passes(const struct selftest *test)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0) {
		perror("fork");
		return false;
	}
	if (!child) {
		alarm(20); /* a case that hangs fails */
		test->run();
		exit(0);
	}
	if (waitpid(child, &status, 0) != child)
		return false;
	if (test->signal)
		return WIFSIGNALED(status) && WTERMSIG(status) == test->signal;
	if (WIFSIGNALED(status))
		fprintf(stderr, "  killed by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
	const struct selftest *const lists[] = {device_tests, cupti_tests};
	int ran = 0, failed = 0;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const struct selftest *test = lists[i]; test->name; test++) {
			bool passed;

			if (argc > 1 && !strstr(test->name, argv[1]))
				continue;
			passed = passes(test);
			ran++;
			failed += !passed;
			if (!passed || argc > 1)
				printf("%s %s\n", passed ? "ok  " : "FAIL", test->name);
		}
	}
	printf("simulator: %d cases, %d failed\n", ran, failed);
	return failed || !ran;
}
