// SPDX-License-Identifier: GPL-2.0-only
/* The course of a recording. */
#include "collect/recorder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bpf/settings.h"
#include "collect/process_info.h"
#include "collect/recorder_parts.h"

#define POLL_MS          50
#define COLLECT_MS       5
#define FLUSH_PERIOD_NS  500000000ULL
#define KILL_PATIENCE_NS 5000000000ULL /* after --kill, before the report comes anyway */
#define LAST_FLUSH_MS    300 /* bridges of processes that outlive the command: time for one more flush */

static void on_bpf_degraded(void *context, const char *what)
{
	recorder_degrade(context, "%s", what);
}

void recorder_bridge_degraded(void *context, uint32_t pid, const char *what)
{
	char name[64];

	if (!pid) {
		recorder_degrade(context, "%s", what);
		return;
	}
	process_name(pid, name, sizeof(name));
	recorder_degrade(context, "process %u%s%s%s: %s", pid, *name ? " (" : "", name, *name ? ")" : "",
	                 what);
}

/* ---- preparing ---- */

static int block_signals(struct recorder *recorder, struct error *error)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, &recorder->old_mask) < 0)
		return error_set(error, -errno, "cannot block signals: %s", strerror(errno));
	recorder->mask_set = true;
	recorder->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (recorder->signals < 0)
		return error_set(error, -errno, "cannot watch signals: %s", strerror(errno));
	/* Blocked only: a disposition would be inherited by the command. */
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return 0;
}

int recorder_start_bpf(struct recorder *recorder, const struct bpf_source_callers *callers,
                       struct error *error)
{
	static const unsigned stacks[] = {[RECORDER_STACKS_ALL] = STACKS_OFFCPU | STACKS_SAMPLED,
	                                  [RECORDER_STACKS_OFFCPU] = STACKS_OFFCPU,
	                                  [RECORDER_STACKS_SAMPLES] = STACKS_SAMPLED,
	                                  [RECORDER_STACKS_NONE] = 0};
	struct bpf_source_options options = {
	    .ring_bytes = recorder->options->bpf_ring_bytes,
	    .min_offcpu_ns = recorder->options->min_offcpu_ns,
	    .sample_period_ns = recorder->options->sample_period_ns,
	    .user_stacks = stacks[recorder->options->user_stacks],
	    .locks = recorder->options->locks != RECORDER_LOCKS_OFF,
	    .lock_mutexes = recorder->options->locks == RECORDER_LOCKS_MUTEXES,
	    .callers = callers ? *callers : (struct bpf_source_callers){0},
	    .degraded = on_bpf_degraded,
	    .context = recorder,
	};

	if (recorder->options->no_bpf) {
		recorder_degrade(recorder, "GPU timeline only: without BPF no cause can be named (--no-bpf)");
		return 0;
	}
	if (!process_in_initial_pid_namespace())
		recorder_degrade(recorder,
		                 "whyidle runs in a pid namespace of its own: processes may be missed; run "
		                 "it on the host");
	return bpf_source_open(&recorder->bpf, &options, error);
}

static int prepare(struct recorder *recorder, struct error *error)
{
	int err;

	err = launch_user_find(&recorder->user, recorder->options->as_root, error);
	if (!err)
		err = block_signals(recorder, error);
	if (err)
		return err;
	return recorder->options->command ? recorder_prepare_command(recorder, error)
	                                  : recorder_prepare_running(recorder, error);
}

/* ---- running ---- */

static void collect(struct recorder *recorder)
{
	struct error error = {0};
	int err;

	if (recorder->server) {
		err = bridge_server_poll(recorder->server, recorder->writer, &error);
		recorder_note_error(recorder, err, &error);
	}
	if (recorder->bpf && recorder->begun) {
		err = bpf_source_poll(recorder->bpf, &error);
		recorder_note_error(recorder, err, &error);
	}
}

static void count_events(const struct recorder *recorder, struct recorder_progress *progress)
{
	struct bridge_server_stats bridge = {0};
	struct bpf_source_stats bpf = {0};

	if (recorder->server)
		bridge_server_stats(recorder->server, &bridge);
	if (recorder->bpf)
		bpf_source_stats(recorder->bpf, &bpf);
	progress->events = bridge.records + bpf.events;
	progress->lost = bridge.lost_ring + bridge.lost_cupti + bridge.invalid + bpf.lost_ring +
	                 bpf.lost_stack + bpf.lost_storage + session_writer_lost(recorder->writer);
	progress->file_bytes = session_writer_bytes(recorder->writer);
}

static void show_progress(struct recorder *recorder, uint64_t now)
{
	struct recorder_progress progress = {
	    .elapsed_ns = now - recorder->start_ns,
	    .duration_ns = recorder->options->duration_ns,
	    .processes = recorder->discover ? discover_started(recorder->discover) : 0,
	};

	if (!recorder->observer->progress || !recorder->begun || now < recorder->next_progress_ns)
		return;
	count_events(recorder, &progress);
	if (now > recorder->progress_ns)
		progress.rate =
		    (progress.events - recorder->progress_events) * 1e9 / (now - recorder->progress_ns);
	recorder->progress_ns = now;
	recorder->progress_events = progress.events;
	recorder->next_progress_ns = now + PROGRESS_PERIOD_NS;
	recorder->observer->progress(recorder->observer->context, &progress);
}

static void flush(struct recorder *recorder, uint64_t now)
{
	struct error error = {0};

	if (now < recorder->next_flush_ns)
		return;
	recorder->next_flush_ns = now + FLUSH_PERIOD_NS;
	recorder_note_error(recorder, session_writer_flush(recorder->writer, &error), &error);
}

/* Returns true if the recording shall stop although the command runs on. */
static bool handle_signals(struct recorder *recorder)
{
	struct signalfd_siginfo info;
	bool stop = false;

	while (read(recorder->signals, &info, sizeof(info)) == sizeof(info))
		stop |= recorder->options->command ? recorder_command_signal(recorder, &info)
		                                   : recorder_running_signal(recorder, &info);
	return stop;
}

/* Until something comes, or the time has come at which the recording begins or ends. */
static void wait_for_news(const struct recorder *recorder, int timeout_ms)
{
	uint64_t next_ns = recorder->begun ? recorder->end_ns : recorder->begin_ns;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct pollfd fds[3] = {
	    {.fd = recorder->signals, .events = POLLIN},
	    {.fd = recorder->server ? bridge_server_fd(recorder->server) : -1, .events = POLLIN},
	    {.fd = recorder->injections ? injections_fd(recorder->injections) : -1, .events = POLLIN},
	};

	if (next_ns && next_ns < now + (uint64_t)timeout_ms * 1000000)
		timeout_ms = next_ns > now ? (int)((next_ns - now + 999999) / 1000000) : 0;
	poll(fds, 3, timeout_ms);
}

void recorder_collect(struct recorder *recorder)
{
	struct pollfd news = {.fd = recorder->server ? bridge_server_fd(recorder->server) : -1,
	                      .events = POLLIN};

	poll(&news, 1, COLLECT_MS);
	collect(recorder);
}

/* A command that goes on is recorded from now on; what fails is missing, and said. */
static void begin(struct recorder *recorder)
{
	struct error error = {0};

	if (recorder_command_begin(recorder, &error))
		recorder_degrade(recorder, "%s", error.text);
}

static void run(struct recorder *recorder)
{
	bool stop = false;

	while (!stop) {
		uint64_t now;

		wait_for_news(recorder, POLL_MS);
		stop = handle_signals(recorder);
		/* The end is looked for before the rings are emptied, so that they hold all of it. */
		stop |= recorder->options->command ? recorder_command_ended(recorder)
		                                   : recorder_running_ended(recorder);
		collect(recorder);
		now = clock_ns(CLOCK_MONOTONIC);
		if (!recorder->begun && !stop && now >= recorder->begin_ns)
			begin(recorder);
		if (recorder->watch && recorder->begun && !stop)
			cuda_watch_poll(recorder->watch, now);
		if (recorder->discover && !stop)
			recorder_running_poll(recorder, now);
		flush(recorder, now);
		show_progress(recorder, now);
		if (recorder->stop_by_ns && now > recorder->stop_by_ns)
			stop = true;
		if (recorder->end_ns && now >= recorder->end_ns && !stop)
			stop = recorder->result->timed_out = true;
	}
}

/* Processes that outlive the command get the time for one more flush of CUPTI's buffers. */
static void last_flush(struct recorder *recorder)
{
	struct bridge_server_stats stats;
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + LAST_FLUSH_MS * 1000000ULL;

	if (!recorder->server)
		return;
	do {
		bridge_server_stats(recorder->server, &stats);
		if (!stats.connected)
			return;
		wait_for_news(recorder, POLL_MS);
		if (handle_signals(recorder) && recorder->interrupts > 2)
			return;
		collect(recorder);
	} while (clock_ns(CLOCK_MONOTONIC) < until);
}

/* What a reader of the report should know about the GPU side of the recording. */
static void judge_timeline(struct recorder *recorder)
{
	struct bridge_server_stats stats = {0};

	if (recorder->server)
		bridge_server_stats(recorder->server, &stats);
	if (stats.processes || (recorder->watch && cuda_watch_seen(recorder->watch)) ||
	    (recorder->discover && discover_started(recorder->discover)))
		return;
	if (recorder->server)
		recorder_degrade(recorder, "no process used CUDA");
	else
		recorder_degrade(recorder, "no process was seen to use CUDA");
}

/* A remark in the report: nothing is missing for it, so nothing is said now. */
static void judge_steal(struct recorder *recorder)
{
	struct steal_ticks now = steal_ticks_now();
	double share = steal_share(&recorder->steal, &now);
	char text[128];

	if (share < STEAL_TOLD)
		return;
	snprintf(text, sizeof(text),
	         "the hypervisor took %.1f%% of the CPU time that this machine asked for (steal time)",
	         100 * share);
	recorder_put_info(recorder, "degraded", text);
}

static void finish_command(struct recorder *recorder)
{
	struct recorder_result *result = recorder->result;

	if (!recorder->begun)
		recorder_degrade(recorder, "the command ended before the recording began (--delay)");
	if (result->ended) {
		result->exit_status = launch_exit_status(recorder->wait_status);
		recorder_put_number(recorder, "exit_status", result->exit_status);
		return;
	}
	result->exit_status = 128 + recorder->stop_signal;
	if (!result->timed_out)
		recorder_degrade(recorder,
		                 "the recording was stopped by a signal before the command had ended");
}

/* What is of no use once the file is closed. */
static void release(struct recorder *recorder)
{
	cuda_watch_close(recorder->watch);
	recorder_running_close(recorder);
	bpf_source_close(recorder->bpf);
	bridge_server_close(recorder->server);
	recorder->watch = NULL;
	recorder->bpf = NULL;
	recorder->server = NULL;
}

/*
 * The recording is over, the command is not. A shell that waits for us waits for it: it keeps its terminal,
 * and its exit status is ours. What was asked to end gets a moment for it, so that what it still has to say
 * comes before the report.
 */
static void outlive(struct recorder *recorder)
{
	struct recorder_result *result = recorder->result;
	int signal = recorder->options->kill_signal;
	uint64_t patience_ns = clock_ns(CLOCK_MONOTONIC) + (signal ? KILL_PATIENCE_NS : 0);
	bool stop = false, told = false;

	release(recorder);
	recorder->stop_by_ns = 0;
	recorder_command_kill(recorder);
	while (!stop && !recorder_command_ended(recorder)) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (!told && now >= patience_ns) {
			told = true;
			recorder->observer->outlived(recorder->observer->context, result);
		}
		wait_for_news(recorder, POLL_MS);
		stop = handle_signals(recorder) ||
		       (recorder->stop_by_ns && clock_ns(CLOCK_MONOTONIC) > recorder->stop_by_ns);
	}
	if (!told)
		recorder->observer->outlived(recorder->observer->context, result);
	if (stop)
		result->exit_status = 128 + recorder->stop_signal;
	else if (signal && WIFSIGNALED(recorder->wait_status) && WTERMSIG(recorder->wait_status) == signal)
		result->exit_status = 0; /* it did as it was told */
	else
		result->exit_status = launch_exit_status(recorder->wait_status);
}

static void finish(struct recorder *recorder)
{
	struct error error = {0};
	int err;

	recorder->end_ns = 0;
	recorder_inject_finish(recorder);
	last_flush(recorder);
	if (recorder->watch)
		cuda_watch_finish(recorder->watch);
	if (recorder->bpf) {
		err = bpf_source_finish(recorder->bpf, &error);
		recorder_note_error(recorder, err, &error);
	}
	if (recorder->server) {
		err = bridge_server_finish(recorder->server, recorder->writer, &error);
		recorder_note_error(recorder, err, &error);
	}
	judge_timeline(recorder);
	judge_steal(recorder);
	if (recorder->bpf && bpf_source_simulated(recorder->bpf))
		recorder_put_number(recorder, "simulated", 1);
	if (recorder->options->command)
		finish_command(recorder);
	else
		recorder_running_finish(recorder);
	recorder_put_number(recorder, "end_mono_ns", clock_ns(CLOCK_MONOTONIC));
	if (session_writer_lost(recorder->writer))
		recorder->write_failed = true;
	err = session_writer_close(recorder->writer, &error);
	recorder->writer = NULL;
	recorder_note_error(recorder, err, &error);
	recorder->result->file_complete = !recorder->write_failed;
}

static void clean_up(struct recorder *recorder)
{
	release(recorder);
	bridge_file_remove(&recorder->bridge_file);
	launch_close(&recorder->launch);
	if (recorder->writer)
		session_writer_close(recorder->writer, NULL);
	if (recorder->signals >= 0)
		close(recorder->signals);
	if (recorder->mask_set) {
		/* A signal that still waits here (a last Ctrl-C) has done its work. */
		sigprocmask(SIG_SETMASK, &recorder->old_mask, NULL);
	}
	for (size_t i = 0; i < recorder->degraded_count; i++)
		free(recorder->degraded[i]);
	free(recorder->program);
	environment_free(&recorder->environment);
	launch_user_free(&recorder->user);
}

int recorder_run(const struct recorder_options *options, const struct recorder_observer *observer,
                 struct recorder_result *result, struct error *error)
{
	struct recorder recorder = {
	    .options = options, .observer = observer, .result = result, .signals = -1};
	int err;

	memset(result, 0, sizeof(*result));
	result->exit_status = EXIT_FAILURE;
	recorder.launch.go = recorder.launch.result = -1;
	err = prepare(&recorder, error);
	if (!err && options->command)
		err = launch_release(&recorder.launch, options->command[0], &result->exit_status, error);
	if (err) {
		recorder_drop_file(&recorder);
		goto out;
	}
	result->started = true;
	run(&recorder);
	finish(&recorder);
	if (options->command && result->timed_out && !result->ended)
		outlive(&recorder);
out:
	clean_up(&recorder);
	return err;
}
