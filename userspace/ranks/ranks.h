/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Several ranks of one job: which one made the others wait in their collectives, and why.
 *
 * A rank is a process with its operations on one GPU. Ranks come from one or several inputs (session files,
 * imported traces), each on a clock of its own. ranks_add takes what is needed out of a model, so that models
 * need not be kept; ranks_solve matches the collectives, aligns the clocks on them and charges each wait to
 * the rank that came last, with that rank's own causes (docs/ranks.md).
 *
 * Invariant: wait_ns = charged_ns + undecided_ns + uncharged_ns of the report; the causes' wait_ns sum
 * exactly to charged_ns, and so do those of the peers, which of each member sum to its wait_ns -
 * undecided_ns.
 */
#ifndef WHYIDLE_RANKS_H
#define WHYIDLE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "attribute/cause.h"
#include "base/array.h"
#include "base/error.h"

#define RANKS_NONE UINT32_MAX

struct model;
struct ranks;

/* Where a model came from. */
struct ranks_input {
	const char *path;
	uint32_t rank;       /* as the file says, RANKS_NONE: not known */
	uint32_t world_size; /* 0: not known */
	bool alone;          /* the only input: if it holds one rank, nothing will be compared */
};

/* What made a rank come late. */
enum late_reason {
	LATE_IDLE,     /* its GPU was idle: code and role say why */
	LATE_HOST,     /* its GPU ran other work, but the host launched the collective late: code and role */
	LATE_COMPUTE,  /* its kernels took longer */
	LATE_COPY,     /* its copies and memsets took longer */
	LATE_TRANSFER, /* earlier collectives kept it longer, and no rank came late to them */
	LATE_BEFORE,   /* it began before the first collective that all ranks have: not known */
};

/* A part of the waiting: all of one kind. Thread and detail are those of its largest part. */
struct ranks_cause {
	uint32_t late; /* member that came last */
	uint32_t root; /* member whose cause this is: not `late` if that one was itself kept by another */
	enum late_reason reason;
	enum cause_code code; /* LATE_IDLE and LATE_HOST only */
	enum cause_role role;
	enum confidence confidence;
	const char *thread; /* "" if none */
	const char *detail; /* file, call, scope or holder; "" if none */
	const char
	    *via; /* threads through which the walk came there, "main ← pt_data_pin ← loader"; "" if none */
	uint64_t wait_ns;  /* waits of all other ranks, summed */
	uint64_t delay_ns; /* what the job would gain at most: up to the arrival of the next to last rank */
	uint64_t collectives;
};

/* What a rank waited for: its part of a cause. */
struct ranks_peer {
	uint32_t member, cause; /* who waited; index of the causes */
	uint64_t wait_ns;
	uint64_t idle_ns; /* part of it in which nothing else of it ran: device.peer */
	uint64_t collectives;
};

/* Time of the job that went to one kind of thing, on the rank that came last each time. */
struct ranks_path_cause {
	uint32_t root;           /* member */
	enum late_reason reason; /* LATE_IDLE, LATE_HOST or LATE_BEFORE */
	enum cause_code code;
	enum cause_role role;
	enum confidence confidence; /* of its largest part, as thread, detail and via */
	const char *thread, *detail, *via;
	uint64_t ns;
};

/*
 * What the job as a whole spent its time on: from each arrival of a last rank to the next one, by what the
 * rank that came last then had done. Other ranks' causes do not count: without them the job would take as
 * long. span_ns = compute_ns + copy_ns + transfer_ns + the causes' ns. All 0 if no group has two collectives.
 */
struct ranks_path {
	uint64_t span_ns, compute_ns, copy_ns;
	uint64_t transfer_ns; /* in collectives after the last rank had come */
	struct {
		ARRAY(struct ranks_path_cause)
	} causes; /* by ns, largest first */
};

enum clock_state {
	CLOCK_SAME,      /* agrees with that of the first input within the error */
	CLOCK_SHIFTED,   /* offset (and drift) taken out */
	CLOCK_UNALIGNED, /* no collective in common: its times cannot be compared */
};

/* Common time = t - offset_ns - drift x (t - the rank's window_start_ns). */
struct ranks_clock {
	enum clock_state state;
	int64_t offset_ns;
	double drift; /* 1e-6 is one microsecond in a second */
	uint64_t error_ns;
	uint64_t collectives; /* that it was measured on; 0 for the input that all are aligned to */
};

/* One rank. Its times are on its own clock. */
struct ranks_member {
	uint32_t rank; /* as the file says, else by the order of inputs */
	uint32_t input;
	uint32_t device; /* number of the GPU in its input */
	uint32_t pid;
	const char *path, *device_name;
	uint64_t window_start_ns, window_end_ns;
	uint64_t busy_ns, idle_ns;
	uint64_t collective_ns; /* union of its collectives */
	uint64_t alone_ns;      /* part of that in which nothing else ran */
	uint64_t wait_ns;       /* in collectives, for the last rank to come */
	uint64_t undecided_ns;  /* part of that for which nobody can be charged */
	uint64_t idle_wait_ns;  /* part of wait_ns in which nothing else ran: busy only to the eye */
	uint64_t caused_ns;     /* waits of the others that are charged to it */
	uint64_t caused_delay_ns;
	uint64_t collectives, matched; /* matched: found on every rank of the group */
	uint64_t last_count;           /* notable waits that it came last to */
	uint64_t slowest_steps;
	struct ranks_clock clock;
};

/* Ranks that take part in the same collectives: a communicator, as far as the trace shows it. */
struct ranks_group {
	uint32_t members;
	const char *operations; /* "AllReduce" or "AllGather, ReduceScatter" */
	uint64_t matched;       /* on all members */
	uint64_t incomplete;    /* missing on at least one */
	uint64_t apart;         /* matched, but some had left before the last came: not charged */
	uint64_t undecided;     /* the last ones came within the error of the clocks */
	uint64_t transfer_ns;   /* median time from the last arrival to the first end */
	uint64_t bytes;         /* median of a collective, 0 not known */
};

struct ranks_step {
	const char *name;          /* "ProfilerStep#3", "step 3" */
	uint64_t start_ns, end_ns; /* common clock */
	uint64_t skew_ns;          /* largest spread of arrivals */
	uint64_t wait_ns, delay_ns;
	uint32_t slowest; /* member that caused most of the wait, RANKS_NONE: none was notable */
	uint32_t cause;   /* largest cause of that member in this step, index; RANKS_NONE as above */
	uint32_t collectives;
};

enum ranks_pattern {
	PATTERN_NONE,   /* nothing notable, or too little to tell */
	PATTERN_STEADY, /* one rank is last in at least 80 % of the notable waits */
	PATTERN_SOME,   /* one is last far more often than chance would have it */
	PATTERN_RANDOM, /* all about equally often */
};

struct ranks_report {
	uint32_t inputs;
	uint32_t world_size; /* 0 not known */
	struct {
		ARRAY(uint32_t)
	} missing; /* ranks of the world that no input holds */
	struct {
		ARRAY(struct ranks_member)
	} members; /* by rank */
	struct {
		ARRAY(struct ranks_group)
	} groups;
	struct {
		ARRAY(struct ranks_cause)
	} causes; /* by wait_ns, largest first */
	struct {
		ARRAY(struct ranks_peer)
	} peers; /* by member, then by wait_ns, largest first */
	struct ranks_path path;
	struct {
		ARRAY(struct ranks_step)
	} steps;               /* in time order */
	uint64_t span_ns;      /* from the first to the last matched collective */
	uint64_t matched;      /* collectives */
	uint64_t notable;      /* those with a notable wait and a rank that came last */
	uint64_t wait_ns;      /* of all ranks in all matched collectives */
	uint64_t charged_ns;   /* to the rank that came last */
	uint64_t undecided_ns; /* the last ones came within the error of the clocks */
	uint64_t uncharged_ns; /* waits shorter than the error of the clocks */
	uint64_t delay_ns;
	enum ranks_pattern pattern;
	uint32_t slowest; /* member that caused most of the wait, RANKS_NONE */
	struct {
		ARRAY(const char *)
	} notes; /* what could not be done, one line each */
	struct {
		ARRAY(char *)
	} owned;
};

/* NULL if memory ran out. */
struct ranks *ranks_new(void);
void ranks_free(struct ranks *ranks);

/* Takes in all ranks of a model, which may be freed afterwards. Returns 0 or a negative errno with `error`.
 */
int ranks_add(struct ranks *ranks, const struct model *model, const struct ranks_input *input,
              struct error *error);

/* Adds a line to the report's notes, for what could not be taken in. Returns 0 or -ENOMEM. */
int ranks_note(struct ranks *ranks, const char *text);

/*
 * Works out the report; call once, after the last ranks_add. Returns 0 or a negative errno with `error`;
 * ranks_report_free in either case. The report outlives `ranks`.
 */
int ranks_solve(struct ranks *ranks, struct ranks_report *report, struct error *error);
void ranks_report_free(struct ranks_report *report);

const char *late_reason_name(enum late_reason reason);      /* "idle", "host", "compute", … */
const char *ranks_pattern_name(enum ranks_pattern pattern); /* "none", "steady", "some", "random" */

#endif
