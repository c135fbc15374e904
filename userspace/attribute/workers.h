/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private to attribute/: the group of workers behind a wait. The waker names only the worker that delivered;
 * what the whole group did meanwhile tells whether more workers would help (attribution.md section 3).
 */
#ifndef WHYIDLE_ATTRIBUTE_WORKERS_H
#define WHYIDLE_ATTRIBUTE_WORKERS_H

#include "attribute/analysis.h"
#include "model/model.h"

struct worker_wait {
	uint32_t waiter, worker; /* threads */
	uint64_t from_ns, to_ns;
};

struct worker_waits {
	ARRAY(struct worker_wait)
	bool failed;
};

void worker_waits_add(struct worker_waits *waits, uint32_t waiter, uint32_t worker, uint64_t from_ns,
                      uint64_t to_ns);

/*
 * Sums the states of every worker that delivered at least once over all waits. `enough` follows from the work
 * they did between the first wait and the last, so that the start-up of a program does not count.
 */
int worker_group_measure(struct worker_group *group, const struct worker_waits *waits,
                         const struct model *model);

#endif
