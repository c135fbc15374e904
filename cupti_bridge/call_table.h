/* SPDX-License-Identifier: GPL-2.0-only */
/* Which CUDA API functions are recorded, and their names (cupti_calls.h and what a later CUPTI adds). */
#ifndef WHYIDLE_CUPTI_CALL_TABLE_H
#define WHYIDLE_CUPTI_CALL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/cupti_abi.h"

/* A bound on callback ids, so that a table can be made of them. */
#define CALL_TABLE_SIZE 2048

/* Name of a function that is recorded, NULL for all others. domain is CUPTI_ABI_DOMAIN_RUNTIME or _DRIVER. */
const char *call_table_name(uint32_t domain, uint32_t cbid);

/*
 * Adds the functions that are newer than cupti_calls.h but, going by their names, are another version of a
 * function in it ("cudaMemcpyAsync_v14000"). `name` may be NULL. Call once, before any record is read.
 */
void call_table_extend(cupti_abi_cuptiGetCallbackName name);

#endif
