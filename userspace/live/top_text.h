/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `whyidle top` shows: the status of a daemon (its control socket's answer to "status",
 * "whyidle.status/1") as plain text, for a person.
 *
 * The daemon is believed, the names in its answer are not: they are made fit for a terminal. Members that are
 * missing or of another type count as 0 or as empty.
 */
#ifndef WHYIDLE_LIVE_TOP_TEXT_H
#define WHYIDLE_LIVE_TOP_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/error.h"

struct top_view {
	unsigned width;  /* columns, 60 or more */
	uint64_t now_ms; /* CLOCK_REALTIME: how old a window is */
	uint32_t pid;    /* only this process in the list, 0: all */
};

/* Returns 0, -EPROTO with `error` if this is no status, or -EIO. */
int top_text(FILE *out, const json_t *status, const struct top_view *view, struct error *error);

#endif
