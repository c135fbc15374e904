/* SPDX-License-Identifier: GPL-2.0-only */
/* What `record` is to record instead of a command: processes that run already. */
#ifndef WHYIDLE_CLI_RECORD_TARGETS_H
#define WHYIDLE_CLI_RECORD_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "collect/discover.h"

/* The options, as they are parsed. */
struct record_targets {
	const char *pids; /* "12,34" */
	const char *cgroup, *comm, *container;
	bool all;
	struct {
		ARRAY(uint32_t)
	} list; /* of pids */
};

/* True if any process is asked for. */
bool record_targets_given(const struct record_targets *targets);

/*
 * Fills in the filter, which refers to `targets`. Returns 0, or -EINVAL or -ENOMEM with `error`. Call
 * record_targets_free in either case.
 */
int record_targets_resolve(struct record_targets *targets, struct discover_filter *filter,
                           struct error *error);
void record_targets_free(struct record_targets *targets);

#endif
