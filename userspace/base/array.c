/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/array.h"

#include <stdint.h>

void *array_grow(void **items, size_t *count, size_t *capacity, size_t size)
{
	if (*count == *capacity) {
		size_t wanted = *capacity ? *capacity * 2 : 16;
		void *grown;

		if (wanted < *capacity || wanted > SIZE_MAX / size)
			return NULL;
		grown = realloc(*items, wanted * size);
		if (!grown)
			return NULL;
		*items = grown;
		*capacity = wanted;
	}
	return memset((char *)*items + (*count)++ * size, 0, size);
}

void qsort_items(void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	for (size_t i = 1; i < count; i++) {
		const char *item = (const char *)items + i * size;

		if (compare(item - size, item) > 0) {
			qsort(items, count, size, compare);
			return;
		}
	}
}
