/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bridge's one thread: asks CUPTI for finished buffers at the collector's pace, and makes the last flush
 * when the process exits, so that an exit never hangs on CUPTI. It takes no signals and is named "whyidle".
 */
#ifndef WHYIDLE_CUPTI_WORKER_H
#define WHYIDLE_CUPTI_WORKER_H

#include <stdbool.h>

#include "cupti_bridge/bridge.h"

/* False if no thread could be made. */
bool worker_start(struct bridge *bridge);

/*
 * The same on a thread that is there: worker_serve does the worker's part on the calling thread and returns
 * after the last flush. worker_prepare comes before it; from then on worker_ask and worker_finish are heard.
 */
void worker_prepare(void);
void worker_serve(struct bridge *bridge);

/* Asks for the last flush without waiting for it. */
void worker_ask(void);

/* Waits for that for some time. True if it was asked for. */
bool worker_is_asked(uint64_t milliseconds);

/* Has the worker make the last flush. False if that did not end within a few seconds, or there is no worker.
 */
bool worker_finish(void);

#endif
