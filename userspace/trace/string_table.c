/* SPDX-License-Identifier: GPL-2.0-only */
#include "trace/string_table.h"

#include <stdlib.h>
#include <string.h>

/*
 * Id of the string, or 0 with *key set to the free key under which it belongs. The map holds one id a key, so
 * strings whose hashes collide get keys derived from it, in the order in which they came.
 */
static uint32_t find(const struct string_table *table, const char *text, uint32_t length, uint64_t *key)
{
	uint32_t id;

	*key = table->hash ? table->hash(text, length) : hash_bytes(text, length);
	while (index_map_get(&table->ids, *key, &id)) {
		const struct string_entry *entry = &table->entries.items[id - 1];

		if (entry->length == length && !memcmp(table->bytes + entry->offset, text, length))
			return id;
		*key += 0x9e3779b97f4a7c15ULL; /* odd: never comes back to a key it had */
	}
	return 0;
}

static bool reserve_bytes(struct string_table *table, size_t length)
{
	size_t wanted = table->bytes_capacity ? table->bytes_capacity : 4096;
	char *grown;

	if (table->bytes_used + length <= table->bytes_capacity)
		return true;
	while (wanted < table->bytes_used + length)
		wanted *= 2;
	grown = realloc(table->bytes, wanted);
	if (!grown)
		return false;
	table->bytes = grown;
	table->bytes_capacity = wanted;
	return true;
}

uint32_t string_table_add(struct string_table *table, const char *text, uint32_t length)
{
	struct string_entry *entry;
	uint64_t key;
	uint32_t id = find(table, text, length, &key);

	if (id)
		return id;
	if (table->entries.count >= UINT32_MAX || !reserve_bytes(table, length))
		return 0;
	entry = array_add(&table->entries);
	if (!entry)
		return 0;
	if (index_map_put(&table->ids, key, (uint32_t)table->entries.count)) {
		table->entries.count--;
		return 0;
	}
	entry->offset = table->bytes_used;
	entry->length = length;
	memcpy(table->bytes + table->bytes_used, text, length);
	table->bytes_used += length;
	return (uint32_t)table->entries.count;
}

const char *string_table_text(const struct string_table *table, uint32_t id, uint32_t *length)
{
	const struct string_entry *entry = &table->entries.items[id - 1];

	*length = entry->length;
	return table->bytes + entry->offset;
}

void string_table_free(struct string_table *table)
{
	array_free(&table->entries);
	free(table->bytes);
	index_map_free(&table->ids);
	table->bytes = NULL;
	table->bytes_used = table->bytes_capacity = 0;
}
