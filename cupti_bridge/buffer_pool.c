/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/buffer_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_SIZE ((size_t)64 * 1024)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *all[BUFFER_POOL_MAX]; /* every buffer allocated and not freed */
static uint32_t all_count;
static uint8_t *idle[BUFFER_POOL_MAX]; /* stack of those not in CUPTI's hands */
static uint32_t idle_count;
static _Alignas(64) uint8_t spare[SPARE_SIZE];
static bool spare_taken;

uint8_t *buffer_pool_take(size_t *size)
{
	uint8_t *buffer = NULL;

	*size = BUFFER_POOL_SIZE;
	pthread_mutex_lock(&lock);
	if (idle_count) {
		buffer = idle[--idle_count];
	} else if (all_count < BUFFER_POOL_MAX) {
		/* From the heap, because another user of CUPTI in the program that takes the records over
		 * without asking gets our buffers too, and what such code does with a buffer is to free it.
		 */
		buffer = calloc(1, BUFFER_POOL_SIZE);
		if (buffer)
			all[all_count++] = buffer;
	}
	if (!buffer && !spare_taken) {
		spare_taken = true;
		buffer = spare;
		*size = SPARE_SIZE;
	}
	pthread_mutex_unlock(&lock);
	return buffer;
}

static bool is_ours(const uint8_t *buffer)
{
	for (uint32_t i = 0; i < all_count; i++)
		if (all[i] == buffer)
			return true;
	return false;
}

void buffer_pool_give(uint8_t *buffer, size_t used)
{
	bool ours;

	if (buffer == spare) {
		memset(spare, 0, used < SPARE_SIZE ? used : SPARE_SIZE);
		pthread_mutex_lock(&lock);
		spare_taken = false;
		pthread_mutex_unlock(&lock);
		return;
	}
	pthread_mutex_lock(&lock);
	ours = is_ours(buffer);
	pthread_mutex_unlock(&lock);
	if (!ours)
		return;
	memset(buffer, 0, used < BUFFER_POOL_SIZE ? used : BUFFER_POOL_SIZE);
	pthread_mutex_lock(&lock);
	if (idle_count < BUFFER_POOL_MAX)
		idle[idle_count++] = buffer;
	pthread_mutex_unlock(&lock);
}

void buffer_pool_trim(void)
{
	pthread_mutex_lock(&lock);
	while (idle_count) {
		uint8_t *buffer = idle[--idle_count];

		for (uint32_t i = 0; i < all_count; i++) {
			if (all[i] != buffer)
				continue;
			all[i] = all[--all_count];
			break;
		}
		free(buffer);
	}
	pthread_mutex_unlock(&lock);
}
