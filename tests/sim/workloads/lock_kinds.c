/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lock_kinds KIND [--seconds N] [--truth FILE]: after each step main waits for the thread "helper" by what
 * the C library has for it: condition, semaphore, join, read, write (a read-write lock) or mutex. The helper
 * sleeps for 5 ms meanwhile, with the lock held where there is one. All objects are static, so that they have
 * names.
 *
 * planted_ns: GPU idle time within the wait, without main's run delay.
 */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/workloads/common_workload.h"

#define HELD_NS 5000000

static pthread_mutex_t batch_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t batch_ready = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t batch_count, work_wanted, lock_taken;
static bool ready; /* batch_mutex */
static bool over;  /* written before work_wanted is raised */
static pid_t helper_tid;

struct kind {
	const char *name, *code, *role;
	void (*help)(void); /* what the helper does once it is asked to */
	void (*wait)(void); /* what main does then */
};

static void sleep_held(void)
{
	struct timespec time = {0, HELD_NS};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

static void condition_help(void)
{
	sleep_held();
	pthread_mutex_lock(&batch_mutex);
	ready = true;
	pthread_cond_signal(&batch_ready);
	pthread_mutex_unlock(&batch_mutex);
}

static void condition_wait(void)
{
	pthread_mutex_lock(&batch_mutex);
	while (!ready)
		pthread_cond_wait(&batch_ready, &batch_mutex);
	ready = false;
	pthread_mutex_unlock(&batch_mutex);
}

static void semaphore_help(void)
{
	sleep_held();
	sem_post(&batch_count);
}

static void semaphore_wait(void)
{
	wait_for(&batch_count);
}

static void *joined(void *unused)
{
	pthread_setname_np(pthread_self(), "joined");
	sleep_held();
	return unused;
}

static void join_wait(void)
{
	pthread_t thread;

	check(!pthread_create(&thread, NULL, joined, NULL), "pthread_create");
	pthread_join(thread, NULL);
}

static void read_help(void)
{
	pthread_rwlock_wrlock(&table_lock);
	sem_post(&lock_taken);
	sleep_held();
	pthread_rwlock_unlock(&table_lock);
}

static void read_wait(void)
{
	wait_for(&lock_taken);
	pthread_rwlock_rdlock(&table_lock);
	pthread_rwlock_unlock(&table_lock);
}

static void write_help(void)
{
	pthread_rwlock_rdlock(&table_lock);
	sem_post(&lock_taken);
	sleep_held();
	pthread_rwlock_unlock(&table_lock);
}

static void write_wait(void)
{
	wait_for(&lock_taken);
	pthread_rwlock_wrlock(&table_lock);
	pthread_rwlock_unlock(&table_lock);
}

static void mutex_help(void)
{
	pthread_mutex_lock(&table_mutex);
	sem_post(&lock_taken);
	sleep_held();
	pthread_mutex_unlock(&table_mutex);
}

static void mutex_wait(void)
{
	wait_for(&lock_taken);
	pthread_mutex_lock(&table_mutex);
	pthread_mutex_unlock(&table_mutex);
}

static const struct kind kinds[] = {
    {"condition", "wait.sleep", "thread", condition_help, condition_wait},
    {"semaphore", "wait.sleep", "thread", semaphore_help, semaphore_wait},
    {"join", "wait.sleep", "thread", NULL, join_wait},
    {"read", "wait.sleep", "thread", read_help, read_wait},
    {"write", "wait.sleep", "thread", write_help, write_wait},
    {"mutex", "wait.lock", "launcher", mutex_help, mutex_wait},
};

static void *help(void *context)
{
	const struct kind *kind = context;

	pthread_setname_np(pthread_self(), "helper");
	helper_tid = (pid_t)syscall(SYS_gettid);
	sem_post(&lock_taken);
	for (wait_for(&work_wanted); !over; wait_for(&work_wanted)) {
		if (kind->help)
			kind->help();
	}
	return NULL;
}

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; name && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct kind *kind = find_kind(argv[1]);
	struct stall_list stalls = {0};
	struct workload workload;
	struct gpu_step step;
	pthread_t helper;

	if (!kind) {
		fprintf(stderr, "usage: lock_kinds condition|semaphore|join|read|write|mutex ...\n");
		return 2;
	}
	workload_begin(&workload, argc - 1, argv + 1, kind->code, kind->role);
	workload_name_self(&workload, "lock_kinds", "launcher");
	sem_init(&batch_count, 0, 0);
	sem_init(&work_wanted, 0, 0);
	sem_init(&lock_taken, 0, 0);
	check(!pthread_create(&helper, NULL, help, (void *)kind), "pthread_create");
	wait_for(&lock_taken);
	workload_add_thread(&workload, getpid(), helper_tid, "helper", "thread");
	gpu_step_create(&step, "_Z12train_kernelPfS_i", 1000000, 2);
	for (workload_start(&workload); workload_goes_on(&workload); workload.steps++) {
		struct stall stall;

		gpu_step_launch(&step);
		CUDA(cudaStreamSynchronize(step.stream));
		stall = stall_begin();
		sem_post(&work_wanted);
		kind->wait();
		stall_end(&stalls, stall);
	}
	workload_account(&workload);
	over = true;
	sem_post(&work_wanted);
	pthread_join(helper, NULL);
	workload.planted_ns = stalls_planted(&workload, &stalls, &workload.contended_ns);
	return workload_end(&workload);
}
