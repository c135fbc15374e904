/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The four ways in which a launcher comes to wait for who runs a plant.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

struct channel {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t requested, answered; /* lock */
	bool over;                    /* lock */
	pid_t child;
	int request, answer; /* pipe ends, or a socket in both */
};

/* What a process that serves is told first; the log's memory comes with it. */
struct order {
	char kind[32];
	char scratch[256];
	uint64_t duration_ns;
};

void sleep_ns(uint64_t duration_ns)
{
	struct timespec t = {(time_t)(duration_ns / 1000000000ULL), (long)(duration_ns % 1000000000ULL)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	check(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

int cpu_allowed(bool last)
{
	static cpu_set_t allowed;
	int found = -1;

	if (!CPU_COUNT(&allowed))
		check(!sched_getaffinity(0, sizeof(allowed), &allowed), "sched_getaffinity");
	for (int i = 0; i < CPU_SETSIZE && (last || found < 0); i++)
		found = CPU_ISSET(i, &allowed) ? i : found;
	return found;
}

uint64_t cpu_idle_ns(int cpu)
{
	FILE *file = fopen("/proc/stat", "r");
	unsigned long long idle = 0;
	char line[512], name[16];

	check(file, "/proc/stat");
	snprintf(name, sizeof(name), "cpu%d ", cpu);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), "%*u %*u %*u %llu", &idle);
	}
	fclose(file);
	return idle * (1000000000ULL / (unsigned long long)sysconf(_SC_CLK_TCK));
}

pthread_t start_thread(const char *name, void *(*run)(void *), void *argument)
{
	pthread_t thread;

	check(!pthread_create(&thread, NULL, run, argument), "pthread_create");
	pthread_setname_np(thread, name);
	return thread;
}

pid_t fork_named(const char *name)
{
	pid_t parent = getpid(), child = fork();

	check(child >= 0, "fork");
	if (child)
		return child;
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	return 0;
}

/* Runner */

static void log_map(struct plant *plant)
{
	plant->log = mmap(NULL, sizeof(*plant->log), PROT_READ | PROT_WRITE, MAP_SHARED, plant->log_file, 0);
	check(plant->log != MAP_FAILED, "mmap of the log");
}

void plant_log_create(struct plant *plant)
{
	plant->log_file = memfd_create("stalls", MFD_CLOEXEC);
	check(plant->log_file >= 0, "memfd_create");
	check(!ftruncate(plant->log_file, sizeof(*plant->log)), "ftruncate");
	log_map(plant);
}

static void runner_set_up(struct plant *plant)
{
	plant->log->pid = getpid();
	plant->log->tid = (int32_t)syscall(SYS_gettid);
	/* Pages of the log are not to be faulted in within a stall. */
	for (size_t at = 0; at < sizeof(*plant->log); at += 4096)
		((volatile char *)plant->log)[at] = ((volatile char *)plant->log)[at];
	run_delay_ns(); /* opens its file */
	if (plant->kind->set_up)
		plant->kind->set_up(plant);
	plant->first_delay_ns = run_delay_ns();
}

/* Being kept from the CPU begins when the runner is asked, before it can log anything. */
static void count_from_request(struct plant *plant, struct stall_record *record)
{
	uint64_t requested = plant->log->requested_ns;

	if (plant->last_end_ns) {
		record->start_ns = requested > plant->last_end_ns ? requested : plant->last_end_ns;
		record->delay_ns = plant->last_delay_ns;
	}
}

static void log_stall(struct plant *plant, const struct stall_record *record)
{
	struct stall_log *log = plant->log;

	if (log->count < STALL_CAPACITY)
		log->records[log->count++] = *record;
	else
		log->dropped++;
}

static __attribute__((noinline)) void runner_stall(struct plant *plant)
{
	struct stall_record record;
	uint64_t cpu;

	if (!plant->duration_ns)
		return;
	record.begun_ns = now_ns();
	if (plant->kind->prepare)
		plant->kind->prepare(plant);
	plant->aside_ns = plant->helpers_delay_ns = 0;
	record.delay_ns = run_delay_ns();
	cpu = cpu_ns();
	record.start_ns = now_ns();
	if (plant->kind->measure == MEASURE_DELAYED)
		count_from_request(plant, &record);
	plant->kind->run(plant);
	record.end_ns = plant->last_end_ns = now_ns();
	record.cpu_ns = cpu_ns() - cpu;
	plant->last_delay_ns = run_delay_ns();
	plant->log->delay_ns = plant->last_delay_ns - plant->first_delay_ns;
	record.delay_ns = plant->last_delay_ns - record.delay_ns + plant->helpers_delay_ns;
	/* The kernel counts what the hypervisor takes neither here nor there. */
	if (plant->kind->never_blocks && record.end_ns - record.start_ns > record.cpu_ns)
		record.delay_ns = record.end_ns - record.start_ns - record.cpu_ns;
	plant->log->helpers_delay_ns += plant->helpers_delay_ns;
	record.aside_ns = plant->aside_ns;
	log_stall(plant, &record);
}

/* Answers each byte of `request` with one to `answer`, until there are no more. */
static void runner_answer(struct plant *plant, int request, int answer)
{
	char byte;

	while (read(request, &byte, 1) == 1) {
		runner_stall(plant);
		if (write(answer, &byte, 1) != 1)
			break;
	}
}

/* Thread */

static void *thread_main(void *argument)
{
	struct plant *plant = argument;
	struct channel *channel = plant->channel;

	runner_set_up(plant);
	pthread_mutex_lock(&channel->lock);
	channel->answered = 1; /* number 1 is the set-up */
	pthread_cond_broadcast(&channel->changed);
	for (;;) {
		while (channel->requested == channel->answered && !channel->over)
			pthread_cond_wait(&channel->changed, &channel->lock);
		if (channel->over)
			break;
		pthread_mutex_unlock(&channel->lock);
		runner_stall(plant);
		pthread_mutex_lock(&channel->lock);
		channel->answered = channel->requested;
		pthread_cond_broadcast(&channel->changed);
	}
	pthread_mutex_unlock(&channel->lock);
	return NULL;
}

static void thread_request(struct channel *channel)
{
	pthread_mutex_lock(&channel->lock);
	channel->requested++;
	pthread_cond_broadcast(&channel->changed);
	while (channel->answered != channel->requested)
		pthread_cond_wait(&channel->changed, &channel->lock);
	pthread_mutex_unlock(&channel->lock);
}

static void thread_start(struct plant *plant, struct channel *channel)
{
	channel->requested = 1;
	channel->thread = start_thread("helper", thread_main, plant);
	pthread_mutex_lock(&channel->lock);
	while (channel->answered != channel->requested)
		pthread_cond_wait(&channel->changed, &channel->lock);
	pthread_mutex_unlock(&channel->lock);
}

/* Worker */

static void worker_start(struct plant *plant, struct channel *channel)
{
	int down[2], up[2];

	check(!pipe(down), "pipe");
	check(!pipe(up), "pipe");
	channel->child = fork_named("worker");
	if (!channel->child) {
		close(down[1]);
		close(up[0]);
		signal(SIGPIPE, SIG_IGN);
		runner_set_up(plant);
		check(write(up[1], "", 1) == 1, "write to the launcher");
		runner_answer(plant, down[0], up[1]);
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	channel->request = down[1];
	channel->answer = up[0];
}

/* Process */

struct sockaddr_un socket_address(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	check(strlen(path) < sizeof(address.sun_path), "length of the socket's path");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return address;
}

/* Sends or receives an order with the descriptor of the log. */
static bool pass_order(int file, struct order *order, int *log_file, bool sends)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control = {0};
	struct iovec part = {order, sizeof(*order)};
	struct msghdr message = {
	    .msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *head = &control.aligned;

	if (sends) {
		*head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(head), log_file, sizeof(int));
		return sendmsg(file, &message, MSG_NOSIGNAL) == sizeof(*order);
	}
	if (recvmsg(file, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) != sizeof(*order) ||
	    message.msg_controllen < CMSG_LEN(sizeof(int)) || head->cmsg_type != SCM_RIGHTS)
		return false;
	memcpy(log_file, CMSG_DATA(head), sizeof(int));
	return true;
}

static void process_start(struct plant *plant, struct channel *channel, const char *path)
{
	struct order order = {.duration_ns = plant->duration_ns};
	struct sockaddr_un address;

	check(path, "place `process` without --socket");
	address = socket_address(path);
	channel->request = channel->answer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(channel->request >= 0, "socket");
	check(!connect(channel->request, (struct sockaddr *)&address, sizeof(address)), path);
	snprintf(order.kind, sizeof(order.kind), "%s", plant->kind->name);
	snprintf(order.scratch, sizeof(order.scratch), "%s", plant->scratch ? plant->scratch : "");
	check(pass_order(channel->request, &order, &plant->log_file, true), "sendmsg");
}

static void serve_one(int file)
{
	struct plant plant = {.place = PLACE_PROCESS};
	struct order order;

	if (!pass_order(file, &order, &plant.log_file, false))
		return;
	order.kind[sizeof(order.kind) - 1] = order.scratch[sizeof(order.scratch) - 1] = '\0';
	plant.kind = plant_kind_find(order.kind);
	if (!plant.kind)
		return;
	plant.duration_ns = order.duration_ns;
	plant.scratch = order.scratch[0] ? order.scratch : NULL;
	log_map(&plant);
	runner_set_up(&plant);
	if (write(file, "", 1) == 1)
		runner_answer(&plant, file, file);
	munmap(plant.log, sizeof(*plant.log));
	close(plant.log_file);
}

int plant_serve(const char *path)
{
	struct sockaddr_un address = socket_address(path);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	signal(SIGPIPE, SIG_IGN);
	check(listener >= 0, "socket");
	check(!bind(listener, (struct sockaddr *)&address, sizeof(address)), path);
	check(!listen(listener, 8), "listen");
	for (;;) {
		int file = accept(listener, NULL, NULL);

		check(file >= 0, "accept");
		serve_one(file);
		close(file);
	}
}

/* Launcher */

static void await_byte(int file)
{
	char byte;

	check(read(file, &byte, 1) == 1, "answer of who runs the plant");
}

void plant_start(struct plant *plant, const char *socket_path)
{
	struct channel *channel = calloc(1, sizeof(*channel));

	check(channel, "calloc");
	*channel = (struct channel){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	plant->channel = channel;
	switch (plant->place) {
	case PLACE_THREAD:
		thread_start(plant, channel);
		break;
	case PLACE_WORKER:
		worker_start(plant, channel);
		await_byte(channel->answer);
		break;
	case PLACE_PROCESS:
		process_start(plant, channel, socket_path);
		await_byte(channel->answer);
		break;
	default:
		runner_set_up(plant);
	}
}

__attribute__((noinline)) void plant_request(struct plant *plant)
{
	struct channel *channel = plant->channel;

	switch (plant->place) {
	case PLACE_THREAD:
		thread_request(channel);
		break;
	case PLACE_WORKER:
	case PLACE_PROCESS:
		plant->log->requested_ns = now_ns();
		check(write(channel->request, "", 1) == 1, "request to who runs the plant");
		await_byte(channel->answer);
		break;
	default:
		runner_stall(plant);
	}
}

void plant_stop(struct plant *plant)
{
	struct channel *channel = plant->channel;

	if (plant->place == PLACE_THREAD) {
		pthread_mutex_lock(&channel->lock);
		channel->over = true;
		pthread_cond_broadcast(&channel->changed);
		pthread_mutex_unlock(&channel->lock);
		pthread_join(channel->thread, NULL);
	} else if (plant->place == PLACE_WORKER) {
		/* Other workers hold an end of its pipe too: closing ours would not end it. */
		kill(channel->child, SIGKILL);
		close(channel->request);
		waitpid(channel->child, NULL, 0);
		close(channel->answer);
	} else if (plant->place == PLACE_PROCESS) {
		close(channel->request);
	}
	if (plant->kind->tear_down && (plant->place == PLACE_LAUNCHER || plant->place == PLACE_THREAD))
		plant->kind->tear_down(plant);
	free(channel);
}
