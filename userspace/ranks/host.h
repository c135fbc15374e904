/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to ranks/: what a rank's idle time and its late launches were caused by, by the rules of
 * attribute/. */
#ifndef WHYIDLE_RANKS_HOST_H
#define WHYIDLE_RANKS_HOST_H

#include "attribute/gaps.h"
#include "ranks/track.h"

struct track_source {
	struct ranks *ranks;
	const struct model *model;
	uint32_t device;  /* index of model.devices */
	uint32_t process; /* index of model.processes, MODEL_NONE: all of the device */
};

/* Fills track->idle from the gaps, and track->host for collectives that were launched late while the GPU was
 * busy. Returns 0 or -ENOMEM. */
int track_blame(struct track *track, const struct track_source *source, const struct gap_list *gaps);

#endif
