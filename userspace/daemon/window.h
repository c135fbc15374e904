/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One window of full capture: a child process that records (collect/capture.h), analyses what it has recorded
 * (daemon/digest.h) and ends. Its probes, its memory and its mistakes end with it; it also ends if the daemon
 * does. One window at a time.
 */
#ifndef WHYIDLE_DAEMON_WINDOW_H
#define WHYIDLE_DAEMON_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct bpf_source;

struct window_options {
	struct bpf_source *source;
	const char *path;              /* of the session */
	const uint32_t *pids, *family; /* as in struct capture_options */
	size_t pid_count, family_count;
	uint64_t length_ns;
	uint64_t max_bytes; /* of the session file */
	bool samples, user_stacks;
	uint64_t hit_ns; /* what a hit of a probe costs (collect/probe_cost.h), 0: not known */
	const char *reason;
};

struct window_process {
	pid_t pid;
	int pidfd;                   /* polls readable when it has ended */
	int result;                  /* memory file */
	uint64_t start_ns, start_ms; /* CLOCK_MONOTONIC; CLOCK_REALTIME */
	uint64_t deadline_ns;        /* from when on it is to be ended */
};

struct window_end {
	uint64_t cpu_ns;    /* CPU time of the process */
	uint64_t max_bytes; /* of memory that it had */
	char *text;         /* document, NULL: it failed; the caller frees it */
	size_t length;
};

/* Starts one. Returns 0 or a negative errno with `error`. */
int window_start(struct window_process *window, const struct window_options *options, struct error *error);

/* It lasts too long: ends it. window_finish then reports that it failed. */
void window_kill(const struct window_process *window);

/*
 * Takes the result of a process that has ended, and frees `window`. Returns 0, or a negative errno with
 * `error` if it gave none.
 */
int window_finish(struct window_process *window, struct window_end *end, struct error *error);

#endif
