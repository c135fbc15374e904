/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies that the host feeds. A copy from or to memory that is not pinned goes through a small pinned buffer,
 * and a host thread fills or empties that, piece by piece (CUDA C++ best practices guide, "Pinned memory").
 * CUPTI gives one record for all of it, from the first piece to the last (seen with CUDA 13.0): most of that
 * time the copy engine waits for the host.
 */
#ifndef WHYIDLE_MODEL_FED_COPIES_H
#define WHYIDLE_MODEL_FED_COPIES_H

#include "model/model.h"

/*
 * Sets fed_ns of a device's copies from or to pageable memory: what they took longer than the fastest pinned
 * copy of the recording in that direction would have, or, where there is none, than a link of 64 GB/s. Copies
 * of less than a megabyte are left alone: their time is latency.
 */
void mark_fed_copies(struct device *device);

/* True if one end of a copy is host memory that is not pinned. */
bool is_pageable_copy(const struct gpu_op *op);

#endif
