/* SPDX-License-Identifier: GPL-2.0-only */
/* What is kept of a thread that calls NCCL, until it ends or becomes another program. */
#ifndef WHYIDLE_BPF_NCCL_H
#define WHYIDLE_BPF_NCCL_H

#include "common.bpf.h"

/* What a thread is in. Written by itself only. */
struct nccl_thread {
	__u64 last_stack, last_return, last_ns; /* of its newest call */
	__u32 last_function;
	__u32 depth; /* of groups */
	__u32 group; /* number of the newest one */
	__u32 group_calls;
	__u64 new_stack; /* of the call that makes a communicator, 0: it is in none */
	__u64 new_place; /* where that will write the handle */
	__u64 new_id;
	__u32 new_size, new_rank;
	__u32 new_function;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct nccl_thread);
} nccl_threads SEC(".maps") __weak;

static __always_inline void nccl_thread_forget(__u32 tid)
{
	bpf_map_delete_elem(&nccl_threads, &tid);
}

#endif
