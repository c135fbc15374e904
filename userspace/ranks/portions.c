// SPDX-License-Identifier: GPL-2.0-only
/*
 * What kept a rank: its time between two collectives, split into idle time by cause, kernels, copies and
 * other collectives, and compared with the same time of the rank that had to wait for it.
 */
#include <errno.h>

#include "ranks/late.h"

#define EVENTS_LOOK_BACK 256 /* collectives of other streams that may still run */
#define SAME_COUNT(a, b) ((a)*100 <= (b)*102)

/* The stretch of one rank that counts for an instance; its own clock. */
struct stretch {
	uint32_t track;
	const struct track_event *event;
	uint64_t from_ns, to_ns;
	bool known;
};

static struct stretch stretch_of(const struct ranks *ranks, const struct group *group, size_t instance,
                                 size_t member)
{
	struct stretch stretch = {.track = group->members.items[member].track};
	const struct track_event *before = instance ? group_event(ranks, group, instance - 1, member) : NULL;

	stretch.event = group_event(ranks, group, instance, member);
	if (!stretch.event || !before)
		return stretch;
	stretch.from_ns = before->end_ns;
	stretch.to_ns = stretch.event->start_ns > before->end_ns ? stretch.event->start_ns : before->end_ns;
	stretch.known = true;
	return stretch;
}

int portions_add(struct portion_list *list, uint32_t root, uint32_t label, uint64_t ns)
{
	struct share *share;

	if (!ns)
		return 0;
	array_for_each (share, list) {
		if (share->root == root && share->label == label) {
			share->ns += ns;
			return 0;
		}
	}
	share = array_add(list);
	if (!share)
		return -ENOMEM;
	*share = (struct share){.root = root, .label = label, .ns = ns};
	return 0;
}

/* First leaf of [first, last) that ends after a time. */
static size_t leaf_after(const struct leaf_list *leaves, size_t first, size_t last, uint64_t ns)
{
	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (leaves->items[middle].end_ns > ns)
			last = middle;
		else
			first = middle + 1;
	}
	return first;
}

static int add_leaves(struct portion_list *list, const struct stretch *stretch,
                      const struct leaf_list *leaves, size_t first, size_t last)
{
	int rc = 0;

	for (size_t i = leaf_after(leaves, first, last, stretch->from_ns); !rc && i < last; i++) {
		const struct track_leaf *leaf = &leaves->items[i];
		uint64_t start = leaf->start_ns > stretch->from_ns ? leaf->start_ns : stretch->from_ns;
		uint64_t end = leaf->end_ns < stretch->to_ns ? leaf->end_ns : stretch->to_ns;

		if (start >= stretch->to_ns)
			break;
		if (end > start)
			rc = portions_add(list, stretch->track, leaf->label, end - start);
	}
	return rc;
}

static int add_work(struct portion_list *list, const struct track *track, const struct stretch *stretch)
{
	const struct track_event *event = stretch->event;
	uint64_t from = stretch->from_ns, compute, work;
	int rc = 0;

	if (event->host_count) {
		/* The host was late although the GPU was busy: up to the launch its time counts. */
		rc = add_leaves(list, stretch, &track->host, event->host_first,
		                event->host_first + event->host_count);
		if (event->launch_ns > from)
			from = event->launch_ns;
	}
	compute = cover_measure(&track->compute, from, stretch->to_ns);
	work = cover_measure(&track->device_work, from, stretch->to_ns);
	if (!rc)
		rc = portions_add(list, stretch->track, LABEL_COMPUTE_MORE, compute);
	return rc ? rc : portions_add(list, stretch->track, LABEL_COPY, work - compute);
}

/* `ns` by the shares of a collective in which the track waited for a late rank. */
static int add_by_shares(struct ranks *ranks, struct portion_list *list, const struct instance *instance,
                         uint64_t ns)
{
	uint64_t total = 0, given = 0;
	int rc = 0;

	for (uint32_t i = 0; i < instance->share_count; i++)
		total += ranks->shares.items[instance->share_first + i].ns;
	for (uint32_t i = 0; !rc && i < instance->share_count; i++) {
		const struct share *share = &ranks->shares.items[instance->share_first + i];
		uint64_t part = i + 1 == instance->share_count
		                    ? ns - given
		                    : (uint64_t)((double)ns * (double)share->ns / (double)total);

		part = part > ns - given ? ns - given : part;
		given += part;
		rc = portions_add(list, share->root, share->label, part);
	}
	return rc;
}

/* Time in which only collectives ran: those of other streams, and what of them was waiting for another rank.
 */
static int add_collectives(struct ranks *ranks, struct portion_list *list, const struct track *track,
                           const struct stretch *stretch)
{
	uint64_t alone = cover_measure(&track->all, stretch->from_ns, stretch->to_ns) -
	                 cover_measure(&track->device_work, stretch->from_ns, stretch->to_ns);
	size_t at = (size_t)(stretch->event - track->events.items);
	size_t oldest = at > EVENTS_LOOK_BACK ? at - EVENTS_LOOK_BACK : 0;
	int rc = 0;

	for (size_t i = at; !rc && alone && i-- > oldest;) {
		const struct track_event *event = &track->events.items[i];
		uint32_t group = track->channels.items[event->channel].group;
		const struct instance *instance;
		uint64_t arrival, start, end, wait;

		if (event->end_ns <= stretch->from_ns || event->channel == stretch->event->channel ||
		    group == RANKS_NONE || event->instance == RANKS_NONE)
			continue;
		instance = &ranks->groups.items[group].instances.items[event->instance];
		arrival = track_common(ranks, track, event->start_ns);
		if (!instance->share_count || instance->late == stretch->track ||
		    instance->last_ns <= arrival)
			continue;
		start = event->start_ns > stretch->from_ns ? event->start_ns : stretch->from_ns;
		end = event->start_ns + (instance->last_ns - arrival);
		end = end < event->end_ns ? end : event->end_ns;
		end = end < stretch->to_ns ? end : stretch->to_ns;
		if (end <= start)
			continue;
		wait = end - start - cover_measure(&track->device_work, start, end);
		wait = wait < alone ? wait : alone;
		alone -= wait;
		rc = add_by_shares(ranks, list, instance, wait);
	}
	return rc ? rc : portions_add(list, stretch->track, LABEL_TRANSFER, alone);
}

int portions_make(struct ranks *ranks, const struct group *group, size_t instance, size_t member,
                  struct portion_list *portions)
{
	struct stretch stretch = stretch_of(ranks, group, instance, member);
	const struct track *track = &ranks->tracks.items[stretch.track];
	int rc;

	if (!stretch.known)
		return 0;
	rc = add_leaves(portions, &stretch, &track->idle, 0, track->idle.count);
	if (!rc)
		rc = add_work(portions, track, &stretch);
	return rc ? rc : add_collectives(ranks, portions, track, &stretch);
}

/* ---- the comparison ---- */

/* The same kind of time, whatever thread or file it is about: those differ from rank to rank. */
static bool same_kind(const struct ranks *ranks, const struct share *a, uint32_t a_self,
                      const struct share *b, uint32_t b_self)
{
	const struct label *x = &ranks->labels.items[a->label], *y = &ranks->labels.items[b->label];

	return x->reason == y->reason && x->code == y->code && x->role == y->role &&
	       (a->root == b->root || (a->root == a_self && b->root == b_self));
}

static uint64_t kind_sum(const struct ranks *ranks, const struct portion_list *list, uint32_t list_self,
                         const struct share *like, uint32_t like_self)
{
	const struct share *share;
	uint64_t sum = 0;

	array_for_each (share, list) {
		if (same_kind(ranks, share, list_self, like, like_self))
			sum += share->ns;
	}
	return sum;
}

/* Leaves of `mine` what it holds more than `other`; returns the sum. */
static uint64_t keep_excess(const struct ranks *ranks, struct portion_list *mine, uint32_t mine_self,
                            const struct portion_list *other, uint32_t other_self)
{
	struct portion_list whole = {0};
	struct share *share;
	uint64_t sum = 0;

	/* Factors come from the untouched list. */
	array_for_each (share, mine) {
		struct share *copy = array_add(&whole);

		if (!copy)
			break;
		*copy = *share;
	}
	array_for_each (share, mine) {
		uint64_t here = kind_sum(ranks, &whole, mine_self, share, mine_self);
		uint64_t there = kind_sum(ranks, other, other_self, share, mine_self);

		share->ns = here > there && whole.count == mine->count
		                ? (uint64_t)((double)share->ns * (double)(here - there) / (double)here)
		                : 0;
		sum += share->ns;
	}
	array_free(&whole);
	return sum;
}

/* Hands out `ns` in proportion; what rounding leaves over goes to the largest. */
static int hand_out(const struct portion_list *excess, uint64_t sum, uint64_t ns, uint32_t self,
                    uint32_t compute_label, struct portion_list *shares)
{
	const struct share *share, *largest = excess->items;
	uint64_t given = 0;
	int rc = 0;

	array_for_each (share, excess) {
		if (share->ns > largest->ns)
			largest = share;
	}
	array_for_each (share, excess) {
		bool compute = share->label == LABEL_COMPUTE_MORE && share->root == self;
		uint64_t part = (uint64_t)((double)ns * (double)share->ns / (double)sum);

		if (share == largest || rc)
			continue;
		part = part > ns - given ? ns - given : part;
		given += part;
		rc = portions_add(shares, share->root, compute ? compute_label : share->label, part);
	}
	if (!rc && excess->count) {
		bool compute = largest->label == LABEL_COMPUTE_MORE && largest->root == self;

		rc =
		    portions_add(shares, largest->root, compute ? compute_label : largest->label, ns - given);
	}
	return rc;
}

int portions_split(struct ranks *ranks, const struct group *group, size_t instance, size_t late, size_t early,
                   uint64_t ns, struct portion_list *shares)
{
	struct stretch mine = stretch_of(ranks, group, instance, late);
	struct stretch theirs = stretch_of(ranks, group, instance, early);
	struct portion_list excess = {0}, other = {0};
	const struct track *track = &ranks->tracks.items[mine.track];
	const struct track *waiter = &ranks->tracks.items[theirs.track];
	uint64_t sum, left_mine, left_theirs;
	uint32_t label = LABEL_COMPUTE_MORE;
	int rc;

	if (!mine.known || !theirs.known)
		return portions_add(shares, mine.track, LABEL_BEFORE, ns);
	rc = portions_make(ranks, group, instance, late, &excess);
	if (!rc)
		rc = portions_make(ranks, group, instance, early, &other);
	if (!rc) {
		sum = keep_excess(ranks, &excess, mine.track, &other, theirs.track);
		left_mine = track_common(ranks, track, mine.from_ns);
		left_theirs = track_common(ranks, waiter, theirs.from_ns);
		/* It may have left the previous collective later. */
		if (left_mine > left_theirs + tracks_error(ranks, mine.track, theirs.track)) {
			sum += left_mine - left_theirs;
			rc = portions_add(&excess, mine.track, LABEL_TRANSFER, left_mine - left_theirs);
		}
		if (SAME_COUNT(track_kernels(track, mine.from_ns, mine.to_ns),
		               track_kernels(waiter, theirs.from_ns, theirs.to_ns)))
			label = LABEL_COMPUTE_SLOW;
	}
	if (!rc && !sum)
		rc = portions_add(shares, mine.track, LABEL_TRANSFER, ns);
	else if (!rc)
		rc = hand_out(&excess, sum, ns, mine.track, label, shares);
	array_free(&excess);
	array_free(&other);
	return rc;
}
