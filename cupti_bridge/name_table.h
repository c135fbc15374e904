/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small dense ids for the names of kernels, functions and devices, so that a name crosses the ring once.
 *
 * Names are compared by content: CUPTI may hand out the same address for another name once a module has been
 * unloaded. The memory is mapped, not taken from the target's heap, and bounded.
 */
#ifndef WHYIDLE_CUPTI_NAME_TABLE_H
#define WHYIDLE_CUPTI_NAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_table;

/* Announces a new name. If it returns false the name is forgotten again and its id is given to the next one.
 */
typedef bool (*name_table_define)(void *context, uint32_t id, const char *name, size_t length);

/* NULL if memory ran out. */
struct name_table *name_table_create(name_table_define define, void *context);

/* NULL is allowed. Nobody may be in name_table_id. */
void name_table_free(struct name_table *table);

/*
 * Id of `name`, of which at most RING_MAX_NAME bytes count; it is defined before this returns. 0 for NULL or
 * an empty name, if it could not be defined, or if the table is full. Any thread.
 */
uint32_t name_table_id(struct name_table *table, const char *name);

#endif
