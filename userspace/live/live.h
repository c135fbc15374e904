/* SPDX-License-Identifier: GPL-2.0-only */
/* The live view: asks the daemon now and then, shows its status on a screen, and follows the keys. */
#ifndef WHYIDLE_LIVE_LIVE_H
#define WHYIDLE_LIVE_LIVE_H

#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "live/processes.h"
#include "live/screen.h"

#define LIVE_PATIENCE_MS 2000 /* for an answer of the daemon: keys wait as long */

struct live_options {
	const char *control;          /* path of the daemon's socket */
	uint64_t interval_ns;         /* from one status to the next */
	struct process_choice choice; /* what is listed at the beginning */
};

/* The daemon's status, at most timeout_ms later; NULL with `error`. The caller drops the reference. */
json_t *live_ask(const char *control, int timeout_ms, struct error *error);

/*
 * Until a key or a signal ends it. Takes the reference to `status`, the first that is shown. A daemon that
 * answers no more is said, what was known of it stays. *signal: what ended it, 0: a key. The screen stays
 * open. Returns 0 or a negative errno with `error`.
 */
int live_run(struct screen *screen, const struct live_options *options, json_t *status, int *signal,
             struct error *error);

#endif
