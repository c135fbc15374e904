/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of a session that the program itself marked as what is to be profiled, as nsys' --capture-range
 * means it: from its first cudaProfilerStart() to the next cudaProfilerStop(), or its first NVTX range of a
 * name.
 */
#ifndef WHYIDLE_CLI_CAPTURE_RANGE_H
#define WHYIDLE_CLI_CAPTURE_RANGE_H

#include <stdint.h>

#include "base/error.h"

struct model;

/* "cudaProfilerApi" or "nvtx:NAME" (or "nvtx:NAME@DOMAIN"). Returns 0 or -EINVAL with `error`. */
int capture_range_check(const char *text, struct error *error);

/*
 * Where the range lies in a model, in ns of its clock; without an end, until the session's. `text` has passed
 * the check. Returns 0, or -EINVAL with `error` if there is none.
 */
int capture_range_find(const struct model *model, const char *text, uint64_t *start_ns, uint64_t *end_ns,
                       struct error *error);

#endif
