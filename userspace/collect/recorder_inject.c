// SPDX-License-Identifier: GPL-2.0-only
/*
 * --inject: processes that run already get the CUPTI bridge for the time of the recording. One that cannot be
 * attached, or in which CUPTI does not work, is left as it is and its CUDA calls are probed instead.
 */
#include <stdio.h>

#include "base/clock.h"
#include "collect/recorder_parts.h"

/* What discovered.user points to. */
static char attaching, attached, refused, taken; /* taken: attached, but CUPTI is not to be had */

static void probe_instead(struct recorder *recorder, uint32_t pid)
{
	struct discovered *process = discover_find(recorder->discover, pid);

	if (!process)
		return;
	process->user = &refused;
	if (recorder->options->uprobes == RECORDER_UPROBES_AUTO)
		recorder_probe_cuda(recorder, pid, process->libraries, process->library_count);
}

static void on_attached(void *context, uint32_t pid, const struct inject_times *times)
{
	struct recorder *recorder = context;
	struct discovered *process = discover_find(recorder->discover, pid);

	if (process)
		process->user = &attached;
	recorder_say(recorder,
	             "process %u got the CUPTI bridge after %.0f ms; a thread of it was held for %.1f ms",
	             pid, times->total_ns / 1e6, times->borrow_ns / 1e6);
}

static void on_refused(void *context, uint32_t pid, enum inject_reason reason, const char *text)
{
	struct recorder *recorder = context;
	char name[64];

	process_name(pid, name, sizeof(name));
	recorder_degrade(recorder, "process %u%s%s%s was not attached (%s): %s", pid, *name ? " (" : "", name,
	                 *name ? ")" : "", inject_reason_code(reason), text);
	probe_instead(recorder, pid);
}

int recorder_inject_open(struct recorder *recorder, struct error *error)
{
	const struct bridge_server_options server = {
	    .uid = recorder->user.uid,
	    .ring_bytes = recorder->options->bridge_ring_bytes,
	    .degraded = recorder_bridge_degraded,
	    .context = recorder,
	};
	struct injections_options options = {
	    .attached = on_attached,
	    .refused = on_refused,
	    .context = recorder,
	    .finalize = recorder->options->inject_finalize,
	};
	int err = bridge_server_open(&recorder->server, &server, error);

	if (err)
		return err;
	options.server = recorder->server;
	return injections_open(&recorder->injections, &options, error);
}

bool recorder_inject_add(struct recorder *recorder, struct discovered *process)
{
	const struct process_identity identity = {process->pid, process->start_ticks, process->image};
	struct error error = {0};

	if (!recorder->injections || process->user == &refused || process->user == &taken)
		return false;
	/* Where CUDA has not been started CUPTI cannot be either: it is found again once it has. */
	if (process->user || !process->started)
		return true;
	process->user = &attaching;
	if (injections_add(recorder->injections, &identity, &error))
		on_refused(recorder, process->pid, INJECT_FAILED_REASON, error.text);
	return true;
}

/* The server has said why it failed. The bridge goes on trying, where another tool has CUPTI. */
static void follow_bridge(struct recorder *recorder, struct discovered *process, enum bridge_state state)
{
	if (process->user == &attached && state == BRIDGE_FAILED) {
		probe_instead(recorder, process->pid);
		process->user = &taken;
	} else if (process->user == &taken && state == BRIDGE_RUNNING) {
		process->user = &attached;
		recorder_degrade(recorder,
		                 "process %u (%s): CUPTI was let go of by the other tool: its GPU times are "
		                 "measured from then on, and inferred before",
		                 process->pid, process->comm);
	}
}

void recorder_inject_poll(struct recorder *recorder)
{
	struct error error = {0};
	int err;

	if (!recorder->injections)
		return;
	err = injections_poll(recorder->injections, recorder->writer, &error);
	recorder_note_error(recorder, err, &error);
	for (size_t i = 0; i < discover_count(recorder->discover); i++) {
		struct discovered *process = discover_at(recorder->discover, i);

		follow_bridge(recorder, process, bridge_server_state(recorder->server, process->pid, NULL));
	}
}

/* How each bridge has left, where it had something to say. */
static void say_how_they_left(struct recorder *recorder)
{
	for (size_t i = 0; i < discover_count(recorder->discover); i++) {
		const struct discovered *process = discover_at(recorder->discover, i);
		const char *text;

		if (process->user == &attached &&
		    bridge_server_state(recorder->server, process->pid, &text) == BRIDGE_ENDED && *text)
			recorder_say(recorder, "process %u: %s", process->pid, text);
	}
}

void recorder_inject_finish(struct recorder *recorder)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + INJECTIONS_LEAVE_NS;
	size_t left;

	if (!recorder->injections)
		return;
	injections_stop(recorder->injections);
	while ((left = bridge_server_adopted(recorder->server)) && clock_ns(CLOCK_MONOTONIC) < until)
		recorder_collect(recorder);
	say_how_they_left(recorder);
	if (left)
		recorder_degrade(
		    recorder,
		    "%zu process%s did not let the CUPTI bridge go in time: it leaves by itself, "
		    "its last records are missing",
		    left, left > 1 ? "es" : "");
}
