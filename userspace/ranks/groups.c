// SPDX-License-Identifier: GPL-2.0-only
#include "ranks/groups.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define RESOLUTION_NS  1000   /* of times within one input */
#define TOLERANCE_NS   200000 /* ends of one collective differ by less, unless it is long */
#define TOGETHER_SHARE 0.95   /* of the pairs must overlap in time, or they are not the same collectives */

struct mark_list {
	ARRAY(struct clock_mark)
};

/* How a channel of a track would fit into a group. */
struct fitting {
	struct clock_fit fit;
	uint32_t channel, group;
	double cost; /* HUGE_VAL: not at all */
};

static int channel_marks(const struct ranks *ranks, const struct track *track, const struct channel *channel,
                         struct mark_list *marks)
{
	bool aligned = ranks->inputs.items[track->member.input].aligned;
	const uint32_t *index;

	array_for_each (index, &channel->events) {
		const struct track_event *event = &track->events.items[*index];
		struct clock_mark *mark = array_add(marks);

		if (!mark)
			return -ENOMEM;
		*mark = (struct clock_mark){event->start_ns, event->end_ns, event->bytes, event->kind};
		if (aligned) {
			mark->start_ns = track_common(ranks, track, mark->start_ns);
			mark->end_ns = track_common(ranks, track, mark->end_ns);
		}
	}
	return 0;
}

static uint64_t tolerance_of(const struct group *group)
{
	uint64_t sum = 0;
	const struct clock_mark *mark;

	array_for_each (mark, &group->marks)
		sum += mark->end_ns - mark->start_ns < mark->end_ns ? mark->end_ns - mark->start_ns : 0;
	sum = group->marks.count ? sum / group->marks.count / 2 : 0;
	return sum > TOLERANCE_NS ? sum : TOLERANCE_NS;
}

/* Nobody leaves a collective before all have come. */
static bool are_together(const struct group *group, const struct mark_list *marks,
                         const struct clock_fit *fit, const size_t *pair)
{
	size_t paired = 0, together = 0;

	for (size_t j = 0; j < marks->count; j++) {
		const struct clock_mark *a, *b = &marks->items[j];

		if (pair[j] == SIZE_MAX)
			continue;
		a = &group->marks.items[pair[j]];
		paired++;
		together += clock_fit_apply(fit, b->start_ns) <= a->end_ns + fit->error_ns &&
		            a->start_ns <= clock_fit_apply(fit, b->end_ns) + fit->error_ns;
	}
	return paired && (double)together >= TOGETHER_SHARE * (double)paired;
}

/* Tries one channel against one group. With `search` the clock is not known yet. */
static int try_fit(const struct ranks *ranks, const struct track *track, uint32_t channel, uint32_t at,
                   bool search, struct fitting *fitting)
{
	const struct group *group = &ranks->groups.items[at];
	struct mark_list marks = {0};
	size_t *pair = NULL, pairs, least;
	int rc = channel_marks(ranks, track, &track->channels.items[channel], &marks), found = 1;

	*fitting = (struct fitting){.channel = channel, .group = at, .cost = HUGE_VAL};
	if (!rc && search) {
		found = clock_align(&fitting->fit, group->marks.items, group->marks.count, marks.items,
		                    marks.count);
		rc = found < 0 ? found : 0;
	}
	if (!rc && found > 0) {
		pair = calloc(marks.count + 1, sizeof(*pair));
		rc = pair ? 0 : -ENOMEM;
	}
	if (!rc && found > 0) {
		struct clock_fit measured;

		pairs = clock_pair(&fitting->fit, group->marks.items, group->marks.count, marks.items,
		                   marks.count, tolerance_of(group), pair);
		least = marks.count < group->marks.count ? marks.count : group->marks.count;
		rc = clock_fit_measure(&measured, group->marks.items, marks.items, marks.count, pair);
		if (!search)
			fitting->fit.error_ns = measured.error_ns;
		if (!rc && pairs * 2 >= least && pairs &&
		    clock_fit_is_tight(&measured, group->marks.items, group->marks.count) &&
		    are_together(group, &marks, &fitting->fit, pair))
			fitting->cost = (double)measured.error_ns / sqrt((double)pairs);
	}
	free(pair);
	array_free(&marks);
	return rc;
}

static bool group_has(const struct group *group, uint32_t track)
{
	const struct group_member *member;

	array_for_each (member, &group->members) {
		if (member->track == track)
			return true;
	}
	return false;
}

/* The best fit of any free channel to any group that the track is not in yet. */
static int find_fit(const struct ranks *ranks, uint32_t index, bool search, struct fitting *best)
{
	const struct track *track = &ranks->tracks.items[index];
	struct fitting fitting;
	int rc = 0;

	*best = (struct fitting){.cost = HUGE_VAL};
	for (uint32_t c = 0; !rc && c < track->channels.count; c++) {
		if (track->channels.items[c].group != RANKS_NONE)
			continue;
		for (uint32_t g = 0; !rc && g < ranks->groups.count; g++) {
			if (group_has(&ranks->groups.items[g], index))
				continue;
			rc = try_fit(ranks, track, c, g, search, &fitting);
			if (!rc && fitting.cost < best->cost)
				*best = fitting;
		}
	}
	return rc;
}

static int compare_mark(const void *a, const void *b)
{
	const struct clock_mark *x = a, *y = b;

	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Adds a channel to a group; what the group did not have yet becomes a mark of its own. */
static int join(struct ranks *ranks, uint32_t index, uint32_t channel, uint32_t at)
{
	static const struct clock_fit none;
	struct group *group = &ranks->groups.items[at];
	struct track *track = &ranks->tracks.items[index];
	struct group_member *member = array_add(&group->members);
	struct mark_list marks = {0};
	size_t *pair = NULL;
	int rc = member ? channel_marks(ranks, track, &track->channels.items[channel], &marks) : -ENOMEM;

	if (!rc) {
		pair = calloc(marks.count + 1, sizeof(*pair));
		rc = pair ? 0 : -ENOMEM;
	}
	if (!rc) {
		*member = (struct group_member){index, channel};
		track->channels.items[channel].group = at;
		clock_pair(&none, group->marks.items, group->marks.count, marks.items, marks.count,
		           tolerance_of(group), pair);
	}
	for (size_t j = 0; !rc && j < marks.count; j++) {
		struct clock_mark *mark = pair[j] == SIZE_MAX ? NULL : &group->marks.items[pair[j]];

		if (!mark) {
			mark = array_add(&group->marks);
			if (mark)
				*mark = marks.items[j];
			else
				rc = -ENOMEM;
		} else if (marks.items[j].start_ns > mark->start_ns) {
			mark->start_ns = marks.items[j].start_ns;
		}
	}
	array_sort(&group->marks, compare_mark);
	free(pair);
	array_free(&marks);
	return rc;
}

static int found_group(struct ranks *ranks, uint32_t track, uint32_t channel)
{
	struct group *group = array_add(&ranks->groups);

	if (!group)
		return -ENOMEM;
	group->error_ns = ranks->inputs.items[ranks->tracks.items[track].member.input].clock.error_ns;
	return join(ranks, track, channel, (uint32_t)ranks->groups.count - 1);
}

/* Places all channels of a track whose clock is known. */
static int place(struct ranks *ranks, uint32_t index)
{
	struct track *track = &ranks->tracks.items[index];
	struct fitting best;
	int rc;

	for (;;) {
		rc = find_fit(ranks, index, false, &best);
		if (rc || best.cost == HUGE_VAL)
			break;
		rc = join(ranks, index, best.channel, best.group);
		if (rc)
			break;
	}
	for (uint32_t c = 0; !rc && c < track->channels.count; c++) {
		if (track->channels.items[c].group == RANKS_NONE)
			rc = found_group(ranks, index, c);
	}
	return rc;
}

/* Takes over the clock that was found, or leaves it alone if it agrees already. */
static void set_clock(struct input_state *input, const struct clock_fit *fit, uint64_t base_error_ns,
                      const struct track *track)
{
	struct ranks_clock *clock = &input->clock;
	uint64_t offset = (uint64_t)llabs(fit->offset_ns);
	double span = (double)(track->member.window_end_ns - track->member.window_start_ns);

	clock->collectives = fit->pairs;
	clock->error_ns = fit->error_ns + base_error_ns;
	input->aligned = true;
	if (offset <= fit->error_ns && fabs(fit->drift) * span <= (double)fit->error_ns) {
		clock->state = CLOCK_SAME;
		clock->error_ns += offset;
		return;
	}
	clock->state = CLOCK_SHIFTED;
	clock->offset_ns = fit->offset_ns;
	clock->drift = fit->drift;
	input->reference_ns = fit->reference_ns;
}

/* Places the track if its clock is known or can be found out. *placed says so. */
static int try_place(struct ranks *ranks, uint32_t index, bool *placed)
{
	const struct track *track = &ranks->tracks.items[index];
	struct input_state *input = &ranks->inputs.items[track->member.input];
	struct fitting best;
	int rc = 0;

	*placed = false;
	if (!input->aligned) {
		if (ranks->groups.count) {
			rc = find_fit(ranks, index, true, &best);
			if (rc || best.cost == HUGE_VAL)
				return rc;
			set_clock(input, &best.fit, ranks->groups.items[best.group].error_ns, track);
			rc = join(ranks, index, best.channel, best.group);
		} else {
			/* The first one: all others are aligned to it. */
			input->aligned = true;
			input->clock.state = CLOCK_SAME;
		}
	}
	*placed = true;
	return rc ? rc : place(ranks, index);
}

/* The final pairing, when all marks of the group are known. */
static int match_members(struct ranks *ranks, uint32_t at)
{
	static const struct clock_fit none;
	struct group *group = &ranks->groups.items[at];
	size_t width = group->members.count;
	int rc = 0;

	group->slots = malloc((group->marks.count * width + 1) * sizeof(*group->slots));
	if (!group->slots)
		return -ENOMEM;
	memset(group->slots, 0xff, group->marks.count * width * sizeof(*group->slots));
	for (size_t i = 0; i < group->marks.count; i++) {
		struct instance *instance = array_add(&group->instances);

		if (!instance)
			return -ENOMEM;
		instance->late = RANKS_NONE;
	}
	for (size_t m = 0; !rc && m < width; m++) {
		struct track *track = &ranks->tracks.items[group->members.items[m].track];
		struct channel *channel = &track->channels.items[group->members.items[m].channel];
		struct mark_list marks = {0};
		size_t *pair = calloc(channel->events.count + 1, sizeof(*pair));

		rc = pair ? channel_marks(ranks, track, channel, &marks) : -ENOMEM;
		if (!rc)
			clock_pair(&none, group->marks.items, group->marks.count, marks.items, marks.count,
			           tolerance_of(group), pair);
		for (size_t j = 0; !rc && j < marks.count; j++) {
			if (pair[j] == SIZE_MAX)
				continue;
			group->slots[pair[j] * width + m] = channel->events.items[j];
			group->instances.items[pair[j]].present++;
			track->events.items[channel->events.items[j]].instance = (uint32_t)pair[j];
		}
		free(pair);
		array_free(&marks);
	}
	return rc;
}

int groups_make(struct ranks *ranks)
{
	bool *done = calloc(ranks->tracks.count + 1, sizeof(*done)), progress = true;
	int rc = done ? 0 : -ENOMEM;

	/* A rank may share collectives only with some of the others: go round until nobody can join any more.
	 */
	while (!rc && progress) {
		progress = false;
		for (uint32_t i = 0; !rc && i < ranks->tracks.count; i++) {
			if (done[i] || !ranks->tracks.items[i].events.count)
				continue;
			rc = try_place(ranks, i, &done[i]);
			progress |= done[i];
		}
	}
	for (uint32_t g = 0; !rc && g < ranks->groups.count; g++)
		rc = match_members(ranks, g);
	free(done);
	return rc;
}

void groups_free(struct ranks *ranks)
{
	struct group *group;

	array_for_each (group, &ranks->groups) {
		array_free(&group->members);
		array_free(&group->marks);
		array_free(&group->instances);
		free(group->slots);
	}
	array_free(&ranks->groups);
}

struct track_event *group_event(const struct ranks *ranks, const struct group *group, size_t instance,
                                size_t member)
{
	uint32_t event = group->slots[instance * group->members.count + member];

	return event == RANKS_NONE
	           ? NULL
	           : &ranks->tracks.items[group->members.items[member].track].events.items[event];
}

const struct group *groups_largest(const struct ranks *ranks)
{
	const struct group *group, *largest = NULL;

	array_for_each (group, &ranks->groups) {
		if (group->members.count > 1 &&
		    (!largest || group->instances.count > largest->instances.count))
			largest = group;
	}
	return largest;
}

uint64_t tracks_error(const struct ranks *ranks, uint32_t a, uint32_t b)
{
	uint32_t x = ranks->tracks.items[a].member.input, y = ranks->tracks.items[b].member.input;

	if (x == y)
		return RESOLUTION_NS;
	return RESOLUTION_NS + ranks->inputs.items[x].clock.error_ns + ranks->inputs.items[y].clock.error_ns;
}
