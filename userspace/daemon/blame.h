/* SPDX-License-Identifier: GPL-2.0-only */
/* What a process has to do with the idle GPU time of a window. */
#ifndef WHYIDLE_DAEMON_BLAME_H
#define WHYIDLE_DAEMON_BLAME_H

#include <stdint.h>

#include <jansson.h>

#define BLAME_CAUSES 8 /* of a process, at most */

/* The watched process that `pid` descends from or is, 0: none. */
typedef uint32_t (*blame_root)(void *context, uint32_t pid);

/*
 * Adds to `process`, an object: "observed_ns", the time of all GPUs in the report ("whyidle.report/1");
 * "idle", the share of it in which they were idle because of a thread of `pid` or of what it forked;
 * "causes", the largest first: device, code, role, comm, tid and ns of each. "idle" is null where no GPU was
 * observed.
 */
void blame_put(json_t *process, const json_t *report, uint32_t pid, blame_root root, void *context);

#endif
