/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Strings by id and ids by string: dense ids from 1, bytes of any value, never forgotten.
 */
#ifndef WHYIDLE_TRACE_STRING_TABLE_H
#define WHYIDLE_TRACE_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/hash.h"

struct string_table {
	struct {
		ARRAY(struct string_entry {
			size_t offset;
			uint32_t length;
		})
	} entries; /* id - 1 */
	char *bytes;
	size_t bytes_used, bytes_capacity;
	struct index_map ids; /* by hash, or by a key derived from it on a collision */
	uint64_t (*hash)(const void *bytes, size_t length); /* NULL: hash_bytes. A seam for tests */
};

/* Id of the string, added if it is new; 0 if memory ran out (the table is then as it was). */
uint32_t string_table_add(struct string_table *table, const char *text, uint32_t length);

/* Bytes of string `id` (1 … entries.count), valid until the next add. */
const char *string_table_text(const struct string_table *table, uint32_t id, uint32_t *length);

void string_table_free(struct string_table *table);

#endif
