/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The GPU processes that are watched, and what the counters say of them from one reading to the next. A
 * process stands for itself and for all that it forked.
 */
#ifndef WHYIDLE_DAEMON_TARGETS_H
#define WHYIDLE_DAEMON_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "bpf/counters.h"
#include "daemon/identity.h"
#include "metrics/metrics.h"

/* What a process does with its time, by the second. */
struct target_profile {
	double cpu;      /* CPUs in use */
	double runqueue; /* threads that were ready and had none */
	double disk;     /* threads that waited for storage */
	double switches; /* voluntary ones */
};

struct target {
	uint32_t pid;
	struct identity identity;
	struct target_profile now;       /* smoothed over the last seconds */
	struct target_profile at_window; /* the same when the last window was made */
	bool has_profile, has_window;
	unsigned readings;           /* since the last window */
	uint64_t launches_seen;      /* windows with launches */
	double launch_rate;          /* launches a second in windows, smoothed; 0 not known */
	uint32_t threads, processes; /* at the last reading */
	struct target_profile sums;  /* of the reading that goes on */
};

struct targets {
	struct {
		ARRAY(struct target)
	} items;
	struct {
		ARRAY(struct counters_thread)
	} before, reading; /* threads of the last reading and of this one, by tid */
	uint64_t read_ns;
};

/* Adds a process; NULL if memory ran out. It may be there already: then it stays who it was. */
struct target *targets_add(struct targets *targets, uint32_t pid, const struct identity *identity);
void targets_remove(struct targets *targets, uint32_t pid);
struct target *targets_find(const struct targets *targets, uint32_t pid);

/* The watched process that `pid` is or descends from, by the last reading; 0: none. */
uint32_t targets_root(const struct targets *targets, uint32_t pid);

/* One thread of a reading; in any order. Returns 0 or -ENOMEM. */
int targets_take(struct targets *targets, const struct counters_thread *thread);

/* The reading is complete: adds to the metrics what has come since the last one. */
void targets_read(struct targets *targets, struct metrics *metrics, uint64_t now_ns);

/* A window begins: what is normal now. */
void targets_window(struct targets *targets);

/* What some process usually does is known: a first window now is one to compare later times with. */
bool targets_settled(const struct targets *targets);

/*
 * A process that does something else with its time than when the last window was made, NULL if there is none.
 * A window is worth having then: the next scheduled one may be far away.
 */
const struct target *targets_shifted(const struct targets *targets);

void targets_free(struct targets *targets);

#endif
