/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to ranks/: the steps of the job, from the trace's own annotations or from the rhythm of
 * collectives. */
#ifndef WHYIDLE_RANKS_STEPS_H
#define WHYIDLE_RANKS_STEPS_H

#include "ranks/groups.h"

/* Fills report->steps, slowest_steps of the members and the pattern. Returns 0 or -ENOMEM. */
int steps_make(struct ranks *ranks, struct ranks_report *report);

#endif
