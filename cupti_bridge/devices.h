/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The GPUs that this process sees, asked from the CUDA driver itself: for a bridge that came when the program
 * had initialised CUDA already.
 */
#ifndef WHYIDLE_CUPTI_DEVICES_H
#define WHYIDLE_CUPTI_DEVICES_H

#include "cupti_bridge/bridge.h"

/* Writes a RING_DEVICE record for each. Needs no CUDA context, and makes none. */
void devices_announce(struct bridge *bridge);

#endif
