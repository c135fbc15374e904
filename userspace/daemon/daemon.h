/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Always on: counters all the time, windows of full capture within a budget, metrics, a rolling history, and
 * recordings that are kept when something goes wrong. docs/production.md.
 *
 * One thread, one loop (daemon.c). What it does once a second is in watch.c, windows are in windows.c, and
 * what it answers on its port and its socket in answers.c.
 */
#ifndef WHYIDLE_DAEMON_DAEMON_H
#define WHYIDLE_DAEMON_DAEMON_H

#include <jansson.h>

#include "base/error.h"
#include "daemon/config.h"

enum daemon_log_level {
	DAEMON_ERROR,
	DAEMON_WARNING,
	DAEMON_INFO,
};

struct daemon_options {
	/*
	 * Reads the configuration, at the start and when it is to be loaded again. What it sets must stay
	 * until it is called again and has succeeded. Returns 0, or a negative errno with `error`: then the
	 * old one stays in force.
	 */
	int (*load)(void *context, struct daemon_config *config, struct error *error);
	/* Something worth a line: an event, a sentence, and facts (NULL: none), which are the callee's. */
	void (*log)(void *context, enum daemon_log_level level, const char *event, const char *text,
	            json_t *facts);
	void *context;
};

/*
 * Runs until SIGTERM, SIGINT or a client says to stop; SIGHUP loads the configuration again. Returns 0, or a
 * negative errno with `error` if it could not start.
 */
int daemon_run(const struct daemon_options *options, struct error *error);

#endif
