// SPDX-License-Identifier: GPL-2.0-only
#include "collect/probe_cost.h"

#include <inttypes.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/number.h"
#include "collect/bpf_uprobe.h"

#define ROUNDS 5
#define CALLS  1000
#define SELF   "/proc/self/exe"

/* In assembler, so that its first instruction is known: a no-op, which is emulated on every machine. */
void probe_cost_site(void);
__asm__(".pushsection .text\n"
        ".globl probe_cost_site\n"
        ".hidden probe_cost_site\n"
        ".type probe_cost_site, %function\n"
        "probe_cost_site:\n"
        "\tnop\n"
        "\tret\n"
        ".size probe_cost_site, . - probe_cost_site\n"
        ".popsection\n");

/* Where the function is in the file of this program; false if that is not known. */
static bool find_offset(uint64_t address, uint64_t *offset)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end, at;
	char line[4400];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &at) != 3 ||
		    address < start || address >= end)
			continue;
		*offset = address - start + at;
		found = true;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* A program that does nothing, loaded for one of the two ways to attach it. Returns its descriptor. */
static int load(bool multi)
{
	static const struct bpf_insn nothing[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options,
	            .expected_attach_type = multi ? BPF_UPROBE_MULTI_ATTACH_TYPE : 0);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "whyidle_cost", "GPL", nothing,
	                     sizeof(nothing) / sizeof(nothing[0]), &options);
}

static int attach(int program, uint64_t offset, bool multi)
{
	struct bpf_uprobe_events events = {0};
	uint64_t cookie = 0;
	struct bpf_uprobe_places place = {&offset, &cookie, 1};

	return multi ? bpf_uprobe_multi_attach(program, SELF, &place, false)
	             : bpf_uprobe_event_attach(&events, program, SELF, offset, cookie, false);
}

static uint64_t time_calls(void)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < CALLS; i++)
		probe_cost_site();
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

uint64_t probe_cost_measure(void)
{
	bool multi = bpf_uprobe_multi_works();
	uint64_t offset, costs[ROUNDS];
	int program = load(multi), count = 0;

	if (program < 0)
		return 0;
	while (count < ROUNDS && find_offset((uintptr_t)probe_cost_site, &offset)) {
		uint64_t bare = time_calls(), probed;
		int link = attach(program, offset, multi);

		if (link < 0)
			break;
		probed = time_calls();
		close(link);
		costs[count++] = probed > bare ? (probed - bare) / CALLS : 0;
	}
	close(program);
	if (!count)
		return 0;
	qsort(costs, (size_t)count, sizeof(costs[0]), compare_unsigned);
	return costs[count / 2];
}
