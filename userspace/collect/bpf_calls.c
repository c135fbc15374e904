/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What probes cost, measured on Linux 6.18 with 2 CPUs, with 70 functions of a library that one process has
 * mapped, a probe at the entry of each and one at its return:
 *
 *                                          set        taken out
 *  uprobe_multi, two links                 1-20 ms    45-70 ms
 *  perf events, closed one after another   13-22 ms   15 s
 *  perf events, closed by 16 or 64 threads            15 s, 14 s
 *  perf events, left to a forked process              none, that process ends after 17 s
 *
 * For each perf event that goes the kernel waits for grace periods with a mutex held, so threads do not help.
 * Setting them begins with a grace period too, which the next ones do without if they follow at once. On a
 * larger machine with a real CUDA, where each was set by itself, 135 probes took seconds to set and 28 s to
 * take out.
 */
#include "collect/bpf_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <libelf.h>

#include "base/clock.h"
#include "bpf/settings.h"
#include "collect/bpf_exports.h"
#include "collect/pure_call_arguments.h"
#include "model/cuda_call.h"
#include "symbols/elf_file.h"
#include "whyidle.skel.h"

#define SIMULATED_MARK "whyidle_simulated_gpu" /* a symbol of the driver of tests/sim */
#define MAX_FUNCTIONS  1024 /* of one file: the driver exports about 200 that are in the table */

/* For how long probes are set one by one, after the first, before the rings are looked at again. */
#define ATTACH_BUDGET_NS 10000000

/* A function to probe: where it is in the file, and what it is. */
struct function {
	uint64_t offset;
	const char *name; /* in the ELF's string table */
	const struct cuda_function *known;
};

struct function_list {
	ARRAY(struct function)
	bool simulated; /* it is the stand-in of tests/sim */
};

/* Order in which classes are probed, -1: not at all. Launches and what waits for them explain the most. */
static int class_rank(enum cuda_class class)
{
	switch (class) {
	case CUDA_LAUNCH:
		return 0;
	case CUDA_GRAPH_LAUNCH:
		return 1;
	case CUDA_SYNC:
		return 2;
	case CUDA_COPY:
		return 3;
	case CUDA_ALLOC:
		return 4;
	case CUDA_HOST_ALLOC:
		return 5;
	case CUDA_MEMSET:
		return 6;
	case CUDA_EVENT:
		return 7; /* what a synchronisation with an event waits for */
	case CUDA_MODULE:
		return 8;
	case CUDA_QUERY:
		return 9;
	default:
		return -1;
	}
}

static int add_function(void *context, const struct bpf_export *export)
{
	struct function_list *list = context;
	const struct cuda_function *known;
	struct function *function;

	list->simulated |= !strcmp(export->name, SIMULATED_MARK);
	if (!export->code)
		return 0;
	known = cuda_function_find(export->name);
	if (!known || class_rank(known->class) < 0)
		return 0;
	/* Several names of one place are one function. */
	array_for_each (function, list) {
		if (function->offset == export->offset)
			return 0;
	}
	if (list->count == MAX_FUNCTIONS)
		return 0;
	function = array_add(list);
	if (!function)
		return -ENOMEM;
	function->offset = export->offset;
	function->name = export->name;
	function->known = known;
	return 0;
}

/* ---- links ---- */

static int keep_link(struct bpf_calls *calls, int link)
{
	int *slot = link < 0 ? NULL : array_add(&calls->links);

	if (slot)
		*slot = link;
	else if (link >= 0)
		close(link);
	return slot ? 0 : link < 0 ? link : -ENOMEM;
}

static uint64_t cookie_of(uint32_t index, const struct function *function)
{
	const struct call_arguments *at = call_arguments_find(function->known->name);

	return CALL_COOKIE(index, at ? at->stream : CALL_PLACE_NONE, at ? at->object : CALL_PLACE_NONE,
	                   at ? at->size : CALL_SIZE_NONE, function->known->class == CUDA_QUERY);
}

/* Index of a new function's name, or a negative errno. */
static int keep_name(struct bpf_calls *calls, const char *text)
{
	char **name = array_add(&calls->names);

	if (!name)
		return -ENOMEM;
	*name = strdup(text);
	if (!*name) {
		calls->names.count--;
		return -ENOMEM;
	}
	return calls->names.count - 1;
}

static void close_newest_link(struct bpf_calls *calls)
{
	close(calls->links.items[--calls->links.count]);
}

/* ---- all functions at once ---- */

/* Functions that are probed by the same programs. */
struct group {
	uint64_t offsets[MAX_FUNCTIONS], cookies[MAX_FUNCTIONS];
	uint32_t count;
};

struct multi {
	struct bpf_calls *calls;
	struct whyidle_bpf *programs;
	char path[32];
	struct group launching, blocking;
	int error; /* the first one */
};

static int link_places(struct multi *multi, const struct bpf_program *program,
                       const struct bpf_uprobe_places *places, bool at_return)
{
	int fd = bpf_program__fd(program);

	if (fd < 0)
		return -ENOTSUP;
	return keep_link(multi->calls, bpf_uprobe_multi_attach(fd, multi->path, places, at_return));
}

static int link_group(struct multi *multi, const struct bpf_uprobe_places *places, bool blocks)
{
	int err;

	if (!blocks)
		return link_places(multi, multi->programs->progs.call_launches, places, false);
	/* The return first: no entry may be seen whose return is not. */
	err = link_places(multi, multi->programs->progs.call_returns, places, true);
	if (err)
		return err;
	err = link_places(multi, multi->programs->progs.call_enters, places, false);
	if (err)
		close_newest_link(multi->calls);
	return err;
}

/*
 * Probes the places of a group from `first` on. The kernel refuses them all if one of them begins with an
 * instruction that cannot be probed: then each half is tried by itself. Returns how many are probed.
 */
static uint32_t probe_group(struct multi *multi, const struct group *group, uint32_t first, uint32_t count,
                            bool blocks)
{
	struct bpf_uprobe_places places = {group->offsets + first, group->cookies + first, count};
	uint32_t half = count / 2;
	int err;

	if (!count)
		return 0;
	err = link_group(multi, &places, blocks);
	if (!err)
		return count;
	if (!multi->error)
		multi->error = err;
	if (!half)
		return 0;
	return probe_group(multi, group, first, half, blocks) +
	       probe_group(multi, group, first + half, count - half, blocks);
}

static int probe_at_once(struct bpf_calls *calls, struct whyidle_bpf *programs, int fd,
                         const struct function_list *list)
{
	struct multi *multi = calloc(1, sizeof(*multi));
	const struct function *function;
	int probed, cookie = 0;

	if (!multi)
		return -ENOMEM;
	multi->calls = calls;
	multi->programs = programs;
	bpf_exports_path(fd, multi->path);
	array_for_each (function, list) {
		struct group *group = function->known->both_ends ? &multi->blocking : &multi->launching;

		cookie = keep_name(calls, function->name);
		if (cookie < 0)
			break;
		group->offsets[group->count] = function->offset;
		group->cookies[group->count++] = cookie_of(cookie, function);
	}
	if (cookie < 0) {
		probed = cookie;
	} else {
		probed = probe_group(multi, &multi->launching, 0, multi->launching.count, false);
		probed += probe_group(multi, &multi->blocking, 0, multi->blocking.count, true);
		if (!probed)
			probed = multi->error;
	}
	free(multi);
	return probed;
}

/* ---- one by one ---- */

static int probe_place(struct bpf_calls *calls, const struct bpf_program *program,
                       const struct calls_waiting *function, bool at_return)
{
	char path[32];

	if (bpf_program__fd(program) < 0)
		return -ENOTSUP;
	return keep_link(calls, bpf_uprobe_event_attach(&calls->events, bpf_program__fd(program),
	                                                bpf_exports_path(function->fd, path),
	                                                function->offset, function->cookie, at_return));
}

static int probe_function(struct bpf_calls *calls, struct whyidle_bpf *programs,
                          const struct calls_waiting *function)
{
	int err;

	if (!function->blocks)
		return probe_place(calls, programs->progs.call_launches, function, false);
	/* The return first, as above. An entry that fails leaves it alone: it then reports nothing. */
	err = probe_place(calls, programs->progs.call_returns, function, true);
	return err ? err : probe_place(calls, programs->progs.call_enters, function, false);
}

void bpf_calls_drop_waiting(struct bpf_calls *calls)
{
	int *fd;

	array_free(&calls->waiting);
	array_for_each (fd, &calls->open_files) {
		close(*fd);
	}
	array_free(&calls->open_files);
}

void bpf_calls_continue(struct bpf_calls *calls, struct whyidle_bpf *programs)
{
	uint64_t end = 0;

	if (!calls->waiting.count)
		return;
	do {
		probe_function(calls, programs, &calls->waiting.items[--calls->waiting.count]);
		end = end ? end : clock_ns(CLOCK_MONOTONIC) + ATTACH_BUDGET_NS;
	} while (calls->waiting.count && clock_ns(CLOCK_MONOTONIC) < end);
	if (!calls->waiting.count)
		bpf_calls_drop_waiting(calls);
}

/* Last things first: the array is used up from its end. */
static int compare_waiting(const void *a, const void *b)
{
	const struct calls_waiting *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank < right->rank ? 1 : -1;
	return CALL_FUNCTION(left->cookie) < CALL_FUNCTION(right->cookie) ? 1 : -1;
}

/* Puts the functions into the queue. The queue then owns a copy of the file's descriptor. */
static int queue_functions(struct bpf_calls *calls, int fd, const struct function_list *list)
{
	const struct function *function;
	int *file = array_add(&calls->open_files);

	if (!file)
		return -ENOMEM;
	*file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (*file < 0) {
		calls->open_files.count--;
		return -errno;
	}
	fd = *file;
	array_for_each (function, list) {
		int cookie = keep_name(calls, function->name);
		struct calls_waiting *waiting = cookie < 0 ? NULL : array_add(&calls->waiting);

		if (!waiting)
			return -ENOMEM;
		*waiting = (struct calls_waiting){.fd = fd,
		                                  .rank = class_rank(function->known->class),
		                                  .cookie = cookie_of(cookie, function),
		                                  .blocks = function->known->both_ends,
		                                  .offset = function->offset};
	}
	array_sort(&calls->waiting, compare_waiting);
	return 0;
}

/* Sets the first probe, which shows if any can be set, and some more. */
static int probe_one_by_one(struct bpf_calls *calls, struct whyidle_bpf *programs, int fd,
                            const struct function_list *list)
{
	size_t earlier = calls->links.count;
	int err = queue_functions(calls, fd, list), first = 0;

	if (err)
		return err;
	while (calls->waiting.count && calls->links.count == earlier) {
		err = probe_function(calls, programs, &calls->waiting.items[--calls->waiting.count]);
		if (err && !first)
			first = err;
	}
	bpf_calls_continue(calls, programs);
	if (!calls->waiting.count)
		bpf_calls_drop_waiting(calls);
	return calls->links.count == earlier ? first : (int)list->count;
}

/* ---- files ---- */

bool bpf_calls_one_by_one(const struct whyidle_bpf *programs)
{
	return bpf_program__expected_attach_type(programs->progs.call_launches) !=
	       (enum bpf_attach_type)BPF_UPROBE_MULTI_ATTACH_TYPE;
}

static int attach_file(struct bpf_calls *calls, struct whyidle_bpf *programs, int fd, const char *path,
                       struct error *error)
{
	struct function_list list = {0};
	int result = 0;
	Elf *elf;

	elf = elf_file_open(fd);
	if (!elf)
		result = error_set(error, -ENOEXEC, "%s is not an ELF file", path);
	else if (bpf_exports_visit(elf, add_function, &list))
		result = error_no_memory(error);
	else if (list.count) {
		result = bpf_calls_one_by_one(programs) ? probe_one_by_one(calls, programs, fd, &list)
		                                        : probe_at_once(calls, programs, fd, &list);
		if (result < 0)
			error_set(error, result, "cannot probe the functions of %s: %s%s", path,
			          strerror(-result),
			          result == -EACCES || result == -EPERM ? " (CAP_SYS_ADMIN is needed)" : "");
	}
	calls->simulated |= list.simulated;
	array_free(&list);
	elf_end(elf);
	return result;
}

int bpf_calls_attach(struct bpf_calls *calls, struct whyidle_bpf *programs, const char *path,
                     struct error *error)
{
	struct calls_file *file;
	struct stat status;
	int result, fd;

	fd = bpf_exports_open(path, &status);
	if (fd == -EINVAL)
		return error_set(error, -EINVAL, "%s is not a file", path);
	if (fd < 0)
		return error_set(error, fd, "cannot open %s: %s", path, strerror(-fd));
	array_for_each (file, &calls->files) {
		if (file->device == status.st_dev && file->inode == status.st_ino) {
			close(fd);
			return 0;
		}
	}
	file = array_add(&calls->files);
	if (file) {
		file->device = status.st_dev;
		file->inode = status.st_ino;
		result = attach_file(calls, programs, fd, path, error);
	} else {
		result = error_no_memory(error);
	}
	close(fd);
	return result;
}

/* ---- detaching ---- */

static int compare_descriptors(const void *a, const void *b)
{
	return *(const int *)a < *(const int *)b ? -1 : 1;
}

/* Closes all descriptors but the given ones, which are sorted. */
static void close_others(const int *keep, size_t count)
{
	unsigned int first = 0;

	for (size_t i = 0; i < count; i++) {
		if ((unsigned int)keep[i] > first)
			syscall(SYS_close_range, first, keep[i] - 1, 0);
		first = keep[i] + 1;
	}
	syscall(SYS_close_range, first, ~0u, 0);
}

/*
 * Ends when the other side of the pipe is closed. Being the last to hold the links, it then is what waits for
 * the kernel to take the probes out. It holds nothing else, so nobody waits for it: no file, no pipe, and not
 * even its memory, which goes before the descriptors do.
 */
static _Noreturn void hold_links(int *descriptors, size_t count, int gate)
{
	char byte;

	close_others(descriptors, count);
	while (read(gate, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* Starts a process that keeps the links until the returned descriptor is closed; negative if there is none.
 */
static int start_holder(const struct bpf_calls *calls)
{
	size_t count = calls->links.count;
	int *descriptors = malloc((count + 1) * sizeof(*descriptors));
	int gate[2];
	pid_t child = -1;

	if (!descriptors)
		return -1;
	if (pipe2(gate, O_CLOEXEC)) {
		free(descriptors);
		return -1;
	}
	memcpy(descriptors, calls->links.items, count * sizeof(*descriptors));
	descriptors[count] = gate[0];
	qsort(descriptors, count + 1, sizeof(*descriptors), compare_descriptors);
	child = fork();
	if (!child) {
		/* A grandchild, which this process never has to wait for. */
		child = fork();
		if (!child)
			hold_links(descriptors, count + 1, gate[0]);
		_exit(child < 0);
	}
	free(descriptors);
	close(gate[0]);
	if (child > 0) {
		int status = 0;

		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		child = status ? -1 : child;
	}
	if (child > 0)
		return gate[1];
	close(gate[1]);
	return -1;
}

void bpf_calls_detach(struct bpf_calls *calls, const struct whyidle_bpf *programs)
{
	int *link, gate = -1;

	bpf_calls_drop_waiting(calls);
	if (calls->links.count && bpf_calls_one_by_one(programs))
		gate = start_holder(calls);
	array_for_each (link, &calls->links) {
		close(*link);
	}
	array_free(&calls->links);
	if (gate >= 0)
		close(gate);
}

void bpf_calls_free(struct bpf_calls *calls)
{
	char **name;

	array_for_each (name, &calls->names) {
		free(*name);
	}
	array_free(&calls->names);
	array_free(&calls->files);
}
