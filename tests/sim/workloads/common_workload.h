/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the workloads share: arguments, the measured window, the intervals in which the plant held the main
 * thread, and the truth file.
 *
 * Truth file (JSON), all times CLOCK_MONOTONIC:
 *	start_ns, end_ns   the measured window: start of the first and end of the last GPU operation of the
 *	                   device, as the device itself accounts them (the window of a report)
 *	busy_ns            length of the union of all kernels, copies and memsets in that window
 *	idle_ns            end_ns - start_ns - busy_ns
 *	planted_ns         idle time that the plant caused: see the comment at the top of each workload
 *	contended_ns       idle time in the same places that comes from other load on the machine, 0 if
 *	                   the workload has its CPUs to itself; not in planted_ns
 *	steps              training steps in the window
 *	pids, threads      processes and threads (pid, tid, name, role) that take part
 */
#ifndef WHYIDLE_SIM_WORKLOAD_H
#define WHYIDLE_SIM_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tests/sim/cuda_sim.h"

/* A stretch of the calling thread in which the plant holds it up. */
struct stall {
	uint64_t start_ns, end_ns;
	uint64_t delay_ns; /* part of it in which the thread could have run but had no CPU (schedstat) */
};

struct stall_list {
	struct stall *items;
	size_t count, capacity;
};

struct workload_thread {
	pid_t pid, tid;
	char name[16];
	char role[16];
};

struct workload {
	const char *name, *expected_code, *expected_role;
	double seconds;
	const char *truth;
	uint64_t deadline_ns;
	uint64_t steps;
	uint64_t planted_ns, contended_ns;
	struct sim_interval *busy; /* the device's own account, after workload_account */
	size_t busy_count;
	struct workload_thread threads[32];
	size_t thread_count;
	bool tells_busy;  /* the truth file also has "busy": when the device was, as [start_ns, end_ns] in
	                     order */
	char extra[2048]; /* more members of the truth file: ", \"name\": value" */
};

/* CLOCK_MONOTONIC and the calling thread's CPU time, ns. */
uint64_t now_ns(void);
uint64_t cpu_ns(void);

/* Reads --seconds N (default 3) and --truth FILE; prints usage and exits 2 on anything else. */
void workload_begin(struct workload *workload, int argc, char **argv, const char *expected_code,
                    const char *expected_role);
/* Starts the clock of --seconds. */
void workload_start(struct workload *workload);
bool workload_goes_on(const struct workload *workload);
/* Lists a thread in the truth file; also names the calling thread if pid and tid are its own. */
void workload_add_thread(struct workload *workload, pid_t pid, pid_t tid, const char *name, const char *role);
void workload_name_self(struct workload *workload, const char *name, const char *role);

/* Synchronises the device and fetches its account: call it before idle_within. */
void workload_account(struct workload *workload);
/* Idle time of the device within [start, end]; only the time between its first and last operation counts. */
uint64_t idle_within(const struct workload *workload, uint64_t start_ns, uint64_t end_ns);
/* Calls `visit` for each idle stretch within [start, end]. */
void each_idle(const struct workload *workload, uint64_t start_ns, uint64_t end_ns,
               void (*visit)(void *context, uint64_t start_ns, uint64_t end_ns), void *context);
/* Writes the truth file, if one is wanted, and a line on standard output. Returns the exit status. */
int workload_end(struct workload *workload);

/* Exits with a message if a CUDA call failed. */
void check_cuda(cudaError_t error, const char *what);
#define CUDA(call) check_cuda(call, #call)
/* The same for anything else: message with errno. */
void check(bool good, const char *what);

/* Around the code that the plant is; begin returns what end needs. */
struct stall stall_begin(void);
void stall_end(struct stall_list *list, struct stall stall);
/*
 * GPU idle time in the stalls that is not run delay: what the plant itself caused, however busy the machine
 * was. *delay_ns (may be NULL) receives the rest: idle time that other load on the machine added.
 */
uint64_t stalls_planted(const struct workload *workload, const struct stall_list *list, uint64_t *delay_ns);

/* Computes until the thread has used that much CPU time; returns a value that depends on all of it. */
uint64_t compute_for(uint64_t duration_cpu_ns);

/* Time that the calling thread has spent runnable but not running since it began (schedstat), ns. */
uint64_t run_delay_ns(void);

/* One training step: kernels on one stream, an event at the end. */
struct gpu_step {
	CUfunction kernel;
	int kernels;
	cudaStream_t stream;
};
void gpu_step_create(struct gpu_step *step, const char *kernel, uint64_t kernel_ns, int kernels);
void gpu_step_launch(const struct gpu_step *step);

#endif
