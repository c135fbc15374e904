/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Uprobes on the functions of NCCL (bpf/nccl.bpf.c), in every copy of it that a process has mapped: a library
 * of its own, or linked into that of a framework. By links of many places (uprobe_multi, Linux 6.6).
 */
#ifndef WHYIDLE_COLLECT_BPF_NCCL_H
#define WHYIDLE_COLLECT_BPF_NCCL_H

#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

struct whyidle_bpf;

struct nccl_file {
	uint64_t device, inode;
};

struct bpf_nccl {
	struct {
		ARRAY(struct nccl_file)
	} files; /* looked at so far */
	struct {
		ARRAY(int)
	} links; /* descriptors */
};

/*
 * Probes what process `pid` has mapped of NCCL and that was not looked at before. Returns how many functions
 * were probed by this call, 0 also where there is none; or a negative errno with `error`. What could be
 * probed stays.
 */
int bpf_nccl_attach(struct bpf_nccl *nccl, const struct whyidle_bpf *programs, uint32_t pid,
                    struct error *error);

/* Takes all probes out. A zeroed struct is allowed. */
void bpf_nccl_free(struct bpf_nccl *nccl);

#endif
