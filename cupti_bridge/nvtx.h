/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranges that the program names with NVTX: push and pop on a thread, start and end anywhere.
 *
 * The program's own NVTX calls us (nvtx_abi.h); CUPTI is not asked, so that ranges are there also where
 * another tool holds it, and on our clock. Ranges that are open when CUDA begins are kept; what ended before
 * is not, nor what is still open when the program ends. Marks, counters, categories and payloads are not
 * recorded. All functions run on the program's threads: they never wait but for the ring's mutex.
 */
#ifndef WHYIDLE_CUPTI_NVTX_H
#define WHYIDLE_CUPTI_NVTX_H

#include "cupti_bridge/bridge.h"

/* From here on ranges are written: the ring and the names of this bridge are ready, for the rest of the
 * process. */
void nvtx_begin(struct bridge *bridge);

#endif
