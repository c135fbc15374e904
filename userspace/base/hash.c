/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

/* Four keys in a row start in one cache line: ids that count up are looked up in about that order. */
static struct index_map_slot *find_slot(const struct index_map *map, uint64_t key)
{
	size_t mask = map->capacity - 1;
	size_t at = (hash_mix(key >> 2) << 2 | (key & 3)) & mask;

	while (map->slots[at].used && map->slots[at].key != key)
		at = (at + 1) & mask;
	return &map->slots[at];
}

static int grow(struct index_map *map)
{
	struct index_map larger = {.capacity = map->capacity ? map->capacity * 2 : 64, .count = map->count};

	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->capacity; i++) {
		if (map->slots[i].used)
			*find_slot(&larger, map->slots[i].key) = map->slots[i];
	}
	free(map->slots);
	*map = larger;
	return 0;
}

int index_map_put(struct index_map *map, uint64_t key, uint32_t value)
{
	struct index_map_slot *slot;

	if (map->count >= map->capacity / 2) {
		int rc = grow(map);

		if (rc)
			return rc;
	}
	slot = find_slot(map, key);
	if (!slot->used) {
		slot->used = 1;
		slot->key = key;
		map->count++;
	}
	slot->value = value;
	return 0;
}

bool index_map_get(const struct index_map *map, uint64_t key, uint32_t *value)
{
	const struct index_map_slot *slot;

	if (!map->capacity)
		return false;
	slot = find_slot(map, key);
	if (!slot->used)
		return false;
	*value = slot->value;
	return true;
}

void index_map_free(struct index_map *map)
{
	free(map->slots);
	*map = (struct index_map){0};
}

uint64_t hash_bytes(const void *bytes, size_t length)
{
	const unsigned char *p = bytes;
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < length; i++) {
		hash ^= p[i];
		hash *= 0x100000001b3ULL;
	}
	return hash_mix(hash);
}
