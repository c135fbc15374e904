/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A short recording of processes that run already, with BPF programs that were loaded before: a window of the
 * daemon. For a child of the process that loaded them (bpf_source_renew); that child does nothing else.
 */
#ifndef WHYIDLE_COLLECT_CAPTURE_H
#define WHYIDLE_COLLECT_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct bpf_source;

struct capture_options {
	struct bpf_source *source;
	const char *path;     /* of the session file */
	const uint32_t *pids; /* processes that use CUDA, whose calls are probed */
	size_t pid_count;
	const uint32_t *family; /* these and what descended from them: all that is tracked */
	size_t family_count;
	uint64_t length_ns;
	uint64_t max_events; /* it ends earlier once so many were taken */
	bool samples;        /* of what runs on the CPUs */
	bool user_stacks;    /* which name functions and lines; looking up the names is what costs most */
	const char *reason;  /* why there is a window, for the session */
};

struct capture_result {
	uint64_t start_ns, length_ns; /* from when everything was recorded, and for how long */
	uint64_t events, lost;
	/* As in struct bpf_source_stats. */
	uint64_t prog_ns, call_ns, call_hits;
	unsigned processes; /* that were there */
};

/* Returns 0 or a negative errno with `error`; the file may then be there, but is not complete. */
int capture_run(const struct capture_options *options, struct capture_result *result, struct error *error);

#endif
