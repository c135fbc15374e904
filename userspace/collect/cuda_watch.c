// SPDX-License-Identifier: GPL-2.0-only
#include "collect/cuda_watch.h"

#include <stdlib.h>
#include <unistd.h>

#define FIRST_PERIOD_NS 50000000ULL
#define LAST_PERIOD_NS  2000000000ULL
#define MEMORY_DEVICE   "/dev/nvidia-uvm"
/* How long a process may take from starting CUDA to connecting its bridge, and the bridge to start CUPTI. */
#define ABSENT_GRACE_NS   1500000000ULL
#define STARTING_GRACE_NS 20000000000ULL

/* What is known of the bridge of a process; discovered.user. */
struct watched {
	bool settled;        /* nothing more to find out */
	bool told_mapped;    /* options.mapped was called */
	uint64_t started_ns; /* when CUDA was first seen to be started in it, 0 not yet */
};

struct cuda_watch {
	struct cuda_watch_options options;
	struct discover *discover;
	uint64_t now_ns; /* of the look that goes on */
};

static enum bridge_state bridge_of(const struct cuda_watch *watch, uint32_t pid, const char **text)
{
	*text = "";
	return watch->options.server ? bridge_server_state(watch->options.server, pid, text) : BRIDGE_ABSENT;
}

static bool has_run(enum bridge_state state)
{
	return state == BRIDGE_RUNNING || state == BRIDGE_ENDED;
}

static void on_found(void *context, struct discovered *process, bool again)
{
	struct cuda_watch *watch = context;
	struct watched *watched = process->user;

	(void)again;
	if (!watched)
		watched = process->user = calloc(1, sizeof(*watched));
	if (!watched || !process->started)
		return;
	if (!watched->started_ns)
		watched->started_ns = watch->now_ns;
	if (watch->options.mapped && !watched->told_mapped)
		watch->options.mapped(watch->options.context, process->pid, process->libraries,
		                      process->library_count);
	watched->told_mapped = true;
}

/*
 * A process that used CUDA has gone before it was clear whether its bridge would come. Where only the mapping
 * of the driver tells of CUDA (struct discovered), it may as well not have used it, and nothing is said.
 */
static void note_gone(struct cuda_watch *watch, const struct discovered *process)
{
	struct watched *watched = process->user;
	enum bridge_state state;
	const char *text;

	if (!watched || watched->settled || !watched->started_ns || access(MEMORY_DEVICE, F_OK))
		return;
	watched->settled = true;
	state = bridge_of(watch, process->pid, &text);
	if (!has_run(state))
		watch->options.without_bridge(watch->options.context, process->pid, state, text, NULL, 0);
}

static void on_looked(void *context, struct discovered *process)
{
	struct cuda_watch *watch = context;

	watch->options.looked(watch->options.context, process->pid);
}

static void on_gone(void *context, struct discovered *process)
{
	note_gone(context, process);
	free(process->user);
	process->user = NULL;
}

struct cuda_watch *cuda_watch_open(const struct cuda_watch_options *options)
{
	struct cuda_watch *watch = calloc(1, sizeof(*watch));
	struct discover_options discover = {
	    .first_period_ns = FIRST_PERIOD_NS,
	    .last_period_ns = LAST_PERIOD_NS,
	    .found = on_found,
	    .gone = on_gone,
	    .context = watch,
	};

	if (!watch)
		return NULL;
	watch->options = *options;
	if (options->looked)
		discover.looked = on_looked;
	discover.filter.pids = &watch->options.root_pid;
	discover.filter.pid_count = 1;
	watch->discover = discover_open(&discover);
	if (!watch->discover) {
		free(watch);
		return NULL;
	}
	return watch;
}

/* Has its bridge had time enough? */
static void judge(struct cuda_watch *watch, const struct discovered *process)
{
	struct watched *watched = process->user;
	enum bridge_state state;
	const char *text;

	if (!watched || watched->settled)
		return;
	state = bridge_of(watch, process->pid, &text);
	if (has_run(state)) {
		watched->settled = true;
		return;
	}
	if (!watched->started_ns ||
	    (state != BRIDGE_FAILED && watch->now_ns - watched->started_ns <
	                                   (state == BRIDGE_ABSENT ? ABSENT_GRACE_NS : STARTING_GRACE_NS)))
		return;
	watched->settled = true;
	watch->options.without_bridge(watch->options.context, process->pid, state, text, process->libraries,
	                              process->library_count);
}

void cuda_watch_poll(struct cuda_watch *watch, uint64_t now_ns)
{
	watch->now_ns = now_ns;
	if (!discover_poll(watch->discover, now_ns))
		return;
	for (size_t i = 0; i < discover_count(watch->discover); i++)
		judge(watch, discover_at(watch->discover, i));
}

void cuda_watch_finish(struct cuda_watch *watch)
{
	for (size_t i = 0; i < discover_count(watch->discover); i++)
		note_gone(watch, discover_at(watch->discover, i));
}

bool cuda_watch_seen(const struct cuda_watch *watch)
{
	return discover_started(watch->discover) > 0;
}

void cuda_watch_close(struct cuda_watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < discover_count(watch->discover); i++)
		free(discover_at(watch->discover, i)->user);
	discover_close(watch->discover);
	free(watch);
}
