/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much the daemon may do: a share of one CPU, and the same share of the launch path of the processes that
 * it watches, held by what is measured.
 *
 * Credit grows with time and is spent by every cost. A window of full capture needs as much credit as the
 * last ones of its kind cost; so windows become fewer by themselves when they cost more. Where they would
 * become too rare, the level goes down: shorter windows, then cheaper probes, then none (T0 only), and where
 * even the counters cost too much, less of those. When there is room again it goes back up, one level at a
 * time.
 *
 * Plain arithmetic on times that the caller gives; no clock is read in here.
 */
#ifndef WHYIDLE_DAEMON_BUDGET_H
#define WHYIDLE_DAEMON_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_PPM         1000000ULL            /* shares are in millionths */
#define BUDGET_CREDIT_NS   (300ULL * 1000000000) /* credit is kept for this long without being used */
#define BUDGET_SPACING_NS  (60ULL * 1000000000)  /* full windows that would be rarer are made cheaper */
#define BUDGET_LAST_NS     (600ULL * 1000000000) /* the cheapest windows that would be rarer are given up */
#define BUDGET_PATIENCE_NS (30ULL * 1000000000)  /* at least this long between two changes of level */

enum budget_level {
	BUDGET_FULL,       /* windows as configured, as often as there is credit */
	BUDGET_SHORT,      /* windows of a quarter of their length */
	BUDGET_CHEAP,      /* short, and without samples and user stacks */
	BUDGET_T0,         /* no windows */
	BUDGET_T0_REDUCED, /* and blocked time is not told apart: no program at the switch */
	BUDGET_T0_SELDOM,  /* and the counters are read every ten seconds */
	BUDGET_LEVELS
};

/*
 * What a window is for. Credit comes slowly (a window's worth takes half a minute or more), so those that can
 * wait leave some to those that cannot: else a change would find none.
 */
enum budget_use {
	BUDGET_SCHEDULED, /* leaves three windows' worth */
	BUDGET_FOLLOWED,  /* looks again at what an earlier one saw: leaves two */
	BUDGET_TRIGGERED, /* something has changed just now: takes what there is */
	BUDGET_USES
};

/* "full", "short", "cheap", "t0", "t0_reduced", "t0_seldom" */
const char *budget_level_name(enum budget_level level);

enum budget_part {
	BUDGET_DAEMON,  /* own CPU time without windows */
	BUDGET_SWITCH,  /* program of the counters at the switch */
	BUDGET_CAPTURE, /* CPU time of windows: capture and analysis */
	BUDGET_PROBES,  /* BPF programs in windows, and the traps to those on CUDA calls */
	BUDGET_PARTS
};

const char *budget_part_name(enum budget_part part);

struct budget {
	uint64_t share_ppm;   /* of one CPU, and of the launch path */
	uint64_t interval_ns; /* wanted time from one window to the next, 0: none but by request */
	uint64_t window_ns;   /* wanted length of a window */

	enum budget_level level;
	bool met;                           /* what was spent lately is within the budget */
	uint64_t steps_down, steps_up;      /* changes of level so far */
	uint64_t spent_ns[BUDGET_PARTS];    /* since the beginning */
	int64_t credit_ns;                  /* may be negative: overdrawn */
	uint64_t now_ns, changed_ns;        /* last tick, last change of level */
	double standing;                    /* cost of all but windows, as a share of one CPU, smoothed */
	uint64_t window_cost_ns[BUDGET_T0]; /* of a window at each level, smoothed; 0 not known */
	double slowdown;                    /* of launches in windows, 0.1: a tenth longer; smoothed */
	uint64_t last_window_ns;            /* when the last window began, 0 none */
	uint64_t last_length_ns;            /* and how long it was */
	uint64_t standing_ns;               /* of the costs since the last tick */
	unsigned over_ticks, under_ticks;   /* in a row: standing costs over and far below the budget */
	bool stepped; /* the level has changed since: what was spent before says nothing */
};

void budget_init(struct budget *budget, uint64_t share_ppm, uint64_t interval_ns, uint64_t window_ns,
                 uint64_t now_ns);

/* A new configuration; what was measured stays. */
void budget_configure(struct budget *budget, uint64_t share_ppm, uint64_t interval_ns, uint64_t window_ns);

/* CPU time was spent outside of windows. */
void budget_spend(struct budget *budget, enum budget_part part, uint64_t ns);

/*
 * A window has ended: CPU time that it took by part, its length, and how much longer launches took in it than
 * outside (negative: shorter, which is noise and counts as 0).
 */
void budget_window(struct budget *budget, const uint64_t spent_ns[BUDGET_PARTS], uint64_t began_ns,
                   uint64_t length_ns, double slowdown);

/*
 * Time has passed: credit grows, the level may change. Call about once a second; more often does nothing.
 * Returns true if the level
 * changed; `why` (of `size` bytes) then says why, in a person's words.
 */
bool budget_tick(struct budget *budget, uint64_t now_ns, char *why, unsigned long size);

/* Whether windows are made at this level. */
bool budget_has_windows(const struct budget *budget);

/* Length of a window at the current level. */
uint64_t budget_window_length(const struct budget *budget);

/* From when on the next scheduled window may come, UINT64_MAX: none at this level, or at this interval. */
uint64_t budget_due_ns(const struct budget *budget);

/* Whether a window may begin now. Only a scheduled one must be due. */
bool budget_allows(const struct budget *budget, uint64_t now_ns, enum budget_use use);

/* Share of one CPU that was spent over the time since `since_ns`, given what had been spent then. */
double budget_share(uint64_t spent_ns, uint64_t elapsed_ns);

/* All parts together. */
uint64_t budget_spent(const struct budget *budget);

#endif
