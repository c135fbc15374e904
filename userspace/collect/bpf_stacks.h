/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ids of kernel stacks in the BPF maps → stack records of the session, each written once, with the names of
 * kernel functions.
 */
#ifndef WHYIDLE_COLLECT_BPF_STACKS_H
#define WHYIDLE_COLLECT_BPF_STACKS_H

#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "collect/bpf_symbols.h"
#include "trace/session.h"

struct bpf_stacks {
	int kernel_fds[2]; /* first and second map; not owned */
	struct session_writer *writer;
	struct kernel_symbols symbols;
	struct index_map kernel_ids; /* id in the maps → id of the record */
	struct index_map addresses;  /* kernel addresses whose symbol was written */
	uint32_t count;              /* stacks written so far; ids are dense from 1 */
};

/*
 * Loads the kernel's symbols. Returns 0; -EACCES or another errno of reading them if there are none (stacks
 * then have addresses only, everything else works).
 */
int bpf_stacks_init(struct bpf_stacks *stacks);

/*
 * Record id of a stack id as found in a wire record, 0 for "none" or if it cannot be read any more. Writes
 * stack and symbol records when it is new. Returns 0 or a negative errno of the writer or -ENOMEM.
 */
int bpf_stacks_kernel(struct bpf_stacks *stacks, int32_t id, uint32_t *record, struct error *error);

void bpf_stacks_free(struct bpf_stacks *stacks);

#endif
