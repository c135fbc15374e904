// SPDX-License-Identifier: GPL-2.0-only
#include "ranks/path.h"

#include <errno.h>

#include "ranks/groups.h"
#include "ranks/late.h"

struct path_part {
	uint32_t cause, label;
	uint64_t ns;
};

struct builder {
	struct ranks *ranks;
	struct ranks_path *path;
	struct index_map cause_by_key, part_by_key;
	struct {
		ARRAY(struct path_part)
	} parts;
};

static uint32_t cause_of(struct builder *builder, uint32_t root, const struct label *label)
{
	const uint32_t fields[] = {root, label->reason, label->code, label->role};
	uint64_t key = hash_bytes(fields, sizeof(fields));
	struct ranks_path_cause *cause;
	uint32_t at;

	if (index_map_get(&builder->cause_by_key, key, &at))
		return at;
	cause = array_add(&builder->path->causes);
	at = (uint32_t)builder->path->causes.count - 1;
	if (!cause || index_map_put(&builder->cause_by_key, key, at))
		return RANKS_NONE;
	*cause = (struct ranks_path_cause){
	    .root = root,
	    .reason = label->reason,
	    .code = label->code,
	    .role = label->role,
	    .thread = "",
	    .detail = "",
	    .via = "",
	};
	return at;
}

/* NULL if memory ran out. */
static struct path_part *find_part(struct builder *builder, uint32_t cause, uint32_t label)
{
	uint64_t key = (uint64_t)cause << 32 | label;
	struct path_part *part;
	uint32_t at;

	if (index_map_get(&builder->part_by_key, key, &at))
		return &builder->parts.items[at];
	part = array_add(&builder->parts);
	if (!part || index_map_put(&builder->part_by_key, key, (uint32_t)builder->parts.count - 1))
		return NULL;
	*part = (struct path_part){cause, label, 0};
	return part;
}

static int add_cause(struct builder *builder, const struct share *share, uint64_t ns)
{
	uint32_t cause = cause_of(builder, share->root, &builder->ranks->labels.items[share->label]);
	struct path_part *part = cause == RANKS_NONE ? NULL : find_part(builder, cause, share->label);

	if (!part)
		return -ENOMEM;
	builder->path->causes.items[cause].ns += ns;
	part->ns += ns;
	return 0;
}

static int add_share(struct builder *builder, const struct share *share, uint64_t ns)
{
	switch (builder->ranks->labels.items[share->label].reason) {
	case LATE_COMPUTE:
		builder->path->compute_ns += ns;
		return 0;
	case LATE_COPY:
		builder->path->copy_ns += ns;
		return 0;
	case LATE_TRANSFER:
		builder->path->transfer_ns += ns;
		return 0;
	default:
		return add_cause(builder, share, ns);
	}
}

/*
 * `whole` is the time between two last arrivals. What the rank that came last the second time did in it is
 * known from the end of its own first collective on; the time up to there was transfer. Where clocks that do
 * not quite agree make that more than there is, it is cut in proportion.
 */
static int add_interval(struct builder *builder, const struct portion_list *portions, uint64_t whole)
{
	const struct share *share;
	uint64_t sum = 0, given = 0;
	int rc = 0;

	array_for_each (share, portions)
		sum += share->ns;
	array_for_each (share, portions) {
		uint64_t ns =
		    sum <= whole ? share->ns : (uint64_t)((double)share->ns * (double)whole / (double)sum);

		ns = ns > whole - given ? whole - given : ns;
		given += ns;
		if (!rc && ns)
			rc = add_share(builder, share, ns);
	}
	builder->path->span_ns += whole;
	builder->path->transfer_ns += whole - given;
	return rc;
}

/* What the largest part of each cause is about. */
static int describe(struct builder *builder)
{
	uint64_t *largest = calloc(builder->path->causes.count + 1, sizeof(*largest));
	const struct path_part *part;

	if (!largest)
		return -ENOMEM;
	array_for_each (part, &builder->parts) {
		struct ranks_path_cause *cause = &builder->path->causes.items[part->cause];
		const struct label *label = &builder->ranks->labels.items[part->label];

		if (part->ns < largest[part->cause])
			continue;
		largest[part->cause] = part->ns;
		cause->confidence = label->confidence;
		cause->thread = label->thread;
		cause->detail = label->detail;
		cause->via = label->via;
	}
	free(largest);
	return 0;
}

static int compare_cause(const void *a, const void *b)
{
	const struct ranks_path_cause *x = a, *y = b;
	int order = (x->ns < y->ns) - (x->ns > y->ns);

	if (!order)
		order = (x->root > y->root) - (x->root < y->root);
	return order ? order : (int)x->reason * 1000 + (int)x->code - (int)y->reason * 1000 - (int)y->code;
}

int path_make(struct ranks *ranks, struct ranks_report *report)
{
	const struct group *group = groups_largest(ranks);
	struct builder builder = {.ranks = ranks, .path = &report->path};
	int rc = 0;

	for (size_t i = 1; !rc && group && i < group->instances.count; i++) {
		const struct instance *before = &group->instances.items[i - 1],
		                      *now = &group->instances.items[i];
		struct portion_list portions = {0};

		/* Only between collectives that all have. */
		if (!before->last_ns || !now->last_ns || now->last_ns <= before->last_ns)
			continue;
		rc = portions_make(ranks, group, i, now->last, &portions);
		if (!rc)
			rc = add_interval(&builder, &portions, now->last_ns - before->last_ns);
		array_free(&portions);
	}
	if (!rc)
		rc = describe(&builder);
	array_sort(&report->path.causes, compare_cause);
	index_map_free(&builder.cause_by_key);
	index_map_free(&builder.part_by_key);
	array_free(&builder.parts);
	return rc;
}
