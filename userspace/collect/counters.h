/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counters of the always-on tier (bpf/counters.bpf.c): what the threads of some processes and of their
 * descendants do with their time. Nothing is sent for an event; the owner reads when it wants to.
 *
 * One thread only. Processes are given by their ids in the initial pid namespace, which must be the one that
 * the owner sees.
 */
#ifndef WHYIDLE_COLLECT_COUNTERS_H
#define WHYIDLE_COLLECT_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "bpf/counters.h"

struct counters;

/* Loads the programs; nothing runs yet. Returns 0 or a negative errno with `error`. */
int counters_open(struct counters **counters, struct error *error);

/* Counts a process from the next reading on. Returns 0, -E2BIG if there are too many, or another errno. */
int counters_add(struct counters *counters, uint32_t pid);

/* Counts a process, and any child of it that was found, no more. */
void counters_remove(struct counters *counters, uint32_t pid);

/*
 * Whether blocked time is told apart by kind. It needs a program at every switch of the machine; without it
 * sleep_ns and disk_ns stand still and all else goes on. Returns 0 or a negative errno.
 */
int counters_split(struct counters *counters, bool on);

/*
 * Calls `visit` for each thread of the counted processes; a non-zero return ends the reading and is returned.
 * Children of counted processes are found by this too. Returns 0 or a negative errno with `error`.
 */
int counters_read(struct counters *counters,
                  int (*visit)(void *context, const struct counters_thread *thread), void *context,
                  struct error *error);

/* Run time of the program at the switch so far, in ns, and how often it ran; 0 where the kernel does not
 * count it (bpf_stats). */
void counters_cost(const struct counters *counters, uint64_t *ns, uint64_t *runs);

/* NULL is allowed. */
void counters_close(struct counters *counters);

#endif
