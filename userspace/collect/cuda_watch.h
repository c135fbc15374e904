/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks after the CUDA processes below the recorded command: which of them have a bridge, and which use CUDA
 * without one, so that the recorder can fall back to uprobes and say what is missing.
 *
 * It looks at all processes (collect/discover.h) now and then, more seldom as time goes by. A process that
 * starts CUDA and ends between two looks without ever connecting a bridge is not seen.
 */
#ifndef WHYIDLE_COLLECT_CUDA_WATCH_H
#define WHYIDLE_COLLECT_CUDA_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/bridge_server.h"
#include "collect/discover.h"

struct cuda_watch;

struct cuda_watch_options {
	uint32_t root_pid;                  /* the recorded command */
	const struct bridge_server *server; /* NULL: no bridges at all */
	/* A process has CUDA mapped, whatever its bridge does; called once for each process. NULL is allowed.
	 */
	void (*mapped)(void *context, uint32_t pid, const struct cuda_library *libraries, size_t count);
	/* The mappings of a process that has CUDA have changed. NULL is allowed. */
	void (*looked)(void *context, uint32_t pid);
	/*
	 * A process uses CUDA but has no working bridge; called once for each process. `state` and `text`
	 * are what is known of its bridge. No libraries: it has ended already.
	 */
	void (*without_bridge)(void *context, uint32_t pid, enum bridge_state state, const char *text,
	                       const struct cuda_library *libraries, size_t count);
	void *context;
};

/* Returns NULL if memory ran out. */
struct cuda_watch *cuda_watch_open(const struct cuda_watch_options *options);

/* Looks if it is time for it. */
void cuda_watch_poll(struct cuda_watch *watch, uint64_t now_ns);

/* The recording ends: says what was not yet sure of processes whose bridge was still awaited. */
void cuda_watch_finish(struct cuda_watch *watch);

/* True if any process below the command was seen with a CUDA library mapped. */
bool cuda_watch_seen(const struct cuda_watch *watch);

/* NULL is allowed. */
void cuda_watch_close(struct cuda_watch *watch);

#endif
