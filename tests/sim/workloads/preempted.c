/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Planted: main is pinned to one CPU that it shares with two CPU-bound processes ("hog"); after each step it
 * synchronises and then has 3 ms of work to do on that CPU before it launches the next one. It works for 3 ms,
 * but is kept waiting for the CPU about twice as long. Every other CPU that main may use gets a hog as well (at
 * most 3), so that no idle CPU next door makes the pinning itself the cause.
 *
 * planted_ns: run delay (schedstat: runnable but not running) of main from before the synchronising call until
 * after the launch of the next step's first kernel, cut to the GPU idle time in that span. In the call main is
 * blocked, not runnable, until the step ends, so all of the delay falls into the gap.
 * host_work_ns: CPU time of the work itself within the gaps.
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/workloads/common_workload.h"

#define HOST_WORK_NS 3000000
#define HOGS         2
#define MOST_OTHERS  3

struct gap {
	uint64_t start_ns, end_ns; /* before the synchronisation, after the next launch */
	uint64_t delay_ns;
};

static __attribute__((noinline)) uint64_t post_process(void)
{
	return compute_for(HOST_WORK_NS);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	check(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

/* A neighbour that computes for ever, until its parent ends. */
static pid_t start_hog(int cpu)
{
	pid_t parent = getpid(), child = fork();

	check(child >= 0, "fork");
	if (child)
		return child;
	prctl(PR_SET_NAME, "hog");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	pin(cpu);
	for (;;)
		compute_for(100000000);
}

int main(int argc, char **argv)
{
	struct gap *gaps = NULL;
	size_t capacity = 0;
	struct workload workload;
	struct gpu_step step;
	pid_t hogs[HOGS + MOST_OTHERS];
	int hog_count = 0, cpu = -1;
	cpu_set_t allowed;
	uint64_t sum = 0, before = 0, delay_before = 0;

	workload_begin(&workload, argc, argv, "sched.cpu_contention", "launcher");
	workload_name_self(&workload, workload.name, "launcher");
	check(!sched_getaffinity(0, sizeof(allowed), &allowed), "sched_getaffinity");
	for (int i = 0; i < CPU_SETSIZE; i++)
		cpu = CPU_ISSET(i, &allowed) ? i : cpu;
	while (hog_count < HOGS)
		hogs[hog_count++] = start_hog(cpu);
	for (int i = 0; i < cpu && hog_count < HOGS + MOST_OTHERS; i++)
		if (CPU_ISSET(i, &allowed))
			hogs[hog_count++] = start_hog(i);
	for (int i = 0; i < hog_count; i++)
		workload_add_thread(&workload, hogs[i], hogs[i], "hog", "process");
	pin(cpu);
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, 4);
	for (workload_start(&workload); workload_goes_on(&workload); workload.steps++) {
		gpu_step_launch(&step);
		if (before) {
			if (workload.steps >= capacity) {
				capacity = capacity ? 2 * capacity : 1024;
				gaps = realloc(gaps, capacity * sizeof(*gaps));
				check(gaps, "realloc");
			}
			gaps[workload.steps - 1] =
			    (struct gap){before, now_ns(), run_delay_ns() - delay_before};
		}
		before = now_ns();
		delay_before = run_delay_ns();
		CUDA(cudaStreamSynchronize(step.stream));
		sum ^= post_process();
	}
	workload_account(&workload);
	for (int i = 0; i < hog_count; i++) {
		kill(hogs[i], SIGKILL);
		waitpid(hogs[i], NULL, 0);
	}
	for (uint64_t i = 0; i + 1 < workload.steps; i++) {
		uint64_t idle = idle_within(&workload, gaps[i].start_ns, gaps[i].end_ns);

		workload.planted_ns += gaps[i].delay_ns < idle ? gaps[i].delay_ns : idle;
	}
	snprintf(workload.extra, sizeof(workload.extra), ", \"host_work_ns\": %" PRIu64 ", \"checksum\": %u",
	         (workload.steps - 1) * (uint64_t)HOST_WORK_NS, (unsigned int)sum);
	return workload_end(&workload);
}
