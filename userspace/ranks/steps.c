// SPDX-License-Identifier: GPL-2.0-only
#include "ranks/steps.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attribute/rhythm.h"
#include "ranks/groups.h"

#define PATTERN_LEAST 5 /* notable waits */
#define STEADY_SHARE  0.8

#define PERIOD_LEAST  6 /* intervals between collectives */
#define PERIOD_MOST   1024
#define PERIOD_SAMPLE 4096 /* collectives that are looked at */
#define COUNTS_ALIKE                                                                                         \
	0.95            /* of the collectives have as many kernels before them as the one a period earlier */
#define TIMES_CLEAR 0.5 /* a period by times leaves at most this part of the differences of a period of 1 */

static const char *step_text(struct ranks_report *report, const char *format, uint64_t number)
{
	char text[64], **slot = array_add(&report->owned);

	if (!slot)
		return NULL;
	snprintf(text, sizeof(text), format, number);
	*slot = strdup(text);
	return *slot;
}

static struct ranks_step *add_step(struct ranks_report *report, const char *format, uint64_t number,
                                   uint64_t start_ns, uint64_t end_ns)
{
	struct ranks_step *step = array_add(&report->steps);

	if (!step)
		return NULL;
	*step = (struct ranks_step){
	    .name = step_text(report, format, number),
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .slowest = RANKS_NONE,
	    .cause = RANKS_NONE,
	};
	return step->name ? step : NULL;
}

static bool is_aligned(const struct ranks *ranks, const struct track *track)
{
	return ranks->inputs.items[track->member.input].aligned;
}

/* The steps that the trace names, from the first rank that has any; the others only widen them. */
static int named_steps(struct ranks *ranks, struct ranks_report *report)
{
	const struct track *track, *first = NULL;
	const struct step *own;
	struct ranks_step *step;

	array_for_each (track, &ranks->tracks) {
		if (!first && track->steps.count && is_aligned(ranks, track))
			first = track;
	}
	if (!first)
		return 0;
	array_for_each (own, &first->steps) {
		if (!add_step(report, STEP_PREFIX "%" PRIu64, own->number,
		              track_common(ranks, first, own->start_ns),
		              track_common(ranks, first, own->end_ns)))
			return -ENOMEM;
	}
	array_for_each (track, &ranks->tracks) {
		if (track == first || !is_aligned(ranks, track))
			continue;
		for (size_t i = 0, j = 0; i < first->steps.count && j < track->steps.count;) {
			const struct step *mine = &track->steps.items[j];

			if (mine->number < first->steps.items[i].number) {
				j++;
				continue;
			}
			if (mine->number == first->steps.items[i].number) {
				uint64_t start = track_common(ranks, track, mine->start_ns);
				uint64_t end = track_common(ranks, track, mine->end_ns);

				step = &report->steps.items[i];
				step->start_ns = start < step->start_ns ? start : step->start_ns;
				step->end_ns = end > step->end_ns ? end : step->end_ns;
				j++;
			}
			i++;
		}
	}
	return 0;
}

/* Shortest time between two collectives over the members: without what a late rank adds. */
static uint64_t interval_of(const struct ranks *ranks, const struct group *group, size_t instance)
{
	uint64_t least = UINT64_MAX;

	for (size_t m = 0; m < group->members.count; m++) {
		const struct track_event *now = group_event(ranks, group, instance, m);
		const struct track_event *next = group_event(ranks, group, instance + 1, m);

		if (now && next && next->start_ns >= now->end_ns && next->start_ns - now->end_ns < least)
			least = next->start_ns - now->end_ns;
	}
	return least == UINT64_MAX ? 0 : least;
}

/*
 * After how many collectives the number of kernels between them repeats; 0: it does not. Unlike times, it is
 * the same whatever else the machine does.
 */
static size_t period_of_counts(const struct ranks *ranks, const struct group *group, uint64_t *counts,
                               size_t count)
{
	count = count > PERIOD_SAMPLE ? PERIOD_SAMPLE : count;
	for (size_t i = 0; i < count; i++) {
		const struct track_event *now = group_event(ranks, group, i, 0);
		const struct track_event *next = group_event(ranks, group, i + 1, 0);

		counts[i] = now && next ? track_kernels(&ranks->tracks.items[group->members.items[0].track],
		                                        now->start_ns, next->start_ns)
		                        : UINT64_MAX;
	}
	for (size_t period = 1; period <= count / 3 && period <= PERIOD_MOST; period++) {
		size_t alike = 0;

		for (size_t i = 0; i + period < count; i++)
			alike += counts[i] == counts[i + period];
		if ((double)alike >= COUNTS_ALIKE * (double)(count - period))
			return period;
	}
	return 0;
}

/* Collectives of a step, 0 if they have no rhythm. *phase: the last one of a step, modulo that. */
static size_t find_period(const struct ranks *ranks, const struct group *group, uint64_t *intervals,
                          size_t count, size_t *phase)
{
	size_t by_counts = period_of_counts(ranks, group, intervals, count), by_times;

	for (size_t i = 0; i < count; i++)
		intervals[i] = interval_of(ranks, group, i);
	if (by_counts > 1) {
		*phase = rhythm_phase(intervals, count, by_counts);
		return by_counts;
	}
	by_times = rhythm_find(intervals, count, phase);
	if (!by_counts || by_times < 2 ||
	    rhythm_difference(intervals, count, by_times) <=
	        TIMES_CLEAR * rhythm_difference(intervals, count, 1))
		return by_times ? by_times : by_counts;
	/* Other load makes noise of the times, in which some period is always a little better than others. */
	*phase = 0;
	return by_counts;
}

static int collective_steps(struct ranks *ranks, struct ranks_report *report)
{
	const struct group *group = groups_largest(ranks);
	size_t count, phase = 0, period;
	uint64_t *intervals, start, number = 0;
	int rc = 0;

	if (!group || group->instances.count < 2)
		return 0;
	count = group->instances.count - 1;
	intervals = calloc(count, sizeof(*intervals));
	if (!intervals)
		return -ENOMEM;
	period = count < PERIOD_LEAST ? 0 : find_period(ranks, group, intervals, count, &phase);
	free(intervals);
	if (!period)
		return 0;
	/* A step ends with the collective before a long interval. */
	start = group->marks.items[0].start_ns;
	for (size_t i = 0; !rc && i < count + 1; i++) {
		uint64_t end = group->marks.items[i].end_ns;

		if (i % period != phase % period && i != count)
			continue;
		if (!add_step(report, "step %" PRIu64, ++number, start, end))
			rc = -ENOMEM;
		start = end;
	}
	return rc;
}

/* Step that an instance belongs to: by its launch on a member, since the kernel may run in the next step. */
static struct ranks_step *step_of(const struct ranks *ranks, struct ranks_report *report,
                                  const struct group *group, size_t instance, bool named)
{
	uint64_t time = group->instances.items[instance].last_ns;
	size_t low = 0, high = report->steps.count;

	for (size_t m = 0; named && m < group->members.count; m++) {
		const struct track *track = &ranks->tracks.items[group->members.items[m].track];
		const struct track_event *event = group_event(ranks, group, instance, m);

		if (event && event->launch_ns && track->steps.count) {
			time = track_common(ranks, track, event->launch_ns);
			break;
		}
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (report->steps.items[middle].end_ns >= time)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == report->steps.count || report->steps.items[low].start_ns > time)
		return NULL;
	return &report->steps.items[low];
}

/* What each member caused in each step: report->steps.count rows. */
static int fill_steps(struct ranks *ranks, struct ranks_report *report, bool named)
{
	size_t width = ranks->tracks.count;
	uint64_t *caused = calloc(report->steps.count * width + 1, sizeof(*caused));
	const struct group *group;

	if (!caused)
		return -ENOMEM;
	array_for_each (group, &ranks->groups) {
		for (size_t i = 0; i < group->instances.count; i++) {
			const struct instance *instance = &group->instances.items[i];
			struct ranks_step *step;

			if (!instance->last_ns)
				continue;
			step = step_of(ranks, report, group, i, named);
			if (!step)
				continue;
			step->collectives++;
			if (instance->last_ns - instance->first_ns > step->skew_ns)
				step->skew_ns = instance->last_ns - instance->first_ns;
			if (instance->late == RANKS_NONE)
				continue;
			step->wait_ns += instance->wait_ns;
			step->delay_ns += instance->delay_ns;
			if (instance->notable)
				caused[(size_t)(step - report->steps.items) * width + instance->late] +=
				    instance->wait_ns;
		}
	}
	for (size_t s = 0; s < report->steps.count; s++) {
		struct ranks_step *step = &report->steps.items[s];
		uint64_t most = 0;

		for (size_t t = 0; t < width; t++) {
			if (caused[s * width + t] > most) {
				most = caused[s * width + t];
				step->slowest = (uint32_t)t;
			}
		}
		if (step->slowest != RANKS_NONE)
			ranks->tracks.items[step->slowest].member.slowest_steps++;
	}
	free(caused);
	return 0;
}

struct step_cause {
	uint32_t step, cause;
	uint64_t ns;
};

struct step_causes {
	struct index_map by_key;
	ARRAY(struct step_cause)
};

/* NULL if memory ran out. */
static struct step_cause *find_step_cause(struct step_causes *causes, uint32_t step, uint32_t cause)
{
	uint64_t key = (uint64_t)step << 32 | cause;
	struct step_cause *slot;
	uint32_t at;

	if (index_map_get(&causes->by_key, key, &at))
		return &causes->items[at];
	slot = array_add(causes);
	if (!slot || index_map_put(&causes->by_key, key, (uint32_t)causes->count - 1))
		return NULL;
	*slot = (struct step_cause){.step = step, .cause = cause};
	return slot;
}

static int add_step_cause(struct step_causes *causes, uint32_t step, const struct share *share)
{
	struct step_cause *slot = find_step_cause(causes, step, share->cause);

	if (!slot)
		return -ENOMEM;
	slot->ns += share->ns;
	return 0;
}

/* What the slowest rank of each step was mostly late for. */
static int name_causes(struct ranks *ranks, struct ranks_report *report, bool named)
{
	uint64_t *largest = calloc(report->steps.count + 1, sizeof(*largest));
	struct step_causes causes = {0};
	const struct step_cause *part;
	const struct group *group;
	int rc = largest ? 0 : -ENOMEM;

	array_for_each (group, &ranks->groups) {
		for (size_t i = 0; !rc && i < group->instances.count; i++) {
			const struct instance *instance = &group->instances.items[i];
			struct ranks_step *step =
			    instance->share_count ? step_of(ranks, report, group, i, named) : NULL;

			if (!step || step->slowest != instance->late)
				continue;
			for (uint32_t k = 0; !rc && k < instance->share_count; k++)
				rc = add_step_cause(&causes, (uint32_t)(step - report->steps.items),
				                    &ranks->shares.items[instance->share_first + k]);
		}
	}
	array_for_each (part, &causes) {
		if (rc || part->ns <= largest[part->step])
			continue;
		largest[part->step] = part->ns;
		report->steps.items[part->step].cause = part->cause;
	}
	index_map_free(&causes.by_key);
	array_free(&causes);
	free(largest);
	return rc;
}

/* Is one always last, or is it chance? With chance each of n ranks is last in 1/n of the notable waits. */
static void find_pattern(const struct ranks *ranks, struct ranks_report *report)
{
	double count = (double)report->notable, expected, deviation;
	uint64_t most = 0, taking_part = 0;
	const struct track *track;

	array_for_each (track, &ranks->tracks) {
		taking_part += track->member.matched > 0;
		most = track->member.last_count > most ? track->member.last_count : most;
	}
	if (report->notable < PATTERN_LEAST || taking_part < 2)
		return;
	expected = count / (double)taking_part;
	deviation = sqrt(expected * (1 - 1 / (double)taking_part));
	if ((double)most >= STEADY_SHARE * count)
		report->pattern = PATTERN_STEADY;
	else if ((double)most > expected + 3 * deviation)
		report->pattern = PATTERN_SOME;
	else
		report->pattern = PATTERN_RANDOM;
}

int steps_make(struct ranks *ranks, struct ranks_report *report)
{
	int rc = named_steps(ranks, report);
	bool named = report->steps.count > 0;

	if (!rc && !named)
		rc = collective_steps(ranks, report);
	if (!rc)
		rc = fill_steps(ranks, report, named);
	if (!rc)
		rc = name_causes(ranks, report, named);
	find_pattern(ranks, report);
	return rc;
}
