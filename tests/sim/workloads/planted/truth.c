/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a plant cost the device: the idle time within its stalls, less what was not the plant's doing.
 */
#include "tests/sim/workloads/planted/planted.h"

static uint64_t at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

void plant_settle(const struct plant *plant, const struct workload *workload, uint64_t *planted_ns,
                  uint64_t *contended_ns)
{
	*planted_ns = *contended_ns = 0;
	if (plant->kind->measure == MEASURE_DEVICE) {
		*planted_ns = plant->duration_ns ? idle_within(workload, 0, UINT64_MAX) : 0;
		return;
	}
	for (uint32_t i = 0; i < plant->log->count; i++) {
		const struct stall_record *stall = &plant->log->records[i];
		uint64_t idle = idle_within(workload, stall->start_ns, stall->end_ns);
		uint64_t delay = at_most(stall->delay_ns, idle), rest = idle - delay;

		switch (plant->kind->measure) {
		case MEASURE_DELAYED:
			*planted_ns += delay;
			break;
		case MEASURE_BLOCKED:
			*planted_ns += rest - at_most(stall->cpu_ns, rest);
			*contended_ns += delay;
			break;
		default:
			/* What the plant ran beside is spread over the stall like the rest of it. */
			if (stall->cpu_ns)
				rest -= (uint64_t)((double)rest * (double)stall->aside_ns /
				                   (double)stall->cpu_ns);
			*planted_ns += rest;
			*contended_ns += delay;
		}
	}
}
