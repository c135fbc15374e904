/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the processes that use CUDA, whoever started them and whenever: all that have a CUDA driver library
 * mapped, in any mount or pid namespace, whichever copy of it, also a deleted one. A runtime library that is
 * linked statically shows by the driver that it loads.
 *
 * It reads /proc now and then. Of each process that is one small file; the mappings are read only where the
 * size of the address space has changed since, and of one process at most every MAPS_PERIOD_NS (discover.c).
 * What comes and goes between two looks is told by others, if at
 * all: discover_look.
 *
 * The kernel is believed, the processes are not: names and files are theirs. One thread only.
 */
#ifndef WHYIDLE_COLLECT_DISCOVER_H
#define WHYIDLE_COLLECT_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/process_info.h"

#define DISCOVER_LIBRARIES 8

/* Which processes are wanted: all that fulfil one of the conditions. Texts and numbers are the caller's and
 * stay. */
struct discover_filter {
	bool all;             /* every process */
	const uint32_t *pids; /* these and what descends from them */
	size_t pid_count;
	const char *cgroup; /* in this control group or below it (cgroup_is_below) */
	const char
	    *comm; /* with this name, a pattern of fnmatch(3); the name of the process, not of its program */
	const char *container; /* in this container, by its id or the beginning of it */
};

/* A process that uses CUDA. */
struct discovered {
	uint32_t pid, parent;
	uint64_t start_ticks; /* with pid: it and no later one with this pid */
	uint64_t image;       /* process_image(): another after exec */
	char comm[16];
	struct cuda_library libraries[DISCOVER_LIBRARIES];
	size_t library_count;
	/*
	 * It has started CUDA. Until then it has only mapped the driver, as frameworks do when they are
	 * imported. Where the machine has no unified memory device (the stand-ins of tests/sim), this is true
	 * from the beginning.
	 */
	bool started;
	bool told;  /* options.found was called */
	void *user; /* the caller's, NULL at first */
};

struct discover_options {
	struct discover_filter filter;
	uint64_t first_period_ns, last_period_ns; /* between looks, longer each time; 0: 50 ms and 250 ms */
	/*
	 * A process uses CUDA: called when that is first seen, and again (again: true) when it has mapped one
	 * more library, or has started CUDA. A process that was forked from one that had started CUDA does
	 * not use it (CUDA does not work after fork) until discover_look says that it does.
	 */
	void (*found)(void *context, struct discovered *process, bool again);
	/* The mappings of one that was found were read, since they have changed. NULL is allowed. */
	void (*looked)(void *context, struct discovered *process);
	/* It has ended, or has executed another program. What `process` points to goes after this. NULL is
	 * allowed. */
	void (*gone)(void *context, struct discovered *process);
	void *context;
};

struct discover;

/* Returns NULL if memory ran out. */
struct discover *discover_open(const struct discover_options *options);

/* Looks, if it is time for it. Returns true if it did. */
bool discover_poll(struct discover *discover, uint64_t now_ns);

/* When discover_poll will look next, CLOCK_MONOTONIC. */
uint64_t discover_next_ns(const struct discover *discover);

/* Something else has seen this process call CUDA: looks at it now. */
void discover_look(struct discover *discover, uint32_t pid, uint64_t now_ns);

/* The processes that use CUDA now. A pointer is good until the next poll, look or close; NULL: there is no
 * such one. */
size_t discover_count(const struct discover *discover);
struct discovered *discover_at(const struct discover *discover, size_t index);
struct discovered *discover_find(const struct discover *discover, uint32_t pid);

/* How many processes ever were, and how many of these had started CUDA. */
size_t discover_seen(const struct discover *discover);
size_t discover_started(const struct discover *discover);

/* Processes that use CUDA now but are not wanted: they may keep the GPU busy. */
size_t discover_others(const struct discover *discover);

struct pid_list {
	ARRAY(uint32_t)
};

/*
 * Adds what descended from `pid` and lived at the last look, and `pid` itself first. Returns 0 or -ENOMEM;
 * free the list with array_free.
 */
int discover_family(const struct discover *discover, uint32_t pid, struct pid_list *list);

/* NULL is allowed. `gone` is not called. */
void discover_close(struct discover *discover);

#endif
