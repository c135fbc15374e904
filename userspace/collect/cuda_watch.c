// SPDX-License-Identifier: GPL-2.0-only
#include "collect/cuda_watch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

#define FIRST_PERIOD_NS 50000000ULL
#define LAST_PERIOD_NS  2000000000ULL
#define NEAR_PERIOD_NS  250000000ULL /* while a process has the driver mapped but is not settled */
#define MAX_PROCESSES   4096         /* kept in mind at once */
#define MAX_LIBRARIES   8
#define MEMORY_DEVICE   "/dev/nvidia-uvm"
/* How long a process may take from starting CUDA to connecting its bridge, and the bridge to start CUPTI. */
#define ABSENT_GRACE_NS   1500000000ULL
#define STARTING_GRACE_NS 20000000000ULL

struct watched {
	uint32_t pid;
	uint32_t seen;      /* number of the look that last saw it */
	bool settled;       /* nothing more to find out */
	bool near;          /* the driver is mapped: CUDA may start at any moment */
	bool told_mapped;   /* options.mapped was called */
	uint64_t mapped_ns; /* when CUDA was first seen in it, 0 not yet */
	uint64_t image;     /* process_image() at that time */
};

struct cuda_watch {
	struct cuda_watch_options options;
	struct {
		ARRAY(struct watched)
	} processes;
	uint32_t look;
	uint64_t next_ns, period_ns;
	bool seen;
};

struct cuda_watch *cuda_watch_open(const struct cuda_watch_options *options)
{
	struct cuda_watch *watch = calloc(1, sizeof(*watch));
	struct watched *root;

	if (!watch)
		return NULL;
	watch->options = *options;
	watch->period_ns = FIRST_PERIOD_NS;
	root = array_add(&watch->processes);
	if (!root) {
		free(watch);
		return NULL;
	}
	root->pid = options->root_pid;
	return watch;
}

static struct watched *find(const struct cuda_watch *watch, uint32_t pid)
{
	struct watched *process;

	array_for_each (process, &watch->processes) {
		if (process->pid == pid)
			return process;
	}
	return NULL;
}

/*
 * A process that used CUDA has gone before it was clear whether its bridge would come. Where only the mapping
 * of the driver tells of CUDA (cuda_started), it may as well not have used it, and nothing is said.
 */
static void note_gone(struct cuda_watch *watch, struct watched *process)
{
	enum bridge_state state = BRIDGE_ABSENT;
	const char *text = "";

	if (process->settled || !process->mapped_ns || access(MEMORY_DEVICE, F_OK))
		return;
	process->settled = true;
	if (watch->options.server)
		state = bridge_server_state(watch->options.server, process->pid, &text);
	if (state != BRIDGE_RUNNING && state != BRIDGE_ENDED)
		watch->options.without_bridge(watch->options.context, process->pid, state, text, NULL, 0);
}

/* Marks the known processes that are still there and adds their new children, whatever order /proc has. */
static void refresh(struct cuda_watch *watch)
{
	struct process_list list = {0};
	struct process_id *process;
	struct watched *known;
	bool added = true;
	size_t kept = 0;

	watch->look++;
	if (process_list_read(&list) < 0) {
		array_free(&list);
		return;
	}
	while (added) {
		added = false;
		array_for_each (process, &list) {
			known = find(watch, process->pid);
			if (!known && find(watch, process->parent) &&
			    watch->processes.count < MAX_PROCESSES) {
				known = array_add(&watch->processes);
				if (!known)
					break;
				known->pid = process->pid;
				added = true;
			}
			if (known)
				known->seen = watch->look;
		}
	}
	for (size_t i = 0; i < watch->processes.count; i++) {
		if (watch->processes.items[i].seen == watch->look)
			watch->processes.items[kept++] = watch->processes.items[i];
		else
			note_gone(watch, &watch->processes.items[i]);
	}
	watch->processes.count = kept;
	array_free(&list);
}

/*
 * A process that was forked from one with CUDA, without exec, has its libraries mapped but does not use them
 * (CUDA does not work after fork): data loader workers are of this kind.
 */
static bool is_forked_copy(const struct cuda_watch *watch, const struct watched *process)
{
	const struct watched *parent = find(watch, process_parent(process->pid));

	return parent && parent->mapped_ns && parent->image && parent->image == process_image(process->pid);
}

/* The driver is mapped; the runtime alone (mapped by merely importing a framework) is not yet use of CUDA. */
static bool has_driver(const struct cuda_library *libraries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strncmp(libraries[i].name, "libcudart", 9))
			return true;
	}
	return false;
}

/*
 * Importing a framework maps the driver long before CUDA starts, if it ever does. cuInit opens the unified
 * memory device (seen with driver 580); the bridge is loaded during that call. Without such a device on the
 * machine (the stand-ins of tests/sim) a mapped driver must do.
 */
static bool cuda_started(uint32_t pid)
{
	return access(MEMORY_DEVICE, F_OK) || process_has_open(pid, MEMORY_DEVICE);
}

static void note_cuda(struct cuda_watch *watch, struct watched *process, uint64_t now_ns)
{
	watch->seen = true;
	if (process->mapped_ns)
		return;
	process->mapped_ns = now_ns;
	process->image = process_image(process->pid);
}

static void look_at(struct cuda_watch *watch, struct watched *process, uint64_t now_ns)
{
	struct cuda_library libraries[MAX_LIBRARIES];
	enum bridge_state state = BRIDGE_ABSENT;
	const char *text = "";
	bool running;
	size_t count;

	if (watch->options.server)
		state = bridge_server_state(watch->options.server, process->pid, &text);
	running = state == BRIDGE_RUNNING || state == BRIDGE_ENDED;
	if (running && !watch->options.mapped) {
		process->settled = true;
		note_cuda(watch, process, now_ns);
		return;
	}
	if (is_forked_copy(watch, process))
		return;
	count = process_cuda_libraries(process->pid, libraries, MAX_LIBRARIES);
	if (!has_driver(libraries, count))
		return;
	process->near = true;
	if (!cuda_started(process->pid))
		return;
	if (watch->options.mapped && !process->told_mapped)
		watch->options.mapped(watch->options.context, process->pid, libraries, count);
	process->told_mapped = true;
	process->settled = running;
	note_cuda(watch, process, now_ns);
	if (running)
		return;
	if (state != BRIDGE_FAILED &&
	    now_ns - process->mapped_ns < (state == BRIDGE_ABSENT ? ABSENT_GRACE_NS : STARTING_GRACE_NS))
		return;
	process->settled = true;
	watch->options.without_bridge(watch->options.context, process->pid, state, text, libraries, count);
}

void cuda_watch_poll(struct cuda_watch *watch, uint64_t now_ns)
{
	struct watched *process;
	bool near = false;

	if (now_ns < watch->next_ns)
		return;
	refresh(watch);
	array_for_each (process, &watch->processes) {
		if (!process->settled)
			look_at(watch, process, now_ns);
		near |= process->near && !process->settled;
	}
	watch->next_ns =
	    now_ns + (near && watch->period_ns > NEAR_PERIOD_NS ? NEAR_PERIOD_NS : watch->period_ns);
	if (watch->period_ns < LAST_PERIOD_NS)
		watch->period_ns += watch->period_ns / 2;
}

void cuda_watch_finish(struct cuda_watch *watch)
{
	struct watched *process;

	array_for_each (process, &watch->processes)
		note_gone(watch, process);
}

bool cuda_watch_seen(const struct cuda_watch *watch)
{
	return watch->seen;
}

void cuda_watch_close(struct cuda_watch *watch)
{
	if (!watch)
		return;
	array_free(&watch->processes);
	free(watch);
}
