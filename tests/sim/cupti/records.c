/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/sim/cupti/records.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct buffer {
	struct buffer *next;
	uint8_t *bytes;
	size_t size, used;
	size_t max_records, records; /* max 0: as many as fit */
	size_t payload;              /* records but those on overhead */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;    /* for the worker */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* for those who wait for it */
static cupti_abi_buffer_requested client_requested;
static cupti_abi_buffer_completed client_completed;
static struct buffer *current;
static struct buffer *full, **full_end = &full;
static uint64_t handed_over, delivered; /* buffers */
static bool requesting;                 /* a thread is in client_requested */
static bool worker_runs, worker_ends;
static pthread_t worker;
static uint32_t period_ms;
static size_t dropped;

size_t record_size(uint32_t kind)
{
	switch (kind) {
	case CUPTI_ABI_KIND_KERNEL:
	case CUPTI_ABI_KIND_CONCURRENT_KERNEL:
		return sizeof(struct cupti_abi_kernel);
	case CUPTI_ABI_KIND_MEMCPY:
		return sizeof(struct cupti_abi_memcpy);
	case CUPTI_ABI_KIND_MEMCPY2:
		return sizeof(struct cupti_abi_memcpy_peer);
	case CUPTI_ABI_KIND_MEMSET:
		return sizeof(struct cupti_abi_memset);
	case CUPTI_ABI_KIND_DRIVER:
	case CUPTI_ABI_KIND_RUNTIME:
		return sizeof(struct cupti_abi_api);
	case CUPTI_ABI_KIND_DEVICE:
		return sizeof(struct cupti_abi_device);
	case CUPTI_ABI_KIND_OVERHEAD:
		return sizeof(struct cupti_abi_overhead);
	case CUPTI_ABI_KIND_SYNCHRONIZATION:
		return sizeof(struct cupti_abi_sync);
	default:
		return 0;
	}
}

/* Lock held */

static void hand_over(struct buffer *buffer)
{
	current = NULL;
	*full_end = buffer;
	full_end = &buffer->next;
	handed_over++;
	pthread_cond_signal(&work);
}

static void hand_over_current(void)
{
	if (current && current->used)
		hand_over(current);
}

static bool has_room(const struct buffer *buffer, size_t size)
{
	return buffer->size - buffer->used >= size &&
	       (!buffer->max_records || buffer->records < buffer->max_records);
}

/* Asks the client, with the lock let go. NULL: it gave none, or none that is of use. */
static struct buffer *request_buffer(size_t least)
{
	cupti_abi_buffer_requested requested = client_requested;
	struct buffer *buffer;
	uint8_t *bytes = NULL;
	size_t size = 0, max_records = 0;

	if (!requested)
		return NULL;
	requesting = true;
	pthread_mutex_unlock(&lock);
	requested(&bytes, &size, &max_records);
	buffer = bytes && size >= least && !((uintptr_t)bytes & 7) ? calloc(1, sizeof(*buffer)) : NULL;
	pthread_mutex_lock(&lock);
	requesting = false;
	pthread_cond_broadcast(&changed);
	if (buffer)
		*buffer = (struct buffer){.bytes = bytes, .size = size, .max_records = max_records};
	return buffer;
}

void records_put(const void *record, size_t size)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		if (current && has_room(current, size))
			break;
		hand_over_current();
		if (requesting) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		current = request_buffer(size);
		if (!current) {
			dropped++;
			pthread_mutex_unlock(&lock);
			return;
		}
	}
	memcpy(current->bytes + current->used, record, size);
	current->used += size;
	current->records++;
	current->payload += ((const struct cupti_abi_record *)record)->kind != CUPTI_ABI_KIND_OVERHEAD;
	pthread_mutex_unlock(&lock);
}

/* The worker */

static void deliver_next(void)
{
	struct buffer *buffer = full;

	full = buffer->next;
	if (!full)
		full_end = &full;
	pthread_mutex_unlock(&lock);
	client_completed(NULL, 0, buffer->bytes, buffer->size, buffer->used);
	free(buffer);
	pthread_mutex_lock(&lock);
	delivered++;
	pthread_cond_broadcast(&changed);
}

static void wait_for_work(void)
{
	struct timespec until;

	if (!period_ms) {
		pthread_cond_wait(&work, &lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += period_ms / 1000;
	until.tv_nsec += (long)(period_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	if (pthread_cond_timedwait(&work, &lock, &until) == ETIMEDOUT)
		hand_over_current();
}

static void *worker_main(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		if (full)
			deliver_next();
		else if (worker_ends)
			break;
		else
			wait_for_work();
	}
	worker_runs = worker_ends = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return unused;
}

void records_register(cupti_abi_buffer_requested requested, cupti_abi_buffer_completed completed)
{
	sigset_t every, before;

	pthread_mutex_lock(&lock);
	client_requested = requested;
	client_completed = completed;
	if (!worker_runs) {
		sigfillset(&every);
		pthread_sigmask(SIG_SETMASK, &every, &before);
		worker_runs = !pthread_create(&worker, NULL, worker_main, NULL);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (worker_runs) {
			pthread_setname_np(worker, "cupti-worker");
			pthread_detach(worker);
		} else {
			client_requested = NULL; /* nobody could hand buffers back: drop and count */
		}
	}
	pthread_mutex_unlock(&lock);
}

bool records_registered(void)
{
	bool registered;

	pthread_mutex_lock(&lock);
	registered = client_completed != NULL;
	pthread_mutex_unlock(&lock);
	return registered;
}

size_t records_flush(void)
{
	uint64_t target;
	size_t payload;

	pthread_mutex_lock(&lock);
	payload = current ? current->payload : 0;
	hand_over_current();
	target = handed_over;
	if (worker_runs && !pthread_equal(worker, pthread_self()))
		while (delivered < target)
			pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return payload;
}

void records_flush_period(uint32_t milliseconds)
{
	pthread_mutex_lock(&lock);
	period_ms = milliseconds;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

void records_end(void)
{
	pthread_mutex_lock(&lock);
	client_requested = NULL;
	if (current) /* also if it is empty: it is the client's */
		hand_over(current);
	if (worker_runs && !pthread_equal(worker, pthread_self())) {
		worker_ends = true;
		pthread_cond_signal(&work);
		while (worker_runs)
			pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
}

size_t records_take_dropped(void)
{
	size_t count;

	pthread_mutex_lock(&lock);
	count = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return count;
}

void records_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	client_requested = NULL;
	client_completed = NULL;
	current = full = NULL;
	full_end = &full;
	handed_over = delivered = 0;
	requesting = worker_runs = worker_ends = false;
}
