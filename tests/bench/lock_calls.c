/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What calls of the C library's locks cost, for tests/bench/locks.py.
 *
 *	lock_calls [SECONDS]     of each kind (default 0.5)
 *
 * Prints a line for each kind: its name, the median over batches of the time of a call in nanoseconds, and
 *the number of calls. A call is
 *
 *	mutex-free          pthread_mutex_lock and unlock of a mutex that nobody holds
 *	semaphore-free      sem_post and sem_wait that does not wait
 *	semaphore-handed    sem_wait that waits, until another thread on the same CPU has posted
 *	condition-handed    pthread_cond_wait that waits, until another thread on the same CPU has signalled
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_BATCHES 100000

/* What the two threads take turns with; a turn is the answer of one to the other. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static sem_t turns[2];
static int turn; /* mutex */
static bool over;

/* CLOCK_MONOTONIC, or CLOCK_PROCESS_CPUTIME_ID: the CPU time of both threads, without what others took. */
static uint64_t time_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "lock_calls: %s: %m\n", what);
	exit(1);
}

static void take_free_mutex(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void take_free_semaphore(void)
{
	sem_post(&turns[0]);
	while (sem_wait(&turns[0]))
		;
}

static void pass_semaphore(int self)
{
	sem_post(&turns[!self]);
	while (sem_wait(&turns[self]))
		;
}

static void pass_condition(int self)
{
	pthread_mutex_lock(&mutex);
	turn = !self;
	pthread_cond_signal(&changed[!self]);
	while (turn != self)
		pthread_cond_wait(&changed[self], &mutex);
	pthread_mutex_unlock(&mutex);
}

static void hand_semaphore(void)
{
	pass_semaphore(0);
}

static void hand_condition(void)
{
	pass_condition(0);
}

static bool is_over(void)
{
	return __atomic_load_n(&over, __ATOMIC_ACQUIRE);
}

static void *answer_semaphore(void *unused)
{
	while (sem_wait(&turns[1]))
		;
	while (!is_over())
		pass_semaphore(1);
	return unused;
}

static void *answer_condition(void *unused)
{
	pthread_mutex_lock(&mutex);
	while (turn != 1)
		pthread_cond_wait(&changed[1], &mutex);
	pthread_mutex_unlock(&mutex);
	while (!is_over())
		pass_condition(1);
	return unused;
}

/* The last turn goes to the thread that answers, which then ends. */
static void end_semaphore(void)
{
	sem_post(&turns[1]);
}

static void end_condition(void)
{
	pthread_mutex_lock(&mutex);
	turn = 1;
	pthread_cond_signal(&changed[1]);
	pthread_mutex_unlock(&mutex);
}

static const struct kind {
	const char *name;
	void (*call)(void);
	void *(*answer)(void *unused); /* NULL: nobody takes part */
	void (*end)(void);
	int calls, waits; /* of a batch; waits of both threads in a call */
} kinds[] = {
    {"mutex-free", take_free_mutex, NULL, NULL, 200, 1},
    {"semaphore-free", take_free_semaphore, NULL, NULL, 1000, 1},
    {"semaphore-handed", hand_semaphore, answer_semaphore, end_semaphore, 100, 2},
    {"condition-handed", hand_condition, answer_condition, end_condition, 100, 2},
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const struct kind *kind, uint64_t duration_ns)
{
	static double batches[MAX_BATCHES];
	size_t count = 0;
	uint64_t end = time_ns(CLOCK_MONOTONIC) + duration_ns;
	pthread_t thread;

	over = false;
	turn = 0;
	if (kind->answer && pthread_create(&thread, NULL, kind->answer, NULL))
		fail("pthread_create");
	while (count < MAX_BATCHES && time_ns(CLOCK_MONOTONIC) < end) {
		uint64_t begin = time_ns(CLOCK_PROCESS_CPUTIME_ID);

		for (int i = 0; i < kind->calls; i++)
			kind->call();
		batches[count++] =
		    (double)(time_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / kind->calls / kind->waits;
	}
	if (kind->answer) {
		__atomic_store_n(&over, true, __ATOMIC_RELEASE);
		kind->end();
		pthread_join(thread, NULL);
	}
	qsort(batches, count, sizeof(batches[0]), compare_doubles);
	printf("%s %.1f %zu\n", kind->name, batches[count / 2], count * (size_t)(kind->calls * kind->waits));
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.5;
	cpu_set_t set;

	if (argc > 2 || seconds <= 0) {
		fputs("usage: lock_calls [SECONDS]\n", stderr);
		return 2;
	}
	/* Both threads on one CPU: whether the other one was still awake is then no matter of luck. */
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
	sem_init(&turns[0], 0, 0);
	sem_init(&turns[1], 0, 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		measure(&kinds[i], (uint64_t)(seconds * 1e9));
	return 0;
}
