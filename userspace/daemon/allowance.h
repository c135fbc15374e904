/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPU time that something may take which others ask for: a share of one CPU in the long run, and what has not
 * been taken for ALLOWANCE_KEPT_NS at once. Plain arithmetic on times that the caller gives.
 */
#ifndef WHYIDLE_DAEMON_ALLOWANCE_H
#define WHYIDLE_DAEMON_ALLOWANCE_H

#include <stdint.h>

#define ALLOWANCE_KEPT_NS (10ULL * 1000000000)

struct allowance {
	double share;
	int64_t credit_ns; /* negative: more was taken than was due */
	uint64_t now_ns;
};

/* Full at the beginning. Zero or more of one CPU. */
void allowance_init(struct allowance *allowance, double share, uint64_t now_ns);

/* Another share; what is due already stays, as far as it would have been kept. */
void allowance_configure(struct allowance *allowance, double share);

void allowance_spend(struct allowance *allowance, uint64_t ns);

/* Time until something may be taken again, 0: now; UINT64_MAX: never. */
uint64_t allowance_wait_ns(struct allowance *allowance, uint64_t now_ns);

#endif
