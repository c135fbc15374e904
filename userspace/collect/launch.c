// SPDX-License-Identifier: GPL-2.0-only
#include "collect/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/process_info.h"

#define MAX_ENVIRONMENT (4u << 20) /* bytes; the kernel's own limit is 2 MiB by default */
#define MAX_ANCESTORS   8          /* between us and sudo */

extern char **environ;

/* What the child could not do; sent to the parent if exec fails. */
struct failure {
	int code; /* errno */
	enum {
		FAILED_USER,
		FAILED_EXEC,
	} step;
};

/* ---- user ---- */

static bool read_id(const char *name, unsigned int *id)
{
	const char *text = getenv(name);
	char *end;
	unsigned long value;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value >= UINT_MAX)
		return false;
	*id = value;
	return true;
}

static int copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

int launch_user_find(struct launch_user *user, bool as_root, struct error *error)
{
	const struct passwd *entry;
	unsigned int uid, gid;
	bool has_gid;

	memset(user, 0, sizeof(*user));
	user->uid = getuid();
	user->gid = getgid();
	if (geteuid() != 0 || as_root || !read_id("SUDO_UID", &uid) || uid == 0)
		return 0;
	has_gid = read_id("SUDO_GID", &gid);
	entry = getpwuid(uid);
	if (!entry && !has_gid)
		return error_set(error, -ENOENT, "no user with the id %u of SUDO_UID; use --as-root", uid);
	user->uid = uid;
	user->gid = has_gid ? gid : entry->pw_gid;
	user->drop = true;
	if (entry && (copy_text(&user->name, entry->pw_name) || copy_text(&user->home, entry->pw_dir) ||
	              copy_text(&user->shell, entry->pw_shell))) {
		launch_user_free(user);
		return error_no_memory(error);
	}
	return 0;
}

void launch_user_free(struct launch_user *user)
{
	free(user->name);
	free(user->home);
	free(user->shell);
	memset(user, 0, sizeof(*user));
}

/* ---- environment ---- */

static int read_environment(struct environment *environment, const char *path)
{
	char *bytes = malloc(MAX_ENVIRONMENT);
	size_t length = 0;
	ssize_t got = 0;
	int fd, err = 0;

	if (!bytes)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		goto out;
	}
	while (length < MAX_ENVIRONMENT && (got = read(fd, bytes + length, MAX_ENVIRONMENT - length)) > 0)
		length += got;
	if (got < 0)
		err = -errno;
	close(fd);
	if (!err)
		err = environment_parse(environment, bytes, length);
out:
	free(bytes);
	return err;
}

/*
 * With file capabilities the loader takes LD_LIBRARY_PATH and others out of our environment, but the bytes
 * that exec put on the stack are still there to read. A process with such capabilities is not "dumpable",
 * which hides its own /proc files from it, so that has to be lifted for a moment. (The command itself runs
 * without our capabilities.)
 */
static int own_environment(struct environment *environment)
{
	int dumpable, err;

	if (!getauxval(AT_SECURE))
		return environment_copy(environment, environ);
	dumpable = prctl(PR_GET_DUMPABLE);
	if (dumpable == 0)
		prctl(PR_SET_DUMPABLE, 1);
	err = read_environment(environment, "/proc/self/environ");
	if (dumpable == 0)
		prctl(PR_SET_DUMPABLE, 0);
	if (err == -ENOMEM)
		return err;
	if (err || !environment->count) {
		environment_free(environment);
		return environment_copy(environment, environ);
	}
	return 0;
}

static bool is_sudo(uint32_t pid)
{
	char path[64], target[256];
	const char *name;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return false;
	target[length] = '\0';
	name = strrchr(target, '/');
	return name && (!strcmp(name, "/sudo") || !strcmp(name, "/sudo-rs"));
}

/* The environment that the invoking user gave to sudo: sudo itself still has it. Best effort. */
static int invoker_environment(struct environment *environment)
{
	uint32_t pid = getppid();
	char path[64];
	int err;

	for (int i = 0; i < MAX_ANCESTORS && pid > 1; i++, pid = process_parent(pid)) {
		if (!is_sudo(pid))
			continue;
		snprintf(path, sizeof(path), "/proc/%u/environ", pid);
		err = read_environment(environment, path);
		return err == -ENOMEM ? err : 0;
	}
	return 0;
}

int launch_environment(struct environment *environment, const struct launch_user *user, struct error *error)
{
	struct environment_user who = {user->name, user->home, user->shell};
	struct environment invoker = {0};
	int err = own_environment(environment);

	if (!err && user->drop) {
		err = invoker_environment(&invoker);
		if (!err)
			err = environment_undo_sudo(environment, &invoker, &who);
		environment_free(&invoker);
	}
	return err ? error_no_memory(error) : 0;
}

/* ---- the child ---- */

static int become(const struct launch_user *user)
{
	if (!user->drop)
		return 0;
	if (user->name ? initgroups(user->name, user->gid) : setgroups(1, &user->gid))
		return -errno;
	if (setresgid(user->gid, user->gid, user->gid) || setresuid(user->uid, user->uid, user->uid))
		return -errno;
	return 0;
}

/* A script without "#!" is run by the shell, as execvp does. */
static void exec_by_shell(const struct launch_options *options)
{
	size_t count = 0;
	char **argv;

	while (options->argv[count])
		count++;
	argv = calloc(count + 2, sizeof(*argv));
	if (!argv)
		return;
	argv[0] = (char *)"sh";
	argv[1] = (char *)options->path;
	for (size_t i = 1; i < count; i++)
		argv[i + 1] = options->argv[i];
	execve("/bin/sh", argv, options->environment);
	free(argv);
}

static void __attribute__((noreturn)) child(const struct launch_options *options, int go, int result)
{
	struct failure failure = {.step = FAILED_USER};
	ssize_t got;
	char byte;

	do
		got = read(go, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(0);
	failure.code = -become(options->user);
	if (!failure.code) {
		failure.step = FAILED_EXEC;
		sigprocmask(SIG_SETMASK, options->signals, NULL);
		execve(options->path, options->argv, options->environment);
		if (errno == ENOEXEC)
			exec_by_shell(options);
		failure.code = errno;
	}
	/* If even this fails the parent sees our exit status. */
	got = write(result, &failure, sizeof(failure));
	_exit(got == sizeof(failure) ? LAUNCH_NOT_EXECUTABLE : LAUNCH_NOT_FOUND);
}

int launch_start(struct launch *launch, const struct launch_options *options, struct error *error)
{
	int go[2], result[2], err;

	memset(launch, 0, sizeof(*launch));
	launch->go = launch->result = -1;
	if (pipe2(go, O_CLOEXEC) < 0)
		return error_set(error, -errno, "cannot make a pipe: %s", strerror(errno));
	if (pipe2(result, O_CLOEXEC) < 0) {
		err = -errno;
		goto close_go;
	}
	fflush(NULL);
	launch->pid = fork();
	if (launch->pid < 0) {
		err = -errno;
		launch->pid = 0;
		close(result[0]);
		close(result[1]);
		goto close_go;
	}
	if (launch->pid == 0) {
		close(go[1]);
		close(result[0]);
		child(options, go[0], result[1]);
	}
	close(go[0]);
	close(result[1]);
	launch->go = go[1];
	launch->result = result[0];
	return 0;
close_go:
	close(go[0]);
	close(go[1]);
	return error_set(error, err, "cannot start the command: %s", strerror(-err));
}

static void close_pipes(struct launch *launch)
{
	if (launch->go >= 0)
		close(launch->go);
	if (launch->result >= 0)
		close(launch->result);
	launch->go = launch->result = -1;
}

int launch_release(struct launch *launch, const char *command, int *exit_status, struct error *error)
{
	struct failure failure = {0};
	int unused, err;
	ssize_t got;

	if (!exit_status)
		exit_status = &unused;
	do
		got = write(launch->go, "", 1);
	while (got < 0 && errno == EINTR);
	launch->released = true;
	do
		got = read(launch->result, &failure, sizeof(failure));
	while (got < 0 && errno == EINTR);
	close_pipes(launch);
	if (got != sizeof(failure))
		return 0;
	waitpid(launch->pid, NULL, 0);
	launch->pid = 0;
	err = -failure.code;
	*exit_status = failure.code == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
	if (failure.step == FAILED_USER)
		return error_set(error, err, "cannot become the user who called sudo: %s",
		                 strerror(failure.code));
	if (failure.code == ENOENT)
		return error_set(error, err, "command not found: %s (or the interpreter it names)", command);
	return error_set(error, err, "cannot run %s: %s", command, strerror(failure.code));
}

void launch_close(struct launch *launch)
{
	close_pipes(launch);
	if (launch->pid > 0 && !launch->released)
		waitpid(launch->pid, NULL, 0);
	launch->pid = 0;
}

int launch_exit_status(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
}
