/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Activity buffers for CUPTI: all zero when they are handed out (so that CUPTI need not clear them on the
 * path of a launch), reused last-in first-out. They are large blocks of the C library's heap, so that a tool
 * in the target that takes CUPTI's records over, and gets buffers that are not its own, can free them
 * unharmed.
 */
#ifndef WHYIDLE_CUPTI_BUFFER_POOL_H
#define WHYIDLE_CUPTI_BUFFER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFER_POOL_SIZE ((size_t)1024 * 1024) /* bytes of a buffer */
#define BUFFER_POOL_MAX  256 /* buffers: CUPTI 12.3 and later keep one for each thread that calls CUDA */

/*
 * A buffer of *size bytes. Beyond the bound, or if the kernel gives no memory, it is the one small spare
 * buffer, and NULL if that is out too: CUPTI then drops records and counts them. Any thread; never waits for
 * a buffer.
 */
uint8_t *buffer_pool_take(size_t *size);

/* Takes a buffer back and clears its first `used` bytes. Buffers of other owners are ignored. */
void buffer_pool_give(uint8_t *buffer, size_t used);

/* Frees every buffer that is not in CUPTI's hands. */
void buffer_pool_trim(void);

#endif
