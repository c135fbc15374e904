/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process that is to be attached, as /proc shows it: its mappings, its threads, what is in the way.
 */
#ifndef WHYIDLE_INJECT_TARGET_H
#define WHYIDLE_INJECT_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/array.h"
#include "inject/inject.h"

struct target_mapping {
	uint64_t start, end, offset;
	uint64_t device, inode;
	bool readable, writable, executable, shared;
	char name[128]; /* last part of the path, "" none */
};

struct target_maps {
	ARRAY(struct target_mapping)
};

/* Returns 0 or a negative errno. */
int target_maps_read(uint32_t pid, struct target_maps *maps);

/* The mapping that holds an address, NULL none. */
const struct target_mapping *target_maps_find(const struct target_maps *maps, uint64_t address);

/* Start of the mapping of the beginning of the same file as `mapping`, 0 none. */
uint64_t target_maps_base(const struct target_maps *maps, const struct target_mapping *mapping);

/* A thread, from its status file. */
struct target_status {
	char state;                        /* as ps shows it */
	uint32_t tracer;                   /* thread that traces it, 0 none */
	uint32_t seccomp;                  /* 0 none, 1 strict, 2 filters */
	uint64_t blocked, caught, pending; /* signals; pending: of the thread or the process */
	uint32_t inner_tid;                /* its id in its own pid namespace */
	bool shadow_stack;
	char name[32];
};

bool target_status_read(uint32_t pid, uint32_t tid, struct target_status *status);

/* What a thread waits in. False if it runs, or has gone. */
struct target_wait {
	long number;
	uint64_t arguments[6];
	uint64_t sp, pc;
};

bool target_wait_read(uint32_t pid, uint32_t tid, struct target_wait *wait);

/* True if descriptor `fd` of the process is a pipe. */
bool target_fd_is_pipe(uint32_t pid, uint64_t fd);

struct target_threads {
	ARRAY(uint32_t)
};

/* Ids as we see them. Returns 0 or a negative errno. */
int target_threads_read(uint32_t pid, struct target_threads *threads);

#endif
