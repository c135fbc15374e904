// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/window.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/capture.h"
#include "daemon/digest.h"
#include "daemon/results.h"

#define MAX_EVENTS 400000       /* bounds what the analysis needs: some 100 MiB */
#define MAX_MEMORY (1ULL << 30) /* of the process's own data */
#define MAX_CPU_S  20
#define GRACE_NS   (20ULL * 1000000000) /* for the analysis, on a busy machine */
#define NICENESS   5

static void set_limit(int resource, uint64_t value)
{
	struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

	setrlimit(resource, &limit);
}

/* "anon_inode:bpf_link" and the like. */
static bool is_bpf_link(int folder, const char *name)
{
	char target[32];
	ssize_t length = readlinkat(folder, name, target, sizeof(target));

	return length > 0 && memmem(target, (size_t)length, "bpf_link", 8);
}

/*
 * The ports and clients of the daemon are not the child's: who connects to a daemon that has gone must see
 * that, and a client the end of its answer. Sockets that stderr goes to stay. Nor are its programs: one that
 * the daemon switches off would otherwise run until the child has ended.
 */
static void close_inherited(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	struct stat status;

	while (folder && (entry = readdir(folder))) {
		int fd = atoi(entry->d_name);

		if (fd > STDERR_FILENO && ((!fstat(fd, &status) && S_ISSOCK(status.st_mode)) ||
		                           is_bpf_link(dirfd(folder), entry->d_name)))
			close(fd);
	}
	if (folder)
		closedir(folder);
}

/* A child is nobody's parent and answers to no terminal: it works or it ends. */
static void settle_in(const struct window_options *options, pid_t parent)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	close_inherited();
	prctl(PR_SET_NAME, "whyidle-window");
	sigemptyset(&none);
	signal(SIGXFSZ, SIG_IGN); /* a file that is too large is a write that fails */
	signal(SIGINT, SIG_IGN);  /* the daemon tells, if it wants to */
	sigprocmask(SIG_SETMASK, &none, NULL);
	set_limit(RLIMIT_FSIZE, options->max_bytes);
	set_limit(RLIMIT_DATA, MAX_MEMORY);
	set_limit(RLIMIT_CPU, MAX_CPU_S);
	if (nice(NICENESS) < 0)
		errno = 0;
}

static int work(const struct window_options *options, FILE *out, struct error *error)
{
	struct capture_options capture = {
	    .source = options->source,
	    .path = options->path,
	    .pids = options->pids,
	    .pid_count = options->pid_count,
	    .family = options->family,
	    .family_count = options->family_count,
	    .length_ns = options->length_ns,
	    .max_events = MAX_EVENTS,
	    .samples = options->samples,
	    .user_stacks = options->user_stacks,
	    .reason = options->reason,
	};
	struct capture_result captured;
	struct digest_cost cost;
	int err = capture_run(&capture, &captured, error);

	cost = (struct digest_cost){
	    .length_ns = captured.length_ns,
	    .programs_ns = captured.prog_ns,
	    .call_ns = captured.call_ns,
	    .call_hits = captured.call_hits,
	    .hit_ns = options->hit_ns,
	};
	return err ? err : digest_write(out, options->path, &cost, error);
}

static void __attribute__((noreturn)) child(const struct window_options *options, int result, pid_t parent)
{
	struct error error = {0};
	FILE *out;
	int err;

	settle_in(options, parent);
	out = fdopen(result, "w");
	if (!out)
		_exit(EXIT_FAILURE);
	err = work(options, out, &error);
	if (err && !fflush(out) && !ftruncate(result, 0))
		dprintf(result, "%s", error.text);
	_exit(err || fflush(out) ? EXIT_FAILURE : EXIT_SUCCESS);
}

int window_start(struct window_process *window, const struct window_options *options, struct error *error)
{
	pid_t parent = getpid();

	*window = (struct window_process){.pidfd = -1};
	window->result = memfd_create("whyidle-window", MFD_CLOEXEC);
	if (window->result < 0)
		return error_set(error, -errno, "cannot make a memory file: %s", strerror(errno));
	window->start_ns = clock_ns(CLOCK_MONOTONIC);
	window->deadline_ns = window->start_ns + options->length_ns + GRACE_NS;
	window->pid = fork();
	if (!window->pid)
		child(options, window->result, parent);
	if (window->pid > 0)
		window->pidfd = syscall(SYS_pidfd_open, window->pid, 0);
	if (window->pid > 0 && window->pidfd >= 0)
		return 0;
	error_set(error, -errno, "cannot start a window: %s", strerror(errno));
	if (window->pid > 0) {
		kill(window->pid, SIGKILL);
		waitpid(window->pid, NULL, 0);
	}
	close(window->result);
	return error->code;
}

void window_kill(const struct window_process *window)
{
	kill(window->pid, SIGKILL);
}

static char *read_result(int fd, size_t *length)
{
	struct stat status;
	char *text;
	ssize_t got;

	if (fstat(fd, &status) || status.st_size > RESULT_LIMIT)
		return NULL;
	text = malloc((size_t)status.st_size + 1);
	got = text ? pread(fd, text, (size_t)status.st_size, 0) : -1;
	if (got < 0) {
		free(text);
		return NULL;
	}
	text[got] = '\0';
	*length = (size_t)got;
	return text;
}

static uint64_t cpu_time(const struct rusage *usage)
{
	return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) * 1000000000ULL +
	       ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) * 1000ULL;
}

int window_finish(struct window_process *window, struct window_end *end, struct error *error)
{
	struct rusage usage = {0};
	int status = 0, err = 0;

	*end = (struct window_end){0};
	while (wait4(window->pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	end->cpu_ns = cpu_time(&usage);
	end->max_bytes = (uint64_t)usage.ru_maxrss * 1024;
	end->text = read_result(window->result, &end->length);
	if (WIFSIGNALED(status))
		err = error_set(error, -ECHILD, "a window was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		err =
		    error_set(error, -ECHILD, "%s", end->text && end->length ? end->text : "a window failed");
	else if (!end->text)
		err = error_set(error, -EIO, "the result of a window cannot be read");
	if (err) {
		free(end->text);
		end->text = NULL;
	}
	close(window->pidfd);
	close(window->result);
	window->pid = 0;
	return err;
}
