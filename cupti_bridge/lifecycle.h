/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the bridge of this process starts and ends, whichever way it came in: loaded by the CUDA driver at the
 * start (inject.c), or put into a running process (attach.c), where it can also leave and come back.
 *
 * The caller has filled in pid, late and link of lifecycle_bridge() before.
 */
#ifndef WHYIDLE_CUPTI_LIFECYCLE_H
#define WHYIDLE_CUPTI_LIFECYCLE_H

#include <stdbool.h>

#include "cupti_bridge/bridge.h"

struct bridge *lifecycle_bridge(void);

/* The ring is there: sets the writer, the names, and the hooks for forks and the exit up. */
bool lifecycle_connect(void);

/* Starts CUPTI and publishes the phase. True if records flow; a worker is then to be started or run. */
bool lifecycle_start_cupti(void);

/* Tries once more after another tool had CUPTI (bridge.start_error). Says nothing while that has it still. */
bool lifecycle_start_cupti_again(void);

/*
 * Gives back the ring, the names and the buffers. Only after CUPTI has stopped; where a callback is still
 * running after some seconds its memory stays.
 */
void lifecycle_disconnect(void);

#endif
