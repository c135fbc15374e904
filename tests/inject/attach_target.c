// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program on the simulated GPU that notices whatever an attachment should not have changed.
 *
 *	attach_target THING…
 *
 * starts a thread for each thing, prints "ready", and goes on until its standard input ends. Then it prints
 * "steps=N rounds=N anomalies=N" and the first anomaly on a line of its own; exit status 1 if there was one.
 *
 *	launch    launches kernels (steps), synchronises after every tenth
 *	malloc    allocates and frees without a pause
 *	dlopen    loads and unloads a library without a pause
 *	cond      waits 30 ms on a condition variable in vain
 *	sleep     nanosleep of 20 ms
 *	poll      poll of 25 ms without descriptors
 *	epoll     epoll_wait of 25 ms without events: the kernel does not restart that one by itself
 *	pipe      hands a byte to and fro with a thread that reads a pipe
 *	receive   recv with a time-out of 25 ms, which the kernel does not restart either
 *	signal    gets a signal in every poll: each must make it fail with EINTR
 *	restart   the same with SA_RESTART while it reads a pipe: none may be seen
 *	fork      forks children that compare their descriptors with their parent's (not with dlopen or
 *signal) profiler  another user of CUPTI: subscribes and lets go without a pause; taken is all right, too
 *	idle      only waits, for good, on a condition variable
 *	busy      never waits
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cupti_bridge/cupti_abi.h"
#include "tests/sim/cuda_sim.h"

static bool stopping; /* atomic */
static uint64_t steps, rounds, anomalies;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char first[256];

static int running; /* things that go round, with all the threads they start (atomic) */

static bool goes_on(void)
{
	static __thread bool counted;

	if (!counted)
		__atomic_add_fetch(&running, 1, __ATOMIC_RELEASE);
	counted = true;
	__atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
	return !__atomic_load_n(&stopping, __ATOMIC_RELAXED);
}

__attribute__((format(printf, 1, 2))) static void anomaly(const char *format, ...)
{
	va_list arguments;

	pthread_mutex_lock(&lock);
	if (!anomalies++) {
		va_start(arguments, format);
		vsnprintf(first, sizeof(first), format, arguments);
		va_end(arguments);
	}
	pthread_mutex_unlock(&lock);
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* A wait that has to last its time; how much longer is up to the scheduler. */
static void check_wait(const char *what, long result, long wanted, int error, uint64_t begin_us,
                       uint64_t least_us)
{
	uint64_t took = now_us() - begin_us;

	if (result != wanted)
		anomaly("%s returned %ld (errno %d) instead of %ld after %lu us", what, result, error, wanted,
		        (unsigned long)took);
	else if (took + 1000 < least_us)
		anomaly("%s returned after %lu us instead of %lu", what, (unsigned long)took,
		        (unsigned long)least_us);
}

static void *run_launch(void *unused)
{
	CUfunction kernel = simKernelCreate("_Z13attach_kernelPf", 20000);
	dim3 one = {1, 1, 1};

	cudaSetDevice(0);
	while (goes_on()) {
		if (cudaLaunchKernel(kernel, one, one, NULL, 0, NULL))
			anomaly("a launch failed");
		if (++steps % 10 == 0 && cudaDeviceSynchronize())
			anomaly("a synchronisation failed");
	}
	return unused;
}

static void *run_malloc(void *unused)
{
	void *blocks[64] = {0};
	unsigned int seed = 1;

	while (goes_on()) {
		unsigned int i = (unsigned int)rand_r(&seed) % 64;
		size_t size = (size_t)rand_r(&seed) % 70000;

		free(blocks[i]);
		blocks[i] = malloc(size);
		if (blocks[i])
			memset(blocks[i], 0x5a, size);
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
	return unused;
}

static void *run_dlopen(void *unused)
{
	while (goes_on()) {
		void *handle = dlopen("libresolv.so.2", RTLD_NOW);

		if (handle)
			dlclose(handle);
	}
	return unused;
}

static void *run_cond(void *unused)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_condattr_t clock;
	pthread_cond_t never;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&never, &clock);
	pthread_mutex_lock(&mutex);
	while (goes_on()) {
		uint64_t begin = now_us(), end = begin + 30000;
		struct timespec until = {.tv_sec = (time_t)(end / 1000000),
		                         .tv_nsec = (long)(end % 1000000) * 1000};
		int result;

		do /* spurious wake-ups are allowed */
			result = pthread_cond_timedwait(&never, &mutex, &until);
		while (!result);
		check_wait("pthread_cond_timedwait", result, ETIMEDOUT, 0, begin, 30000);
	}
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void *run_sleep(void *unused)
{
	const struct timespec time = {.tv_nsec = 20000000};

	while (goes_on()) {
		uint64_t begin = now_us();

		check_wait("nanosleep", nanosleep(&time, NULL), 0, errno, begin, 20000);
	}
	return unused;
}

static void *run_poll(void *unused)
{
	while (goes_on()) {
		uint64_t begin = now_us();

		check_wait("poll", poll(NULL, 0, 25), 0, errno, begin, 25000);
	}
	return unused;
}

static void *run_epoll(void *unused)
{
	int fd = epoll_create1(0);
	struct epoll_event event;

	while (goes_on()) {
		uint64_t begin = now_us();

		check_wait("epoll_wait", epoll_wait(fd, &event, 1, 25), 0, errno, begin, 25000);
	}
	close(fd);
	return unused;
}

static void *run_receive(void *unused)
{
	struct timeval timeout = {.tv_usec = 25000};
	int ends[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
	    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)))
		return unused;
	while (goes_on()) {
		uint64_t begin = now_us();
		ssize_t got = recv(ends[0], &byte, 1, 0);

		check_wait("recv", got < 0 ? errno : got, EAGAIN, errno, begin, 25000);
	}
	close(ends[0]);
	close(ends[1]);
	return unused;
}

static int there[2], back[2];

static void *echo(void *unused)
{
	char byte;
	ssize_t got;

	while ((got = read(there[0], &byte, 1)) == 1 && byte != 'x')
		if (write(back[1], &byte, 1) != 1)
			anomaly("write to a pipe failed: %d", errno);
	if (got != 1)
		anomaly("read of a pipe returned %ld (errno %d)", (long)got, errno);
	return unused;
}

static void *run_pipe(void *unused)
{
	pthread_t thread;
	char byte = 'a';

	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, echo, NULL))
		return unused;
	while (goes_on()) {
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			anomaly("a byte was lost on its way: %d", errno);
		usleep(3000);
	}
	if (write(there[1], "x", 1) == 1)
		pthread_join(thread, NULL);
	return unused;
}

/* ---- signals ---- */

struct signalled {
	uint64_t handled, returned;
	pid_t tid;
	pthread_t thread;
	int fd;
	bool ended;
};

static struct signalled polls, reads;

static void handle_poll(int number)
{
	(void)number;
	__atomic_add_fetch(&polls.handled, 1, __ATOMIC_SEQ_CST);
}

static void handle_read(int number)
{
	(void)number;
	__atomic_add_fetch(&reads.handled, 1, __ATOMIC_SEQ_CST);
}

/* True if the thread waits in system call `number` now. */
static bool waits_in(pid_t tid, int number)
{
	char path[64], text[64] = "";
	int wanted = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fgets(text, sizeof(text), file))
		wanted = text[0] == 'r' ? -1 : atoi(text);
	fclose(file);
	return wanted == number;
}

/* Waits until `word` reaches `value`; false after twenty seconds. */
static bool reaches(uint64_t *word, uint64_t value)
{
	uint64_t end = now_us() + 20000000;

	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) < value) {
		if (now_us() > end)
			return false;
		usleep(50);
	}
	return true;
}

static void *be_polled(void *argument)
{
	struct signalled *self = argument;

	self->tid = (pid_t)syscall(SYS_gettid);
	while (!__atomic_load_n(&self->ended, __ATOMIC_SEQ_CST)) {
		int result = poll(NULL, 0, -1);

		if (result != -1 || errno != EINTR)
			anomaly("poll returned %d (errno %d) without a signal", result, errno);
		__atomic_add_fetch(&self->returned, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void *run_signal(void *unused)
{
	struct sigaction action = {.sa_handler = handle_poll};
	uint64_t sent = 0;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&polls.thread, NULL, be_polled, &polls);
	while (goes_on()) {
		while (!polls.tid || !waits_in(polls.tid, SYS_poll))
			sched_yield();
		pthread_kill(polls.thread, SIGUSR1);
		sent++;
		if (!reaches(&polls.handled, sent) || !reaches(&polls.returned, sent)) {
			anomaly("signal %lu: handled %lu, EINTR %lu", (unsigned long)sent,
			        (unsigned long)polls.handled, (unsigned long)polls.returned);
			return unused; /* the thread stays in its poll */
		}
	}
	__atomic_store_n(&polls.ended, true, __ATOMIC_SEQ_CST);
	while (!waits_in(polls.tid, SYS_poll))
		sched_yield();
	pthread_kill(polls.thread, SIGUSR1);
	pthread_join(polls.thread, NULL);
	return unused;
}

static void *be_read(void *argument)
{
	struct signalled *self = argument;
	char byte;
	ssize_t got;

	self->tid = (pid_t)syscall(SYS_gettid);
	got = read(self->fd, &byte, 1);
	if (got != 1)
		anomaly("read with SA_RESTART returned %ld (errno %d)", (long)got, errno);
	return NULL;
}

static void *run_restart(void *unused)
{
	struct sigaction action = {.sa_handler = handle_read, .sa_flags = SA_RESTART};
	uint64_t sent = 0;
	int ends[2];

	sigaction(SIGUSR2, &action, NULL);
	if (pipe(ends))
		return unused;
	reads.fd = ends[0];
	pthread_create(&reads.thread, NULL, be_read, &reads);
	while (goes_on()) {
		while (!reads.tid || !waits_in(reads.tid, SYS_read))
			sched_yield();
		pthread_kill(reads.thread, SIGUSR2);
		if (!reaches(&reads.handled, ++sent)) {
			anomaly("a signal was not handled");
			break;
		}
	}
	if (write(ends[1], "x", 1) == 1)
		pthread_join(reads.thread, NULL);
	return unused;
}

/* ---- */

/* `tell`: on standard error, what they are. */
static int count_descriptors(bool tell)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	int count = 0;

	while (folder && (entry = readdir(folder))) {
		char path[300], name[300];
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%.100s", entry->d_name);
		length = readlink(path, name, sizeof(name) - 1);
		count++;
		if (tell && length > 0)
			fprintf(stderr, "%s is %.*s\n", entry->d_name, (int)length, name);
	}
	if (folder)
		closedir(folder);
	return count;
}

static void *run_fork(void *unused)
{
	int wanted = count_descriptors(false);

	while (goes_on()) {
		int status = 0;
		pid_t child = fork();

		if (!child)
			_exit(count_descriptors(false) == wanted ? 0 : (count_descriptors(true), 7));
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			anomaly("a child ended with status %d", status);
		usleep(2000);
	}
	return unused;
}

static uint64_t subscribed;

static void *run_profiler(void *unused)
{
	void *handle = dlopen(getenv("ATTACH_CUPTI"), RTLD_NOW | RTLD_LOCAL);
	cupti_abi_cuptiSubscribe subscribe;
	cupti_abi_cuptiUnsubscribe unsubscribe;
	cupti_abi_subscriber subscriber;

	if (!handle) {
		anomaly("no CUPTI: %s", dlerror());
		return unused;
	}
	*(void **)&subscribe = dlsym(handle, "cuptiSubscribe");
	*(void **)&unsubscribe = dlsym(handle, "cuptiUnsubscribe");
	while (goes_on()) {
		cupti_abi_result result = subscribe(&subscriber, NULL, NULL);

		if (result == CUPTI_ABI_SUCCESS) {
			__atomic_add_fetch(&subscribed, 1, __ATOMIC_RELAXED);
			usleep(1000);
			result = unsubscribe(subscriber);
			if (result != CUPTI_ABI_SUCCESS)
				anomaly("cuptiUnsubscribe returned %d", result);
		} else if (result != CUPTI_ABI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
			anomaly("cuptiSubscribe returned %d", result);
		}
		usleep(1000);
	}
	return unused;
}

static void *run_idle(void *unused)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&never, &mutex);
	return unused;
}

static void *run_busy(void *unused)
{
	while (goes_on())
		;
	return unused;
}

static const struct {
	const char *name;
	void *(*run)(void *);
	bool endless;
} things[] = {
    {"launch", run_launch, false}, {"malloc", run_malloc, false},   {"dlopen", run_dlopen, false},
    {"cond", run_cond, false},     {"sleep", run_sleep, false},     {"poll", run_poll, false},
    {"epoll", run_epoll, false},   {"receive", run_receive, false}, {"pipe", run_pipe, false},
    {"signal", run_signal, false}, {"restart", run_restart, false}, {"fork", run_fork, false},
    {"idle", run_idle, true},      {"busy", run_busy, false},       {"profiler", run_profiler, false},
};

static pthread_t threads[32];
static int thread_count;

static bool start(const char *name)
{
	for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++) {
		pthread_t thread;

		if (strcmp(things[i].name, name))
			continue;
		if (pthread_create(&thread, NULL, things[i].run, NULL))
			return false;
		if (!things[i].endless && thread_count < 32)
			threads[thread_count++] = thread;
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	char byte;

	if (cudaSetDevice(0) || cudaFree(NULL)) {
		fputs("attach_target: no simulated GPU\n", stderr);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		if (!start(argv[i])) {
			fprintf(stderr, "attach_target: what is %s?\n", argv[i]);
			return 2;
		}
	/* Whoever compares threads before and after has to see all of them before. */
	for (uint64_t end = now_us() + 30000000;
	     __atomic_load_n(&running, __ATOMIC_ACQUIRE) < thread_count;) {
		if (now_us() > end) {
			fputs("attach_target: not everything has started\n", stderr);
			return 2;
		}
		usleep(1000);
	}
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0) {
		printf("steps=%lu subscribed=%lu\n", (unsigned long)__atomic_load_n(&steps, __ATOMIC_RELAXED),
		       (unsigned long)__atomic_load_n(&subscribed, __ATOMIC_RELAXED));
		fflush(stdout);
	}
	__atomic_store_n(&stopping, true, __ATOMIC_RELAXED);
	for (int i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	printf("steps=%lu rounds=%lu anomalies=%lu\n", (unsigned long)steps, (unsigned long)rounds,
	       (unsigned long)anomalies);
	if (anomalies)
		puts(first);
	return anomalies ? 1 : 0;
}
