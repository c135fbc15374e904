/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The buffers of the simulated CUPTI: asked of the client, filled in order, handed back by a worker thread
 * ("cupti-worker") when full or flushed. Without a buffer records are dropped and counted.
 *
 * The client's functions are called without any lock held.
 */
#ifndef WHYIDLE_SIM_CUPTI_RECORDS_H
#define WHYIDLE_SIM_CUPTI_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti_bridge/cupti_abi.h"

void records_register(cupti_abi_buffer_requested requested, cupti_abi_buffer_completed completed);
bool records_registered(void);

/* Copies a record of `size` bytes (a multiple of 8) into the client's buffer. */
void records_put(const void *record, size_t size);

/*
 * Hands over what was put so far. Returns once the client's function has returned for all of it; called from
 * that function itself it only hands over. Returns the number of records that were not overhead records.
 */
size_t records_flush(void);
/* The worker flushes by itself that often; 0: not. */
void records_flush_period(uint32_t milliseconds);

/* Hands every buffer back, asks for no more, and ends the worker (records_register starts another). */
void records_end(void);

/* Records dropped since the last call. */
size_t records_take_dropped(void);

/* In a forked child: forget everything, there is no worker. */
void records_forget(void);

/* Bytes of a record of that kind, 0 if unknown. */
size_t record_size(uint32_t kind);

#endif
