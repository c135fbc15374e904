/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A map from 64-bit keys to 32-bit values (indices into arrays): open addressing, linear probing, no removal.
 *
 *	struct index_map map = {0};
 *	index_map_put(&map, key, value);            // 0 or -ENOMEM; replaces an older value
 *	if (index_map_get(&map, key, &value)) …     // true if there
 *	index_map_free(&map);
 */
#ifndef WHYIDLE_BASE_HASH_H
#define WHYIDLE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct index_map {
	struct index_map_slot {
		uint64_t key;
		uint32_t value;
		uint32_t used;
	} * slots;
	size_t count;
	size_t capacity; /* power of two, 0 before the first put */
};

int index_map_put(struct index_map *map, uint64_t key, uint32_t value);
bool index_map_get(const struct index_map *map, uint64_t key, uint32_t *value);
void index_map_free(struct index_map *map);

/* Spreads the bits of a key (the finaliser of MurmurHash3, 64 bit). */
static inline uint64_t hash_mix(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdULL;
	key ^= key >> 33;
	key *= 0xc4ceb9fe1a85ec53ULL;
	return key ^ key >> 33;
}

/* Hash of a run of bytes (FNV-1a, 64 bit, then mixed). */
uint64_t hash_bytes(const void *bytes, size_t length);

#endif
