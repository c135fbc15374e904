/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Growing arrays of plain values, used as
 *
 *	struct { ARRAY(struct gap) } gaps = {0};
 *	struct gap *g = array_add(&gaps);      // zeroed; NULL if memory ran out
 *	array_for_each(g, &gaps) …
 *	array_free(&gaps);
 *
 * Adding moves the items: keep indices, not pointers, while an array grows.
 */
#ifndef WHYIDLE_BASE_ARRAY_H
#define WHYIDLE_BASE_ARRAY_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY(type)                                                                                          \
	type *items;                                                                                         \
	size_t count;                                                                                        \
	size_t capacity;

/* Makes room for one more item of `size` bytes and returns its address, zeroed; NULL if memory ran out. */
void *array_grow(void **items, size_t *count, size_t *capacity, size_t size);

#define array_add(array)                                                                                     \
	((__typeof__((array)->items))array_grow((void **)&(array)->items, &(array)->count,                   \
	                                        &(array)->capacity, sizeof(*(array)->items)))

#define array_for_each(item, array)                                                                          \
	for ((item) = (array)->items; (array)->count && (item) < (array)->items + (array)->count; (item)++)

#define array_sort(array, compare)                                                                           \
	qsort_items((array)->items, (array)->count, sizeof(*(array)->items), compare)

/* qsort that allows an empty array without items, and leaves one alone that is in order: most are nearly
 * always. */
void qsort_items(void *items, size_t count, size_t size, int (*compare)(const void *, const void *));

#define array_free(array)                                                                                    \
	do {                                                                                                 \
		free((array)->items);                                                                        \
		(array)->items = NULL;                                                                       \
		(array)->count = (array)->capacity = 0;                                                      \
	} while (0)

#endif
