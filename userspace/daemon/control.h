/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The control socket: a Unix stream socket on which a client sends one line and gets one JSON document, then
 * the end. Root and the user of the daemon may do everything; whoever else the permissions of the socket let
 * in (members of its group) may ask and dump, but not stop or reload.
 *
 * Clients are not trusted: their number, the length of a request and the time that they may take are bounded,
 * and a client that does not read its answer is dropped.
 */
#ifndef WHYIDLE_DAEMON_CONTROL_H
#define WHYIDLE_DAEMON_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CONTROL_REQUEST 256 /* bytes of a request, its newline included */
#define CONTROL_FILES   64  /* descriptors that an answer may carry */

struct control_answer {
	char *text; /* freed by the socket */
	size_t length;
	int files[CONTROL_FILES]; /* descriptors that go with the first byte; closed by the socket */
	size_t file_count;
};

struct control_options {
	const char *path;
	const char *group; /* NULL: root and the own user only */
	/* A request without its newline; `owner`: the client may do everything. Fills in the answer. */
	void (*request)(void *context, const char *request, bool owner, struct control_answer *answer);
	void *context;
};

struct control;

/* Makes the folder of the socket if it is missing. -EADDRINUSE: another daemon answers there. */
int control_open(struct control **control, const struct control_options *options, struct error *error);

/* Polls readable when there is something to do. */
int control_fd(const struct control *control);
void control_run(struct control *control, uint64_t now_ns);

/* Drops clients that took too long. Call now and then. */
void control_expire(struct control *control, uint64_t now_ns);

/* Removes the socket's file. NULL is allowed. */
void control_close(struct control *control);

/*
 * The client's side: sends a request and waits for the answer at most timeout_ms. `files` (may be NULL) gets
 * the descriptors, at most CONTROL_FILES, with their number in *file_count. *text is freed by the caller.
 * Returns 0 or a negative errno with `error`.
 */
int control_ask(const char *path, const char *request, int timeout_ms, char **text, size_t *length,
                int *files, size_t *file_count, struct error *error);

#endif
