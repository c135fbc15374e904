/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to ranks/: which streams of which ranks run the same collectives, and the clocks that follow. */
#ifndef WHYIDLE_RANKS_GROUPS_H
#define WHYIDLE_RANKS_GROUPS_H

#include "ranks/track.h"

/* Fills ranks->groups and the clocks of ranks->inputs. Returns 0 or -ENOMEM. */
int groups_make(struct ranks *ranks);
void groups_free(struct ranks *ranks);

/* The event of a member in an instance, NULL if it has none. */
struct track_event *group_event(const struct ranks *ranks, const struct group *group, size_t instance,
                                size_t member);

/* The group of several members with the most collectives, NULL if there is none. */
const struct group *groups_largest(const struct ranks *ranks);

/* How far the clocks of two tracks may be off against each other. */
uint64_t tracks_error(const struct ranks *ranks, uint32_t a, uint32_t b);

#endif
