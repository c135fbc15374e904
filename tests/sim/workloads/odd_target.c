/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that are hard to find names in. No GPU.
 *
 *	odd_target threads N         N threads, one after the other, a few at a time; each waits and ends
 *	odd_target deep N            waits at the bottom of N calls of itself, every 5 ms for a second
 *	odd_target reuse PROGRAM…    runs each PROGRAM (sleeps, see `sleeper`) in a process with one and the
 *same id odd_target sleeper [NEXT]    waits in `sleeper_waits`, every 5 ms for half a second, then executes
 *NEXT sleeper odd_target python LIBRARY N  begins and ends an interpreter N times, waits in Python code and
 *after it
 *
 * Each prints one line when it is done.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE 64

static void fail(const char *what)
{
	fprintf(stderr, "odd_target: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Not inlined, and not left by a jump to the next function: so that they are on the stack. */
static __attribute__((noinline)) void wait_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	__asm__ volatile("");
}

/* ---- threads ---- */

static void *short_life(void *unused)
{
	wait_ms(0);
	return unused;
}

static void run_threads(long count)
{
	pthread_t threads[AT_ONCE];

	for (long done = 0; done < count; done += AT_ONCE) {
		for (int i = 0; i < AT_ONCE; i++) {
			errno = pthread_create(&threads[i], NULL, short_life, NULL);
			if (errno)
				fail("pthread_create");
		}
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
	}
	/* One that lives long enough to be seen. */
	for (int i = 0; i < 50; i++)
		wait_ms(5);
	printf("threads %ld\n", count);
}

/* ---- deep ---- */

static __attribute__((noinline)) void bottom(void)
{
	for (int i = 0; i < 200; i++)
		wait_ms(5);
	__asm__ volatile("");
}

static __attribute__((noinline)) long descend(long left)
{
	long below = left;

	if (left)
		below += descend(left - 1);
	else
		bottom();
	__asm__ volatile("" : "+r"(below));
	return below;
}

static void run_deep(long depth)
{
	printf("deep %ld\n", descend(depth));
}

/* ---- reuse ---- */

/* These two are put into the third. */
static inline __attribute__((always_inline)) void nap(void)
{
	wait_ms(5);
	__asm__ volatile("");
}

static inline __attribute__((always_inline)) void many_naps(int count)
{
	for (int i = 0; i < count; i++)
		nap();
}

static __attribute__((noinline)) void sleeper_waits(void)
{
	many_naps(100);
	__asm__ volatile("");
}

static void run_sleeper(const char *next)
{
	sleeper_waits();
	if (next) {
		execl(next, next, "sleeper", NULL);
		fail(next);
	}
}

static void set_last_pid(pid_t pid)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");

	if (!file || fprintf(file, "%d", pid) < 0 || fclose(file))
		fail("ns_last_pid");
}

static void run_reuse(char **programs)
{
	pid_t wanted = 0, child;
	int status;

	for (; *programs; programs++) {
		if (wanted)
			set_last_pid(wanted - 1);
		child = fork();
		if (!child) {
			execl(*programs, *programs, "sleeper", NULL);
			fail(*programs);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			fail("child");
		if (wanted && child != wanted) {
			fprintf(stderr, "odd_target: got process id %d, not %d\n", child, wanted);
			exit(1);
		}
		wanted = child;
	}
	printf("reuse %d\n", wanted);
}

/* ---- an interpreter that comes and goes ---- */

static const char program[] = "import time\n"
                              "def in_python():\n"
                              "    for i in range(10):\n"
                              "        time.sleep(0.005)\n"
                              "in_python()\n";

static __attribute__((noinline)) void without_python(void)
{
	for (int i = 0; i < 10; i++)
		wait_ms(5);
	__asm__ volatile("");
}

static void run_python(const char *path, long count)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	void (*begin)(int), (*end)(void);
	int (*run)(const char *, void *);

	if (!library) {
		fprintf(stderr, "odd_target: %s\n", dlerror());
		exit(1);
	}
	*(void **)&begin = dlsym(library, "Py_InitializeEx");
	*(void **)&end = dlsym(library, "Py_Finalize");
	*(void **)&run = dlsym(library, "PyRun_SimpleStringFlags");
	if (!begin || !end || !run)
		fail("no interpreter");
	for (long i = 0; i < count; i++) {
		begin(0);
		if (run(program, NULL))
			fail("in_python");
		end();
		without_python();
	}
	printf("python %ld\n", count);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *argument = argc > 2 ? argv[2] : "0";

	if (!strcmp(what, "threads"))
		run_threads(atol(argument));
	else if (!strcmp(what, "deep"))
		run_deep(atol(argument));
	else if (!strcmp(what, "reuse"))
		run_reuse(argv + 2);
	else if (!strcmp(what, "sleeper"))
		run_sleeper(argv[2]);
	else if (!strcmp(what, "python") && argc > 3)
		run_python(argument, atol(argv[3]));
	else
		fail("usage");
	return 0;
}
