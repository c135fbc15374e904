/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session file read back as arrays, and what must hold in every recording of the BPF source.
 */
#ifndef WHYIDLE_TESTS_BPF_RECORDING_H
#define WHYIDLE_TESTS_BPF_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "trace/session.h"

struct recorded_stack {
	struct record_stack record;
	uint64_t frames[64];
};

struct recording {
	struct {
		ARRAY(struct record_offcpu)
	} intervals;
	struct {
		ARRAY(struct record_sample)
	} samples;
	struct {
		ARRAY(struct record_task)
	} tasks;
	struct {
		ARRAY(struct record_fork)
	} forks;
	struct {
		ARRAY(struct record_exec)
	} execs;
	struct {
		ARRAY(struct record_exit)
	} exits;
	struct {
		ARRAY(struct record_call)
	} calls;
	struct {
		ARRAY(struct record_loss)
	} losses;
	struct {
		ARRAY(struct record_info)
	} infos;
	struct {
		ARRAY(struct recorded_stack)
	} stacks; /* by id - 1 */
	struct {
		ARRAY(struct record_symbol)
	} symbols;
	struct {
		ARRAY(char *)
	} strings; /* by id */
};

/* Reads a session. Returns 0 or a negative errno; recording_free in either case. */
int recording_read(struct recording *recording, const char *path, struct error *error);
void recording_free(struct recording *recording);

/* "" for an unknown id. */
const char *recording_string(const struct recording *recording, uint32_t id);

/* Value of an info of that key, NULL if there is none. */
const char *recording_info(const struct recording *recording, const char *key);

/* True if a function whose name contains `part` is in the kernel stack. */
bool recording_stack_has(const struct recording *recording, uint32_t stack, const char *part);

/* Prints the intervals of a thread (0: all) with their stacks, for a person who looks for a failure. */
void recording_print(const struct recording *recording, uint32_t tid);

/*
 * Takes out what is of threads outside of `root` and its children that are recorded because they woke one of
 * these, but the record that names each.
 */
void recording_drop_guests(struct recording *recording, uint32_t root);

/*
 * The first thing that is wrong with a recording in which nothing was lost, NULL if all is well: sequence
 * numbers without holes, intervals of a thread in order and disjoint, times within bounds, every thread
 * named, stacks and strings defined, only processes below `root` recorded.
 */
const char *recording_flaw(const struct recording *recording, uint32_t root, uint64_t start_ns,
                           uint64_t end_ns);

#endif
