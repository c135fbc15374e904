// SPDX-License-Identifier: GPL-2.0-only
#include "attribute/gap_chains.h"

#include <errno.h>
#include <stdio.h>

struct chain_builder {
	struct {
		ARRAY(struct leaf)
	} leaves;
	struct {
		ARRAY(uint32_t)
	} threads; /* the leaves' chains, one behind the other */
	uint64_t ns[CAUSE_COUNT][ROLE_COUNT];
	bool failed;
};

static void keep_leaf(void *context, const struct leaf *leaf)
{
	struct chain_builder *builder = context;
	struct leaf *kept = array_add(&builder->leaves);

	if (!kept) {
		builder->failed = true;
		return;
	}
	*kept = *leaf;
	for (uint32_t i = 0; i < leaf->depth; i++) {
		uint32_t *thread = array_add(&builder->threads);

		if (!thread) {
			builder->failed = true;
			return;
		}
		*thread = leaf->chain[i];
	}
	builder->ns[leaf->code][leaf->role] += leaf->end_ns - leaf->start_ns;
}

/* The walk's own chain changes from leaf to leaf, and the copies move while they are collected. */
static void point_to_chains(struct chain_builder *builder)
{
	size_t next = 0;
	struct leaf *leaf;

	array_for_each (leaf, &builder->leaves) {
		leaf->chain = leaf->depth ? &builder->threads.items[next] : NULL;
		next += leaf->depth;
	}
}

static void find_largest(const struct chain_builder *builder, struct gap_chain *chain)
{
	const struct leaf *leaf;

	array_for_each (leaf, &builder->leaves) {
		uint64_t ns = builder->ns[leaf->code][leaf->role];

		if (!chain->largest || ns > chain->largest_ns ||
		    (ns == chain->largest_ns &&
		     leaf->end_ns - leaf->start_ns > chain->largest->end_ns - chain->largest->start_ns)) {
			chain->largest = leaf;
			chain->largest_ns = ns;
		}
	}
}

static void forget(struct chain_builder *builder)
{
	const struct leaf *leaf;

	array_for_each (leaf, &builder->leaves)
		builder->ns[leaf->code][leaf->role] = 0;
	builder->leaves.count = 0;
	builder->threads.count = 0;
}

uint32_t gap_chains_device(const struct model *model, const struct device_report *report)
{
	for (uint32_t i = 0; i < model->devices.count; i++) {
		if (model->devices.items[i].number == report->device)
			return i;
	}
	return MODEL_NONE;
}

int gap_chains_visit(const struct model *model, const struct device_report *report,
                     int (*visit)(void *context, const struct gap_chain *chain), void *context)
{
	uint32_t index = gap_chains_device(model, report);
	struct chain_builder builder = {0};
	struct walk walk = {.leaf = keep_leaf, .context = &builder};
	const struct device *device;
	struct gap_list gaps = {0};
	struct launch_floor floor;
	const struct gap *gap;
	int rc;

	if (index == MODEL_NONE || !model->devices.items[index].ops.count)
		return 0;
	device = &model->devices.items[index];
	rc = gap_list_make(&gaps, device, report->window_start_ns, report->window_end_ns);
	if (!rc)
		launch_floor_measure(&floor, model, device, &gaps);
	array_for_each (gap, &gaps) {
		struct gap_chain chain = {.gap = gap, .device = device};

		if (rc)
			break;
		gap_blame(&walk, model, index, gap, &floor);
		if (builder.failed || !builder.leaves.count) {
			rc = -ENOMEM;
			break;
		}
		point_to_chains(&builder);
		if (gap->ended_by != MODEL_NONE)
			chain.ended_by = &device->ops.items[gap->ended_by];
		chain.launched = gap_launch_time(model, device, gap);
		chain.leaves = builder.leaves.items;
		chain.count = builder.leaves.count;
		find_largest(&builder, &chain);
		rc = visit(context, &chain);
		forget(&builder);
	}
	gap_list_free(&gaps);
	array_free(&builder.leaves);
	array_free(&builder.threads);
	return rc;
}

const char *launch_time_name(enum launch_time time)
{
	return time == LAUNCH_QUEUED ? "queued" : time == LAUNCH_LATE ? "late" : "unknown";
}

const char *leaf_state_name(enum leaf_state state)
{
	static const char *const names[] = {
	    [LEAF_RUNNING] = "running",
	    [LEAF_RUNNABLE] = "runnable",
	    [LEAF_BLOCKED] = "blocked",
	    [LEAF_DEVICE] = "device",
	};

	return names[state];
}

const char *leaf_chain_text(char buffer[LEAF_CHAIN_SIZE], const struct model *model, const struct leaf *leaf)
{
	size_t used = 0;

	if (leaf->depth < 2)
		return NULL;
	for (uint32_t i = 0; i < leaf->depth && used < LEAF_CHAIN_SIZE; i++) {
		const struct thread *thread = &model->threads.items[leaf->chain[i]];

		used += (size_t)snprintf(buffer + used, LEAF_CHAIN_SIZE - used, "%s%s (%u)", i ? " ← " : "",
		                         model_string(model, thread->comm), thread->tid);
	}
	return buffer;
}
