/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/name_table.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "cupti_bridge/ring.h"

#define TABLE_SLOTS (1u << 16)                 /* open addressing, at most three quarters full */
#define TABLE_BYTES ((size_t)16 * 1024 * 1024) /* of name entries; pages are taken as they are touched */
#define CACHE_SLOTS 1024u

struct name_entry {
	uint64_t hash;
	uint32_t id;
	uint32_t length;
	char name[];
};

/* The address at which a name was last seen: spares the hash, not the comparison. */
struct cache_slot {
	const char *name;
	const struct name_entry *entry;
};

struct name_table {
	pthread_mutex_t lock;
	name_table_define define;
	void *context;
	uint32_t count;
	size_t used; /* bytes of `entries` */
	struct cache_slot cache[CACHE_SLOTS];
	uint32_t slots[TABLE_SLOTS]; /* offset of an entry in 8-byte units, plus 1; 0 free */
	_Alignas(8) uint8_t entries[TABLE_BYTES];
};

struct name_table *name_table_create(name_table_define define, void *context)
{
	struct name_table *table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
	                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (table == MAP_FAILED)
		return NULL;
	pthread_mutex_init(&table->lock, NULL);
	table->define = define;
	table->context = context;
	return table;
}

void name_table_free(struct name_table *table)
{
	if (table)
		munmap(table, sizeof(*table));
}

static uint64_t hash_name(const char *name, size_t length)
{
	uint64_t hash = length * 0x9e3779b97f4a7c15u;

	while (length) {
		size_t taken = length < sizeof(uint64_t) ? length : sizeof(uint64_t);
		uint64_t word = 0;

		memcpy(&word, name, taken);
		hash = (hash ^ word) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
		name += taken;
		length -= taken;
	}
	return hash;
}

static bool entry_is(const struct name_entry *entry, const char *name, size_t length)
{
	return entry->length == length && !memcmp(entry->name, name, length);
}

/* The slot of the name, or the free one where it belongs. */
static uint32_t *find_slot(struct name_table *table, const char *name, size_t length, uint64_t hash)
{
	for (uint32_t i = (uint32_t)hash;; i++) {
		uint32_t *slot = &table->slots[i % TABLE_SLOTS];
		const struct name_entry *entry;

		if (!*slot)
			return slot;
		entry = (const struct name_entry *)(table->entries + (size_t)(*slot - 1) * 8);
		if (entry->hash == hash && entry_is(entry, name, length))
			return slot;
	}
}

static const struct name_entry *add_entry(struct name_table *table, uint32_t *slot, const char *name,
                                          size_t length, uint64_t hash)
{
	size_t size = (sizeof(struct name_entry) + length + 7) & ~(size_t)7;
	struct name_entry *entry;

	if (table->count >= TABLE_SLOTS / 4 * 3 || table->used + size > TABLE_BYTES)
		return NULL;
	if (!table->define(table->context, table->count + 1, name, length))
		return NULL;
	entry = (struct name_entry *)(table->entries + table->used);
	entry->hash = hash;
	entry->id = ++table->count;
	entry->length = (uint32_t)length;
	memcpy(entry->name, name, length);
	*slot = (uint32_t)(table->used / 8) + 1;
	table->used += size;
	return entry;
}

static const struct name_entry *find_or_add(struct name_table *table, const char *name, size_t length)
{
	uint64_t hash = hash_name(name, length);
	uint32_t *slot = find_slot(table, name, length, hash);

	if (*slot)
		return (const struct name_entry *)(table->entries + (size_t)(*slot - 1) * 8);
	return add_entry(table, slot, name, length, hash);
}

uint32_t name_table_id(struct name_table *table, const char *name)
{
	size_t length = name ? strnlen(name, RING_MAX_NAME) : 0;
	struct cache_slot *cached;
	const struct name_entry *entry;

	if (!length)
		return 0;
	cached = &table->cache[((uintptr_t)name >> 3) % CACHE_SLOTS];
	pthread_mutex_lock(&table->lock);
	entry = cached->entry;
	if (cached->name != name || !entry_is(entry, name, length)) {
		entry = find_or_add(table, name, length);
		if (entry) {
			cached->name = name;
			cached->entry = entry;
		}
	}
	pthread_mutex_unlock(&table->lock);
	return entry ? entry->id : 0;
}
