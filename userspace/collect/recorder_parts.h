/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the recorder share: the state of one recording. Nobody else includes this.
 *
 *	recorder.c           the course of a recording: prepare, run, finish
 *	recorder_command.c   a command that is started for it
 *	recorder_running.c   processes that run already
 *	recorder_inject.c    the bridge in processes that run already
 *	recorder_cuda.c      probes on the CUDA calls of a process
 *	recorder_file.c      the session file
 *	recorder_notes.c     what is told, and kept in the file
 */
#ifndef WHYIDLE_COLLECT_RECORDER_PARTS_H
#define WHYIDLE_COLLECT_RECORDER_PARTS_H

#include <signal.h>
#include <sys/signalfd.h>

#include "collect/bpf_source.h"
#include "collect/bridge_file.h"
#include "collect/bridge_server.h"
#include "collect/cuda_watch.h"
#include "collect/discover.h"
#include "collect/injections.h"
#include "collect/launch.h"
#include "collect/recorder.h"
#include "collect/steal.h"
#include "trace/session.h"

#define MAX_DEGRADED       64
#define PROGRESS_PERIOD_NS 1000000000ULL
#define STEAL_TOLD         0.01 /* share of the CPU time that was asked for */

struct recorder {
	const struct recorder_options *options;
	const struct recorder_observer *observer;
	struct recorder_result *result;

	struct launch_user user;
	struct environment environment;
	char *program; /* path of the command */
	struct bridge_file bridge_file;
	struct bridge_server *server;
	struct launch launch;
	struct session_writer *writer;
	struct bpf_source *bpf;
	struct cuda_watch *watch; /* of the command and what it starts */

	struct discover *discover; /* of processes that run already */
	struct {
		ARRAY(int)
	} target_pidfds;               /* of processes that were given by pid */
	struct pid_list untracked;     /* found, and not yet recorded */
	struct injections *injections; /* NULL: nothing is loaded into processes that run already */

	int signals; /* signalfd */
	sigset_t old_mask;
	bool mask_set;

	char *degraded[MAX_DEGRADED]; /* said so far */
	size_t degraded_count;
	bool write_failed;
	bool injection_taken; /* the user's own CUDA_INJECTION64_PATH stays */

	struct steal_ticks steal; /* when it began */
	uint64_t start_ns, next_flush_ns, next_progress_ns, progress_ns, progress_events;
	bool begun;          /* records are kept: false while a delay lasts */
	uint64_t begin_ns;   /* when a delay is over */
	uint64_t end_ns;     /* the recording ends then, 0 never */
	uint64_t stop_by_ns; /* stop waiting then, 0 never */
	int interrupts;
	int stop_signal; /* the last signal that asked us to end, 0 none */
	int wait_status;
};

/* recorder_notes.c */

/* A line for a person, not kept. */
void recorder_say(const struct recorder *recorder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A thing that is missing from the recording: said once, and kept in the file once there is one. */
void recorder_degrade(struct recorder *recorder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Errors of the session writer and of the BPF side end nothing; each kind is said once. */
void recorder_note_error(struct recorder *recorder, int err, const struct error *error);
void recorder_put_info(struct recorder *recorder, const char *key, const char *value);
void recorder_put_number(struct recorder *recorder, const char *key, uint64_t value);

/* recorder_file.c: `subject` is what was recorded, in a person's words. */
int recorder_open_file(struct recorder *recorder, const char *default_name, struct error *error);
void recorder_put_session(struct recorder *recorder, const char *subject);
/* The recording begins now; again if it did not begin with the session. */
void recorder_put_start(struct recorder *recorder);
/* Takes a file away that holds nothing, because nothing was recorded. */
void recorder_drop_file(struct recorder *recorder);

/* recorder_cuda.c */
void recorder_probe_cuda(struct recorder *recorder, uint32_t pid, const struct cuda_library *libraries,
                         size_t count);
/* The same for what waits in its C library, if that is wanted. */
void recorder_probe_locks(struct recorder *recorder, uint32_t pid);
/* The same for NCCL, if it has that; `context` is the recorder: also a callback. */
void recorder_probe_nccl(void *context, uint32_t pid);
/* Keeps which rank of a job the process is, if its environment says so. */
void recorder_put_rank(struct recorder *recorder, uint32_t pid);
/* Callbacks of struct cuda_watch_options. */
void recorder_cuda_mapped(void *context, uint32_t pid, const struct cuda_library *libraries, size_t count);
void recorder_cuda_without_bridge(void *context, uint32_t pid, enum bridge_state state, const char *text,
                                  const struct cuda_library *libraries, size_t count);

/* recorder.c */
/* Opens BPF; `callers` may be NULL. Attaching it is left to the caller. */
int recorder_start_bpf(struct recorder *recorder, const struct bpf_source_callers *callers,
                       struct error *error);
void recorder_bridge_degraded(void *context, uint32_t pid, const char *what);

/* Takes what the rings hold, after waiting for some of it for a moment. */
void recorder_collect(struct recorder *recorder);

/* recorder_inject.c: opens the server of the bridges. What is open is closed by recorder_running_close. */
int recorder_inject_open(struct recorder *recorder, struct error *error);
/* True if the process is attached, now or later, or is told not to be: no probes are needed for now. */
bool recorder_inject_add(struct recorder *recorder, struct discovered *process);
void recorder_inject_poll(struct recorder *recorder);
/* Takes all bridges out again, bounded in time. */
void recorder_inject_finish(struct recorder *recorder);

/*
 * recorder_command.c: starts the command, stopped; it goes on by launch_release. `handle` returns true if the
 * recording shall stop although the command runs on, `ended` once it has ended.
 */
int recorder_prepare_command(struct recorder *recorder, struct error *error);
/* The delay is over: records what is there from now on. */
int recorder_command_begin(struct recorder *recorder, struct error *error);
bool recorder_command_signal(struct recorder *recorder, const struct signalfd_siginfo *info);
bool recorder_command_ended(struct recorder *recorder);
/* After the recording's own end: sends the command the signal that was asked for. */
void recorder_command_kill(struct recorder *recorder);

/* recorder_running.c: the same for processes that run already. */
int recorder_prepare_running(struct recorder *recorder, struct error *error);
bool recorder_running_signal(struct recorder *recorder, const struct signalfd_siginfo *info);
bool recorder_running_ended(struct recorder *recorder);
/* Looks for processes that have come. */
void recorder_running_poll(struct recorder *recorder, uint64_t now_ns);
void recorder_running_finish(struct recorder *recorder);
void recorder_running_close(struct recorder *recorder);

#endif
