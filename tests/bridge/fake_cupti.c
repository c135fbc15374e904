/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A CUPTI that misbehaves in ways that neither the real one nor the simulator can be made to, chosen by
 *FAKE_CUPTI:
 *
 *	old         version of CUDA 11.8, without the optional functions: own clock, whole API kinds, no
 *system tids stuck       cuptiActivityFlushAll never returns refuse      kernels are refused for lack of
 *privileges partial     synchronisation and overhead records are refused late        hands over a buffer
 *after the last flush, from a thread of its own ancient     too old to be used
 *
 * Each flush hands over one buffer with a kernel, its launch and a call that nobody asked for. Times are of
 * CLOCK_REALTIME unless the bridge has given it another clock.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cupti_bridge/cupti_abi.h"

#define EXPORT __attribute__((visibility("default")))

static cupti_abi_buffer_requested requested;
static cupti_abi_buffer_completed completed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t correlation;

static bool is(const char *mode)
{
	const char *wanted = getenv("FAKE_CUPTI");

	return wanted && !strcmp(wanted, mode);
}

static uint64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

EXPORT cupti_abi_result cuptiGetVersion(uint32_t *version)
{
	*version = is("ancient") ? 10 : 18;
	return CUPTI_ABI_SUCCESS;
}

EXPORT cupti_abi_result cuptiSubscribe(cupti_abi_subscriber *subscriber, cupti_abi_callback callback,
                                       void *userdata)
{
	(void)callback;
	(void)userdata;
	*subscriber = &correlation;
	return CUPTI_ABI_SUCCESS;
}

EXPORT cupti_abi_result cuptiUnsubscribe(cupti_abi_subscriber subscriber)
{
	(void)subscriber;
	return CUPTI_ABI_SUCCESS;
}

static void hand_over(void)
{
	struct cupti_abi_kernel *kernel;
	struct cupti_abi_api *calls;
	size_t size = 0, max = 0;
	uint8_t *buffer = NULL;
	uint64_t now = real_ns();

	requested(&buffer, &size, &max);
	if (!buffer)
		return;
	correlation++;
	kernel = (struct cupti_abi_kernel *)buffer;
	*kernel = (struct cupti_abi_kernel){
	    .kind = CUPTI_ABI_KIND_CONCURRENT_KERNEL,
	    .start = now - 2000,
	    .end = now - 1000,
	    .correlation = correlation,
	    .name = "fake",
	};
	calls = (struct cupti_abi_api *)(kernel + 1);
	calls[0] = (struct cupti_abi_api){
	    .kind = CUPTI_ABI_KIND_RUNTIME,
	    .cbid = 211,
	    .start = now - 4000,
	    .end = now - 3000,
	    .thread = 12345,
	    .correlation = correlation,
	};
	calls[1] = calls[0];
	calls[1].cbid = 10; /* cudaGetLastError */
	completed(NULL, 0, buffer, size, sizeof(*kernel) + 2 * sizeof(*calls));
}

static void *hand_over_late(void *unused)
{
	(void)unused;
	for (;;) {
		pthread_mutex_lock(&lock);
		hand_over();
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

EXPORT cupti_abi_result cuptiActivityRegisterCallbacks(cupti_abi_buffer_requested buffer_requested,
                                                       cupti_abi_buffer_completed buffer_completed)
{
	requested = buffer_requested;
	completed = buffer_completed;
	return CUPTI_ABI_SUCCESS;
}

EXPORT cupti_abi_result cuptiActivityEnable(cupti_abi_kind kind)
{
	if (is("refuse") && kind == CUPTI_ABI_KIND_CONCURRENT_KERNEL)
		return CUPTI_ABI_ERROR_INSUFFICIENT_PRIVILEGES;
	if (is("partial") && (kind == CUPTI_ABI_KIND_SYNCHRONIZATION || kind == CUPTI_ABI_KIND_OVERHEAD))
		return CUPTI_ABI_ERROR_INVALID_KIND;
	return CUPTI_ABI_SUCCESS;
}

EXPORT cupti_abi_result cuptiActivityDisable(cupti_abi_kind kind)
{
	(void)kind;
	return CUPTI_ABI_SUCCESS;
}

EXPORT cupti_abi_result cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_size,
                                                   struct cupti_abi_record **record)
{
	uint8_t *next = buffer;

	if (*record) {
		next = (uint8_t *)*record;
		next += (*record)->kind == CUPTI_ABI_KIND_CONCURRENT_KERNEL ? sizeof(struct cupti_abi_kernel)
		                                                            : sizeof(struct cupti_abi_api);
	}
	if (next >= buffer + valid_size)
		return CUPTI_ABI_ERROR_MAX_LIMIT_REACHED;
	*record = (struct cupti_abi_record *)next;
	return CUPTI_ABI_SUCCESS;
}

EXPORT cupti_abi_result cuptiActivityGetNumDroppedRecords(cupti_abi_context context, uint32_t stream,
                                                          size_t *dropped)
{
	(void)context;
	(void)stream;
	*dropped = correlation == 1 ? 7 : 0;
	return CUPTI_ABI_SUCCESS;
}

EXPORT cupti_abi_result cuptiActivityFlushAll(uint32_t flag)
{
	pthread_t thread;

	(void)flag;
	while (is("stuck"))
		pause();
	if (is("late") && correlation == 0)
		pthread_create(&thread, NULL, hand_over_late, NULL);
	pthread_mutex_lock(&lock);
	hand_over();
	pthread_mutex_unlock(&lock);
	return CUPTI_ABI_SUCCESS;
}

EXPORT cupti_abi_result cuptiGetTimestamp(uint64_t *timestamp)
{
	*timestamp = real_ns();
	return CUPTI_ABI_SUCCESS;
}
