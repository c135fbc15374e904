/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bridges that are put into processes which ran already: attaches (inject/inject.h, on threads of their
 * own), hands those that work to the bridge server, and takes them out again at the end.
 */
#ifndef WHYIDLE_COLLECT_INJECTIONS_H
#define WHYIDLE_COLLECT_INJECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/bridge_server.h"
#include "collect/pure_process_match.h"
#include "inject/inject.h"

struct injections;

struct injections_options {
	struct bridge_server *server; /* not owned; outlives the injections */
	/* A process has its bridge: `times` is what that took. May be NULL. */
	void (*attached)(void *context, uint32_t pid, const struct inject_times *times);
	/* A process was left alone: `text` is why, and what to do. */
	void (*refused)(void *context, uint32_t pid, enum inject_reason reason, const char *text);
	void *context;
	bool finalize; /* inject_options.finalize of all */
};

/* Returns 0 or a negative errno with `error`. */
int injections_open(struct injections **injections, const struct injections_options *options,
                    struct error *error);

/* Starts to attach to a process, once for each (another program in it is another process). Returns at once;
 * 0 or a negative errno with `error`. */
int injections_add(struct injections *injections, const struct process_identity *process,
                   struct error *error);

/* A descriptor that polls readable when an attachment has come to its end, good or bad. */
int injections_fd(const struct injections *injections);

/* Hands over what is attached. Returns 0 or the first negative errno of the writer. */
int injections_poll(struct injections *injections, struct session_writer *writer, struct error *error);

/* True while some are still being attached. */
bool injections_working(const struct injections *injections);

/*
 * Asks all bridges to leave. The caller goes on with bridge_server_poll until bridge_server_adopted is 0, or
 * for INJECTIONS_LEAVE_NS at most, and then calls injections_close.
 */
#define INJECTIONS_LEAVE_NS 5000000000ULL
void injections_stop(struct injections *injections);

/* Waits for attachments in progress (bounded, they are told to give up). NULL is allowed. */
void injections_close(struct injections *injections);

#endif
