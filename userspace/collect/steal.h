/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Steal time of the whole machine: CPU time that a virtual machine asked for while the hypervisor ran
 * something else. Which threads it was taken from the BPF programs say (bpf/steal.bpf.h).
 */
#ifndef WHYIDLE_COLLECT_STEAL_H
#define WHYIDLE_COLLECT_STEAL_H

#include <stdbool.h>
#include <stdint.h>

/* Ticks of all CPUs since the machine began, by /proc/stat (proc_stat(5)). */
struct steal_ticks {
	uint64_t ran, stolen;
};

/* All 0 if it cannot be read. */
struct steal_ticks steal_ticks_now(void);

/* Of the CPU time that was asked for between two counts, which part was stolen: 0 to 1. */
double steal_share(const struct steal_ticks *before, const struct steal_ticks *after);

/* True in a virtual machine, as far as the CPU or the kernel's own account says so. */
bool steal_possible(void);

#endif
