/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a CUPTI activity record to a ring record. Pure: no CUPTI, no ring, no clock.
 *
 * CUPTI's records are read up to their common prefix only (cupti_abi.h), so one reader serves all versions.
 */
#ifndef WHYIDLE_CUPTI_CONVERT_H
#define WHYIDLE_CUPTI_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/cupti_abi.h"
#include "cupti_bridge/ring.h"

struct converter {
	/* Id of a name, 0 if it has none. */
	uint32_t (*name)(void *context, const char *name);
	/* Name of an API function, NULL if its calls are not wanted. domain is enum ring_domain. */
	const char *(*function)(void *context, uint32_t domain, uint32_t cbid);
	void *context;
	int64_t clock_offset; /* added to CUPTI's times, 0 if they are CLOCK_MONOTONIC */
	bool system_tids;     /* CUPTI's thread ids are those of the kernel; otherwise they are dropped */
};

union converted {
	struct ring_record record;
	struct ring_device device;
	struct ring_kernel kernel;
	struct ring_memcpy memcpy;
	struct ring_memset memset;
	struct ring_api api;
	struct ring_sync sync;
	struct ring_overhead overhead;
};

enum convert_result {
	CONVERT_DONE,       /* *out is filled in */
	CONVERT_UNWANTED,   /* a kind or a function that nobody asked for */
	CONVERT_UNFINISHED, /* a GPU operation without times: still running, or not timed */
};

/*
 * Converts one record. [*start_ns, *end_ns] is the time it covers, 0 for those without (devices); set with
 * CONVERT_DONE only.
 */
enum convert_result converter_convert(const struct converter *converter,
                                      const struct cupti_abi_record *record, union converted *out,
                                      uint64_t *start_ns, uint64_t *end_ns);

#endif
