// SPDX-License-Identifier: GPL-2.0-only
#include "collect/injections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/array.h"

/* The library: collect/bridge_file.c */
extern const unsigned char bridge_blob_start[], bridge_blob_end[];

struct injection {
	struct process_identity process;
	bool working;
	struct inject *inject;
};

struct injections {
	struct injections_options options;
	int epoll;
	struct {
		ARRAY(struct injection)
	} list;
};

int injections_open(struct injections **out, const struct injections_options *options, struct error *error)
{
	struct injections *injections = calloc(1, sizeof(*injections));
	int err;

	if (!injections)
		return error_no_memory(error);
	injections->options = *options;
	injections->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (injections->epoll < 0) {
		err = -errno;
		free(injections);
		return error_set(error, err, "cannot make a descriptor: %s", strerror(-err));
	}
	*out = injections;
	return 0;
}

int injections_add(struct injections *injections, const struct process_identity *process, struct error *error)
{
	struct inject_options options = {
	    .pid = process->pid,
	    .bridge = bridge_blob_start,
	    .bridge_bytes = (size_t)(bridge_blob_end - bridge_blob_start),
	    .ring_bytes = bridge_server_ring_bytes(injections->options.server),
	    .flush_period_ms = bridge_server_flush_period_ms(injections->options.server),
	    .finalize = injections->options.finalize,
	};
	struct epoll_event event = {.events = EPOLLIN};
	struct injection *injection;
	int err;

	array_for_each (injection, &injections->list) {
		if (process_identity_same(&injection->process, process))
			return 0;
	}
	injection = array_add(&injections->list);
	if (!injection)
		return error_no_memory(error);
	injection->process = *process;
	err = inject_start(&injection->inject, &options, error);
	if (err) {
		injections->list.count--;
		return err;
	}
	injection->working = true;
	if (epoll_ctl(injections->epoll, EPOLL_CTL_ADD, inject_fd(injection->inject), &event) < 0)
		return error_set(error, -errno, "cannot watch a descriptor: %s", strerror(errno));
	return 0;
}

int injections_fd(const struct injections *injections)
{
	return injections->epoll;
}

/* One attachment has come to its end. */
static int settle(struct injections *injections, const struct injection *injection,
                  struct session_writer *writer, struct error *error)
{
	const struct injections_options *options = &injections->options;
	enum inject_reason reason = INJECT_FAILED_REASON;
	const char *text = "";
	struct inject_times times;
	int ring, pipe, err;

	if (inject_state(injection->inject, &reason, &text) == INJECT_FAILED) {
		options->refused(options->context, injection->process.pid, reason, text);
		return 0;
	}
	err = inject_take(injection->inject, &ring, &pipe);
	if (!err)
		err = bridge_server_adopt(options->server, injection->process.pid, ring, pipe, writer, error);
	inject_times(injection->inject, &times);
	if (!err && options->attached)
		options->attached(options->context, injection->process.pid, &times);
	return err;
}

int injections_poll(struct injections *injections, struct session_writer *writer, struct error *error)
{
	struct injection *injection;
	int err = 0, one;

	array_for_each (injection, &injections->list) {
		if (!injection->working || inject_state(injection->inject, NULL, NULL) == INJECT_WORKING)
			continue;
		injection->working = false;
		epoll_ctl(injections->epoll, EPOLL_CTL_DEL, inject_fd(injection->inject), NULL);
		one = settle(injections, injection, writer, err ? NULL : error);
		err = err ? err : one;
	}
	return err;
}

bool injections_working(const struct injections *injections)
{
	const struct injection *injection;

	array_for_each (injection, &injections->list) {
		if (injection->working)
			return true;
	}
	return false;
}

void injections_stop(struct injections *injections)
{
	bridge_server_stop(injections->options.server);
}

void injections_close(struct injections *injections)
{
	struct injection *injection;

	if (!injections)
		return;
	array_for_each (injection, &injections->list)
		inject_close(injection->inject);
	array_free(&injections->list);
	close(injections->epoll);
	free(injections);
}
