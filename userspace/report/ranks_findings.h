/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is worth doing about a job of several ranks: patterns in why ranks came late (docs/ranks.md has the
 * rules).
 *
 * Only what held the job up counts: the time from the next to last rank's arrival to the last one's. A
 * finding needs 1 % of the job's time.
 */
#ifndef WHYIDLE_REPORT_RANKS_FINDINGS_H
#define WHYIDLE_REPORT_RANKS_FINDINGS_H

#include "base/array.h"
#include "ranks/ranks.h"

#define RANKS_FINDINGS_MOST 6

enum ranks_finding_kind {
	RANKS_FINDING_GC,         /* Python's garbage collection, at different times on the ranks */
	RANKS_FINDING_WORKERS,    /* one rank's data workers are slow */
	RANKS_FINDING_CPU,        /* one rank has too little CPU, or is bound to the wrong one */
	RANKS_FINDING_CHECKPOINT, /* one rank does something every N steps */
	RANKS_FINDING_COMPUTE,    /* one rank computes longer */
	RANKS_FINDING_BUCKETS,    /* many small collectives */
	RANKS_FINDING_RANDOM,     /* any rank is late now and then */
};

struct ranks_finding {
	enum ranks_finding_kind kind;
	uint32_t member; /* RANKS_NONE: it is about no rank in particular */
	uint64_t wait_ns;
	uint64_t delay_ns; /* what the job would gain at most */
	char *title;       /* one sentence; names are escaped and cut */
	char *advice;
	struct {
		ARRAY(char *)
	} evidence; /* never empty */
};

struct ranks_findings {
	ARRAY(struct ranks_finding)
};

/* At most RANKS_FINDINGS_MOST, by delay_ns. Returns 0 or -ENOMEM; ranks_findings_free in either case. */
int ranks_findings_make(struct ranks_findings *findings, const struct ranks_report *ranks);
void ranks_findings_free(struct ranks_findings *findings);

const char *ranks_finding_name(enum ranks_finding_kind kind); /* "gc", "workers", … */

#endif
