/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Uprobes on the functions of glibc that wait for other threads (bpf/lock.bpf.c): condition variables,
 * semaphores, joins, read-write locks, and mutexes on request.
 *
 * Only entries are probed, all functions of a file by one link (uprobe_multi, Linux 6.6). What they cost is
 * in docs/locks.md.
 */
#ifndef WHYIDLE_COLLECT_BPF_LOCKS_H
#define WHYIDLE_COLLECT_BPF_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

struct locks_file {
	uint64_t device, inode;
	bool probed; /* it has functions that wait */
};

struct bpf_locks {
	bool mutexes; /* they are wanted too */
	struct {
		ARRAY(struct locks_file)
	} files; /* looked at so far */
	struct {
		ARRAY(int)
	} links; /* descriptors */
};

/*
 * Probes the C library that process `pid` has mapped, and the one at the usual places of its file system,
 * unless that was done before. `program` is the descriptor of lock_called. Returns how many files of it are
 * probed, now or before, or a negative errno with `error`; -ENOENT: there is no glibc.
 */
int bpf_locks_attach(struct bpf_locks *locks, int program, uint32_t pid, struct error *error);

/* Takes all probes out. A zeroed struct is allowed. */
void bpf_locks_free(struct bpf_locks *locks);

#endif
