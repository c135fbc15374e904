/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a probe on a function of a program costs here. The kernel counts the time of the BPF program behind a
 * probe, but not that of the trap that leads to it, which is most of it and differs much between machines.
 */
#ifndef WHYIDLE_COLLECT_PROBE_COST_H
#define WHYIDLE_COLLECT_PROBE_COST_H

#include <stdint.h>

/*
 * Time that one hit takes, in ns: calls a function of this program with and without a probe on it, some
 * thousand times each (some ms in all), and takes the median difference. The first instruction of the
 * function is one that the kernel emulates, as are those of the CUDA calls that we have seen. 0: no probe can
 * be set.
 */
uint64_t probe_cost_measure(void);

#endif
