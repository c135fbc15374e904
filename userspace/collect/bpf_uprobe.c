/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_uprobe.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* ---- one link for many places ---- */

/*
 * Argument of BPF_LINK_CREATE with attach type BPF_TRACE_UPROBE_MULTI: the fields `link_create` and in it
 * `uprobe_multi` of union bpf_attr in the kernel's include/uapi/linux/bpf.h since 6.6. libbpf has a wrapper
 * since 1.3, but where that is too old so may be linux/bpf.h: this serves both.
 */
struct link_create {
	uint32_t program;
	uint32_t target; /* not used */
	uint32_t attach_type;
	uint32_t link_flags; /* none are known */
	uint64_t path;       /* addresses */
	uint64_t offsets;
	uint64_t reference_counters; /* places of counters for USDT, 0: none */
	uint64_t cookies;
	uint32_t count;
	uint32_t flags; /* MULTI_RETURN */
	uint32_t pid;   /* 0: all processes */
	uint32_t pad;
};

#define MULTI_RETURN (1u << 0) /* BPF_F_UPROBE_MULTI_RETURN */

_Static_assert(BPF_LINK_CREATE == 28, "BPF_LINK_CREATE");
_Static_assert(sizeof(struct link_create) == 64, "link_create");

int bpf_uprobe_multi_attach(int program, const char *path, const struct bpf_uprobe_places *places,
                            bool at_return)
{
	struct link_create create = {
	    .program = program,
	    .attach_type = BPF_UPROBE_MULTI_ATTACH_TYPE,
	    .path = (uintptr_t)path,
	    .offsets = (uintptr_t)places->offsets,
	    .cookies = (uintptr_t)places->cookies,
	    .count = places->count,
	    .flags = at_return ? MULTI_RETURN : 0,
	};
	int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &create, sizeof(create));

	return fd < 0 ? -errno : fd;
}

/* A kernel that knows the link looks at the path last and finds that a directory cannot be probed (EBADF). */
bool bpf_uprobe_multi_works(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_UPROBE_MULTI_ATTACH_TYPE);
	static const struct bpf_insn nothing[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	uint64_t offset = 0, cookie = 0;
	struct bpf_uprobe_places places = {&offset, &cookie, 1};
	int program, link;

	program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "whyidle_trial", "GPL", nothing,
	                        sizeof(nothing) / sizeof(nothing[0]), &options);
	if (program < 0)
		return false;
	link = bpf_uprobe_multi_attach(program, "/", &places, false);
	if (link >= 0)
		close(link);
	close(program);
	return link == -EBADF;
}

/* ---- a perf event for each place ---- */

#define UPROBE_EVENTS "/sys/bus/event_source/devices/uprobe/"

static int read_number(const char *path, const char *format, unsigned int *number)
{
	FILE *file = fopen(path, "re");
	int count;

	if (!file)
		return -errno;
	count = fscanf(file, format, number);
	fclose(file);
	return count == 1 ? 0 : -EPROTO;
}

static int events_init(struct bpf_uprobe_events *events)
{
	unsigned int type = 0, bit = 64;
	int err;

	if (events->type)
		return 0;
	err = read_number(UPROBE_EVENTS "type", "%u", &type);
	if (!err)
		err = read_number(UPROBE_EVENTS "format/retprobe", "config:%u", &bit);
	if (err || bit > 63)
		return err ? err : -EPROTO;
	events->at_return = 1ULL << bit;
	events->type = type;
	return 0;
}

int bpf_uprobe_event_attach(struct bpf_uprobe_events *events, int program, const char *path, uint64_t offset,
                            uint64_t cookie, bool at_return)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = cookie);
	struct perf_event_attr attr = {.size = sizeof(attr)};
	int event, link, err = events_init(events);

	if (err)
		return err;
	attr.type = events->type;
	attr.config = at_return ? events->at_return : 0;
	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = offset;
	/* For all processes it must name a CPU; BPF programs run on every one all the same. */
	event = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	link = bpf_link_create(program, event, BPF_PERF_EVENT, &options);
	/* The link keeps the event. */
	close(event);
	return link;
}
