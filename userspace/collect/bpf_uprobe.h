/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The two ways to put a BPF program at places of a file: one link for all places (uprobe_multi, since Linux
 * 6.6) or one perf event and link for each.
 *
 * A program is loaded for one of the two, by its expected attach type. Links are file descriptors: a probe is
 * there until the last copy of its link is closed. All processes are probed. `path` may be /proc/self/fd/N.
 */
#ifndef WHYIDLE_COLLECT_BPF_UPROBE_H
#define WHYIDLE_COLLECT_BPF_UPROBE_H

#include <stdbool.h>
#include <stdint.h>

/* BPF_TRACE_UPROBE_MULTI of enum bpf_attach_type, which older headers lack. */
#define BPF_UPROBE_MULTI_ATTACH_TYPE 48

/* True if this kernel takes links of many places. It is asked by a trial. */
bool bpf_uprobe_multi_works(void);

/* Places in a file, and what bpf_get_attach_cookie gives at each. */
struct bpf_uprobe_places {
	const uint64_t *offsets, *cookies;
	uint32_t count;
};

/* Returns the descriptor of a link or a negative errno; if one place is refused, none is probed. */
int bpf_uprobe_multi_attach(int program, const char *path, const struct bpf_uprobe_places *places,
                            bool at_return);

/* How the kernel wants perf events for uprobes: read once, zero before. */
struct bpf_uprobe_events {
	uint32_t type;
	uint64_t at_return; /* config of an event at returns */
};

/* The same for one place. */
int bpf_uprobe_event_attach(struct bpf_uprobe_events *events, int program, const char *path, uint64_t offset,
                            uint64_t cookie, bool at_return);

#endif
