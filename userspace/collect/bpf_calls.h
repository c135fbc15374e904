/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Uprobes on the CUDA functions that a library exports.
 *
 * Where the kernel has uprobe_multi, all functions of a file are probed at once by three links. Elsewhere
 * each probe is a perf event: they are set a few at a time, so that the rings are emptied in between, and
 * they are taken out by a process in the background, because each costs the kernel a long wait then (see
 * bpf_calls.c).
 */
#ifndef WHYIDLE_COLLECT_BPF_CALLS_H
#define WHYIDLE_COLLECT_BPF_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "collect/bpf_uprobe.h"

struct whyidle_bpf;

struct calls_file {
	uint64_t device, inode;
};

/* A function that is to be probed. */
struct calls_waiting {
	int fd;          /* of its file, shared by all functions of it */
	uint32_t rank;   /* lowest first */
	uint64_t cookie; /* CALL_COOKIE */
	bool blocks;
	uint64_t offset;
};

struct bpf_calls {
	struct {
		ARRAY(char *)
	} names; /* of functions, by attach cookie; never taken out */
	struct {
		ARRAY(int)
	} links; /* descriptors */
	struct {
		ARRAY(struct calls_file)
	} files;
	bool simulated; /* one of the files is the driver of tests/sim */
	/* Without uprobe_multi. */
	struct bpf_uprobe_events events;
	struct {
		ARRAY(struct calls_waiting)
	} waiting; /* the last one is next */
	struct {
		ARRAY(int)
	} open_files; /* of those that wait */
};

/* True if functions are probed one by one. */
bool bpf_calls_one_by_one(const struct whyidle_bpf *programs);

/*
 * Probes every known CUDA function of the ELF file at `path`, unless that was done before. The file is not
 * trusted. Returns the number of functions that are probed or will be by bpf_calls_continue, or a negative
 * errno with `error`. What could be attached stays.
 */
int bpf_calls_attach(struct bpf_calls *calls, struct whyidle_bpf *programs, const char *path,
                     struct error *error);

/* Goes on with functions that wait, most important ones first, for some milliseconds. Failures are passed
 * over. */
void bpf_calls_continue(struct bpf_calls *calls, struct whyidle_bpf *programs);

/* Gives up what still waits. */
void bpf_calls_drop_waiting(struct bpf_calls *calls);

/* Takes all probes out. Names stay. Without uprobe_multi they go some time after this returned. */
void bpf_calls_detach(struct bpf_calls *calls, const struct whyidle_bpf *programs);

/* All but probes. A zeroed struct is allowed. */
void bpf_calls_free(struct bpf_calls *calls);

#endif
