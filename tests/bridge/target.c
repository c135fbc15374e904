/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that a bridge may find itself in, on the simulated GPU:
 *
 *	bridge_target launch COUNT            so many kernels, a synchronisation after every 50th
 *	bridge_target threads THREADS COUNT   the same from several threads at once
 *	bridge_target status CODE             some kernels, then exit with CODE
 *	bridge_target linger COUNT            the same as launch, with an exit that takes its time
 *	bridge_target die SIGNAL MS           a few kernels every 5 ms for that long, then kill itself
 *	bridge_target fork COUNT              half of them, a child that exits through exit(), the other half
 *	bridge_target outlive MS              a child that lives on for that long after its parent
 *	bridge_target exec COUNT              some kernels, then replaces itself by "launch COUNT"
 *	bridge_target spawn COUNT             some kernels, and a child process that runs "launch COUNT"
 *	bridge_target descriptors COUNT       prints the number of a fresh descriptor, then closes all from 3
 *on and goes on launching bridge_target signals                 prints the names of threads that take SIGTERM
 *	bridge_target stuck                   launches, and exits while a kernel still runs
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/cuda_sim.h"

#define KERNEL_NS 20000u

static void check(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "bridge_target: %s: %d\n", what, result);
	exit(99);
}

static void sleep_ms(unsigned int milliseconds)
{
	struct timespec time = {.tv_sec = milliseconds / 1000,
	                        .tv_nsec = (long)(milliseconds % 1000) * 1000000};

	nanosleep(&time, NULL);
}

static void launch(CUfunction kernel, unsigned int count)
{
	dim3 one = {1, 1, 1};

	for (unsigned int i = 1; i <= count; i++) {
		check(cudaLaunchKernel(kernel, one, one, NULL, 0, NULL), "cudaLaunchKernel");
		if (i % 50 == 0 || i == count)
			check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	}
}

static CUfunction start(void)
{
	CUfunction kernel;

	check(cudaSetDevice(0), "cudaSetDevice");
	kernel = simKernelCreate("_Z6targetPf", KERNEL_NS);
	if (!kernel)
		check(ENOMEM, "simKernelCreate");
	return kernel;
}

struct launcher {
	CUfunction kernel;
	unsigned int count;
	pthread_t thread;
};

static void *launch_in_thread(void *argument)
{
	struct launcher *launcher = argument;

	launch(launcher->kernel, launcher->count);
	return NULL;
}

static void run_threads(CUfunction kernel, unsigned int threads, unsigned int count)
{
	struct launcher launchers[32];

	for (unsigned int i = 0; i < threads && i < 32; i++) {
		launchers[i] = (struct launcher){.kernel = kernel, .count = count};
		check(pthread_create(&launchers[i].thread, NULL, launch_in_thread, &launchers[i]),
		      "pthread_create");
	}
	for (unsigned int i = 0; i < threads && i < 32; i++)
		pthread_join(launchers[i].thread, NULL);
}

static void run_fork(CUfunction kernel, unsigned int count)
{
	pid_t child;
	int status;

	launch(kernel, count / 2);
	child = fork();
	if (child == 0)
		exit(5); /* runs whatever the bridge has registered */
	launch(kernel, count - count / 2);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5)
		check(status, "the child's status");
}

static void run_outlive(CUfunction kernel, unsigned int milliseconds)
{
	launch(kernel, 50);
	if (fork() == 0) {
		sleep_ms(milliseconds);
		_exit(0);
	}
}

static void run_spawn(CUfunction kernel, char *self, char *count)
{
	char *arguments[] = {self, "launch", count, NULL};
	pid_t child;
	int status;

	launch(kernel, 50);
	child = vfork();
	if (child == 0) {
		execv("/proc/self/exe", arguments);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child || status)
		check(status, "the child's status");
	launch(kernel, 50);
}

static void run_die(CUfunction kernel, int signal, unsigned int milliseconds)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		launch(kernel, 5);
		sleep_ms(5);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
	         (long)milliseconds);
	kill(getpid(), signal);
}

static void run_descriptors(CUfunction kernel, unsigned int count)
{
	int fd = open("/dev/null", O_RDONLY), pair[2], copies = 0;

	printf("descriptor %d\n", fd);
	launch(kernel, count / 2);
	for (int i = 3; i < 1024; i++)
		close(i);
	/* Every number is somebody else's now: of a socket that has lost its peer, just like the bridge's
	 * might. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		check(errno, "socketpair");
	close(pair[1]);
	while (dup(pair[0]) >= 0 && ++copies < 1000)
		;
	launch(kernel, count - count / 2);
	for (int i = 3; i < 3 + copies; i++)
		if (i != pair[1] && fcntl(i, F_GETFD) < 0)
			printf("descriptor %d was closed\n", i);
}

/* Threads other than the main one that would run a handler of the program. */
static void run_signals(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;

	while (tasks && (task = readdir(tasks))) {
		char path[300], line[256], name[64] = "";
		uint64_t blocked = 0;
		FILE *status;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
		status = fopen(path, "r");
		while (status && fgets(line, sizeof(line), status)) {
			sscanf(line, "Name: %63[^\n]", name);
			sscanf(line, "SigBlk: %" SCNx64, &blocked);
		}
		if (status)
			fclose(status);
		if (name[0])
			printf("%s %s\n", name, blocked & (1u << (SIGTERM - 1)) ? "blocks" : "takes");
	}
	if (tasks)
		closedir(tasks);
}

static void exit_slowly(void)
{
	sleep_ms(300);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	unsigned int first = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
	unsigned int second = argc > 3 ? (unsigned int)strtoul(argv[3], NULL, 10) : 0;
	CUfunction kernel;
	int code = 0;

	if (!strcmp(mode, "linger"))
		atexit(exit_slowly); /* before CUDA's and the bridge's: it runs after them */
	kernel = start();
	if (!strcmp(mode, "launch") || !strcmp(mode, "linger")) {
		launch(kernel, first);
	} else if (!strcmp(mode, "threads")) {
		run_threads(kernel, first, second);
	} else if (!strcmp(mode, "status")) {
		launch(kernel, 50);
		code = (int)first;
	} else if (!strcmp(mode, "die")) {
		run_die(kernel, (int)first, second);
	} else if (!strcmp(mode, "fork")) {
		run_fork(kernel, first);
	} else if (!strcmp(mode, "outlive")) {
		run_outlive(kernel, first);
	} else if (!strcmp(mode, "exec")) {
		launch(kernel, 50);
		execl("/proc/self/exe", argv[0], "launch", argv[2], NULL);
		check(errno, "exec");
	} else if (!strcmp(mode, "spawn")) {
		run_spawn(kernel, argv[0], argv[2]);
	} else if (!strcmp(mode, "descriptors")) {
		run_descriptors(kernel, first);
	} else if (!strcmp(mode, "signals")) {
		launch(kernel, 50);
		run_signals();
	} else if (!strcmp(mode, "stuck")) {
		launch(kernel, 50);
		check(cudaLaunchKernel(simKernelCreate("endless", 3600u * 1000000000ull), (dim3){1, 1, 1},
		                       (dim3){1, 1, 1}, NULL, 0, NULL),
		      "cudaLaunchKernel");
	} else {
		fprintf(stderr, "bridge_target: what?\n");
		return 2;
	}
	printf("bridge_target: done\n");
	return code;
}
