/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a plant cost the device: the idle time within its stalls, less what was not the plant's doing.
 */
#include "tests/sim/workloads/planted/planted.h"

static uint64_t at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

/* The plant's part of the idle time of a stall. */
static uint64_t share_of(enum measure measure, const struct stall_record *stall, uint64_t idle,
                         uint64_t delay)
{
	uint64_t rest = idle - delay;

	switch (measure) {
	case MEASURE_DELAYED:
		return delay;
	case MEASURE_BLOCKED:
		return rest - at_most(stall->cpu_ns, rest);
	default:
		/* What the plant ran beside is spread over the stall like the rest of it. */
		if (stall->cpu_ns)
			rest -= (uint64_t)((double)rest * (double)stall->aside_ns / (double)stall->cpu_ns);
		return rest;
	}
}

struct settlement plant_settle(const struct plant *plant, const struct workload *workload)
{
	enum measure measure = plant->kind->measure;
	struct settlement sum = {0};

	if (measure == MEASURE_DEVICE) {
		sum.planted_ns = plant->duration_ns ? idle_within(workload, 0, UINT64_MAX) : 0;
		return sum;
	}
	for (uint32_t i = 0; i < plant->log->count; i++) {
		const struct stall_record *stall = &plant->log->records[i];
		uint64_t begun = at_most(stall->begun_ns, stall->start_ns);
		uint64_t idle = idle_within(workload, stall->start_ns, stall->end_ns);
		uint64_t delay = at_most(stall->delay_ns, idle);
		uint64_t planted = share_of(measure, stall, idle, delay);

		sum.planted_ns += planted;
		sum.beside_ns += idle_within(workload, begun, stall->end_ns) - planted;
		if (measure != MEASURE_DELAYED)
			sum.contended_ns += delay;
	}
	return sum;
}
