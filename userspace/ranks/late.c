// SPDX-License-Identifier: GPL-2.0-only
#include "ranks/late.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

/* One collective of the arrival order over all groups: what kept a rank may be an earlier one of another
 * group. */
struct turn {
	uint64_t last_ns;
	uint32_t group, instance;
};

/* How much of a cause a label has: the largest gives the cause its thread and detail. */
struct part {
	uint32_t cause, label;
	uint64_t ns;
};

struct charging {
	struct ranks *ranks;
	struct ranks_report *report;
	struct {
		ARRAY(struct turn)
	} turns;
	struct {
		ARRAY(uint64_t)
	} transfers; /* of the group at hand */
	struct {
		ARRAY(struct part)
	} parts;
	struct {
		ARRAY(size_t)
	} last_turn; /* of each cause: 1 + the turn that it last took part in */
	struct index_map cause_by_key, part_by_key, peer_by_key;
	size_t turn;
};

/* Who came when, on the common clock. */
struct arrivals {
	size_t last, second; /* members */
	uint64_t first_ns, last_ns, second_ns, least_end_ns;
	size_t earliest_end;
};

static struct arrivals arrivals_of(const struct ranks *ranks, const struct group *group, size_t instance)
{
	struct arrivals arrivals = {.first_ns = UINT64_MAX, .least_end_ns = UINT64_MAX};

	for (size_t m = 0; m < group->members.count; m++) {
		const struct track *track = &ranks->tracks.items[group->members.items[m].track];
		const struct track_event *event = group_event(ranks, group, instance, m);
		uint64_t start = track_common(ranks, track, event->start_ns);
		uint64_t end = track_common(ranks, track, event->end_ns);

		if (end < arrivals.least_end_ns) {
			arrivals.least_end_ns = end;
			arrivals.earliest_end = m;
		}
		if (start < arrivals.first_ns)
			arrivals.first_ns = start;
		if (!m || start > arrivals.last_ns) {
			arrivals.second = arrivals.last;
			arrivals.second_ns = arrivals.last_ns;
			arrivals.last = m;
			arrivals.last_ns = start;
		} else if (m == 1 || start > arrivals.second_ns) {
			arrivals.second = m;
			arrivals.second_ns = start;
		}
	}
	return arrivals;
}

static uint32_t track_of(const struct group *group, size_t member)
{
	return group->members.items[member].track;
}

static int compare_turn(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	int order = (x->last_ns > y->last_ns) - (x->last_ns < y->last_ns);

	if (!order)
		order = (x->group > y->group) - (x->group < y->group);
	return order ? order : (x->instance > y->instance) - (x->instance < y->instance);
}

/* Lists the collectives that all members of a group of several have, and have together. */
static int list_turns(struct charging *charging, uint32_t at)
{
	struct ranks *ranks = charging->ranks;
	struct group *group = &ranks->groups.items[at];

	charging->transfers.count = 0;
	for (uint32_t i = 0; group->members.count > 1 && i < group->instances.count; i++) {
		struct instance *instance = &group->instances.items[i];
		struct arrivals arrivals;
		uint64_t *transfer;
		struct turn *turn;

		if (instance->present < group->members.count)
			continue;
		arrivals = arrivals_of(ranks, group, i);
		instance->first_ns = arrivals.first_ns;
		instance->last_ns = arrivals.last_ns;
		instance->last = (uint32_t)arrivals.last;
		if (arrivals.least_end_ns + tracks_error(ranks, track_of(group, arrivals.last),
		                                         track_of(group, arrivals.earliest_end)) <
		    arrivals.last_ns) {
			group->apart++;
			continue;
		}
		turn = array_add(&charging->turns);
		transfer = array_add(&charging->transfers);
		if (!turn || !transfer)
			return -ENOMEM;
		*turn = (struct turn){arrivals.last_ns, at, i};
		*transfer =
		    arrivals.least_end_ns > arrivals.last_ns ? arrivals.least_end_ns - arrivals.last_ns : 0;
	}
	array_sort(&charging->transfers, compare_unsigned);
	if (charging->transfers.count)
		group->transfer_ns = charging->transfers.items[charging->transfers.count / 2];
	return 0;
}

/* Index of the cause that a share belongs to, RANKS_NONE if memory ran out. */
static uint32_t cause_of(struct charging *charging, uint32_t late, const struct share *share)
{
	const struct label *label = &charging->ranks->labels.items[share->label];
	const uint32_t fields[] = {late, share->root, label->reason, label->code, label->role};
	uint64_t key = hash_bytes(fields, sizeof(fields));
	struct ranks_cause *cause;
	size_t *turn;
	uint32_t at;

	if (index_map_get(&charging->cause_by_key, key, &at))
		return at;
	cause = array_add(&charging->report->causes);
	turn = array_add(&charging->last_turn);
	at = (uint32_t)charging->report->causes.count - 1;
	if (!cause || !turn || index_map_put(&charging->cause_by_key, key, at))
		return RANKS_NONE;
	*cause = (struct ranks_cause){
	    .late = late,
	    .root = share->root,
	    .reason = label->reason,
	    .code = label->code,
	    .role = label->role,
	    .thread = "",
	    .detail = "",
	    .via = "",
	};
	return at;
}

static int add_part(struct charging *charging, uint32_t cause, const struct share *share)
{
	uint64_t key = (uint64_t)cause << 32 | share->label;
	struct part *part;
	uint32_t at;

	if (!index_map_get(&charging->part_by_key, key, &at)) {
		part = array_add(&charging->parts);
		at = (uint32_t)charging->parts.count - 1;
		if (!part || index_map_put(&charging->part_by_key, key, at))
			return -ENOMEM;
		*part = (struct part){cause, share->label, 0};
	}
	charging->parts.items[at].ns += share->ns;
	return 0;
}

/* What most of a cause is about, and the lowest confidence that at least a tenth of it has. */
static int describe_causes(struct charging *charging)
{
	size_t count = charging->report->causes.count;
	uint64_t *largest = calloc(count + 1, sizeof(*largest));
	uint64_t(*levels)[CONFIDENCE_HIGH + 1] = calloc(count + 1, sizeof(*levels));
	bool ok = largest && levels;
	const struct part *part;

	array_for_each (part, &charging->parts) {
		struct ranks_cause *cause = &charging->report->causes.items[part->cause];
		const struct label *label = &charging->ranks->labels.items[part->label];

		if (!ok)
			break;
		levels[part->cause][label->confidence] += part->ns;
		if (part->ns < largest[part->cause] || !part->ns)
			continue;
		largest[part->cause] = part->ns;
		cause->thread = label->thread;
		cause->detail = label->detail;
		cause->via = label->via;
	}
	for (size_t i = 0; ok && i < count; i++) {
		struct ranks_cause *cause = &charging->report->causes.items[i];
		uint64_t low = levels[i][CONFIDENCE_LOW];

		cause->confidence = low * 10 >= cause->wait_ns ? CONFIDENCE_LOW
		                    : (low + levels[i][CONFIDENCE_MEDIUM]) * 10 >= cause->wait_ns
		                        ? CONFIDENCE_MEDIUM
		                        : CONFIDENCE_HIGH;
	}
	free(largest);
	free(levels);
	return ok ? 0 : -ENOMEM;
}

/* The shares of the waits and of the job's delay become causes; those of the waits are also kept. */
static int keep_shares(struct charging *charging, struct instance *instance, const struct portion_list *waits,
                       const struct portion_list *delays)
{
	struct ranks *ranks = charging->ranks;
	const struct share *share;

	instance->share_first = (uint32_t)ranks->shares.count;
	array_for_each (share, waits) {
		struct share *slot = array_add(&ranks->shares);
		uint32_t cause = cause_of(charging, instance->late, share);

		if (!slot || cause == RANKS_NONE || add_part(charging, cause, share))
			return -ENOMEM;
		*slot = *share;
		slot->cause = cause;
		charging->report->causes.items[cause].wait_ns += share->ns;
		if (charging->last_turn.items[cause] != charging->turn)
			charging->report->causes.items[cause].collectives++;
		charging->last_turn.items[cause] = charging->turn;
	}
	instance->share_count = (uint32_t)waits->count;
	array_for_each (share, delays) {
		uint32_t cause = cause_of(charging, instance->late, share);

		if (cause == RANKS_NONE)
			return -ENOMEM;
		charging->report->causes.items[cause].delay_ns += share->ns;
	}
	return 0;
}

static struct ranks_peer *find_peer(struct charging *charging, uint32_t track, uint32_t cause)
{
	uint64_t key = (uint64_t)track << 32 | cause;
	struct ranks_peer *peer;
	uint32_t at;

	if (index_map_get(&charging->peer_by_key, key, &at))
		return &charging->report->peers.items[at];
	peer = array_add(&charging->report->peers);
	if (!peer || index_map_put(&charging->peer_by_key, key, (uint32_t)charging->report->peers.count - 1))
		return NULL;
	peer->member = track;
	peer->cause = cause;
	return peer;
}

/*
 * What one rank waited for, of which `idle_ns` with nothing else on its GPU: spread over the shares like the
 * wait itself; what rounding leaves goes to the last.
 */
static int keep_peers(struct charging *charging, uint32_t track, uint32_t late,
                      const struct portion_list *shares, uint64_t wait_ns, uint64_t idle_ns)
{
	uint64_t left = idle_ns;

	for (size_t i = 0; i < shares->count; i++) {
		const struct share *share = &shares->items[i];
		uint32_t cause = cause_of(charging, late, share);
		struct ranks_peer *peer = cause == RANKS_NONE ? NULL : find_peer(charging, track, cause);
		uint64_t idle = (uint64_t)((double)idle_ns * (double)share->ns / (double)wait_ns);

		if (!peer)
			return -ENOMEM;
		idle = i + 1 == shares->count || idle > left ? left : idle;
		left -= idle;
		peer->wait_ns += share->ns;
		peer->idle_ns += idle;
		peer->collectives++;
	}
	return 0;
}

/* The wait of one member, bounded by its own kernel; the part of it in which nothing else of it ran. */
static uint64_t wait_of(const struct ranks *ranks, const struct track *track, const struct track_event *event,
                        uint64_t last_ns, uint64_t *idle_ns)
{
	uint64_t arrival = track_common(ranks, track, event->start_ns), wait;

	*idle_ns = 0;
	if (last_ns <= arrival)
		return 0;
	wait = last_ns - arrival;
	if (wait > event->end_ns - event->start_ns)
		wait = event->end_ns - event->start_ns;
	*idle_ns = wait - cover_measure(&track->device_work, event->start_ns, event->start_ns + wait);
	return wait;
}

/* Splits the wait of one member for the last one, for itself and for the sum of all. */
static int charge_member(struct charging *charging, const struct turn *turn, const struct arrivals *arrivals,
                         size_t member, uint64_t wait_ns, uint64_t idle_ns, struct portion_list *waits)
{
	const struct group *group = &charging->ranks->groups.items[turn->group];
	struct portion_list own = {0};
	const struct share *share;
	int rc =
	    portions_split(charging->ranks, group, turn->instance, arrivals->last, member, wait_ns, &own);

	if (!rc)
		rc = keep_peers(charging, track_of(group, member), track_of(group, arrivals->last), &own,
		                wait_ns, idle_ns);
	array_for_each (share, &own) {
		if (!rc)
			rc = portions_add(waits, share->root, share->label, share->ns);
	}
	array_free(&own);
	return rc;
}

static int charge_turn(struct charging *charging, const struct turn *turn)
{
	struct ranks *ranks = charging->ranks;
	struct ranks_report *report = charging->report;
	struct group *group = &ranks->groups.items[turn->group];
	struct instance *instance = &group->instances.items[turn->instance];
	struct arrivals arrivals = arrivals_of(ranks, group, turn->instance);
	uint32_t late = track_of(group, arrivals.last);
	uint64_t ahead = arrivals.last_ns - arrivals.second_ns;
	bool decided = ahead > tracks_error(ranks, late, track_of(group, arrivals.second)), waited = false;
	struct portion_list waits = {0}, delays = {0};
	int rc = 0;

	for (size_t m = 0; !rc && m < group->members.count; m++) {
		struct track *track = &ranks->tracks.items[track_of(group, m)];
		uint64_t idle, wait = wait_of(ranks, track, group_event(ranks, group, turn->instance, m),
		                              arrivals.last_ns, &idle);

		if (m == arrivals.last || !wait)
			continue;
		report->wait_ns += wait;
		if (wait <= tracks_error(ranks, late, track_of(group, m))) {
			report->uncharged_ns += wait;
			continue;
		}
		waited = true;
		track->member.wait_ns += wait;
		track->member.idle_wait_ns += idle;
		if (!decided) {
			report->undecided_ns += wait;
			track->member.undecided_ns += wait;
			continue;
		}
		report->charged_ns += wait;
		instance->wait_ns += wait;
		instance->most_ns = wait > instance->most_ns ? wait : instance->most_ns;
		rc = charge_member(charging, turn, &arrivals, m, wait, idle, &waits);
	}
	if (!decided) {
		group->undecided += waited;
	} else if (waited && !rc) {
		instance->late = late;
		instance->delay_ns = ahead;
		report->delay_ns += ahead;
		ranks->tracks.items[late].member.caused_ns += instance->wait_ns;
		ranks->tracks.items[late].member.caused_delay_ns += ahead;
		rc = portions_split(ranks, group, turn->instance, arrivals.last, arrivals.second, ahead,
		                    &delays);
		if (!rc)
			rc = keep_shares(charging, instance, &waits, &delays);
	}
	array_free(&waits);
	array_free(&delays);
	return rc;
}

/* Somebody is always last by a little: only waits that stand out say something about a rank. */
static void mark_notable(struct charging *charging)
{
	struct ranks *ranks = charging->ranks;
	uint64_t sum = 0, decided = 0;
	const struct turn *turn;

	array_for_each (turn, &charging->turns) {
		const struct instance *instance =
		    &ranks->groups.items[turn->group].instances.items[turn->instance];

		sum += instance->most_ns;
		decided += instance->late != RANKS_NONE;
	}
	if (!decided)
		return;
	array_for_each (turn, &charging->turns) {
		struct instance *instance = &ranks->groups.items[turn->group].instances.items[turn->instance];

		if (instance->late == RANKS_NONE || instance->most_ns < sum / decided / 2)
			continue;
		instance->notable = true;
		charging->report->notable++;
		ranks->tracks.items[instance->late].member.last_count++;
	}
}

static int compare_cause(const void *a, const void *b)
{
	const struct ranks_cause *x = a, *y = b;
	int order = (x->wait_ns < y->wait_ns) - (x->wait_ns > y->wait_ns);

	if (!order)
		order = (x->late > y->late) - (x->late < y->late);
	return order ? order : (int)x->reason * 1000 + (int)x->code - (int)y->reason * 1000 - (int)y->code;
}

struct ranked_cause {
	struct ranks_cause cause; /* first */
	uint32_t before;
};

static int compare_peer(const void *a, const void *b)
{
	const struct ranks_peer *x = a, *y = b;
	int order = (x->member > y->member) - (x->member < y->member);

	if (!order)
		order = (x->wait_ns < y->wait_ns) - (x->wait_ns > y->wait_ns);
	return order ? order : (x->cause > y->cause) - (x->cause < y->cause);
}

/* Brings the causes into order; who refers to them follows. */
static int sort_causes(struct charging *charging)
{
	struct ranks_report *report = charging->report;
	size_t count = report->causes.count;
	struct ranked_cause *ranked = calloc(count + 1, sizeof(*ranked));
	uint32_t *place = calloc(count + 1, sizeof(*place));
	bool ok = ranked && place;
	struct ranks_peer *peer;
	struct share *share;

	for (uint32_t i = 0; ok && i < count; i++)
		ranked[i] = (struct ranked_cause){report->causes.items[i], i};
	if (ok) {
		qsort_items(ranked, count, sizeof(*ranked), compare_cause);
		for (uint32_t i = 0; i < count; i++) {
			report->causes.items[i] = ranked[i].cause;
			place[ranked[i].before] = i;
		}
		array_for_each (peer, &report->peers)
			peer->cause = place[peer->cause];
		array_for_each (share, &charging->ranks->shares)
			share->cause = place[share->cause];
		array_sort(&report->peers, compare_peer);
	}
	free(place);
	free(ranked);
	return ok ? 0 : -ENOMEM;
}

int late_charge(struct ranks *ranks, struct ranks_report *report)
{
	struct charging charging = {.ranks = ranks, .report = report};
	const struct turn *turn;
	int rc = 0;

	for (uint32_t g = 0; !rc && g < ranks->groups.count; g++)
		rc = list_turns(&charging, g);
	array_sort(&charging.turns, compare_turn);
	array_for_each (turn, &charging.turns) {
		charging.turn++;
		if (!rc)
			rc = charge_turn(&charging, turn);
	}
	if (!rc)
		rc = describe_causes(&charging);
	mark_notable(&charging);
	if (charging.turns.count) {
		report->span_ns =
		    charging.turns.items[charging.turns.count - 1].last_ns - charging.turns.items[0].last_ns;
		report->matched = charging.turns.count;
	}
	if (!rc)
		rc = sort_causes(&charging);
	array_free(&charging.turns);
	array_free(&charging.transfers);
	array_free(&charging.parts);
	array_free(&charging.last_turn);
	index_map_free(&charging.cause_by_key);
	index_map_free(&charging.part_by_key);
	index_map_free(&charging.peer_by_key);
	return rc;
}
