// SPDX-License-Identifier: GPL-2.0-only
/* A command that is started to be recorded. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "collect/recorder_parts.h"
#include "cupti_bridge/ring.h"

#define TERMINATE_GRACE_NS                                                                                   \
	5000000000ULL /* after SIGTERM was passed on, how long the command may take to end */
#define INJECTION_ENV "CUDA_INJECTION64_PATH"
#define NVTX_ENV      "NVTX_INJECTION64_PATH"

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

/* The bridge also takes the ranges that the program names. */
static int prepare_nvtx(struct recorder *recorder, struct error *error)
{
	const char *taken = environment_get(&recorder->environment, NVTX_ENV);

	if (taken && *taken)
		recorder_degrade(recorder, "no NVTX ranges: %s is used by another tool (%s)", NVTX_ENV,
		                 taken);
	else if (environment_set(&recorder->environment, NVTX_ENV, recorder->bridge_file.path))
		return error_no_memory(error);
	return 0;
}

/* Makes the bridge ready and puts it into the command's environment. */
static int prepare_bridge(struct recorder *recorder, struct error *error)
{
	struct bridge_server_options options = {
	    .uid = recorder->user.uid,
	    .ring_bytes = recorder->options->bridge_ring_bytes,
	    .write_names = recorder->options->no_bpf,
	    .wait = recorder->options->delay_ns != 0,
	    .degraded = recorder_bridge_degraded,
	    .connects = recorder_probe_nccl,
	    .context = recorder,
	};
	struct environment *environment = &recorder->environment;
	const char *taken = environment_get(environment, INJECTION_ENV);
	int err;

	if (recorder->options->no_bridge) {
		recorder_degrade(recorder, "no GPU timeline: the CUPTI bridge is off (--no-bridge)");
		return 0;
	}
	if (taken && *taken) {
		recorder->injection_taken = true;
		recorder_degrade(
		    recorder, "no GPU timeline: CUDA_INJECTION64_PATH is used by another tool (%s); unset it",
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
	return prepare_nvtx(recorder, error);
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

static int attach_bpf(struct recorder *recorder, struct error *error)
{
	int err;

	if (!recorder->bpf)
		return 0;
	err = bpf_source_track(recorder->bpf, recorder->launch.pid, error);
	if (!err)
		err = bpf_source_attach(recorder->bpf, recorder->writer, error);
	if (!err)
		recorder_probe_locks(recorder, recorder->launch.pid);
	return err;
}

static int open_file(struct recorder *recorder, struct error *error)
{
	const char *command = recorder->options->command[0], *name = strrchr(command, '/');
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "whyidle-%s-%d.whyidle", name ? name + 1 : command,
	             (int)recorder->launch.pid) >= (int)sizeof(path))
		return error_set(error, -ENAMETOOLONG, "the name of the command is too long");
	return recorder_open_file(recorder, path, error);
}

static int start_watch(struct recorder *recorder, struct error *error)
{
	struct cuda_watch_options watch = {
	    .root_pid = recorder->launch.pid,
	    .server = recorder->server,
	    .looked = recorder_probe_nccl,
	    .without_bridge = recorder_cuda_without_bridge,
	    .context = recorder,
	};

	if (recorder->options->uprobes == RECORDER_UPROBES_ALWAYS ||
	    recorder->options->locks != RECORDER_LOCKS_OFF)
		watch.mapped = recorder_cuda_mapped;
	recorder->watch = cuda_watch_open(&watch);
	return recorder->watch ? 0 : error_no_memory(error);
}

int recorder_prepare_command(struct recorder *recorder, struct error *error)
{
	char *line;
	int err;

	err = launch_environment(&recorder->environment, &recorder->user, error);
	if (!err)
		err = find_command(recorder, error);
	if (!err)
		err = prepare_bridge(recorder, error);
	/* Fork early: what BPF changes in this process (limits, mappings) is not the command's. */
	if (!err)
		err = start_stopped(recorder, error);
	if (!err)
		err = recorder_start_bpf(recorder, NULL, error);
	if (!err)
		err = open_file(recorder, error);
	if (err)
		return err;
	line = environment_command_line(recorder->options->command);
	recorder_put_session(recorder, line ? line : recorder->options->command[0]);
	free(line);
	if (recorder->options->delay_ns)
		recorder->begin_ns = clock_ns(CLOCK_MONOTONIC) + recorder->options->delay_ns;
	else
		err = recorder_command_begin(recorder, error);
	return err ? err : start_watch(recorder, error);
}

static void ignore_found(void *context, struct discovered *process, bool again)
{
	(void)context;
	(void)process;
	(void)again;
}

/* The command and what descends from it, now. Returns 0 or -ENOMEM; array_free the list. */
static int find_family(const struct recorder *recorder, struct pid_list *list)
{
	uint32_t root = recorder->launch.pid;
	const struct discover_options options = {.filter = {.pids = &root, .pid_count = 1},
	                                         .found = ignore_found};
	struct discover *discover = discover_open(&options);
	int err = discover ? 0 : -ENOMEM;

	if (!err) {
		discover_poll(discover, clock_ns(CLOCK_MONOTONIC));
		err = discover_family(discover, root, list);
	}
	discover_close(discover);
	return err;
}

/* What the command has started while the recording waited. */
static int track_family(struct recorder *recorder, struct error *error)
{
	struct pid_list list = {0};
	int err = find_family(recorder, &list);

	if (err)
		error_no_memory(error);
	else if (bpf_source_track_all(recorder->bpf, list.items, list.count, error))
		err = error->code == -ESRCH ? 0 : error->code;
	array_free(&list);
	return err;
}

int recorder_command_begin(struct recorder *recorder, struct error *error)
{
	bool late = recorder->begin_ns != 0;
	int err;

	recorder->begun = true;
	if (late)
		recorder_put_start(recorder);
	if (recorder->server && late)
		bridge_server_begin(recorder->server);
	if (recorder->options->duration_ns)
		recorder->end_ns = clock_ns(CLOCK_MONOTONIC) + recorder->options->duration_ns;
	err = attach_bpf(recorder, error);
	return !err && late && recorder->bpf ? track_family(recorder, error) : err;
}

void recorder_command_kill(struct recorder *recorder)
{
	int signal = recorder->options->kill_signal;
	struct pid_list list = {0};
	uint32_t *pid;

	if (!signal)
		return;
	/* As a terminal does it: what the command has started gets it as well. It itself comes first. */
	if (find_family(recorder, &list) || !list.count)
		kill(recorder->launch.pid, signal);
	array_for_each (pid, &list)
		kill((pid_t)*pid, signal);
	array_free(&list);
}

/* Other children are not ours to wait for. */
bool recorder_command_ended(struct recorder *recorder)
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
bool recorder_command_signal(struct recorder *recorder, const struct signalfd_siginfo *info)
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
