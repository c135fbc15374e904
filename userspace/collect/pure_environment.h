/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The environment of a recorded command, as a list of "NAME=value" strings. Pure: knows nothing of the
 * process's own environment.
 */
#ifndef WHYIDLE_COLLECT_ENVIRONMENT_H
#define WHYIDLE_COLLECT_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"

/* items[count] is NULL once environment_vector has been called; the strings are owned. */
struct environment {
	ARRAY(char *)
};

/* All of these return 0 or -ENOMEM. Where a name occurs more than once, the first one counts, as in getenv.
 */
int environment_copy(struct environment *environment, char *const *vector);
/* From the bytes of /proc/PID/environ: strings that end in NUL. What has no '=' is skipped. */
int environment_parse(struct environment *environment, const char *bytes, size_t length);
int environment_set(struct environment *environment, const char *name, const char *value);

/* NULL if it is not there. */
const char *environment_get(const struct environment *environment, const char *name);
void environment_unset(struct environment *environment, const char *name);

/* For execve; NULL if memory ran out. Owned by the environment. */
char **environment_vector(struct environment *environment);

void environment_free(struct environment *environment);

/* Who the command runs as. */
struct environment_user {
	const char *name, *home, *shell;
};

/*
 * Turns `own`, the environment that sudo gave to us, into what the invoking user would expect: the variables
 * of that user's own shell (`invoker`, may be empty if it could not be had), HOME, USER, LOGNAME and SHELL of
 * the user, and no SUDO_*. A variable given on sudo's command line (in `own` but not of sudo's making) is
 * kept.
 */
int environment_undo_sudo(struct environment *own, const struct environment *invoker,
                          const struct environment_user *user);

/*
 * Looks a command up as execvp would, in `path` (a PATH value; NULL: the system's default). Returns a
 * malloced path, or NULL with errno: ENOENT not found, EACCES found but not executable, ENOMEM.
 */
char *environment_find_command(const char *command, const char *path);

/* "python3 train.py 'a b'": arguments joined for a person, quoted as a shell needs it. NULL if memory ran
 * out. */
char *environment_command_line(char *const *argv);

#endif
