/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes scheduler events: pairs of threads that hand a token to and fro, by futex or through pipes. Each
 * hand-over takes one thread off the CPU. The threads of a pair share a CPU, the pairs are spread over all.
 *
 *	many_events [--pairs P] [--rate EVENTS_PER_SECOND] [--seconds N] [--kind futex|pipe]
 *
 * --rate is that of all pairs together (0: as fast as they can). Prints the number of context switches that
 * its threads made, as the kernel counts them, and the rate.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BURST_NS  1000000
#define MAX_PAIRS 64

enum { TURN_PING, TURN_PONG, TURN_OVER };

struct pair {
	int cpu;
	bool by_pipe;
	uint64_t rounds_a_burst; /* 0: no limit */
	uint64_t end_ns;
	uint32_t turn; /* futex word */
	int to_pong[2], to_ping[2];
	uint64_t switches[2];
	pthread_t threads[2];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "many_events: %s: %m\n", what);
	exit(1);
}

static uint64_t own_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

static void give_turn(struct pair *pair, uint32_t turn)
{
	__atomic_store_n(&pair->turn, turn, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &pair->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Waits while it is the other's turn; returns whose turn it is now. */
static uint32_t await_turn(struct pair *pair, uint32_t others)
{
	uint32_t turn;

	while ((turn = __atomic_load_n(&pair->turn, __ATOMIC_SEQ_CST)) == others)
		syscall(SYS_futex, &pair->turn, FUTEX_WAIT_PRIVATE, others, NULL, NULL, 0);
	return turn;
}

static bool read_token(int file)
{
	char token;
	ssize_t size;

	do
		size = read(file, &token, 1);
	while (size < 0 && errno == EINTR);
	return size == 1;
}

static void write_token(int file)
{
	if (write(file, "x", 1) != 1)
		fail("write");
}

static void hand_over_and_back(struct pair *pair)
{
	if (pair->by_pipe) {
		write_token(pair->to_pong[1]);
		if (!read_token(pair->to_ping[0]))
			fail("read");
	} else {
		give_turn(pair, TURN_PONG);
		await_turn(pair, TURN_PONG);
	}
}

static void *ping(void *argument)
{
	struct pair *pair = argument;
	uint64_t next = now_ns();

	pin(pair->cpu);
	while (next < pair->end_ns) {
		uint64_t now;

		for (uint64_t i = 0; !pair->rounds_a_burst || i < pair->rounds_a_burst; i++) {
			hand_over_and_back(pair);
			if (!(i & 63) && now_ns() >= pair->end_ns)
				break;
		}
		next += BURST_NS;
		now = now_ns();
		if (next > now) {
			struct timespec t = {(time_t)(next / 1000000000ULL), (long)(next % 1000000000ULL)};

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		} else {
			next = now; /* cannot keep up: do not try to catch up either */
		}
	}
	if (pair->by_pipe)
		close(pair->to_pong[1]);
	else
		give_turn(pair, TURN_OVER);
	pair->switches[0] = own_switches();
	return NULL;
}

static void *pong(void *argument)
{
	struct pair *pair = argument;

	pin(pair->cpu);
	if (pair->by_pipe) {
		while (read_token(pair->to_pong[0]))
			write_token(pair->to_ping[1]);
	} else {
		while (await_turn(pair, TURN_PING) == TURN_PONG)
			give_turn(pair, TURN_PING);
	}
	pair->switches[1] = own_switches();
	return NULL;
}

/* The n-th allowed CPU, counting round and round. */
static int allowed_cpu(int n)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		fail("sched_getaffinity");
	n %= CPU_COUNT(&allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && n-- == 0)
			return cpu;
	return 0;
}

static void start_pair(struct pair *pair)
{
	if (pair->by_pipe && (pipe(pair->to_pong) || pipe(pair->to_ping)))
		fail("pipe");
	if (pthread_create(&pair->threads[0], NULL, ping, pair) ||
	    pthread_create(&pair->threads[1], NULL, pong, pair))
		fail("pthread_create");
	pthread_setname_np(pair->threads[0], "ping");
	pthread_setname_np(pair->threads[1], "pong");
}

int main(int argc, char **argv)
{
	static struct pair pairs[MAX_PAIRS];
	int count = 2;
	double rate = 0, seconds = 1;
	bool by_pipe = false;
	uint64_t start, switches = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--pairs"))
			count = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--rate"))
			rate = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--kind"))
			by_pipe = !strcmp(argv[i + 1], "pipe");
		else
			count = 0;
	}
	if (argc % 2 == 0 || count < 1 || count > MAX_PAIRS) {
		fprintf(stderr, "usage: %s [--pairs P] [--rate N] [--seconds N] [--kind futex|pipe]\n",
		        argv[0]);
		return 2;
	}
	start = now_ns();
	for (int i = 0; i < count; i++) {
		double rounds = rate / count / 2 * BURST_NS / 1e9;

		pairs[i].cpu = allowed_cpu(i);
		pairs[i].by_pipe = by_pipe;
		pairs[i].rounds_a_burst = rate > 0 ? (uint64_t)(rounds < 1 ? 1 : rounds + 0.5) : 0;
		pairs[i].end_ns = start + (uint64_t)(seconds * 1e9);
		start_pair(&pairs[i]);
	}
	for (int i = 0; i < count; i++) {
		for (int k = 0; k < 2; k++) {
			pthread_join(pairs[i].threads[k], NULL);
			switches += pairs[i].switches[k];
		}
	}
	printf("many_events: switches %llu rate %.0f\n", (unsigned long long)switches,
	       (double)switches / ((double)(now_ns() - start) / 1e9));
	return 0;
}
