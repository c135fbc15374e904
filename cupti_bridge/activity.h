/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CUPTI's activity API: what is switched on, and how its buffers become ring records.
 *
 * cuptiFinalize together with the selection of single API functions corrupts the heap of the target, and
 * without it, from a thread of our own, a program that launches CUDA graphs crashed the seventh time (both
 * measured with CUPTI 13.0). In a process that started with the bridge nothing is ever switched off again,
 * and CUPTI ends with the process. In one that is attached late (bridge.late) all calls are recorded, not
 * selected ones: what CUPTI user comes next may finalise it. In the end the kinds are switched off, and CUPTI
 * is finalised only if that is asked for (bridge.finalize).
 */
#ifndef WHYIDLE_CUPTI_ACTIVITY_H
#define WHYIDLE_CUPTI_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>

#include "cupti_bridge/bridge.h"

/*
 * For experiments: what to switch on, as words separated by commas instead of the default
 * "kernel,memcpy,peer,memset,sync,overhead,device,runtime,driver". "runtime" and "driver" are the functions
 * of cupti_calls.h, "runtime-all" and "driver-all" the whole kinds (unwanted calls are then dropped by the
 * bridge). "cupti-flush" leaves the flushing to cuptiActivityFlushPeriod, "cupti-zero" the clearing of
 * buffers to CUPTI.
 */
#define ACTIVITY_KINDS_ENV "WHYIDLE_BRIDGE_KINDS"

/* Sets the clock and the kind of thread ids, which must be done before anything is switched on. */
void activity_prepare(struct bridge *bridge);

/*
 * Switches everything on. True if at least kernels are recorded; `text` then names what is missing, and is
 * empty if nothing is. False: `text` says why not and what to do. *error is the CUPTI result behind it, 0
 * none.
 */
bool activity_start(struct bridge *bridge, cupti_abi_result *error, char *text, size_t size);

/*
 * The same once more, after another tool had CUPTI: nothing of CUPTI's is touched unless that has let go of
 * it. False: it has not, or *error says what else is wrong.
 */
bool activity_start_again(struct bridge *bridge, cupti_abi_result *error, char *text, size_t size);

/* True if the bridge has to ask for finished buffers itself (activity_flush) every flush_period_ms. */
bool activity_needs_flush(const struct bridge *bridge);

/* Asks for all finished buffers, or (forced) for all. Blocks; call it from a thread of our own. */
void activity_flush(struct bridge *bridge, bool forced);

/*
 * Switches everything off and lets go of the subscription, from the calling thread: the program need not call
 * CUDA any more. Only where bridge.late. CUPTI itself stays loaded.
 *
 * With bridge.finalize the next call of the program that ends finalises CUPTI, which gives the subscription
 * back as well; if that was not possible (no call for two seconds), `text` gets the reason, and all is as
 * without.
 */
void activity_stop(struct bridge *bridge, char *text, size_t size);

/* The process exits: no call finalises CUPTI any more. Waits (bounded) for one that does. */
void activity_forbid_finalize(void);

/* After that: waits until no callback runs any more. False if one still does after some seconds. */
bool activity_leave(void);

#endif
