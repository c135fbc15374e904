/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the session of a window to the document that daemon/results.h takes in. Runs in the window's own
 * process, which ends afterwards: what the analysis needs in memory goes with it.
 */
#ifndef WHYIDLE_DAEMON_DIGEST_H
#define WHYIDLE_DAEMON_DIGEST_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct digest_cost {
	uint64_t length_ns;          /* of the window, as it came out */
	uint64_t programs_ns;        /* run time of all BPF programs in it */
	uint64_t call_ns, call_hits; /* of those on CUDA calls, and how often they ran; 0: not counted */
	uint64_t hit_ns;             /* the trap to one of them, 0: not known */
};

/* Returns 0 or a negative errno with `error`. */
int digest_write(FILE *out, const char *session, const struct digest_cost *cost, struct error *error);

struct model;

/*
 * How much longer the probes made the work of the thread that calls CUDA most, as a share of the window's
 * length: 0.1 for a tenth.
 */
double digest_slowdown(const struct model *model, const struct digest_cost *cost);

#endif
