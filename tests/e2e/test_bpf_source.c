/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The BPF source against a real kernel: small programs with waits, wakes and ends that are known beforehand
 * are recorded, the session is read back, and the records are compared with what the programs themselves
 * logged. Needs root. Prints one line a test; `test_bpf_source NAME` runs one and prints what was recorded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf_recording.h"
#include "collect/bpf_source.h"

#define MS            1000000ULL
#define RUN_LIMIT_NS  (30000 * MS)
#define FAULTED_PAGES 1000

/* What a recorded program logs about itself. */
struct truth {
	uint64_t start_ns; /* when it began, set for all programs */
	uint32_t futex;
	uint32_t tid[4];
	uint64_t time_ns[4];
	uint64_t value[4];
};

struct test {
	const char *name;
	void (*program)(struct truth *truth); /* runs in the recorded process */
	void (*check)(const struct recording *recording, const struct truth *truth);
	/* Called after each poll while the program runs. True: it was the last call, end the recording now.
	 */
	bool (*during)(struct bpf_source *source, uint32_t pid, struct truth *truth);
	struct bpf_source_options options;
	bool lossy; /* sequence numbers have holes, or begin anew */
	bool never_polled;
	const char *without;  /* see WHYIDLE_BPF_WITHOUT */
	const char *degraded; /* part of a line that must then be said */
	const char *calls;    /* file whose CUDA calls are probed */
	int probed;           /* how many of its functions */
};

/* ---- what the checks use ---- */

static const struct test *current;
static struct bpf_source_stats current_stats;
static uint32_t current_pid;
static uint64_t current_attach_ns, current_detach_ns; /* what probes on CUDA calls took */
static uint64_t current_start_ns, current_end_ns, current_finish_ns, program_start_ns;
static int failures; /* of the current test */

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			printf("  %s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                   \
			failures++;                                                                          \
		}                                                                                            \
	} while (0)

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static void pause_ns(uint64_t ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};

	nanosleep(&time, NULL);
}

static void die(const char *what)
{
	perror(what);
	_exit(99);
}

/* Longest interval of a thread in a system call since its program began; NULL if there is none. */
static const struct record_offcpu *longest(const struct recording *recording, uint32_t tid, int syscall)
{
	const struct record_offcpu *at, *found = NULL;

	array_for_each (at, &recording->intervals) {
		if (at->tid == tid && at->syscall == syscall && at->out_ns >= program_start_ns &&
		    (!found || at->in_ns - at->out_ns > found->in_ns - found->out_ns))
			found = at;
	}
	return found;
}

static const struct record_exit *exit_of(const struct recording *recording, uint32_t tid)
{
	const struct record_exit *at;

	array_for_each (at, &recording->exits) {
		if (at->tid == tid)
			return at;
	}
	return NULL;
}

static const struct record_fork *fork_of(const struct recording *recording, uint32_t tid)
{
	const struct record_fork *at;

	array_for_each (at, &recording->forks) {
		if (at->child_tid == tid)
			return at;
	}
	return NULL;
}

/* State letter of a thread, 0 if it has gone. */
static char thread_state(uint32_t pid, uint32_t tid)
{
	char path[64], text[256] = "", *end;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	end = strrchr(text, ')');
	return end ? end[2] : 0;
}

static void wait_until_blocked(uint32_t pid, uint32_t tid)
{
	while (thread_state(pid, tid) != 'S')
		sched_yield();
}

static uint32_t own_tid(void)
{
	return syscall(SYS_gettid);
}

static void check_wait(const struct recording *recording, const struct record_offcpu *wait, uint32_t waker,
                       int waker_syscall, const char *blocked_in, const char *woken_in)
{
	CHECK(wait);
	if (!wait)
		return;
	CHECK(!(wait->flags & RECORD_OFFCPU_PREEMPTED));
	CHECK(wait->flags & RECORD_OFFCPU_WOKEN);
	CHECK(wait->state & 3);
	CHECK(wait->waker_tid == waker);
	CHECK(wait->waker_syscall == waker_syscall);
	CHECK(recording_stack_has(recording, wait->kstack, blocked_in));
	CHECK(recording_stack_has(recording, wait->waker_kstack, woken_in));
}

/* ---- futex: woken by another thread ---- */

static void *futex_waker(void *context)
{
	struct truth *truth = context;

	truth->tid[1] = own_tid();
	wait_until_blocked(getpid(), truth->tid[0]);
	pause_ns(3 * MS);
	__atomic_store_n(&truth->futex, 1, __ATOMIC_SEQ_CST);
	truth->time_ns[1] = now_ns();
	syscall(SYS_futex, &truth->futex, FUTEX_WAKE, 1, NULL, NULL, 0);
	truth->time_ns[2] = now_ns();
	return NULL;
}

static void futex_program(struct truth *truth)
{
	pthread_t thread;

	truth->tid[0] = own_tid();
	truth->value[0] = (uintptr_t)&truth->futex;
	if (pthread_create(&thread, NULL, futex_waker, truth))
		die("pthread_create");
	truth->time_ns[0] = now_ns();
	while (!__atomic_load_n(&truth->futex, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &truth->futex, FUTEX_WAIT, 0, NULL, NULL, 0);
	truth->time_ns[3] = now_ns();
	pthread_join(thread, NULL);
}

static void futex_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *wait = longest(recording, truth->tid[0], SYS_futex), *at;
	const struct record_fork *thread = fork_of(recording, truth->tid[1]);
	const struct record_exit *end = exit_of(recording, truth->tid[1]);

	check_wait(recording, wait, truth->tid[1], SYS_futex, "futex_", "futex_wake");
	if (!wait)
		return;
	CHECK(wait->args[0] == truth->value[0]);
	CHECK(wait->args[1] == FUTEX_WAIT);
	CHECK(wait->args[2] == 0);
	CHECK(wait->waker_args[0] == truth->value[0]);
	CHECK(wait->waker_args[1] == FUTEX_WAKE);
	CHECK(wait->waker_pid == current_pid);
	CHECK(wait->object == 0);
	CHECK(wait->out_ns >= truth->time_ns[0]);
	CHECK(wait->wake_ns >= truth->time_ns[1] && wait->wake_ns <= truth->time_ns[2]);
	CHECK(wait->in_ns >= truth->time_ns[1] && wait->in_ns <= truth->time_ns[3]);

	/* The waker is a new thread, which waits for its first CPU from the moment of its fork. */
	CHECK(thread && end);
	if (!thread || !end)
		return;
	CHECK(thread->parent_pid == current_pid && thread->child_pid == current_pid);
	CHECK(thread->parent_tid == truth->tid[0]);
	array_for_each (at, &recording->intervals) {
		if (at->tid == truth->tid[1]) {
			CHECK(at->out_ns == thread->time_ns);
			CHECK(at->flags & RECORD_OFFCPU_PREEMPTED);
			break;
		}
	}
}

/* ---- pipe, socket, eventfd: woken by another process through a file ---- */

static void write_from_child(struct truth *truth, int fd)
{
	char byte[8] = {1};
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return;
	truth->tid[1] = getpid();
	wait_until_blocked(truth->tid[0], truth->tid[0]);
	pause_ns(2 * MS);
	if (write(fd, byte, sizeof(byte)) != sizeof(byte))
		die("write");
	_exit(0);
}

static void read_and_reap(int fd)
{
	char byte[8];

	if (read(fd, byte, sizeof(byte)) < 1)
		die("read");
	while (wait(NULL) > 0)
		;
}

static uint64_t inode_of(int fd)
{
	struct stat status;

	if (fstat(fd, &status))
		die("fstat");
	return status.st_ino;
}

static void pipe_program(struct truth *truth)
{
	int fds[2];

	if (pipe(fds))
		die("pipe");
	truth->tid[0] = getpid();
	truth->value[0] = inode_of(fds[0]);
	truth->value[1] = fds[0];
	write_from_child(truth, fds[1]);
	read_and_reap(fds[0]);
}

static void pipe_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *wait = longest(recording, truth->tid[0], SYS_read);

	check_wait(recording, wait, truth->tid[1], SYS_write, "pipe_read", "pipe_write");
	CHECK(wait && wait->object == truth->value[0]);
	CHECK(wait && wait->waker_object == truth->value[0]);
	CHECK(wait && wait->args[0] == truth->value[1]);
}

static void socket_program(struct truth *truth)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		die("socketpair");
	truth->tid[0] = getpid();
	truth->value[0] = inode_of(fds[0]);
	write_from_child(truth, fds[1]);
	read_and_reap(fds[0]);
}

static void socket_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *wait = longest(recording, truth->tid[0], SYS_read);

	check_wait(recording, wait, truth->tid[1], SYS_write, "unix_stream", "sock_def_readable");
	CHECK(wait && wait->object == truth->value[0]);
	CHECK(wait && wait->waker_object == truth->value[0]);
}

static void eventfd_program(struct truth *truth)
{
	int fd = eventfd(0, 0), copy = dup(fd);

	if (fd < 0 || copy < 0)
		die("eventfd");
	truth->tid[0] = getpid();
	write_from_child(truth, copy);
	read_and_reap(fd);
}

static void eventfd_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *wait = longest(recording, truth->tid[0], SYS_read);

	check_wait(recording, wait, truth->tid[1], SYS_write, "eventfd_read", "eventfd_write");
	CHECK(wait && wait->object && wait->object == wait->waker_object);
}

static void poll_program(struct truth *truth)
{
	struct pollfd one = {.events = POLLIN};
	int fds[2];

	if (pipe(fds))
		die("pipe");
	one.fd = fds[0];
	truth->tid[0] = getpid();
	truth->value[0] = inode_of(fds[0]);
	write_from_child(truth, fds[1]);
	if (syscall(SYS_ppoll, &one, 1, NULL, NULL, 8) != 1)
		die("ppoll");
	read_and_reap(fds[0]);
}

static void poll_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *wait = longest(recording, truth->tid[0], SYS_ppoll);

	check_wait(recording, wait, truth->tid[1], SYS_write, "poll", "pipe_write");
	CHECK(wait && wait->object == truth->value[0]);
	CHECK(wait && wait->waker_object == truth->value[0]);
}

static void epoll_program(struct truth *truth)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fds[2], epoll = epoll_create1(0);

	if (pipe(fds) || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event))
		die("epoll");
	truth->tid[0] = getpid();
	truth->value[0] = inode_of(fds[0]);
	write_from_child(truth, fds[1]);
	if (syscall(SYS_epoll_pwait, epoll, &event, 1, -1, NULL, 8) != 1)
		die("epoll_pwait");
	read_and_reap(fds[0]);
}

static void epoll_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *wait = longest(recording, truth->tid[0], SYS_epoll_pwait);

	check_wait(recording, wait, truth->tid[1], SYS_write, "epoll", "ep_poll_callback");
	CHECK(wait && wait->object && wait->object != truth->value[0]);
	CHECK(wait && wait->waker_object == truth->value[0]);
}

/* ---- sleep, exit of a child, preemption, faults ---- */

static void sleep_program(struct truth *truth)
{
	truth->time_ns[0] = now_ns();
	pause_ns(20 * MS);
	truth->time_ns[1] = now_ns();
}

static void sleep_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *wait = longest(recording, current_pid, SYS_clock_nanosleep);

	CHECK(wait);
	if (!wait)
		return;
	CHECK(wait->in_ns - wait->out_ns >= 19 * MS);
	CHECK(wait->wake_ns - wait->out_ns >= 19 * MS);
	CHECK(wait->out_ns >= truth->time_ns[0] && wait->in_ns <= truth->time_ns[1]);
	CHECK(recording_stack_has(recording, wait->kstack, "nanosleep"));
	CHECK(recording_stack_has(recording, wait->waker_kstack, "hrtimer"));
}

static void child_program(struct truth *truth)
{
	pid_t child = fork();

	if (!child) {
		wait_until_blocked(getppid(), getppid());
		pause_ns(2 * MS);
		_exit(7);
	}
	truth->tid[1] = child;
	if (waitpid(child, NULL, 0) != child)
		die("waitpid");
}

static void child_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *wait = longest(recording, current_pid, SYS_wait4);
	const struct record_fork *start = fork_of(recording, truth->tid[1]);
	const struct record_exit *end = exit_of(recording, truth->tid[1]);
	const struct record_exit *own = exit_of(recording, current_pid);

	check_wait(recording, wait, truth->tid[1], SYS_exit_group, "do_wait", "do_notify_parent");
	CHECK(start && start->parent_pid == current_pid && start->parent_tid == current_pid);
	CHECK(start && start->child_pid == truth->tid[1]);
	CHECK(end && WIFEXITED(end->exit_code) && WEXITSTATUS(end->exit_code) == 7);
	CHECK(own && WIFEXITED(own->exit_code) && WEXITSTATUS(own->exit_code) == 0);
	CHECK(start && end && wait && start->time_ns < end->time_ns && end->time_ns < wait->in_ns);
}

static void burn(uint64_t cpu_ns)
{
	struct timespec time;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	while (time.tv_sec * 1000000000ULL + time.tv_nsec < cpu_ns);
}

static void preempt_program(struct truth *truth)
{
	cpu_set_t one;
	pid_t child;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("sched_setaffinity");
	child = fork();
	truth->tid[child ? 0 : 1] = getpid();
	burn(100 * MS);
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void preempt_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *at;
	uint64_t waited = 0;
	int to_neighbour = 0;

	array_for_each (at, &recording->intervals) {
		if (at->tid != truth->tid[0] || !(at->flags & RECORD_OFFCPU_PREEMPTED))
			continue;
		waited += at->in_ns - at->out_ns;
		to_neighbour += at->next_tid == truth->tid[1] || at->prev_tid == truth->tid[1];
		CHECK(at->kstack == 0);
		if (at->next_tid == truth->tid[1])
			CHECK(at->cpus_allowed == 1 && at->out_cpu == 0 && at->in_cpu == 0);
	}
	/* Two threads that each need 100 ms of one CPU: they must have waited for each other. */
	CHECK(waited >= 20 * MS);
	CHECK(to_neighbour >= 3);
}

static void fault_program(struct truth *truth)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *memory =
	    mmap(NULL, FAULTED_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	int zero;

	if (memory == MAP_FAILED || madvise(memory, FAULTED_PAGES * page, MADV_NOHUGEPAGE))
		die("mmap");
	for (size_t i = 0; i < FAULTED_PAGES / 2; i++)
		memory[i * page] = 1;
	/* The other half is touched by the kernel. */
	zero = open("/dev/zero", O_RDONLY);
	if (read(zero, memory + FAULTED_PAGES / 2 * page, FAULTED_PAGES / 2 * page) < 0)
		die("read");
	truth->value[0] = 1;
}

static void fault_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *at;
	const struct record_exit *end = exit_of(recording, current_pid);
	uint64_t faults = end ? end->faults : 0;

	array_for_each (at, &recording->intervals)
		faults += at->tid == current_pid ? at->faults : 0;
	CHECK(truth->value[0] == 1);
	CHECK(faults >= FAULTED_PAGES && faults < FAULTED_PAGES + 300);
}

/* ---- exec, names ---- */

static void exec_program(struct truth *truth)
{
	int fds[2];
	pid_t child;

	if (pipe(fds))
		die("pipe");
	child = fork();
	if (!child) {
		dup2(fds[0], 0);
		close(fds[0]);
		close(fds[1]);
		execl("/bin/cat", "cat", "-", (char *)NULL);
		die("execl");
	}
	__atomic_store_n(&truth->tid[1], child, __ATOMIC_SEQ_CST);
	/* The recorder says when it has polled. */
	while (!__atomic_load_n(&truth->value[0], __ATOMIC_SEQ_CST))
		pause_ns(MS);
	close(fds[0]);
	close(fds[1]);
	waitpid(child, NULL, 0);
}

static bool exec_during(struct bpf_source *source, uint32_t pid, struct truth *truth)
{
	uint32_t child = __atomic_load_n(&truth->tid[1], __ATOMIC_SEQ_CST);
	char path[64], name[16] = "";
	FILE *file;

	(void)pid;
	if (!child || truth->value[0])
		return false;
	snprintf(path, sizeof(path), "/proc/%u/comm", child);
	file = fopen(path, "r");
	if (file && fgets(name, sizeof(name), file) && !strcmp(name, "cat\n") &&
	    thread_state(child, child) == 'S') {
		CHECK(bpf_source_poll(source, NULL) >= 0);
		__atomic_store_n(&truth->value[0], 1, __ATOMIC_SEQ_CST);
	}
	if (file)
		fclose(file);
	return false;
}

static void exec_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_exec *at, *found = NULL, *first = NULL;

	array_for_each (at, &recording->execs) {
		if (at->tid == truth->tid[1])
			found = at;
		if (at->tid == current_pid)
			first = at;
	}
	CHECK(found && !strcmp(recording_string(recording, found->filename), "/bin/cat"));
	CHECK(found && !strcmp(recording_string(recording, found->comm), "cat"));
	CHECK(found && !strcmp(recording_string(recording, found->cmdline), "cat -"));
	/* The process that was there at the start is described too. */
	CHECK(first && strstr(recording_string(recording, first->cmdline), "source-test"));
	CHECK(fork_of(recording, current_pid) && fork_of(recording, current_pid)->parent_tid == 0);
	CHECK(fork_of(recording, current_pid) &&
	      fork_of(recording, current_pid)->parent_pid == (uint32_t)getpid());
}

static void name_program(struct truth *truth)
{
	truth->time_ns[0] = now_ns();
	prctl(PR_SET_NAME, "worker name");
	truth->time_ns[1] = now_ns();
}

static void name_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_task *at, *found = NULL;

	array_for_each (at, &recording->tasks) {
		if (at->tid == current_pid && !strcmp(recording_string(recording, at->comm), "worker name"))
			found = at;
	}
	CHECK(found && found->pid == current_pid);
	CHECK(found && found->time_ns >= truth->time_ns[0] && found->time_ns <= truth->time_ns[1]);
}

/* ---- the end of a recording ---- */

static void *block_for_ever(void *context)
{
	struct truth *truth = context;

	__atomic_store_n(&truth->tid[1], own_tid(), __ATOMIC_SEQ_CST);
	for (;;)
		syscall(SYS_futex, &truth->futex, FUTEX_WAIT, 0, NULL, NULL, 0);
	return NULL;
}

static void open_program(struct truth *truth)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, block_for_ever, truth))
		die("pthread_create");
	for (;;)
		pause();
}

static bool open_during(struct bpf_source *source, uint32_t pid, struct truth *truth)
{
	uint32_t tid = __atomic_load_n(&truth->tid[1], __ATOMIC_SEQ_CST);

	(void)source;
	return tid && thread_state(pid, tid) == 'S' && thread_state(pid, pid) == 'S';
}

static void open_check(const struct recording *recording, const struct truth *truth)
{
	uint32_t tids[2] = {current_pid, truth->tid[1]};
	int syscalls[2] = {SYS_pause, SYS_futex};

	for (int i = 0; i < 2; i++) {
		const struct record_offcpu *at = longest(recording, tids[i], syscalls[i]);

		CHECK(at && at->flags & RECORD_OFFCPU_OPEN);
		CHECK(at && !(at->flags & RECORD_OFFCPU_WOKEN));
		CHECK(at && at->in_ns >= current_finish_ns && at->in_ns <= current_end_ns);
		CHECK(at && at->kstack);
	}
}

/* A process that was blocked when recording began. */

static void early_program(struct truth *truth)
{
	(void)truth;
	pause_ns(5 * MS);
}

static void early_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *at, *found = NULL;

	(void)truth;
	/* It waited for the start signal, in a read, since before the recording. */
	array_for_each (at, &recording->intervals) {
		if (at->tid == current_pid && at->seq == 1)
			found = at;
	}
	CHECK(found && found->syscall == SYS_read && !(found->flags & RECORD_OFFCPU_PREEMPTED));
	CHECK(found && found->flags & RECORD_OFFCPU_WOKEN && found->waker_tid == (uint32_t)getpid());
}

/* ---- many at once: what must hold in every recording ---- */

#define MANY_PROCESSES 40
#define MANY_THREADS   3

static void *many_thread(void *context)
{
	(void)context;
	for (int i = 0; i < 5; i++) {
		pause_ns(MS / 10);
		sched_yield();
	}
	return NULL;
}

static void many_process(void)
{
	pthread_t threads[MANY_THREADS];

	for (int i = 0; i < MANY_THREADS; i++) {
		if (pthread_create(&threads[i], NULL, many_thread, NULL))
			die("pthread_create");
	}
	for (int i = 0; i < MANY_THREADS; i++)
		pthread_join(threads[i], NULL);
	execl("/bin/true", "true", (char *)NULL);
	die("execl");
}

static void many_program(struct truth *truth)
{
	(void)truth;
	for (int i = 0; i < MANY_PROCESSES; i++) {
		if (!fork())
			many_process();
	}
	while (wait(NULL) > 0)
		;
}

static void many_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_fork *fork;
	const struct record_exec *exec;
	const struct record_exit *end;
	int threads = 0, processes = 0, executed = 0, ended = 0;

	(void)truth;
	array_for_each (fork, &recording->forks) {
		threads += fork->parent_tid && fork->child_pid == fork->parent_pid &&
		           fork->child_tid != fork->parent_tid;
		processes += fork->parent_tid && fork->child_pid != fork->parent_pid;
	}
	array_for_each (exec, &recording->execs)
		executed += !strcmp(recording_string(recording, exec->filename), "/bin/true");
	array_for_each (end, &recording->exits)
		ended++;
	CHECK(processes == MANY_PROCESSES);
	CHECK(threads == MANY_PROCESSES * MANY_THREADS);
	CHECK(executed == MANY_PROCESSES);
	CHECK(ended == 1 + MANY_PROCESSES + MANY_PROCESSES * MANY_THREADS);
}

/* An exec by a thread that is not the leader: the thread goes on under the leader's id. */
static void *exec_thread(void *context)
{
	struct truth *truth = context;

	truth->tid[1] = own_tid();
	wait_until_blocked(getpid(), getpid());
	execl("/bin/true", "true", (char *)NULL);
	die("execl");
	return NULL;
}

static void takeover_program(struct truth *truth)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, exec_thread, truth))
		die("pthread_create");
	pthread_join(thread, NULL);
}

static void takeover_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_exec *at, *found = NULL;
	const struct record_exit *end;
	int ends = 0;

	array_for_each (at, &recording->execs) {
		if (!strcmp(recording_string(recording, at->filename), "/bin/true"))
			found = at;
	}
	CHECK(found && found->pid == current_pid && found->tid == current_pid);
	CHECK(exit_of(recording, truth->tid[1]));
	array_for_each (end, &recording->exits)
		ends += end->tid == current_pid;
	/* The old leader, and the thread that took its place. */
	CHECK(ends == 2);
}

/* ---- losses ---- */

#define LOSS_ROUNDS 400

static void loss_program(struct truth *truth)
{
	pid_t child;
	char byte = 0;
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		die("pipe");
	child = fork();
	for (int i = 0; i < LOSS_ROUNDS; i++) {
		if (child ? write(to[1], &byte, 1) != 1 || read(from[0], &byte, 1) != 1
		          : read(to[0], &byte, 1) != 1 || write(from[1], &byte, 1) != 1)
			die("ping-pong");
	}
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	/* From here on the recorder polls: the end is seen. */
	__atomic_store_n(&truth->value[0], 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&truth->value[1], __ATOMIC_SEQ_CST))
		pause_ns(MS);
}

static bool loss_during(struct bpf_source *source, uint32_t pid, struct truth *truth)
{
	(void)pid;
	if (__atomic_load_n(&truth->value[0], __ATOMIC_SEQ_CST) && !truth->value[1]) {
		CHECK(bpf_source_poll(source, NULL) >= 0);
		__atomic_store_n(&truth->value[1], 1, __ATOMIC_SEQ_CST);
	}
	return false;
}

static void loss_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_exit *end = exit_of(recording, current_pid);
	const struct record_offcpu *at;
	const struct record_loss *loss;
	uint64_t told = 0, seen = 0;

	(void)truth;
	CHECK(current_stats.lost_ring > LOSS_ROUNDS / 2);
	array_for_each (loss, &recording->losses) {
		told += loss->cause == RECORD_LOSS_BPF_RING ? loss->count : 0;
		CHECK(loss->start_ns >= current_start_ns && loss->end_ns <= current_end_ns);
		CHECK(loss->start_ns < loss->end_ns);
	}
	CHECK(told == current_stats.lost_ring);
	array_for_each (at, &recording->intervals)
		seen += at->tid == current_pid;
	/* The sequence number of the exit tells how many intervals are missing. */
	CHECK(end && end->seq > seen && end->seq - seen <= told);
	CHECK(end && end->seq >= LOSS_ROUNDS / 2);
}

/* ---- samples ---- */

static __attribute__((noinline)) uint64_t burn_in_user_mode(uint64_t until)
{
	volatile uint64_t sum = 0;
	uint64_t now;

	do {
		for (int i = 0; i < 100000; i++)
			sum += i;
		now = now_ns();
	} while (now < until);
	return sum;
}

static void sample_program(struct truth *truth)
{
	static char buffer[1 << 20];
	uint64_t start = now_ns();
	int zero = open("/dev/zero", O_RDONLY);

	truth->value[0] = (uintptr_t)burn_in_user_mode;
	burn_in_user_mode(start + 300 * MS);
	truth->time_ns[0] = now_ns();
	while (now_ns() < start + 600 * MS) {
		if (read(zero, buffer, sizeof(buffer)) < 0)
			die("read");
	}
}

static void sample_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_sample *at;
	int user = 0, inside = 0, stacked = 0, kernel = 0, reading = 0;

	array_for_each (at, &recording->samples) {
		const struct recorded_stack *stack =
		    at->ustack ? &recording->stacks.items[at->ustack - 1] : NULL;

		if (at->tid != current_pid)
			continue;
		if (at->time_ns < truth->time_ns[0]) {
			user += !!(at->flags & RECORD_SAMPLE_USER);
			inside += at->ip - truth->value[0] < 256;
			stacked += stack && stack->record.kind == RECORD_STACK_USER &&
			           stack->record.pid == current_pid && stack->record.count >= 2 &&
			           stack->frames[0] - truth->value[0] < 256;
		} else if (!(at->flags & RECORD_SAMPLE_USER)) {
			kernel++;
			reading += at->syscall == SYS_read &&
			           recording_stack_has(recording, at->kstack, "read_zero");
		}
		CHECK(!(at->flags & RECORD_SAMPLE_USER) || (at->syscall == -1 && !at->kstack));
	}
	/* 1 kHz for as long as it had a CPU; at least a quarter of the time is asked for. */
	CHECK(user >= 75);
	CHECK(inside * 2 > user);
	CHECK(stacked * 2 > user);
	CHECK(kernel >= 75);
	CHECK(reading * 2 > kernel);
}

/* ---- CUDA calls: this program exports functions of those names ---- */

/* Weak, so that the compiler makes no copies of them for its own use. */
#define EXPORTED __attribute__((noinline, weak, visibility("default")))

static jmp_buf left_call;
static volatile int call_depth;

/* As the calling convention passes them: the upper half of a place of a 32-bit argument may hold anything. */
struct call_grid {
	uint32_t x, y, z;
};
struct call_config {
	struct call_grid grid, block;
	uint64_t shared_bytes;
	void *stream;
};

EXPORTED void cuLaunchKernel(void *function, uint64_t grid_x, uint64_t grid_y, uint64_t grid_z,
                             uint64_t block_x, uint64_t block_y, uint64_t block_z, uint64_t shared_bytes,
                             void *stream);
EXPORTED void cudaLaunchKernel(void *function, struct call_grid grid, struct call_grid block, void **args,
                               uint64_t shared_bytes, void *stream);
EXPORTED void cuLaunchKernelEx(const struct call_config *config, void *function);
EXPORTED void cuCtxSynchronize(void);
EXPORTED void cudaDeviceSynchronize(void);
EXPORTED void cuMemcpyHtoD_v2(int leave);
EXPORTED void cudaMemcpy_ptds(int leave);
EXPORTED int cudaStreamQuery(void *stream);

void cuLaunchKernel(void *function, uint64_t grid_x, uint64_t grid_y, uint64_t grid_z, uint64_t block_x,
                    uint64_t block_y, uint64_t block_z, uint64_t shared_bytes, void *stream)
{
	(void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
	(void)shared_bytes, (void)stream;
	call_depth++;
}

void cudaLaunchKernel(void *function, struct call_grid grid, struct call_grid block, void **args,
                      uint64_t shared_bytes, void *stream)
{
	(void)args;
	cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes, stream);
	call_depth++;
}

void cuLaunchKernelEx(const struct call_config *config, void *function)
{
	(void)config, (void)function;
	call_depth++;
}

void cuCtxSynchronize(void)
{
	pause_ns(MS);
	call_depth++;
}

void cudaDeviceSynchronize(void)
{
	cuCtxSynchronize();
	call_depth++;
}

void cuMemcpyHtoD_v2(int leave)
{
	if (leave)
		longjmp(left_call, 1);
	call_depth++;
}

void cudaMemcpy_ptds(int leave)
{
	cuMemcpyHtoD_v2(leave);
	call_depth++;
}

#define QUERIES   300 /* in a row */
#define NOT_READY 600

static volatile int query_result = NOT_READY;

int cudaStreamQuery(void *stream)
{
	(void)stream;
	call_depth++;
	return query_result;
}

/* Begins with an instruction that the kernel refuses to probe. That must not be to the others' cost. */
#ifdef __x86_64__
#define REFUSED_CALLS 1
EXPORTED void cuMemcpyDtoH_v2(void);
__asm__(".text\n"
        ".globl cuMemcpyDtoH_v2\n"
        ".type cuMemcpyDtoH_v2, @function\n"
        "cuMemcpyDtoH_v2:\n"
        "	lock orl $0, (%rsp)\n"
        "	ret\n"
        ".size cuMemcpyDtoH_v2, . - cuMemcpyDtoH_v2\n");
#else
#define REFUSED_CALLS 0
static void cuMemcpyDtoH_v2(void)
{
}
#endif

#define STREAM   0x5712ea4 /* a handle */
#define ANYTHING 0xdecade0000000000ULL

static const struct call_grid call_grids[] = {{64, 3, 2}, {64, 3, 4}}, call_blocks = {128, 2, 1};

static inline void launch_by_driver(struct call_grid grid)
{
	cuLaunchKernel((void *)call_grids, ANYTHING | grid.x, ANYTHING | grid.y, ANYTHING | grid.z,
	               ANYTHING | call_blocks.x, ANYTHING | call_blocks.y, ANYTHING | call_blocks.z,
	               ANYTHING | 1024, (void *)STREAM);
}

static void call_program(struct truth *truth)
{
	truth->time_ns[0] = now_ns();
	cuMemcpyDtoH_v2();
	/* Those with fewer arguments on the stack last: one that follows lower on it may be taken for an
	 * inner one. */
	for (int i = 0; i < 5; i++)
		launch_by_driver(call_grids[i & 1]);
	for (int i = 0; i < 10; i++) {
		cudaLaunchKernel((void *)call_grids, call_grids[i & 1], call_blocks, NULL, 1024,
		                 (void *)STREAM);
	}
	for (int i = 0; i < 2 * QUERIES; i++) {
		query_result = i < QUERIES ? NOT_READY : 0;
		cudaStreamQuery((void *)STREAM);
	}
	for (int i = 0; i < 5; i++) {
		const struct call_config config = {call_grids[i & 1], call_blocks, 1024, (void *)STREAM};

		cuLaunchKernelEx(&config, (void *)call_grids);
	}
	truth->time_ns[1] = now_ns();
	cudaDeviceSynchronize();
	truth->time_ns[2] = now_ns();
	cudaMemcpy_ptds(0);
	if (!setjmp(left_call))
		cudaMemcpy_ptds(1);
	cuCtxSynchronize();
	truth->time_ns[3] = now_ns();
}

/* Each function shows the same work for the same grid, however it is passed, and other work for another. */
static void work_check(const struct recording *recording)
{
	static const char *const names[] = {"cudaLaunchKernel", "cuLaunchKernel", "cuLaunchKernelEx"};
	uint64_t works[2] = {0}, numbers[3] = {0};
	const struct record_call *at;

	array_for_each (at, &recording->calls) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			uint64_t *work = &works[numbers[i] & 1];

			if (strcmp(recording_string(recording, at->function), names[i]) != 0)
				continue;
			numbers[i]++;
			CHECK(at->known == (RECORD_CALL_STREAM | RECORD_CALL_OBJECT | RECORD_CALL_WORK));
			CHECK(at->stream == STREAM && at->object == (uint64_t)(uintptr_t)call_grids);
			*work = *work ? *work : at->work;
			CHECK(at->work == *work);
		}
	}
	CHECK(works[0] && works[1] && works[0] != works[1]);
}

/* A flood of queries: what they said and when that changed, but not each of them. */
static void query_check(const struct recording *recording)
{
	uint64_t counts[2] = {0}, last_ns = 0;
	const struct record_call *at;

	array_for_each (at, &recording->calls) {
		bool ready = at->result == 0;

		if (strcmp(recording_string(recording, at->function), "cudaStreamQuery"))
			continue;
		CHECK(at->known == (RECORD_CALL_STREAM | RECORD_CALL_RESULT) && at->stream == STREAM);
		CHECK(at->result == (counts[1] || ready ? 0 : NOT_READY));
		CHECK(!counts[ready] || at->exit_ns - last_ns >= 50000);
		last_ns = at->exit_ns;
		counts[ready]++;
	}
	CHECK(counts[0] && counts[1] && counts[0] + counts[1] < 2 * QUERIES);
}

static void call_check(const struct recording *recording, const struct truth *truth)
{
	static const struct {
		const char *name;
		uint64_t count, closed;
	} expected[] = {
	    {"cudaLaunchKernel", 10, 0}, {"cuLaunchKernel", 5, 0},   {"cudaDeviceSynchronize", 1, 1},
	    {"cuCtxSynchronize", 1, 1},  {"cudaMemcpy_ptds", 2, 1},  {"cuMemcpyHtoD_v2", 0, 0},
	    {"cuMemcpyDtoH_v2", 0, 0},   {"cuLaunchKernelEx", 5, 0},
	};
	const struct record_call *at;

	work_check(recording);
	query_check(recording);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		uint64_t count = 0, closed = 0;

		array_for_each (at, &recording->calls) {
			if (strcmp(recording_string(recording, at->function), expected[i].name))
				continue;
			count++;
			closed += at->exit_ns != 0;
			CHECK(at->tid == current_pid && at->pid == current_pid);
			CHECK(at->source == RECORD_CALL_UPROBE);
			CHECK(at->enter_ns >= truth->time_ns[0] && at->enter_ns <= truth->time_ns[3]);
			if (!strcmp(expected[i].name, "cudaDeviceSynchronize")) {
				CHECK(at->enter_ns >= truth->time_ns[1] && at->exit_ns <= truth->time_ns[2]);
				CHECK(at->exit_ns - at->enter_ns >= MS);
			}
		}
		if (count != expected[i].count || closed != expected[i].closed) {
			printf("  %s: %lu calls, %lu closed\n", expected[i].name, (unsigned long)count,
			       (unsigned long)closed);
			failures++;
		}
	}
	CHECK(current_stats.lost_nest == 1);
	CHECK(recording_info(recording, "lost_nest") && !strcmp(recording_info(recording, "lost_nest"), "1"));
}

/* ---- as many probes as CUDA gets ---- */

#define MANY_CALLS_FIRST 10
#define MANY_CALLS_LAST  79
#define MANY_CALLS       (MANY_CALLS_LAST - MANY_CALLS_FIRST + 1)

static char many_library[256];

/* Opened before anything is recorded, so that the recorded process has it mapped when probes are set. */
static void *open_many_library(void)
{
	char *slash;
	ssize_t length = readlink("/proc/self/exe", many_library, sizeof(many_library) - 32);

	many_library[length < 0 ? 0 : length] = '\0';
	slash = strrchr(many_library, '/');
	strcpy(slash ? slash + 1 : many_library, "libmany_calls.so");
	return dlopen(many_library, RTLD_NOW);
}

static void many_calls_program(struct truth *truth)
{
	void *library = dlopen(many_library, RTLD_NOW | RTLD_NOLOAD);

	for (int i = MANY_CALLS_FIRST; i <= MANY_CALLS_LAST; i++) {
		char name[32];
		void (*call)(void);

		snprintf(name, sizeof(name), "cuMemAlloc_v%d", i);
		*(void **)&call = dlsym(library, name);
		if (!call)
			die(name);
		call();
		truth->value[0]++;
	}
}

static void many_calls_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_call *at;
	uint64_t next = MANY_CALLS_FIRST;

	CHECK(truth->value[0] == MANY_CALLS);
	CHECK(recording->calls.count == MANY_CALLS);
	array_for_each (at, &recording->calls) {
		char name[32];

		snprintf(name, sizeof(name), "cuMemAlloc_v%lu", (unsigned long)next++);
		CHECK(!strcmp(recording_string(recording, at->function), name));
		CHECK(at->exit_ns >= at->enter_ns);
	}
	CHECK(!current_stats.lost_nest && !recording_info(recording, "lost_nest"));
	printf("  %d probes: set in %.1f ms, recording ended in %.1f ms\n", 2 * MANY_CALLS,
	       current_attach_ns / 1e6, current_detach_ns / 1e6);
	/* The kernel takes over 100 ms for each perf event that is closed. */
	CHECK(current_attach_ns < 2000 * MS);
	CHECK(current_detach_ns < 5000 * MS);
}

/* ---- intervals that are too short ---- */

static void threshold_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_offcpu *at;

	(void)truth;
	CHECK(recording->intervals.count >= 1);
	array_for_each (at, &recording->intervals)
		CHECK(at->in_ns - at->out_ns >= current->options.min_offcpu_ns);
	CHECK(longest(recording, current_pid, SYS_clock_nanosleep));
}

/* ---- degraded runs ---- */

static void no_fault_check(const struct recording *recording, const struct truth *truth)
{
	const struct record_exit *end = exit_of(recording, current_pid);

	(void)truth;
	CHECK(end && end->faults == 0);
}

static const struct test tests[] = {
    {.name = "futex", .program = futex_program, .check = futex_check},
    {.name = "pipe", .program = pipe_program, .check = pipe_check},
    {.name = "socket", .program = socket_program, .check = socket_check},
    {.name = "eventfd", .program = eventfd_program, .check = eventfd_check},
    {.name = "poll", .program = poll_program, .check = poll_check},
    {.name = "epoll", .program = epoll_program, .check = epoll_check},
    {.name = "sleep", .program = sleep_program, .check = sleep_check},
    {.name = "child", .program = child_program, .check = child_check},
    {.name = "preempt", .program = preempt_program, .check = preempt_check},
    {.name = "fault",
     .program = fault_program,
     .check = fault_check,
     .options = {.user_stacks = STACKS_OFFCPU | STACKS_SAMPLED}},
    {.name = "exec", .program = exec_program, .check = exec_check, .during = exec_during},
    {.name = "name", .program = name_program, .check = name_check},
    {.name = "open", .program = open_program, .check = open_check, .during = open_during},
    {.name = "early", .program = early_program, .check = early_check},
    {.name = "many", .program = many_program, .check = many_check},
    {.name = "takeover", .program = takeover_program, .check = takeover_check, .lossy = true},
    {.name = "sample",
     .program = sample_program,
     .check = sample_check,
     .options = {.sample_period_ns = 1000000, .user_stacks = STACKS_OFFCPU | STACKS_SAMPLED}},
    {.name = "calls", .program = call_program, .check = call_check, .calls = "/proc/self/exe", .probed = 8},
    {.name = "calls one by one",
     .program = call_program,
     .check = call_check,
     .calls = "/proc/self/exe",
     .probed = 8 + REFUSED_CALLS,
     .without = "uprobe_multi",
     .degraded = "one after another"},
    {.name = "many calls",
     .program = many_calls_program,
     .check = many_calls_check,
     .calls = many_library,
     .probed = MANY_CALLS},
    {.name = "many calls one by one",
     .program = many_calls_program,
     .check = many_calls_check,
     .calls = many_library,
     .probed = MANY_CALLS,
     .without = "uprobe_multi",
     .degraded = "one after another"},
    {.name = "threshold",
     .program = sleep_program,
     .check = threshold_check,
     .options = {.min_offcpu_ns = MS}},
    {.name = "loss",
     .program = loss_program,
     .check = loss_check,
     .during = loss_during,
     .options = {.ring_bytes = 4096},
     .lossy = true,
     .never_polled = true},
    {.name = "without faults",
     .program = fault_program,
     .check = no_fault_check,
     .without = "user_fault,kernel_fault",
     .degraded = "page faults are not counted"},
    {.name = "without iterators",
     .program = pipe_program,
     .check = pipe_check,
     .without = "threads_adopted,intervals_left",
     .degraded = "still blocked when recording ends"},
    {.name = "without task storage",
     .program = futex_program,
     .check = futex_check,
     .without = "task_storage",
     .degraded = "65536 threads"},
};

/* ---- running a test ---- */

static bool degraded_seen;
static int degraded_lines;

static void on_degraded(void *context, const char *what)
{
	(void)context;
	degraded_lines++;
	if (current->degraded && strstr(what, current->degraded))
		degraded_seen = true;
	else if (!current->without)
		printf("  degraded: %s\n", what);
}

static pid_t start(const struct test *test, struct truth *truth, int *go)
{
	int fds[2];
	char byte;
	pid_t pid;

	if (pipe(fds))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		if (read(fds[0], &byte, 1) != 1)
			_exit(98);
		truth->start_ns = now_ns();
		test->program(truth);
		_exit(0);
	}
	close(fds[0]);
	*go = fds[1];
	wait_until_blocked(pid, pid);
	return pid;
}

/* Polls until the program ends or the test has seen enough. Returns false if it takes too long or fails. */
static bool watch(const struct test *test, struct bpf_source *source, pid_t pid, struct truth *truth,
                  int *status)
{
	uint64_t limit = now_ns() + RUN_LIMIT_NS;
	struct error error = {0};

	for (;;) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return WIFEXITED(*status) && !WEXITSTATUS(*status);
		if (!test->never_polled && bpf_source_poll(source, &error) < 0) {
			printf("  poll: %s\n", error.text);
			return false;
		}
		if (test->during && test->during(source, pid, truth))
			return true;
		if (now_ns() > limit)
			return false;
		pause_ns(2 * MS);
	}
}

static void attach_calls(const struct test *test, struct bpf_source *source)
{
	uint64_t start = now_ns();
	struct error error = {0};
	int probed = bpf_source_attach_calls(source, test->calls, &error);

	if (probed != test->probed) {
		printf("  probes on %s: %d %s\n", test->calls, probed, error.text);
		failures++;
	}
	CHECK(bpf_source_attach_calls(source, test->calls, &error) == 0);
	while (bpf_source_calls_waiting(source)) {
		CHECK(bpf_source_poll(source, &error) >= 0);
		if (now_ns() > start + RUN_LIMIT_NS)
			break;
	}
	CHECK(!bpf_source_calls_waiting(source));
	current_attach_ns = now_ns() - start;
}

static bool record(const struct test *test, const char *path, struct truth *truth, struct error *error)
{
	struct session_writer *writer = NULL;
	struct bpf_source *source = NULL;
	struct bpf_source_options options = test->options;
	int go, status = 0;
	pid_t pid = start(test, truth, &go);
	bool good = false;

	current_pid = pid;
	options.degraded = on_degraded;
	current_start_ns = now_ns();
	if (bpf_source_open(&source, &options, error) || session_writer_open(&writer, path, error) ||
	    bpf_source_track(source, pid, error) || bpf_source_attach(source, writer, error))
		goto out;
	if (test->calls)
		attach_calls(test, source);
	if (write(go, "", 1) != 1)
		goto out;
	good = watch(test, source, pid, truth, &status);
	current_finish_ns = now_ns();
	if (bpf_source_finish(source, error))
		good = false;
	current_end_ns = now_ns();
	current_detach_ns = current_end_ns - current_finish_ns;
	bpf_source_stats(source, &current_stats);
out:
	close(go);
	bpf_source_close(source);
	if (session_writer_close(writer, good ? error : NULL))
		good = false;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return good;
}

static bool run(const struct test *test, bool print)
{
	char path[] = "/tmp/whyidle-bpf-test-XXXXXX";
	struct recording recording = {0};
	struct error error = {0};
	struct truth *truth =
	    mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = mkstemp(path);
	const char *flaw;

	if (truth == MAP_FAILED || fd < 0)
		die("setting up");
	close(fd);
	current = test;
	failures = 0;
	degraded_seen = false;
	degraded_lines = 0;
	if (test->without)
		setenv("WHYIDLE_BPF_WITHOUT", test->without, 1);
	if (!record(test, path, truth, &error) || recording_read(&recording, path, &error)) {
		printf("  the recording failed: %s\n", error.text);
		failures++;
	} else {
		recording_drop_guests(&recording, current_pid);
		flaw = test->lossy
		           ? NULL
		           : recording_flaw(&recording, current_pid, current_start_ns, current_end_ns);
		if (flaw) {
			printf("  the recording has %s\n", flaw);
			failures++;
		}
		program_start_ns = truth->start_ns;
		test->check(&recording, truth);
		CHECK(!test->degraded || degraded_seen);
		CHECK(test->without || !degraded_lines);
	}
	if (print)
		recording_print(&recording, 0);
	unsetenv("WHYIDLE_BPF_WITHOUT");
	recording_free(&recording);
	unlink(path);
	munmap(truth, sizeof(*truth));
	printf("%s %s\n", failures ? "FAILED" : "ok    ", test->name);
	return !failures;
}

/* Errors that need no recording. */
static bool run_errors(void)
{
	struct bpf_source_options options = {.ring_bytes = 5000};
	struct bpf_source *source = NULL;
	struct error error = {0};
	int status;
	pid_t pid;

	failures = 0;
	CHECK(bpf_source_open(&source, &options, &error) == -EINVAL && !source);
	CHECK(strstr(error.text, "power of two"));
	options.ring_bytes = 4096;
	CHECK(!bpf_source_open(&source, &options, &error));
	CHECK(bpf_source_track(source, 0x3fffffff, &error) == -ESRCH && strstr(error.text, "no process"));
	CHECK(bpf_source_attach_calls(source, "/nonexistent", &error) == -ENOENT);
	CHECK(bpf_source_attach_calls(source, "/etc/passwd", &error) == -ENOEXEC);
	CHECK(bpf_source_attach_calls(source, "/dev/zero", &error) == -EINVAL);
	CHECK(bpf_source_attach_calls(source, "/bin/true", &error) == 0);
	bpf_source_close(source);
	bpf_source_close(NULL);
	pid = fork();
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(2);
		_exit(bpf_source_open(&source, &options, &error) == -EPERM && strstr(error.text, "needs root")
		          ? 0
		          : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	printf("%s errors\n", failures ? "FAILED" : "ok    ");
	return !failures;
}

/* The same in a pid namespace of our own, where every id differs from what the kernel uses itself. */
static bool run_in_pid_namespace(void)
{
	char self[256];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status;
	pid_t pid;

	failures = 0;
	self[length < 0 ? 0 : length] = '\0';
	pid = fork();
	if (!pid) {
		/* The test of exec looks at parents, children and command lines: all that ids are used for.
		 */
		if (!freopen("/dev/null", "w", stdout))
			_exit(98);
		execlp("unshare", "unshare", "--pid", "--fork", "--mount-proc", self, "exec", (char *)NULL);
		_exit(99);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	printf("%s in a pid namespace\n", failures ? "FAILED" : "ok    ");
	return !failures;
}

int main(int argc, char **argv)
{
	struct bpf_source_options options = {.ring_bytes = 4096};
	struct bpf_source *source;
	struct error error = {0};
	int passed = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	switch (bpf_source_open(&source, &options, &error)) {
	case 0:
		break;
	case -EPERM:
	case -ENOSYS:
	case -ENOTSUP:
		printf("skipped: %s\n0 passed, 0 failed, 1 skipped\n", error.text);
		return 0;
	default:
		printf("FAILED: %s\n0 passed, 1 failed\n", error.text);
		return 1;
	}
	bpf_source_close(source);
	if (!open_many_library()) {
		printf("FAILED: %s\n0 passed, 1 failed\n", dlerror());
		return 1;
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc > 1 && strcmp(argv[1], tests[i].name))
			continue;
		*(run(&tests[i], argc > 1) ? &passed : &failed) += 1;
	}
	if (argc == 1) {
		*(run_errors() ? &passed : &failed) += 1;
		*(run_in_pid_namespace() ? &passed : &failed) += 1;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
