// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that run already: they are found (collect/discover.h), tracked with all that descends from them,
 * and their CUDA calls are probed. Nothing is done to them, unless it is asked for (recorder_inject.c).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/bpf_tasks.h"
#include "collect/recorder_parts.h"

#define SUBJECT_TEXT 512

/* ---- what is to be recorded ---- */

/* Processes that were given by pid are watched to their end. */
static int open_targets(struct recorder *recorder, struct error *error)
{
	const struct discover_filter *targets = &recorder->options->targets;

	for (size_t i = 0; i < targets->pid_count; i++) {
		int *slot = array_add(&recorder->target_pidfds);

		if (!slot)
			return error_no_memory(error);
		*slot = syscall(SYS_pidfd_open, targets->pids[i], 0);
		if (*slot < 0)
			return error_set(error, -errno, "there is no process %u", targets->pids[i]);
	}
	return 0;
}

/* What the report calls the recording. */
static void name_subject(const struct discover_filter *targets, char text[SUBJECT_TEXT])
{
	char cmdline[TASKS_CMDLINE];

	if (targets->all) {
		snprintf(text, SUBJECT_TEXT, "all processes that use CUDA");
	} else if (targets->pid_count == 1) {
		bpf_tasks_cmdline(targets->pids[0], cmdline);
		snprintf(text, SUBJECT_TEXT, "process %u: %.400s", targets->pids[0], cmdline);
	} else if (targets->pid_count) {
		snprintf(text, SUBJECT_TEXT, "process %u and %zu more", targets->pids[0],
		         targets->pid_count - 1);
	} else if (targets->cgroup) {
		snprintf(text, SUBJECT_TEXT, "processes of the control group %s", targets->cgroup);
	} else if (targets->container) {
		snprintf(text, SUBJECT_TEXT, "processes of the container %s", targets->container);
	} else {
		snprintf(text, SUBJECT_TEXT, "processes named %s", targets->comm ? targets->comm : "");
	}
}

static int open_file(struct recorder *recorder, struct error *error)
{
	const struct discover_filter *targets = &recorder->options->targets;
	time_t now = time(NULL);
	char name[128], comm[64];
	struct tm local;

	if (targets->pid_count == 1 && !targets->all) {
		process_name(targets->pids[0], comm, sizeof(comm));
		for (char *c = comm; *c; c++)
			*c = *c == '/' ? '_' : *c;
		snprintf(name, sizeof(name), "whyidle-%s-%u.whyidle", comm, targets->pids[0]);
	} else {
		localtime_r(&now, &local);
		strftime(name, sizeof(name), "whyidle-%Y%m%d-%H%M%S.whyidle", &local);
	}
	return recorder_open_file(recorder, name, error);
}

/* ---- finding and tracking ---- */

static void want(struct recorder *recorder, uint32_t pid)
{
	if (discover_family(recorder->discover, pid, &recorder->untracked))
		recorder_degrade(recorder, "process %u is not recorded: out of memory", pid);
}

/* All that was found since the last time, in one go: the threads of the whole machine are gone through for
 * it. */
static void track(struct recorder *recorder)
{
	struct pid_list *list = &recorder->untracked;
	struct error error = {0};

	if (list->count && bpf_source_track_all(recorder->bpf, list->items, list->count, &error) &&
	    error.code != -ESRCH)
		recorder_degrade(recorder, "%s", error.text);
	list->count = 0;
}

static void on_found(void *context, struct discovered *process, bool again)
{
	struct recorder *recorder = context;

	if (!again) {
		want(recorder, process->pid);
		recorder_put_rank(recorder, process->pid);
		recorder_probe_locks(recorder, process->pid);
	}
	if (recorder->options->uprobes == RECORDER_UPROBES_NEVER && !recorder->injections)
		recorder_degrade(recorder, "no CUDA calls for process %u (%s): --uprobes never", process->pid,
		                 process->comm);
	if (recorder_inject_add(recorder, process) && recorder->options->uprobes == RECORDER_UPROBES_AUTO)
		return;
	if (recorder->options->uprobes != RECORDER_UPROBES_NEVER)
		recorder_probe_cuda(recorder, process->pid, process->libraries, process->library_count);
}

static void on_looked(void *context, struct discovered *process)
{
	recorder_probe_nccl(context, process->pid);
}

/* BPF saw a process that is not tracked call CUDA. */
static void on_caller(void *context, uint32_t pid)
{
	struct recorder *recorder = context;

	if (recorder->discover)
		discover_look(recorder->discover, pid, clock_ns(CLOCK_MONOTONIC));
}

static int start_discovery(struct recorder *recorder, struct error *error)
{
	const struct discover_filter *targets = &recorder->options->targets;
	struct discover_options options = {
	    .filter = *targets, .found = on_found, .looked = on_looked, .context = recorder};

	recorder->discover = discover_open(&options);
	if (!recorder->discover)
		return error_no_memory(error);
	discover_poll(recorder->discover, clock_ns(CLOCK_MONOTONIC));
	for (size_t i = 0; i < targets->pid_count; i++)
		want(recorder, targets->pids[i]);
	for (size_t i = 0; i < targets->pid_count; i++)
		recorder_probe_locks(recorder, targets->pids[i]);
	track(recorder);
	return 0;
}

void recorder_running_poll(struct recorder *recorder, uint64_t now_ns)
{
	discover_poll(recorder->discover, now_ns);
	track(recorder);
	recorder_inject_poll(recorder);
}

/* ---- the course of it ---- */

int recorder_prepare_running(struct recorder *recorder, struct error *error)
{
	const struct bpf_source_callers callers = {
	    .called = on_caller,
	    .adopt = recorder->options->targets.all,
	    .context = recorder,
	};
	char subject[SUBJECT_TEXT];
	int err;

	err = open_targets(recorder, error);
	if (!err)
		err = recorder_start_bpf(recorder, &callers, error);
	if (!err)
		err = open_file(recorder, error);
	if (err)
		return err;
	name_subject(&recorder->options->targets, subject);
	recorder_put_session(recorder, subject);
	err = bpf_source_attach(recorder->bpf, recorder->writer, error);
	if (!err && recorder->options->inject)
		err = recorder_inject_open(recorder, error);
	if (!err)
		err = start_discovery(recorder, error);
	if (!err && recorder->options->duration_ns)
		recorder->end_ns = clock_ns(CLOCK_MONOTONIC) + recorder->options->duration_ns;
	recorder->begun = true;
	return err;
}

/* Whatever asks us to end gets what there is so far. */
bool recorder_running_signal(struct recorder *recorder, const struct signalfd_siginfo *info)
{
	if (info->ssi_signo == SIGCHLD)
		return false;
	recorder->interrupts++;
	recorder->stop_signal = (int)info->ssi_signo;
	return true;
}

bool recorder_running_ended(struct recorder *recorder)
{
	const struct discover_filter *targets = &recorder->options->targets;

	if (!recorder->target_pidfds.count || targets->all || targets->comm || targets->cgroup ||
	    targets->container)
		return false;
	for (size_t i = 0; i < recorder->target_pidfds.count; i++) {
		struct pollfd end = {.fd = recorder->target_pidfds.items[i], .events = POLLIN};

		if (poll(&end, 1, 0) <= 0)
			return false;
	}
	recorder->result->ended = true;
	return true;
}

void recorder_running_finish(struct recorder *recorder)
{
	size_t others = discover_others(recorder->discover);

	recorder->result->exit_status = 0;
	recorder->result->processes = discover_started(recorder->discover);
	if (others)
		recorder_degrade(
		    recorder,
		    "%zu more process%s use%s CUDA and %s not recorded: the GPU may have been busy "
		    "for %s",
		    others, others > 1 ? "es" : "", others > 1 ? "" : "s", others > 1 ? "are" : "is",
		    others > 1 ? "them" : "it");
}

void recorder_running_close(struct recorder *recorder)
{
	int *fd;

	injections_close(recorder->injections);
	discover_close(recorder->discover);
	array_for_each (fd, &recorder->target_pidfds) {
		if (*fd >= 0)
			close(*fd);
	}
	array_free(&recorder->target_pidfds);
	array_free(&recorder->untracked);
}
