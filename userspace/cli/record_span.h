/* SPDX-License-Identifier: GPL-2.0-only */
/* When `record` begins and ends, and what a command gets that goes on then: options as nsys has them. */
#ifndef WHYIDLE_CLI_RECORD_SPAN_H
#define WHYIDLE_CLI_RECORD_SPAN_H

#include "base/error.h"
#include "collect/recorder.h"

/* The options, as they are parsed; NULL: not given. */
struct record_span {
	const char *delay, *duration, *kill;
};

/* Fills in delay, duration and signal. Returns 0, or -EINVAL with `error`. */
int record_span_resolve(const struct record_span *span, struct recorder_options *options,
                        struct error *error);

#endif
