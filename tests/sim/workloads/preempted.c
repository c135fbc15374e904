/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Planted: main is pinned to one CPU that it shares with two CPU-bound processes ("hog"); after each step it
 * synchronises and then has 3 ms of work to do on that CPU before it launches the next one. It works for 3
 * ms, but is kept waiting for the CPU about twice as long. Every other CPU that main may use gets a hog as
 * well (at most 3), so that no idle CPU next door makes the pinning itself the cause.
 *
 * planted_ns: run delay (schedstat: runnable but not running) of main in the gaps, in two parts. From the
 * return of the synchronising call until after the launch of the next step's kernels main never blocks, so
 * its run delay there is exact; it is cut to the idle time of that span. Before, from entering the call until
 * its return, it is the run delay cut to the idle time of that span: main is blocked until the step ends and
 * runnable afterwards.
 *
 * contended_ns: 0, being kept waiting is the plant itself.
 *
 * host_work_ns: CPU time of the work in the gaps.
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

/* Hogs on main's CPU (the last one allowed) and on others. Returns how many, and main's CPU. */
static int start_hogs(struct workload *workload, pid_t *hogs, int *main_cpu)
{
	cpu_set_t allowed;
	int count = 0;

	check(!sched_getaffinity(0, sizeof(allowed), &allowed), "sched_getaffinity");
	for (int i = 0; i < CPU_SETSIZE; i++)
		*main_cpu = CPU_ISSET(i, &allowed) ? i : *main_cpu;
	while (count < HOGS)
		hogs[count++] = start_hog(*main_cpu);
	for (int i = 0; i < *main_cpu && count < HOGS + MOST_OTHERS; i++)
		if (CPU_ISSET(i, &allowed))
			hogs[count++] = start_hog(i);
	for (int i = 0; i < count; i++)
		workload_add_thread(workload, hogs[i], hogs[i], "hog", "process");
	return count;
}

static void end_hogs(const pid_t *hogs, int count)
{
	for (int i = 0; i < count; i++) {
		kill(hogs[i], SIGKILL);
		waitpid(hogs[i], NULL, 0);
	}
}

/* Run delay in the stalls, as far as the GPU was idle. */
static uint64_t delay_in_idle(const struct workload *workload, const struct stall_list *stalls)
{
	uint64_t delay;

	stalls_planted(workload, stalls, &delay);
	return delay;
}

int main(int argc, char **argv)
{
	struct stall_list returns = {0}, works = {0};
	struct stall stall;
	struct workload workload;
	struct gpu_step step;
	pid_t hogs[HOGS + MOST_OTHERS];
	int hog_count, cpu = 0;
	uint64_t sum = 0;

	workload_begin(&workload, argc, argv, "sched.cpu_contention", "launcher");
	workload_name_self(&workload, workload.name, "launcher");
	hog_count = start_hogs(&workload, hogs, &cpu);
	pin(cpu);
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, 4);
	gpu_step_launch(&step);
	for (workload_start(&workload); workload_goes_on(&workload); workload.steps++) {
		stall = stall_begin();
		CUDA(cudaStreamSynchronize(step.stream));
		stall_end(&returns, stall);
		stall = stall_begin();
		sum ^= post_process();
		gpu_step_launch(&step);
		stall_end(&works, stall);
	}
	workload_account(&workload);
	end_hogs(hogs, hog_count);
	workload.planted_ns = delay_in_idle(&workload, &returns) + delay_in_idle(&workload, &works);
	snprintf(workload.extra, sizeof(workload.extra), ", \"host_work_ns\": %" PRIu64 ", \"checksum\": %u",
	         workload.steps * (uint64_t)HOST_WORK_NS, (unsigned int)sum);
	return workload_end(&workload);
}
