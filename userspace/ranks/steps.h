/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to ranks/: the steps of the job, from the trace's own annotations or from the rhythm of
 * collectives. */
#ifndef WHYIDLE_RANKS_STEPS_H
#define WHYIDLE_RANKS_STEPS_H

#include "ranks/groups.h"

/* Fills report->steps, slowest_steps of the members and the pattern. Returns 0 or -ENOMEM. */
int steps_make(struct ranks *ranks, struct ranks_report *report);

/*
 * Period of a sequence of intervals between collectives: the smallest number of collectives after which the
 * intervals repeat, 1 if all are alike. *phase gets the index of the first interval that begins a period: the
 * longest one. 0 if the sequence is too short or has no rhythm.
 */
size_t rhythm_find(const uint64_t *intervals, size_t count, size_t *phase);

#endif
