/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gain by replay (design/attribution.md section 5): the recorded dependencies are run again with the time of
 * one cause taken out, and what the run then takes is compared with what it took. Rules: docs/attribution.md,
 * "Gain".
 */
#ifndef WHYIDLE_ATTRIBUTE_REPLAY_H
#define WHYIDLE_ATTRIBUTE_REPLAY_H

#include "attribute/analysis.h"
#include "attribute/gaps.h"
#include "attribute/owner.h"
#include "attribute/walk.h"

/* A leaf of a gap, as replay needs it. */
struct replay_leaf {
	uint64_t start_ns, end_ns;
	uint32_t thread; /* index, MODEL_NONE: the device */
	uint32_t holder; /* of the lock that was waited for, MODEL_NONE */
	uint32_t op;     /* operation that ended the gap, MODEL_NONE */
	uint64_t lock;   /* address of the lock that was waited for, 0 */
	uint8_t code, role;
};

struct replay_leaves {
	ARRAY(struct replay_leaf) /* by time */
};

/* Threads that leaves came through, by index of model.threads. */
struct replay_threads {
	bool *seen;
};

/*
 * Fills in gain, curve and next bottleneck of the device's largest causes and report->replay. Where the
 * recording cannot be replayed (no launches, no scheduler data, the unchanged replay misses the recorded
 * times) the bounds [0, ns] stay. Returns 0 or -ENOMEM.
 */
int replay_gains(struct device_report *report, const struct model *model, uint32_t device,
                 const struct launch_floor *floor, const struct replay_leaves *leaves,
                 const struct replay_threads *threads);

#endif
