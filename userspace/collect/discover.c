// SPDX-License-Identifier: GPL-2.0-only
#include "collect/discover.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

#define FIRST_PERIOD_NS 50000000ULL
#define LAST_PERIOD_NS  250000000ULL
#define NEAR_PERIOD_NS  250000000ULL /* while a process has the driver mapped and has not started CUDA */
#define MAPS_PERIOD_NS  100000000ULL /* of a process whose memory grows all the time */
#define MAX_PROCESSES   65536        /* kept in mind at once */
#define MEMORY_DEVICE   "/dev/nvidia-uvm"

/* A process of the machine, kept from look to look. */
struct known {
	uint32_t pid, parent;
	uint64_t start_ticks;
	uint64_t memory_bytes; /* when its mappings were last read */
	uint64_t maps_next_ns; /* they are not read again before */
	uint32_t seen;         /* number of the look that last saw it */
	bool wanted;           /* given by pid, or descends from one that is */
	bool called;           /* was seen to call CUDA */
	bool other;            /* uses CUDA and is not wanted */
	struct discovered *cuda;
};

struct discover {
	struct discover_options options;
	struct {
		ARRAY(struct known)
	} known; /* by pid */
	struct {
		ARRAY(struct discovered *)
	} cuda;
	uint32_t look;
	uint64_t next_ns, period_ns;
	size_t seen, started, others;
	bool has_memory_device;
};

struct discover *discover_open(const struct discover_options *options)
{
	struct discover *discover = calloc(1, sizeof(*discover));

	if (!discover)
		return NULL;
	discover->options = *options;
	if (!discover->options.first_period_ns)
		discover->options.first_period_ns = FIRST_PERIOD_NS;
	if (!discover->options.last_period_ns)
		discover->options.last_period_ns = LAST_PERIOD_NS;
	discover->period_ns = discover->options.first_period_ns;
	return discover;
}

static int compare_pid(const void *key, const void *item)
{
	uint32_t pid = *(const uint32_t *)key;
	const struct known *known = item;

	return (pid > known->pid) - (pid < known->pid);
}

static int compare_known(const void *a, const void *b)
{
	return compare_pid(&((const struct known *)a)->pid, b);
}

static struct known *find_known(const struct discover *discover, uint32_t pid)
{
	if (!discover->known.count)
		return NULL;
	return bsearch(&pid, discover->known.items, discover->known.count, sizeof(struct known), compare_pid);
}

/* ---- which processes are wanted ---- */

static bool is_named(const struct discover_filter *filter, uint32_t pid)
{
	for (size_t i = 0; i < filter->pid_count; i++) {
		if (filter->pids[i] == pid)
			return true;
	}
	return false;
}

/* Decided when a process is first seen: later its parent may have gone. */
static void inherit(struct discover *discover)
{
	struct known *known;
	bool changed = discover->options.filter.pid_count > 0;

	while (changed) {
		changed = false;
		array_for_each (known, &discover->known) {
			const struct known *parent;

			if (known->wanted)
				continue;
			parent = find_known(discover, known->parent);
			known->wanted =
			    is_named(&discover->options.filter, known->pid) || (parent && parent->wanted);
			changed |= known->wanted;
		}
	}
}

static bool is_wanted(const struct discover *discover, const struct known *known)
{
	const struct discover_filter *filter = &discover->options.filter;
	char text[PROCESS_CGROUP_TEXT];

	if (filter->all || known->wanted)
		return true;
	if (filter->comm) {
		process_name(known->pid, text, sizeof(text));
		if (!fnmatch(filter->comm, text, 0))
			return true;
	}
	if (!filter->cgroup && !filter->container)
		return false;
	process_cgroups(known->pid, text);
	return (filter->cgroup && cgroup_is_below(text, filter->cgroup)) ||
	       (filter->container && cgroup_in_container(text, filter->container));
}

/* ---- one process ---- */

static bool has_driver(const struct cuda_library *libraries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (libraries[i].driver)
			return true;
	}
	return false;
}

/*
 * cuInit opens the unified memory device (seen with driver 580). Without such a device on the machine a
 * mapped driver must do.
 */
static bool cuda_started(const struct discover *discover, uint32_t pid)
{
	return !discover->has_memory_device || process_has_open(pid, MEMORY_DEVICE);
}

/* It has what its parent had mapped, and the parent had started CUDA: data loader workers are of this kind.
 */
static bool is_forked_copy(const struct discover *discover, const struct known *known)
{
	const struct known *parent = find_known(discover, known->parent);

	return parent && parent->cuda && parent->cuda->started && parent->cuda->image &&
	       parent->cuda->image == process_image(known->pid);
}

static void forget_cuda(struct discover *discover, struct known *known)
{
	struct discovered *process = known->cuda;

	known->other = false;
	if (!process)
		return;
	if (process->told && discover->options.gone)
		discover->options.gone(discover->options.context, process);
	for (size_t i = 0; i < discover->cuda.count; i++) {
		if (discover->cuda.items[i] == process) {
			discover->cuda.items[i] = discover->cuda.items[--discover->cuda.count];
			break;
		}
	}
	free(process);
	known->cuda = NULL;
}

static struct discovered *new_cuda(struct discover *discover, struct known *known, uint64_t image)
{
	struct discovered **slot, *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	slot = array_add(&discover->cuda);
	if (!slot) {
		free(process);
		return NULL;
	}
	process->pid = known->pid;
	process->parent = known->parent;
	process->start_ticks = known->start_ticks;
	process->image = image;
	process_name(known->pid, process->comm, sizeof(process->comm));
	*slot = known->cuda = process;
	discover->seen++;
	return process;
}

static void tell(struct discover *discover, struct discovered *process)
{
	bool again = process->told;

	process->told = true;
	discover->options.found(discover->options.context, process, again);
}

/* True if it was found to have started CUDA just now, and that was told. */
static bool see_start(struct discover *discover, struct known *known)
{
	struct discovered *process = known->cuda;

	if (process->started || !(known->called || cuda_started(discover, known->pid)))
		return false;
	process->started = true;
	discover->started++;
	tell(discover, process);
	return true;
}

/* Its mappings have changed: does it use CUDA, or more of it? */
static void look_at(struct discover *discover, struct known *known)
{
	struct cuda_library libraries[DISCOVER_LIBRARIES];
	size_t count = process_cuda_libraries(known->pid, libraries, DISCOVER_LIBRARIES), earlier;
	struct discovered *process = known->cuda;
	uint64_t image;

	known->other = false;
	if (!has_driver(libraries, count)) {
		forget_cuda(discover, known);
		return;
	}
	image = process_image(known->pid);
	if (process && process->image != image) {
		forget_cuda(discover, known);
		known->called = false;
		process = NULL;
	}
	if (!process) {
		if (!known->called && is_forked_copy(discover, known))
			return;
		if (!is_wanted(discover, known)) {
			known->other = cuda_started(discover, known->pid);
			return;
		}
		process = new_cuda(discover, known, image);
		if (!process)
			return;
	}
	earlier = process->library_count;
	memcpy(process->libraries, libraries, count * sizeof(*libraries));
	process->library_count = count;
	if (!see_start(discover, known) && count > earlier)
		tell(discover, process);
	if (discover->options.looked)
		discover->options.looked(discover->options.context, process);
}

/* ---- all processes ---- */

/* Puts what the look saw into the list, whose old items stay sorted and whose new ones come behind. */
static void take(struct discover *discover, const struct process_list *list)
{
	size_t sorted = discover->known.count;
	const struct process_id *process;

	array_for_each (process, list) {
		struct known *known = sorted ? bsearch(&process->pid, discover->known.items, sorted,
		                                       sizeof(*known), compare_pid)
		                             : NULL;

		if (known && known->start_ticks != process->stat.start_ticks) {
			/* Another process with the id of one that has gone. */
			forget_cuda(discover, known);
			*known = (struct known){.pid = process->pid};
		}
		if (!known && discover->known.count < MAX_PROCESSES)
			known = array_add(&discover->known);
		if (!known)
			continue;
		known->pid = process->pid;
		known->parent = process->stat.parent;
		known->start_ticks = process->stat.start_ticks;
		known->seen = discover->look;
	}
}

static void drop_gone(struct discover *discover)
{
	size_t kept = 0;

	for (size_t i = 0; i < discover->known.count; i++) {
		struct known *known = &discover->known.items[i];

		if (known->seen == discover->look)
			discover->known.items[kept++] = *known;
		else
			forget_cuda(discover, known);
	}
	discover->known.count = kept;
}

static void look_if_changed(struct discover *discover, const struct process_id *process, uint64_t now_ns)
{
	struct known *known = find_known(discover, process->pid);

	if (!known)
		return;
	if (!process->stat.memory_bytes) { /* a kernel thread, or it has ended and waits for its parent */
		forget_cuda(discover, known);
		return;
	}
	if (known->cuda)
		see_start(discover, known);
	if (process->stat.memory_bytes == known->memory_bytes || now_ns < known->maps_next_ns)
		return;
	known->memory_bytes = process->stat.memory_bytes;
	known->maps_next_ns = now_ns + MAPS_PERIOD_NS;
	look_at(discover, known);
}

static bool is_near(const struct discover *discover)
{
	struct discovered *const *process;

	array_for_each (process, &discover->cuda) {
		if (!(*process)->started)
			return true;
	}
	return false;
}

static void count_others(struct discover *discover)
{
	const struct known *known;

	discover->others = 0;
	array_for_each (known, &discover->known)
		discover->others += known->other;
}

static void look_around(struct discover *discover, uint64_t now_ns)
{
	struct process_list list = {0};
	const struct process_id *process;

	discover->look++;
	discover->has_memory_device = !access(MEMORY_DEVICE, F_OK);
	if (!process_list_read(&list)) {
		take(discover, &list);
		drop_gone(discover);
		array_sort(&discover->known, compare_known);
		inherit(discover);
		array_for_each (process, &list)
			look_if_changed(discover, process, now_ns);
		count_others(discover);
	}
	array_free(&list);
}

bool discover_poll(struct discover *discover, uint64_t now_ns)
{
	uint64_t period = discover->period_ns;

	if (now_ns < discover->next_ns)
		return false;
	look_around(discover, now_ns);
	if (period > NEAR_PERIOD_NS && is_near(discover))
		period = NEAR_PERIOD_NS;
	discover->next_ns = now_ns + period;
	if (discover->period_ns < discover->options.last_period_ns)
		discover->period_ns += discover->period_ns / 2;
	return true;
}

uint64_t discover_next_ns(const struct discover *discover)
{
	return discover->next_ns;
}

void discover_look(struct discover *discover, uint32_t pid, uint64_t now_ns)
{
	struct known *known = find_known(discover, pid);
	struct process_stat stat;

	if (!process_stat_read(pid, &stat))
		return;
	if (!known || known->start_ticks != stat.start_ticks) {
		/* Newer than the last look: its parents may be, too. */
		look_around(discover, now_ns);
		known = find_known(discover, pid);
	}
	if (!known || known->start_ticks != stat.start_ticks)
		return;
	known->called = true;
	known->memory_bytes = stat.memory_bytes;
	look_at(discover, known);
}

/* ---- asking ---- */

size_t discover_count(const struct discover *discover)
{
	return discover->cuda.count;
}

struct discovered *discover_at(const struct discover *discover, size_t index)
{
	return index < discover->cuda.count ? discover->cuda.items[index] : NULL;
}

struct discovered *discover_find(const struct discover *discover, uint32_t pid)
{
	const struct known *known = find_known(discover, pid);

	return known ? known->cuda : NULL;
}

size_t discover_seen(const struct discover *discover)
{
	return discover->seen;
}

size_t discover_started(const struct discover *discover)
{
	return discover->started;
}

size_t discover_others(const struct discover *discover)
{
	return discover->others;
}

static bool is_listed(const struct pid_list *list, uint32_t pid)
{
	const uint32_t *item;

	array_for_each (item, list) {
		if (*item == pid)
			return true;
	}
	return false;
}

int discover_family(const struct discover *discover, uint32_t pid, struct pid_list *list)
{
	const struct known *known;
	uint32_t *slot = array_add(list);
	bool added = true;

	if (!slot)
		return -ENOMEM;
	*slot = pid;
	while (added) {
		added = false;
		array_for_each (known, &discover->known) {
			if (!is_listed(list, known->parent) || is_listed(list, known->pid))
				continue;
			slot = array_add(list);
			if (!slot)
				return -ENOMEM;
			*slot = known->pid;
			added = true;
		}
	}
	return 0;
}

void discover_close(struct discover *discover)
{
	if (!discover)
		return;
	for (size_t i = 0; i < discover->cuda.count; i++)
		free(discover->cuda.items[i]);
	array_free(&discover->cuda);
	array_free(&discover->known);
	free(discover);
}
