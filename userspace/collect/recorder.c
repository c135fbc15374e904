// SPDX-License-Identifier: GPL-2.0-only
#include "collect/recorder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/bpf_source.h"
#include "collect/bridge_file.h"
#include "collect/bridge_server.h"
#include "collect/cuda_watch.h"
#include "collect/launch.h"
#include "collect/process_info.h"
#include "cupti_bridge/ring.h"
#include "trace/session.h"

#define POLL_MS            50
#define FLUSH_PERIOD_NS    500000000ULL
#define PROGRESS_PERIOD_NS 1000000000ULL
#define TERMINATE_GRACE_NS                                                                                   \
	5000000000ULL     /* after SIGTERM was passed on, how long the command may take to end */
#define LAST_FLUSH_MS 300 /* bridges of processes that outlive the command: time for one more flush */
#define MAX_DEGRADED  64
#define INJECTION_ENV "CUDA_INJECTION64_PATH"

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
	struct cuda_watch *watch;

	int signals; /* signalfd */
	sigset_t old_mask;
	bool mask_set;

	char *degraded[MAX_DEGRADED]; /* said so far */
	size_t degraded_count;
	bool write_failed, bpf_failed;
	bool injection_taken; /* the user's own CUDA_INJECTION64_PATH stays */

	uint64_t start_ns, next_flush_ns, next_progress_ns, progress_ns, progress_events;
	uint64_t stop_by_ns; /* stop waiting for the command then, 0 never */
	int interrupts;
	int stop_signal; /* the last signal that asked us to end, 0 none */
	int wait_status;
};

/* ---- telling ---- */

static void say(const struct recorder *recorder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const struct recorder *recorder, const char *format, ...)
{
	struct error line;
	char text[ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	error_set(&line, 0, "%s", text); /* takes control characters out */
	if (recorder->observer->line)
		recorder->observer->line(recorder->observer->context, line.text);
}

/* Errors of the session writer and of the BPF side end nothing; each kind is said once. */
static void note_write_error(struct recorder *recorder, int err, const struct error *error)
{
	if (err >= 0 || recorder->write_failed)
		return;
	recorder->write_failed = true;
	say(recorder, "%s; the command goes on, what was recorded so far is kept", error->text);
}

static void put_info(struct recorder *recorder, const char *key, const char *value)
{
	struct error error = {0};

	note_write_error(recorder, session_writer_info(recorder->writer, key, value, &error), &error);
}

static void put_info_number(struct recorder *recorder, const char *key, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	put_info(recorder, key, text);
}

/* A thing that is missing from the recording: said once, and kept in the file once there is one. */
static void degrade(struct recorder *recorder, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void degrade(struct recorder *recorder, const char *format, ...)
{
	char text[ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (size_t i = 0; i < recorder->degraded_count; i++) {
		if (!strcmp(recorder->degraded[i], text))
			return;
	}
	if (recorder->degraded_count == MAX_DEGRADED)
		return;
	recorder->degraded[recorder->degraded_count] = strdup(text);
	if (!recorder->degraded[recorder->degraded_count])
		return;
	recorder->degraded_count++;
	say(recorder, "%s", text);
	if (recorder->writer)
		put_info(recorder, "degraded", text);
}

static void on_bpf_degraded(void *context, const char *what)
{
	degrade(context, "%s", what);
}

static void on_bridge_degraded(void *context, uint32_t pid, const char *what)
{
	char name[64];

	if (!pid) {
		degrade(context, "%s", what);
		return;
	}
	process_name(pid, name, sizeof(name));
	degrade(context, "process %u%s%s%s: %s", pid, *name ? " (" : "", name, *name ? ")" : "", what);
}

/* ---- CUDA without a bridge ---- */

static void attach_uprobes(struct recorder *recorder, uint32_t pid, const struct cuda_library *libraries,
                           size_t count)
{
	struct error error = {0};
	int attached = 0;

	for (size_t i = 0; i < count; i++) {
		int one = bpf_source_attach_calls(recorder->bpf, libraries[i].path, &error);

		if (one > 0)
			attached += one;
		else if (one < 0)
			degrade(recorder, "no probes on the CUDA calls in %s of process %u: %s",
			        libraries[i].name, pid, error.text);
	}
	if (attached > 0)
		say(recorder, "%d probes on the CUDA calls of process %u", attached, pid);
}

static void on_cuda_mapped(void *context, uint32_t pid, const struct cuda_library *libraries, size_t count)
{
	struct recorder *recorder = context;

	if (recorder->bpf)
		attach_uprobes(recorder, pid, libraries, count);
}

static void on_cuda_without_bridge(void *context, uint32_t pid, enum bridge_state state, const char *text,
                                   const struct cuda_library *libraries, size_t count)
{
	struct recorder *recorder = context;
	const char *why = "the CUPTI bridge was not loaded into it";
	char name[64];

	process_name(pid, name, sizeof(name));
	if (!*name)
		snprintf(name, sizeof(name), "ended");
	if (recorder->options->no_bridge)
		why = "the CUPTI bridge is off (--no-bridge)";
	else if (recorder->injection_taken)
		why = "CUDA_INJECTION64_PATH is used by another tool";
	else if (state == BRIDGE_STARTING)
		why = "CUPTI has not started in it";
	/* A failure has been told by the server already, with its text. */
	(void)text;
	if (state != BRIDGE_FAILED)
		degrade(recorder, "no GPU timeline for process %u (%s): %s", pid, name, why);
	if (recorder->bpf && recorder->options->uprobes == RECORDER_UPROBES_NEVER)
		degrade(recorder, "no CUDA calls for process %u (%s): --uprobes never", pid, name);
	if (recorder->bpf && recorder->options->uprobes == RECORDER_UPROBES_AUTO)
		attach_uprobes(recorder, pid, libraries, count);
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

static int find_command(struct recorder *recorder, struct error *error)
{
	const char *command = recorder->options->command[0];

	recorder->program =
	    environment_find_command(command, environment_get(&recorder->environment, "PATH"));
	if (recorder->program)
		return 0;
	if (errno == ENOMEM)
		return error_no_memory(error);
	if (errno == EACCES) {
		recorder->result->exit_status = LAUNCH_NOT_EXECUTABLE;
		return error_set(error, -EACCES, "cannot run %s: not an executable file", command);
	}
	recorder->result->exit_status = LAUNCH_NOT_FOUND;
	return error_set(error, -ENOENT, "command not found: %s", command);
}

/* Makes the bridge ready and puts it into the command's environment. */
static int prepare_bridge(struct recorder *recorder, struct error *error)
{
	struct bridge_server_options options = {
	    .uid = recorder->user.uid,
	    .ring_bytes = recorder->options->bridge_ring_bytes,
	    .write_names = recorder->options->no_bpf,
	    .degraded = on_bridge_degraded,
	    .context = recorder,
	};
	struct environment *environment = &recorder->environment;
	const char *taken = environment_get(environment, INJECTION_ENV);
	int err;

	if (recorder->options->no_bridge) {
		degrade(recorder, "no GPU timeline: the CUPTI bridge is off (--no-bridge)");
		return 0;
	}
	if (taken && *taken) {
		recorder->injection_taken = true;
		degrade(recorder,
		        "no GPU timeline: CUDA_INJECTION64_PATH is used by another tool (%s); unset it",
		        taken);
		return 0;
	}
	err = bridge_server_open(&recorder->server, &options, error);
	if (err)
		return err;
	err = bridge_file_create(&recorder->bridge_file, environment_get(environment, "TMPDIR"), error);
	if (err)
		return err;
	if (environment_set(environment, INJECTION_ENV, recorder->bridge_file.path) ||
	    environment_set(environment, RING_SOCKET_ENV, bridge_server_name(recorder->server)))
		return error_no_memory(error);
	return 0;
}

static int start_stopped(struct recorder *recorder, struct error *error)
{
	struct launch_options options = {
	    .argv = recorder->options->command,
	    .path = recorder->program,
	    .user = &recorder->user,
	    .signals = &recorder->old_mask,
	};

	options.environment = environment_vector(&recorder->environment);
	if (!options.environment)
		return error_no_memory(error);
	return launch_start(&recorder->launch, &options, error);
}

/*
 * Under sudo the file is made as the invoking user, who then owns it, and who may write where root may not (a
 * home on NFS); as root only where that user may not.
 */
static int open_writer(struct recorder *recorder, struct error *error)
{
	const struct launch_user *user = &recorder->user;
	const char *path = recorder->result->path;
	gid_t group = getegid();
	int err;

	if (!user->drop)
		return session_writer_open(&recorder->writer, path, error);
	if (setegid(user->gid) < 0 || seteuid(user->uid) < 0)
		err = -EPERM;
	else
		err = session_writer_open(&recorder->writer, path, error);
	if (seteuid(0) < 0 || setegid(group) < 0) {
		session_writer_close(recorder->writer, NULL);
		recorder->writer = NULL;
		return error_set(error, -EPERM, "cannot become root again: %s", strerror(errno));
	}
	return err ? session_writer_open(&recorder->writer, path, error) : 0;
}

static int open_output(struct recorder *recorder, struct error *error)
{
	struct recorder_result *result = recorder->result;
	const char *name = strrchr(recorder->options->command[0], '/');
	int length, err;

	if (recorder->options->output)
		length = snprintf(result->path, sizeof(result->path), "%s", recorder->options->output);
	else
		length = snprintf(result->path, sizeof(result->path), "whyidle-%s-%d.whyidle",
		                  name ? name + 1 : recorder->options->command[0], (int)recorder->launch.pid);
	if (length >= (int)sizeof(result->path))
		err = error_set(error, -ENAMETOOLONG, "the name of the output file is too long");
	else
		err = open_writer(recorder, error);
	if (err)
		result->path[0] = '\0';
	return err;
}

static void put_session_info(struct recorder *recorder)
{
	char *command = environment_command_line(recorder->options->command);
	struct utsname system;

	recorder->start_ns = recorder->progress_ns = clock_ns(CLOCK_MONOTONIC);
	recorder->next_progress_ns = recorder->start_ns + PROGRESS_PERIOD_NS;
	put_info(recorder, "version", WHYIDLE_VERSION);
	put_info(recorder, "command", command ? command : recorder->options->command[0]);
	free(command);
	if (recorder->options->options && *recorder->options->options)
		put_info(recorder, "options", recorder->options->options);
	if (uname(&system) == 0) {
		put_info(recorder, "kernel", system.release);
		put_info(recorder, "hostname", system.nodename);
	}
	put_info(recorder, "tier", "T2");
	put_info_number(recorder, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	put_info_number(recorder, "sample_period_ns",
	                recorder->bpf ? recorder->options->sample_period_ns : 0);
	put_info_number(recorder, "start_mono_ns", recorder->start_ns);
	put_info_number(recorder, "start_real_ns", clock_ns(CLOCK_REALTIME));
	for (size_t i = 0; i < recorder->degraded_count; i++)
		put_info(recorder, "degraded", recorder->degraded[i]);
}

static int start_bpf(struct recorder *recorder, struct error *error)
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
	    .degraded = on_bpf_degraded,
	    .context = recorder,
	};

	if (recorder->options->no_bpf) {
		degrade(recorder, "GPU timeline only: without BPF no cause can be named (--no-bpf)");
		return 0;
	}
	if (!process_in_initial_pid_namespace())
		degrade(recorder, "whyidle runs in a pid namespace of its own: processes may be missed; run "
		                  "it on the host");
	return bpf_source_open(&recorder->bpf, &options, error);
}

static int attach_bpf(struct recorder *recorder, struct error *error)
{
	int err;

	if (!recorder->bpf)
		return 0;
	err = bpf_source_track(recorder->bpf, recorder->launch.pid, error);
	if (!err)
		err = bpf_source_attach(recorder->bpf, recorder->writer, error);
	return err;
}

static int prepare(struct recorder *recorder, struct error *error)
{
	struct cuda_watch_options watch = {.without_bridge = on_cuda_without_bridge, .context = recorder};
	int err;

	err = launch_user_find(&recorder->user, recorder->options->as_root, error);
	if (!err)
		err = launch_environment(&recorder->environment, &recorder->user, error);
	if (!err)
		err = find_command(recorder, error);
	if (!err)
		err = block_signals(recorder, error);
	if (!err)
		err = prepare_bridge(recorder, error);
	/* Fork early: what BPF changes in this process (limits, mappings) is not the command's. */
	if (!err)
		err = start_stopped(recorder, error);
	if (!err)
		err = start_bpf(recorder, error);
	if (!err)
		err = open_output(recorder, error);
	if (err)
		return err;
	put_session_info(recorder);
	err = attach_bpf(recorder, error);
	if (err)
		return err;
	watch.root_pid = recorder->launch.pid;
	watch.server = recorder->server;
	if (recorder->options->uprobes == RECORDER_UPROBES_ALWAYS)
		watch.mapped = on_cuda_mapped;
	recorder->watch = cuda_watch_open(&watch);
	return recorder->watch ? 0 : error_no_memory(error);
}

/* ---- running ---- */

static void collect(struct recorder *recorder)
{
	struct error error = {0};
	int err;

	if (recorder->server) {
		err = bridge_server_poll(recorder->server, recorder->writer, &error);
		note_write_error(recorder, err, &error);
	}
	if (recorder->bpf) {
		err = bpf_source_poll(recorder->bpf, &error);
		note_write_error(recorder, err, &error);
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
	struct recorder_progress progress = {.elapsed_ns = now - recorder->start_ns};

	if (!recorder->observer->progress || now < recorder->next_progress_ns)
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
	note_write_error(recorder, session_writer_flush(recorder->writer, &error), &error);
}

/* Returns true once the command has ended. Other children are not ours to wait for. */
static bool reap(struct recorder *recorder)
{
	pid_t got = waitpid(recorder->launch.pid, &recorder->wait_status, WNOHANG);

	if (got != recorder->launch.pid && !(got < 0 && errno == ECHILD))
		return false;
	recorder->result->ended = true;
	return true;
}

/*
 * Ctrl-C reaches the command by itself, from the terminal: we only wait for it to end, until a second one
 * says that we should not. A signal that was sent to us alone is passed on.
 */
static bool handle_signal(struct recorder *recorder, const struct signalfd_siginfo *info)
{
	bool from_terminal = info->ssi_code == SI_KERNEL;

	if (info->ssi_signo == SIGCHLD)
		return false;
	recorder->stop_signal = info->ssi_signo;
	switch (info->ssi_signo) {
	case SIGINT:
	case SIGQUIT:
		if (++recorder->interrupts > 1)
			return true;
		if (!from_terminal)
			kill(recorder->launch.pid, info->ssi_signo);
		return false;
	default: /* SIGTERM, SIGHUP */
		if (recorder->stop_by_ns)
			return true;
		kill(recorder->launch.pid, info->ssi_signo);
		recorder->stop_by_ns = clock_ns(CLOCK_MONOTONIC) + TERMINATE_GRACE_NS;
		return false;
	}
}

/* Returns true if the recording shall stop although the command runs on. */
static bool handle_signals(struct recorder *recorder)
{
	struct signalfd_siginfo info;
	bool stop = false;

	while (read(recorder->signals, &info, sizeof(info)) == sizeof(info))
		stop |= handle_signal(recorder, &info);
	return stop;
}

static void wait_for_news(const struct recorder *recorder, int timeout_ms)
{
	struct pollfd fds[2] = {
	    {.fd = recorder->signals, .events = POLLIN},
	    {.fd = recorder->server ? bridge_server_fd(recorder->server) : -1, .events = POLLIN},
	};

	poll(fds, 2, timeout_ms);
}

static void watch_command(struct recorder *recorder)
{
	bool stop = false;

	while (!stop) {
		uint64_t now;

		wait_for_news(recorder, POLL_MS);
		stop = handle_signals(recorder);
		/* The end is looked for before the rings are emptied, so that they hold all of it. */
		stop |= reap(recorder);
		collect(recorder);
		now = clock_ns(CLOCK_MONOTONIC);
		if (recorder->watch && !stop)
			cuda_watch_poll(recorder->watch, now);
		flush(recorder, now);
		show_progress(recorder, now);
		if (recorder->stop_by_ns && now > recorder->stop_by_ns)
			stop = true;
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
	if (stats.processes || (recorder->watch && cuda_watch_seen(recorder->watch)))
		return;
	if (recorder->server)
		degrade(recorder, "no process used CUDA");
	else
		degrade(recorder, "no process was seen to use CUDA");
}

static void finish(struct recorder *recorder)
{
	struct error error = {0};
	int err;

	last_flush(recorder);
	if (recorder->watch)
		cuda_watch_finish(recorder->watch);
	if (recorder->bpf) {
		err = bpf_source_finish(recorder->bpf, &error);
		note_write_error(recorder, err, &error);
	}
	if (recorder->server) {
		err = bridge_server_finish(recorder->server, recorder->writer, &error);
		note_write_error(recorder, err, &error);
	}
	judge_timeline(recorder);
	if (recorder->result->ended) {
		recorder->result->exit_status = launch_exit_status(recorder->wait_status);
		put_info_number(recorder, "exit_status", recorder->result->exit_status);
	} else {
		recorder->result->exit_status = 128 + recorder->stop_signal;
		degrade(recorder, "the recording was stopped by a signal before the command had ended");
	}
	put_info_number(recorder, "end_mono_ns", clock_ns(CLOCK_MONOTONIC));
	if (session_writer_lost(recorder->writer))
		recorder->write_failed = true;
	err = session_writer_close(recorder->writer, &error);
	recorder->writer = NULL;
	note_write_error(recorder, err, &error);
	recorder->result->file_complete = !recorder->write_failed;
}

static void clean_up(struct recorder *recorder)
{
	cuda_watch_close(recorder->watch);
	bpf_source_close(recorder->bpf);
	bridge_server_close(recorder->server);
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

/* Takes a file away that holds nothing, because the command did not start. */
static void drop_output(struct recorder *recorder)
{
	struct recorder_result *result = recorder->result;
	struct stat info;

	if (!recorder->writer)
		return;
	session_writer_close(recorder->writer, NULL);
	recorder->writer = NULL;
	if (lstat(result->path, &info) == 0 && S_ISREG(info.st_mode)) /* never a device */
		unlink(result->path);
	result->path[0] = '\0';
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
	if (!err)
		err = launch_release(&recorder.launch, options->command[0], &result->exit_status, error);
	if (err) {
		drop_output(&recorder);
		goto out;
	}
	result->started = true;
	watch_command(&recorder);
	finish(&recorder);
out:
	clean_up(&recorder);
	return err;
}
