/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quantities as a person writes them on the command line. Exact: no floating point on the way.
 */
#ifndef WHYIDLE_CLI_QUANTITY_H
#define WHYIDLE_CLI_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* All of these return 0, -EINVAL (not of the form) or -ERANGE (too large), and leave *value alone on failure.
 */

/* A plain decimal number. */
int quantity_number(const char *text, uint64_t *value);

/* "65536", "64K", "16M", "1G" (powers of 1024; KiB, MiB, GiB are allowed too). */
int quantity_bytes(const char *text, uint64_t *bytes);

/* "250us", "4ms", "0.5s", "100ns", "5m", "2h", "7d", "0"; a unit is required unless it is 0. */
int quantity_time(const char *text, uint64_t *ns);

/* The same, in seconds where no unit is given: "10", "2.5", "500ms". */
int quantity_seconds(const char *text, uint64_t *ns);

/* "0.5%" in millionths: 5000. At most 100 %. */
int quantity_share(const char *text, uint64_t *ppm);

/* One end of a window. */
struct window_bound {
	bool given;    /* false: the end of the session */
	bool absolute; /* CLOCK_MONOTONIC, else from the session's start */
	uint64_t ns;
};

struct window {
	bool given;
	struct window_bound from, to;
};

/*
 * "A..B", each end optional: seconds into the session ("1.5..3"), or CLOCK_MONOTONIC nanoseconds where the
 * number is larger than 1e9.
 */
int quantity_window(const char *text, struct window *window);

/* "A..B", each end optional: from the one number to the other, both included. */
struct range {
	bool given;
	uint64_t from, to; /* UINT64_MAX: no end */
};

int quantity_range(const char *text, struct range *range);

/*
 * Turns a window into absolute times. Returns -EINVAL if it ends before it starts or lies outside of the
 * session.
 */
int window_resolve(const struct window *window, uint64_t session_start_ns, uint64_t session_end_ns,
                   uint64_t *start_ns, uint64_t *end_ns);

#endif
