/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entry of the bridge. The CUDA driver loads the library named in CUDA_INJECTION64_PATH during cuInit and
 * calls InitializeInjection. Whatever happens in here, the target goes on as if nothing had: no output, no
 * signal, no exit, no change of errno, no wait that is not bounded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti_bridge/activity.h"
#include "cupti_bridge/bridge.h"
#include "cupti_bridge/clock.h"
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

	if (bridge_is_owner(&bridge) && bridge.phase == RING_PHASE_RUNNING) {
		bool flushed = worker_finish();

		if (bridge_is_wanted(&bridge))
			bridge_set_phase(&bridge, RING_PHASE_STOPPED, 0,
			                 flushed ? "" : "CUPTI did not hand over its last records in time");
	}
	__atomic_store_n(&bridge.muted, 1, __ATOMIC_RELAXED);
	errno = saved;
}

static void start_cupti(void)
{
	cupti_abi_result error = 0;
	char text[512] = "";
	bool started = false;

	cuda_driver_find(&bridge.driver);
	if (cupti_library_open(&bridge.cupti, &bridge.driver, text, sizeof(text))) {
		if (!bridge.cupti.error)
			activity_prepare(&bridge);
		bridge_say_hello(&bridge);
		started = activity_start(&bridge, &error, text, sizeof(text));
	} else {
		bridge_say_hello(&bridge);
	}
	dlerror(); /* what was looked for in vain is no concern of the target */
	bridge_set_phase(&bridge, started ? RING_PHASE_RUNNING : RING_PHASE_FAILED, error, text);
	if (started)
		worker_start(&bridge);
}

static void start(const char *socket_name)
{
	uint64_t cpu_ns = clock_thread_cpu_ns();

	bridge.pid = getpid();
	if (!collector_link_open(&bridge.link, socket_name))
		return;
	/* From here on a fork has something to leave alone. */
	ring_writer_init(&bridge.ring, bridge.link.memory, bridge.link.capacity);
	bridge.phase = RING_PHASE_CONNECTED;
	ring_writer_set_phase(&bridge.ring, RING_PHASE_CONNECTED);
	bridge.names = name_table_create(define_name, &bridge);
	if (pthread_atfork(NULL, NULL, after_fork) || atexit(at_exit) || !bridge.names) {
		bridge_set_phase(&bridge, RING_PHASE_FAILED, 0, "the target is out of memory");
		return;
	}
	start_cupti();
	ring_writer_add_cost(&bridge.ring, clock_thread_cpu_ns() - cpu_ns);
}

/* Always 1, which is what the driver wants to hear. */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	static uint32_t entered;
	const char *socket_name = secure_getenv(RING_SOCKET_ENV);
	int saved = errno;

	if (socket_name && *socket_name && !__atomic_exchange_n(&entered, 1, __ATOMIC_RELAXED))
		start(socket_name);
	errno = saved;
	return 1;
}
