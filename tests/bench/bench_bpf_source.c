/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What recording costs: processes that hand a byte to and fro as fast as they can, with and without the BPF
 * source, and with and without user stacks. Prints events and losses a second, and the CPU time that polling
 * and a round trip take. Needs root.
 *
 *	bench_bpf_source [SECONDS [PAIRS]]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect/bpf_source.h"

#define POLL_NS   50000000
#define MAX_PAIRS 64

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* Two processes, one of which counts the rounds. Ends when a pipe does. */
static void ping_pong(uint64_t *rounds)
{
	int to[2], from[2];
	char byte = 0;
	pid_t child;

	if (pipe(to) || pipe(from))
		_exit(1);
	child = fork();
	if (child) {
		close(to[0]);
		close(from[1]);
		while (write(to[1], &byte, 1) == 1 && read(from[0], &byte, 1) == 1)
			++*rounds;
	} else {
		close(to[1]);
		close(from[0]);
		while (read(to[0], &byte, 1) == 1 && write(from[1], &byte, 1) == 1)
			;
	}
	_exit(0);
}

/* The root of the pairs: begins when told so. */
static pid_t start_pairs(int pairs, uint64_t *rounds, int *go)
{
	int fds[2];
	char byte;
	pid_t pid;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (pid) {
		close(fds[0]);
		*go = fds[1];
		return pid;
	}
	setpgid(0, 0);
	close(fds[1]);
	if (read(fds[0], &byte, 1) != 1)
		_exit(1);
	for (int i = 0; i < pairs; i++) {
		if (!fork())
			ping_pong(&rounds[i * 8]);
	}
	for (;;)
		pause();
}

struct result {
	uint64_t rounds, wall_ns, poll_ns;
	struct bpf_source_stats stats;
	uint64_t bytes;
};

/* What is recorded. */
enum mode {
	BARE,
	WITHOUT_USER_STACKS,
	SHORT_WAITS, /* user stacks, of waits of the usual length: too short here to be sent */
	ALL_WAITS,   /* user stacks of every wait */
	MODES,
};

static const char *const mode_names[] = {"bare", "no user stacks", "user stacks", "user stacks of all waits"};

static int run(double seconds, int pairs, enum mode mode, struct result *result, struct error *error)
{
	uint64_t *rounds =
	    mmap(NULL, 64 * MAX_PAIRS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct bpf_source_options options = {
	    .sample_period_ns = BPF_SOURCE_SAMPLE_PERIOD_NS,
	    .user_stacks = mode > WITHOUT_USER_STACKS ? STACKS_OFFCPU | STACKS_SAMPLED : 0,
	    .min_stack_ns = mode == ALL_WAITS};
	bool record = mode != BARE;
	char path[] = "/tmp/whyidle-bench-XXXXXX";
	struct session_writer *writer = NULL;
	struct bpf_source *source = NULL;
	int go = -1, err = 0, file = mkstemp(path);
	uint64_t start, cpu;
	pid_t pid;

	*result = (struct result){0};
	if (rounds == MAP_FAILED || file < 0)
		return error_set(error, -errno, "cannot set up");
	close(file);
	pid = start_pairs(pairs, rounds, &go);
	if (record) {
		err = bpf_source_open(&source, &options, error) ?: session_writer_open(&writer, path, error);
		err = err ?: bpf_source_track(source, pid, error) ?: bpf_source_attach(source, writer, error);
	}
	start = clock_ns(CLOCK_MONOTONIC);
	if (err || write(go, "", 1) != 1)
		goto out;
	while (clock_ns(CLOCK_MONOTONIC) - start < seconds * 1e9 && err >= 0) {
		nanosleep(&(struct timespec){0, POLL_NS}, NULL);
		cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		err = record ? bpf_source_poll(source, error) : 0;
		result->poll_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	}
	result->wall_ns = clock_ns(CLOCK_MONOTONIC) - start;
	for (int i = 0; i < pairs; i++)
		result->rounds += rounds[i * 8];
	if (record) {
		bpf_source_stats(source, &result->stats);
		result->bytes = session_writer_bytes(writer);
	}
out:
	close(go);
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
	bpf_source_close(source);
	session_writer_close(writer, NULL);
	unlink(path);
	munmap(rounds, 64 * MAX_PAIRS);
	return err < 0 ? err : 0;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 5;
	int pairs = argc > 2 ? atoi(argv[2]) : 2;
	struct error error = {0};
	struct result result;

	if (seconds <= 0 || pairs < 1 || pairs > MAX_PAIRS) {
		fprintf(stderr, "usage: %s [SECONDS [PAIRS]]\n", argv[0]);
		return 2;
	}
	for (int mode = BARE; mode < MODES; mode++) {
		double wall;

		if (run(seconds, pairs, mode, &result, &error)) {
			fprintf(stderr, "%s\n", error.text);
			return 1;
		}
		wall = result.wall_ns / 1e9;
		printf("%s: %.0f rounds/s, %.2f us a round\n", mode_names[mode], result.rounds / wall,
		       result.wall_ns / 1e3 / result.rounds * pairs);
		if (mode == BARE)
			continue;
		printf("events %.0f/s, lost %lu, stacks %lu, file %.1f MB/s\n", result.stats.events / wall,
		       (unsigned long)(result.stats.lost_ring + result.stats.lost_stack +
		                       result.stats.lost_storage),
		       (unsigned long)result.stats.stacks, result.bytes / wall / 1e6);
		printf("user stacks %.0f/s, cut %lu, lost %lu\n", result.stats.user_stacks / wall,
		       (unsigned long)result.stats.cut_stacks, (unsigned long)result.stats.lost_user_stacks);
		printf("poll: %.3f us of CPU an event, %.1f %% of one CPU\n",
		       result.stats.events ? result.poll_ns / 1e3 / result.stats.events : 0,
		       100.0 * result.poll_ns / result.wall_ns);
	}
	return 0;
}
