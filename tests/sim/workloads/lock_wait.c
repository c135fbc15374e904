/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Planted: after each step main takes a mutex that the thread "flusher" holds most of the time. The flusher
 * sleeps for 12 ms while it holds it, lets go and sleeps for 1 ms without it.
 *
 * planted_ns: GPU idle time within main's pthread_mutex_lock, without its run delay (time between the wake-up
 * and running again).
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/workloads/common_workload.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static bool stop; /* log_lock */
static pid_t flusher_tid;
static pthread_barrier_t started;

static void sleep_ns(long duration_ns)
{
	struct timespec t = {0, duration_ns};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void *flush_logs(void *unused)
{
	bool over = false;

	pthread_setname_np(pthread_self(), "flusher");
	flusher_tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&started);
	while (!over) {
		pthread_mutex_lock(&log_lock);
		sleep_ns(12000000);
		over = stop;
		pthread_mutex_unlock(&log_lock);
		sleep_ns(1000000);
	}
	return unused;
}

static __attribute__((noinline)) void record_step(struct stall_list *stalls)
{
	struct stall stall = stall_begin();

	pthread_mutex_lock(&log_lock);
	stall_end(stalls, stall);
	pthread_mutex_unlock(&log_lock);
}

int main(int argc, char **argv)
{
	struct stall_list stalls = {0};
	struct workload workload;
	struct gpu_step step;
	pthread_t flusher;

	workload_begin(&workload, argc, argv, "wait.lock", "launcher");
	workload_name_self(&workload, workload.name, "launcher");
	pthread_barrier_init(&started, NULL, 2);
	check(!pthread_create(&flusher, NULL, flush_logs, NULL), "pthread_create");
	pthread_barrier_wait(&started);
	workload_add_thread(&workload, getpid(), flusher_tid, "flusher", "thread");
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, 4);
	for (workload_start(&workload); workload_goes_on(&workload); workload.steps++) {
		gpu_step_launch(&step);
		CUDA(cudaStreamSynchronize(step.stream));
		record_step(&stalls);
	}
	workload_account(&workload);
	pthread_mutex_lock(&log_lock);
	stop = true;
	pthread_mutex_unlock(&log_lock);
	pthread_join(flusher, NULL);
	workload.planted_ns = stalls_planted(&workload, &stalls, &workload.contended_ns);
	return workload_end(&workload);
}
