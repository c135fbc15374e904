/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a window is worth keeping by itself. A trigger fires once when its condition begins to hold, and again
 * only after it has ceased to; what is kept is limited to one recording each `pause_ns`.
 */
#ifndef WHYIDLE_DAEMON_TRIGGERS_H
#define WHYIDLE_DAEMON_TRIGGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/results.h"
#include "daemon/targets.h"

enum trigger {
	TRIGGER_IDLE, /* a GPU was idle too much for too long */
	TRIGGER_GAP,  /* a gap was too long */
	TRIGGER_STEP, /* a step took far longer than the others */
	TRIGGER_RATE, /* a process launches far less than it did */
	TRIGGER_COUNT
};

/* "idle", "gap", "step", "rate" */
const char *trigger_name(enum trigger trigger);

struct triggers {
	uint64_t idle_since_ns; /* idle too much since the window that began then, 0: is not */
	bool holds[TRIGGER_COUNT];
	uint64_t kept_ns; /* when the last recording was kept, 0 never */
};

/*
 * Judges a window that began at start_ns and was length_ns long; updates the launch rates of the targets.
 * Returns a set of bits, one for each trigger that fires now.
 */
unsigned triggers_judge(struct triggers *triggers, const struct trigger_config *config,
                        const struct window_result *result, struct targets *targets, uint64_t start_ns,
                        uint64_t length_ns);

/* Whether a recording may be kept now; notes that it is. */
bool triggers_may_keep(struct triggers *triggers, const struct trigger_config *config, uint64_t now_ns);

/*
 * Some condition begins to hold but was not seen for long enough (TRIGGER_IDLE): windows are wanted although
 * none is due.
 */
bool triggers_want_window(const struct triggers *triggers);

#endif
