/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One recording: collects what the BPF programs and the CUPTI bridges say about a command that it starts, or
 * about processes that run already, and writes the session file. The programs come first: nothing that goes
 * wrong here ends a command early, or touches a process.
 */
#ifndef WHYIDLE_COLLECT_RECORDER_H
#define WHYIDLE_COLLECT_RECORDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/discover.h"

enum recorder_uprobes {
	RECORDER_UPROBES_AUTO, /* on the CUDA calls of processes whose bridge does not work */
	RECORDER_UPROBES_ALWAYS,
	RECORDER_UPROBES_NEVER,
};

/* Which functions of the C library that wait are probed, to name locks. */
enum recorder_locks {
	RECORDER_LOCKS_OFF,
	RECORDER_LOCKS_WAITS,   /* condition variables, semaphores, joins, read-write locks */
	RECORDER_LOCKS_MUTEXES, /* mutexes as well */
};

/* Which records come with a user stack. */
enum recorder_user_stacks {
	RECORDER_STACKS_ALL,
	RECORDER_STACKS_OFFCPU,  /* blocked intervals */
	RECORDER_STACKS_SAMPLES, /* CPU samples */
	RECORDER_STACKS_NONE,
};

struct recorder_options {
	char *const *command; /* ends with NULL; NULL: `targets` */
	/*
	 * Processes that run already, or come later, and use CUDA; those that are given by pid are recorded
	 * whatever they use. With each all that descends from it.
	 */
	struct discover_filter targets;
	uint64_t duration_ns; /* the recording ends then, 0: when the command or all given pids have ended, or
	                         by a signal */
	uint64_t delay_ns;    /* the recording of a command begins so long after its start */
	int kill_signal;      /* what a command gets that goes on after duration_ns, 0: nothing */
	/* Session file, NULL: whyidle-<command>-<pid>.whyidle or whyidle-<time>.whyidle in the current
	 * directory. */
	const char *output;
	const char *options; /* as the user gave them, for the record */
	bool as_root;        /* under sudo: do not become the invoking user */
	bool no_bridge, no_bpf;
	bool inject;          /* `targets` get the CUPTI bridge while they are recorded */
	bool inject_finalize; /* in the end CUPTI is finalised in them, in a call of their own
	                         (docs/attach.md) */
	enum recorder_uprobes uprobes;
	uint64_t bpf_ring_bytes;    /* 0: default */
	uint64_t bridge_ring_bytes; /* 0: default */
	uint64_t sample_period_ns;  /* 0: no samples */
	uint64_t min_offcpu_ns;
	enum recorder_user_stacks user_stacks;
	enum recorder_locks locks;
};

struct recorder_progress {
	uint64_t elapsed_ns, duration_ns; /* duration 0: not known */
	size_t processes;                 /* that use CUDA, without a command */
	uint64_t events;                  /* so far */
	double rate;                      /* events a second since the last call */
	uint64_t lost;                    /* so far, all causes */
	uint64_t file_bytes;
};

struct recorder_result;

/* How a recording is watched; every function may be NULL. */
struct recorder_observer {
	/* A line for a person: what is degraded, what went wrong on the way. */
	void (*line)(void *context, const char *text);
	/* About once a second. */
	void (*progress)(void *context, const struct recorder_progress *progress);
	/*
	 * The recording is over and its file closed, but the command goes on (duration_ns): recorder_run
	 * returns once that has ended too.
	 */
	void (*outlived)(void *context, const struct recorder_result *result);
	void *context;
};

struct recorder_result {
	bool started;     /* the command ran */
	bool ended;       /* and came to its end; false: the user stopped the recording before */
	bool timed_out;   /* the recording ended by duration_ns; only what was recorded is affected */
	int exit_status;  /* of the command as a shell gives it, or why it could not be started; 0 without one
	                   */
	size_t processes; /* without a command: that were seen to use CUDA */
	bool file_complete;  /* everything could be written */
	char path[PATH_MAX]; /* of the session file, "" if there is none */
};

/*
 * Records. Returns 0 once the recording has ended and the file is closed (see `result` for how it went), or a
 * negative errno with `error` if it did not begin; result->exit_status then says which status to leave with.
 */
int recorder_run(const struct recorder_options *options, const struct recorder_observer *observer,
                 struct recorder_result *result, struct error *error);

#endif
