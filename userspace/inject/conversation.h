/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The collector's side of cupti_bridge/attach.h: hands the library over to the borrowed process and gets the
 * bridge's descriptors, over the target's memory alone.
 */
#ifndef WHYIDLE_INJECT_CONVERSATION_H
#define WHYIDLE_INJECT_CONVERSATION_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/attach.h"
#include "inject/inject.h"

struct conversation {
	uint32_t pid;
	int memory;
	uint64_t region, region_bytes;
	uint64_t bridge;       /* address of one that is loaded already, 0 none */
	uint64_t deadline_ns;  /* CLOCK_MONOTONIC */
	const bool *cancelled; /* atomic: give up */
	uint64_t loaded_ns;    /* when it said that the library was there */
	uint64_t borrowed_ns;  /* when the borrowed thread was back */
	int ring, pipe;
};

/* Goes through all states. INJECT_OK: ring and pipe are open. Otherwise with `error`. */
enum inject_reason conversation_hold(struct conversation *conversation, const struct inject_options *options,
                                     struct error *error);

#endif
