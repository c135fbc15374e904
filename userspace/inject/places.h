/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where in the target's memory things are or can be put: functions of its C library, unused bytes of code for
 * the payload, free addresses for the region, a bridge that is loaded already.
 */
#ifndef WHYIDLE_INJECT_PLACES_H
#define WHYIDLE_INJECT_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "inject/payload.h"
#include "inject/target.h"

#define PLACES_BRIDGE_NAME "memfd:whyidle-bridge" /* as the mappings show it */

struct c_library {
	const struct target_mapping *library, *threads; /* code of libc and, before 2.34, of libpthread */
	struct payload_constants calls;                 /* the addresses in it */
};

/* Finds glibc and the functions that are needed. Returns a reason, with `error`. */
enum inject_reason places_c_library(const struct target_maps *maps, int memory, struct c_library *library,
                                    struct error *error);

/* True if a mapping is one of the CUDA driver library. */
bool places_has_cuda(const struct target_maps *maps);

/*
 * Address of `size` bytes that lie behind the code of a library in its last page, and are zero: the file has
 * nothing there that is used. The C library comes first. 0 none.
 */
uint64_t places_unused_code(const struct target_maps *maps, int memory, const struct c_library *library,
                            size_t size);

/* Free addresses for `size` bytes, far from what grows. 0 none. */
uint64_t places_free(const struct target_maps *maps, size_t size);

/*
 * A bridge that an earlier attachment has loaded, if its code is the same as in the file `bridge`. Returns
 * the address of its start, 0 none.
 */
uint64_t places_bridge(const struct target_maps *maps, int memory, const void *bridge, size_t bridge_bytes);

#endif
