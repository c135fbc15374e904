/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/lifecycle.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cupti_bridge/activity.h"
#include "cupti_bridge/buffer_pool.h"
#include "cupti_bridge/clock.h"
#include "cupti_bridge/devices.h"
#include "cupti_bridge/finalize.h"
#include "cupti_bridge/worker.h"

static struct bridge bridge;

/* Writes a RING_NAME record: the name table calls it before an id is used. */
static bool define_name(void *context, uint32_t id, const char *name, size_t length)
{
	struct bridge *owner = context;
	union {
		struct ring_name name;
		char space[sizeof(struct ring_name) + RING_MAX_NAME + 8];
	} record;
	size_t size = (sizeof(record.name) + length + 7) & ~(size_t)7;
	uint64_t now_ns = clock_monotonic_ns();

	record.name = (struct ring_name){
	    .record = {.size = (uint32_t)size, .type = RING_NAME},
	    .id = id,
	    .length = (uint32_t)length,
	};
	memset(record.space + sizeof(record.name), 0, size - sizeof(record.name));
	memcpy(record.name.name, name, length);
	return ring_writer_put(&owner->ring, &record.name.record, now_ns, now_ns);
}

/* In a forked child: silent for good. The child's CUDA does not work anyway; its parent's ring is not its
 * own. */
static void after_fork(void)
{
	__atomic_store_n(&bridge.forked, 1, __ATOMIC_RELAXED);
	collector_link_drop(&bridge.link);
}

static void at_exit(void)
{
	int saved = errno;

	__atomic_store_n(&bridge.exiting, 1, __ATOMIC_RELAXED);
	if (bridge_is_owner(&bridge))
		activity_forbid_finalize();
	if (bridge_is_owner(&bridge) && bridge.phase == RING_PHASE_RUNNING) {
		bool flushed = worker_finish();

		if (bridge_is_wanted(&bridge))
			bridge_set_phase(&bridge, RING_PHASE_STOPPED, 0,
			                 flushed ? "" : "CUPTI did not hand over its last records in time");
	}
	__atomic_store_n(&bridge.muted, 1, __ATOMIC_RELAXED);
	errno = saved;
}

struct bridge *lifecycle_bridge(void)
{
	return &bridge;
}

bool lifecycle_connect(void)
{
	static bool hooked;

	ring_writer_init(&bridge.ring, bridge.link.memory, bridge.link.capacity);
	bridge.phase = RING_PHASE_CONNECTED;
	ring_writer_set_phase(&bridge.ring, RING_PHASE_CONNECTED);
	bridge.names = name_table_create(define_name, &bridge);
	if (!hooked && !pthread_atfork(NULL, NULL, after_fork) && !atexit(at_exit))
		hooked = true;
	if (hooked && bridge.names)
		return true;
	bridge_set_phase(&bridge, RING_PHASE_FAILED, 0, "the target is out of memory");
	return false;
}

bool lifecycle_start_cupti(void)
{
	cupti_abi_result error = 0;
	char text[512] = "";
	bool started = false;

	cuda_driver_find(&bridge.driver);
	if (bridge.late && !cuda_driver_is_initialised()) {
		bridge_say_hello(&bridge);
		snprintf(text, sizeof(text), "CUDA has not been initialised in it yet: try again later");
	} else if (finalize_is_under_way()) {
		bridge_say_hello(&bridge);
		snprintf(text, sizeof(text),
		         "CUPTI is still being finalised after an earlier recording: try again later");
	} else if (cupti_library_open(&bridge.cupti, &bridge.driver, text, sizeof(text))) {
		if (!bridge.cupti.error)
			activity_prepare(&bridge);
		bridge_say_hello(&bridge);
		if (bridge.late) /* the program's own initialisation is over: CUPTI may not tell them again */
			devices_announce(&bridge);
		started = activity_start(&bridge, &error, text, sizeof(text));
	} else {
		bridge_say_hello(&bridge);
	}
	dlerror(); /* what was looked for in vain is no concern of the target */
	bridge.start_error = error;
	bridge_set_phase(&bridge, started ? RING_PHASE_RUNNING : RING_PHASE_FAILED, error, text);
	return started;
}

bool lifecycle_start_cupti_again(void)
{
	char text[512] = "";

	if (!activity_start_again(&bridge, &bridge.start_error, text, sizeof(text)))
		return false;
	bridge_set_phase(&bridge, RING_PHASE_RUNNING, 0, text);
	return true;
}

void lifecycle_disconnect(void)
{
	size_t size = RING_CONTROL_SIZE + bridge.link.capacity;

	__atomic_store_n(&bridge.muted, 1, __ATOMIC_RELAXED);
	if (!activity_leave())
		return; /* a callback is still at it: better to leave it the memory */
	munmap(bridge.link.memory, size);
	bridge.link.memory = NULL;
	name_table_free(bridge.names);
	bridge.names = NULL;
	buffer_pool_trim();
}
