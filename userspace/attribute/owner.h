/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who ended a gap (attribution.md section 2): cuts it into the part that the device held back and the parts
 * that the launching thread was late for, and has the walk blame each.
 */
#ifndef WHYIDLE_ATTRIBUTE_OWNER_H
#define WHYIDLE_ATTRIBUTE_OWNER_H

#include "attribute/gaps.h"
#include "attribute/walk.h"

/* What is normal on this device, measured from the recording itself. */
struct launch_floor {
	uint64_t submit_ns;    /* launch call to start of the operation on an idle device: low percentile */
	uint64_t threshold_ns; /* longer gaps are attributed one by one */
};

/* When the operation that ended a gap was launched. */
enum launch_time {
	LAUNCH_QUEUED,  /* before the gap */
	LAUNCH_LATE,    /* within the gap */
	LAUNCH_UNKNOWN, /* no launch call was recorded */
};

void launch_floor_measure(struct launch_floor *floor, const struct model *model, const struct device *device,
                          const struct gap_list *gaps);

/* attribution.md section 6, idle_by_launch_ns: by the start of the launch call alone. */
enum launch_time gap_launch_time(const struct model *model, const struct device *device,
                                 const struct gap *gap);

/*
 * Blames all of the gap through walk->leaf. `walk` needs its callbacks set; the rest is prepared here. Leaves
 * cover the gap without holes or overlaps, in time order.
 */
void gap_blame(struct walk *walk, const struct model *model, uint32_t device, const struct gap *gap,
               const struct launch_floor *floor);

#endif
