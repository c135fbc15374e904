/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What goes on beside a healthy loop: none of it is on the way from one launch to the next.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

static bool over;

static bool goes_on(void)
{
	return !__atomic_load_n(&over, __ATOMIC_ACQUIRE);
}

static void spin(const char *scratch)
{
	(void)scratch;
	while (goes_on())
		compute_for(1000000);
}

static void doze(const char *scratch)
{
	(void)scratch;
	while (goes_on())
		sleep_ns(2000000);
}

static void write_disk(const char *scratch)
{
	static char block[1 << 16];
	char path[512];
	int file;

	check(scratch, "--null writer without --scratch");
	snprintf(path, sizeof(path), "%s.log", scratch);
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(file >= 0, path);
	while (goes_on()) {
		check(pwrite(file, block, sizeof(block), 0) == sizeof(block) && !fdatasync(file), path);
		sleep_ns(1000000);
	}
	close(file);
	unlink(path);
}

static pthread_mutex_t quarrel = PTHREAD_MUTEX_INITIALIZER;

static void fight(const char *scratch)
{
	(void)scratch;
	while (goes_on()) {
		pthread_mutex_lock(&quarrel);
		sleep_ns(3000000);
		pthread_mutex_unlock(&quarrel);
		sleep_ns(100000);
	}
}

static void fault(const char *scratch)
{
	const size_t bytes = 1 << 20;

	(void)scratch;
	while (goes_on()) {
		char *chunk = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		check(chunk != MAP_FAILED, "mmap");
		memset(chunk, 1, bytes);
		munmap(chunk, bytes);
		sleep_ns(200000);
	}
}

/* Children that live for a moment, one after the other. */
static void come_and_go(const char *scratch)
{
	(void)scratch;
	while (goes_on()) {
		pid_t child = fork_named("visitor");

		if (!child) {
			compute_for(2000000);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		sleep_ns(20000000);
	}
}

/* Workers that wait for something to do and hardly ever get it. */
static void idle_workers(const char *scratch)
{
	pid_t workers[4];
	int ends[2];
	char byte;

	(void)scratch;
	check(!pipe(ends), "pipe");
	for (int i = 0; i < 4; i++) {
		workers[i] = fork_named("idler");
		if (!workers[i]) {
			close(ends[1]);
			while (read(ends[0], &byte, 1) == 1)
				compute_for(200000);
			_exit(0);
		}
	}
	while (goes_on()) {
		check(write(ends[1], "", 1) == 1, "write to the workers");
		sleep_ns(10000000);
	}
	for (int i = 0; i < 4; i++) {
		kill(workers[i], SIGKILL);
		waitpid(workers[i], NULL, 0);
	}
}

static const struct noise {
	const char *name;
	int threads;
	void (*run)(const char *scratch);
} noises[] = {
    {"spin", 1, spin},           {"doze", 2, doze},   {"writer", 1, write_disk},
    {"fight", 2, fight},         {"fault", 1, fault}, {"visitors", 1, come_and_go},
    {"idlers", 1, idle_workers},
};

struct noise_thread {
	pthread_t thread;
	const struct noise *noise;
	const char *scratch;
};

static struct noise_thread threads[2 * MAX_NOISES];
static size_t thread_count;

static void *noise_main(void *argument)
{
	const struct noise_thread *thread = argument;

	thread->noise->run(thread->scratch);
	return NULL;
}

static void start_noise_thread(const struct noise *noise, const char *scratch)
{
	struct noise_thread *thread = &threads[thread_count++];

	*thread = (struct noise_thread){.noise = noise, .scratch = scratch};
	thread->thread = start_thread(noise->name, noise_main, thread);
}

void noise_start(const char *name, const char *scratch)
{
	if (!strcmp(name, "none"))
		return;
	for (size_t i = 0; i < sizeof(noises) / sizeof(noises[0]); i++) {
		if (strcmp(noises[i].name, name) != 0)
			continue;
		for (int k = 0; k < noises[i].threads; k++)
			start_noise_thread(&noises[i], scratch);
		return;
	}
	fprintf(stderr, "planted: --null %s: there is no such noise\n", name);
	exit(2);
}

void noise_stop_all(void)
{
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	for (size_t i = 0; i < thread_count; i++)
		pthread_join(threads[i].thread, NULL);
}
