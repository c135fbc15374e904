/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to ranks/: who came last to each collective, and what kept it. */
#ifndef WHYIDLE_RANKS_LATE_H
#define WHYIDLE_RANKS_LATE_H

#include "ranks/groups.h"

/* Charges the waits of all groups; fills the figures of the members, and the report's sums, causes and peers.
 * Returns 0 or -ENOMEM. */
int late_charge(struct ranks *ranks, struct ranks_report *report);

/* Parts of what a rank spent its time on. */
struct portion_list {
	ARRAY(struct share)
};

/* Adds to what the list has of the same label of the same track. Returns 0 or -ENOMEM. */
int portions_add(struct portion_list *list, uint32_t root, uint32_t label, uint64_t ns);

/*
 * What the track did from its previous collective of the group to its arrival at this one, on the basis of
 * the instances before. Empty if there is nothing to measure from. Returns 0 or -ENOMEM.
 */
int portions_make(struct ranks *ranks, const struct group *group, size_t instance, size_t member,
                  struct portion_list *portions);

/*
 * Splits `ns`, a wait of `early` for `late`, by what `late` spent more time on than `early`; adds to
 * `shares`, whose ns then sum to `ns` more. Returns 0 or -ENOMEM.
 */
int portions_split(struct ranks *ranks, const struct group *group, size_t instance, size_t late, size_t early,
                   uint64_t ns, struct portion_list *shares);

#endif
