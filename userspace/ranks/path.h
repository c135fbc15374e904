/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to ranks/: what the job as a whole spent its time on. */
#ifndef WHYIDLE_RANKS_PATH_H
#define WHYIDLE_RANKS_PATH_H

#include "ranks/track.h"

/* Fills report->path from the largest group, after late_charge. Returns 0 or -ENOMEM. */
int path_make(struct ranks *ranks, struct ranks_report *report);

#endif
