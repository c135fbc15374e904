/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Starts the command to record: as the right user, in the right environment, and not before everything is
 * ready to watch it.
 */
#ifndef WHYIDLE_COLLECT_LAUNCH_H
#define WHYIDLE_COLLECT_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/pure_environment.h"

/* Shell conventions for a command that could not be started. */
#define LAUNCH_NOT_EXECUTABLE 126
#define LAUNCH_NOT_FOUND      127

/* Who the command runs as. */
struct launch_user {
	uid_t uid;
	gid_t gid;
	bool drop;                 /* we are root for this user through sudo: give that up before exec */
	char *name, *home, *shell; /* NULL if not known */
};

/* Under sudo the invoking user, else (or with as_root) the one we are. Returns 0 or a negative errno. */
int launch_user_find(struct launch_user *user, bool as_root, struct error *error);
void launch_user_free(struct launch_user *user);

/*
 * The environment that the command would have without us: under sudo that of the invoking user, and with file
 * capabilities including what the loader took out of ours (LD_LIBRARY_PATH and its like).
 */
int launch_environment(struct environment *environment, const struct launch_user *user, struct error *error);

struct launch {
	pid_t pid;  /* 0: not started */
	int go;     /* a byte lets the child exec, end of file makes it leave */
	int result; /* the child's report if exec failed, end of file if it worked */
	bool released;
};

struct launch_options {
	char *const *argv;
	char *const *environment;
	const char *path; /* of the program, from environment_find_command */
	const struct launch_user *user;
	const sigset_t *signals; /* signal mask of the command */
};

/* Forks; the child waits. Descriptors 0 to 2 are the command's as they are. */
int launch_start(struct launch *launch, const struct launch_options *options, struct error *error);

/*
 * Lets the command run. Returns 0 once exec has succeeded; if it failed a negative errno with `error`, and
 * *exit_status (may be NULL) is what a shell would give.
 */
int launch_release(struct launch *launch, const char *command, int *exit_status, struct error *error);

/* Frees the descriptors; a child that was never released is made to leave and reaped. */
void launch_close(struct launch *launch);

/* Status of a shell for a status of wait(2). */
int launch_exit_status(int wait_status);

#endif
