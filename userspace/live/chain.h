/* SPDX-License-Identifier: GPL-2.0-only */
/* The chain behind a gap in words. */
#ifndef WHYIDLE_LIVE_CHAIN_H
#define WHYIDLE_LIVE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#define CHAIN_WORDS 600 /* bytes that are always enough */

/*
 * "worst gap 166 ms: 150 ms train (7204): ready to run, but other threads had the CPUs [rcu (15)]; 16 ms …":
 * the longest gap of a GPU of a report ("whyidle.report/1"), and what took most of it, longest first. What a
 * thread did again and again counts once. `pid`: only of gaps in which a thread of this process has a part,
 * 0: of all. Fit for a terminal. Returns false, with "" in `words`, if there is no such gap.
 */
bool chain_words(char words[CHAIN_WORDS], const json_t *gpu, unsigned pid);

#endif
