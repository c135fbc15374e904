/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where in the target's memory things are or can be put: functions and instructions of its C library, free
 * addresses for the region, a bridge that is loaded already.
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
	uint64_t call;                                  /* of the bytes of "syscall; ret" in its code */
	uint64_t restorer;                              /* of "mov $15, %rax; syscall": rt_sigreturn */
};

/* Finds glibc and the functions that are needed. Returns a reason, with `error`. */
enum inject_reason places_c_library(const struct target_maps *maps, int memory, struct c_library *library,
                                    struct error *error);

/* True if a mapping is one of the CUDA driver library. */
bool places_has_cuda(const struct target_maps *maps);

/* Free addresses for `size` bytes, far from what grows, and different each time. 0 none. */
uint64_t places_free(const struct target_maps *maps, size_t size);

/*
 * A bridge that an earlier attachment has loaded, if its code is the same as in the file `bridge`. Returns
 * the address of its start, 0 none.
 */
uint64_t places_bridge(const struct target_maps *maps, int memory, const void *bridge, size_t bridge_bytes);

#endif
