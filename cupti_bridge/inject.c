/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entry of the bridge. The CUDA driver loads the library named in CUDA_INJECTION64_PATH during cuInit and
 * calls InitializeInjection. Whatever happens in here, the target goes on as if nothing had: no output, no
 * signal, no exit, no change of errno, no wait that is not bounded.
 */
#include <errno.h>
#include <stdlib.h>

#include "cupti_bridge/clock.h"
#include "cupti_bridge/lifecycle.h"
#include "cupti_bridge/nvtx.h"
#include "cupti_bridge/worker.h"

static void start(const char *socket_name)
{
	struct bridge *bridge = lifecycle_bridge();
	uint64_t cpu_ns = clock_thread_cpu_ns();

	bridge_own(bridge);
	if (!collector_link_open(&bridge->link, socket_name))
		return;
	/* From here on a fork has something to leave alone. */
	if (lifecycle_connect()) {
		nvtx_begin(bridge);
		if (lifecycle_start_cupti())
			worker_start(bridge);
	}
	ring_writer_add_cost(&bridge->ring, clock_thread_cpu_ns() - cpu_ns);
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
