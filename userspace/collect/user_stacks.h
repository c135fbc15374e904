/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copied user stacks (struct wire_stack) → stack records of the session, each written once, with the names of
 * their functions: native code unwound by its files' tables, Python functions in between where the
 * interpreter called or was called.
 */
#ifndef WHYIDLE_COLLECT_USER_STACKS_H
#define WHYIDLE_COLLECT_USER_STACKS_H

#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hash.h"
#include "bpf/events.h"
#include "collect/process_code.h"
#include "collect/python_code.h"
#include "trace/session.h"

#define USER_STACK_FRAMES 256 /* kept of a stack */

/* The interpreter of a process. */
struct python_state {
	uint32_t pid;
	bool found;
	uint64_t next_ns; /* when to look for it again; UINT64_MAX: never */
	uint32_t looks;
	struct python_process process;
	struct python_codes codes;
	struct index_map thread_read; /* thread → second in which its name was read */
	struct index_map thread_name; /* thread → string id of the one that was written */
};

struct user_stacks {
	struct session_writer *writer;
	int python_fd;   /* BPF map of struct wire_python by process; not owned */
	uint32_t *count; /* stacks written so far, of all kinds; ids are dense from 1 */
	struct processes_code code;
	struct {
		ARRAY(struct python_state *)
	} pythons;
	struct index_map python_by_pid;
	struct index_map ids;     /* hash of a stack → id */
	struct index_map symbols; /* hash of process and address whose symbol was written */
	struct index_map lines;   /* hash of a Python function and line → serial number of its frame */
	uint32_t line_count;
	struct index_map
	    inlined; /* hash of what is said of an inlined function → serial number of its symbol */
	uint32_t inlined_count;
	struct index_map pending; /* thread → index in `waiting` */
	struct {
		ARRAY(struct pending_stack)
	} waiting;
	uint64_t unwound, incomplete, frames, unnamed; /* figures for tests and benchmarks */
};

/* A stack whose interval or sample has not come yet. */
struct pending_stack {
	uint64_t time_ns;
	uint32_t id; /* of the record, 0 taken */
};

/* String id of what lies at a data address of a process, 0 if it has no name (collect/data_names.h). */
uint32_t user_stacks_data_name(struct user_stacks *stacks, uint32_t pid, uint64_t address, bool shared);

/* Unwinds and writes a stack of `size` bytes. It is checked. Returns 0 or a negative errno, with `error`. */
int user_stacks_add(struct user_stacks *stacks, const struct wire_stack *wire, size_t size,
                    struct error *error);

/* Record id of the stack that the thread had at `time_ns`, 0 if there is none. */
uint32_t user_stacks_take(struct user_stacks *stacks, uint32_t tid, uint64_t time_ns);

/* What happens to processes. Threads of the same process do not count. */
void user_stacks_fork(struct user_stacks *stacks, uint32_t parent, uint32_t child);
void user_stacks_exec(struct user_stacks *stacks, uint32_t pid);
void user_stacks_exit(struct user_stacks *stacks, uint32_t pid);

/* Looks for interpreters in processes that may have one. To be called now and then. */
void user_stacks_poll(struct user_stacks *stacks, uint64_t now_ns);

void user_stacks_free(struct user_stacks *stacks);

#endif
