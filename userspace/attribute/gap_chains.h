/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every gap of a device with what it is blamed on, one at a time: an analysis keeps only the longest, a
 * timeline shows them all.
 */
#ifndef WHYIDLE_ATTRIBUTE_GAP_CHAINS_H
#define WHYIDLE_ATTRIBUTE_GAP_CHAINS_H

#include "attribute/analysis.h"
#include "attribute/gaps.h"
#include "attribute/owner.h"
#include "attribute/walk.h"

struct gap_chain {
	const struct gap *gap;
	const struct device *device;
	const struct gpu_op *ended_by; /* NULL: nothing did */
	enum launch_time launched;
	const struct leaf *leaves; /* cover the gap without holes, in time order; at least one */
	size_t count;
	const struct leaf *largest; /* a leaf of the code and role that most of the gap is blamed on */
	uint64_t largest_ns;        /* of all leaves with these */
};

/*
 * Calls `visit` for each gap that `report` counts, in time order. What it is given is valid during the call.
 * A non-zero return ends the walk and is returned; -ENOMEM if memory ran out.
 */
int gap_chains_visit(const struct model *model, const struct device_report *report,
                     int (*visit)(void *context, const struct gap_chain *chain), void *context);

/* The device that a report is about, MODEL_NONE. */
uint32_t gap_chains_device(const struct model *model, const struct device_report *report);

const char *launch_time_name(enum launch_time time); /* "queued", "late", "unknown" */
const char *leaf_state_name(enum leaf_state state);  /* "running", "runnable", "blocked", "device" */

#define LEAF_CHAIN_SIZE 256

/* "main (12) ← pt_data_pin (15) ← …": the threads through which the blame went; NULL if it stayed in one. */
const char *leaf_chain_text(char buffer[LEAF_CHAIN_SIZE], const struct model *model, const struct leaf *leaf);

#endif
