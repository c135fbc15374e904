/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a plant cost the device: the idle time within its stalls, less what was not the plant's doing.
 */
#include "tests/sim/workloads/planted/planted.h"

static uint64_t at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

/* As much of `time` as `part` is of `whole`. */
static uint64_t in_proportion(uint64_t time, uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((double)time * (double)at_most(part, whole) / (double)whole) : 0;
}

/* The plant's part of the idle time of a stall. */
static uint64_t share_of(const struct plant *plant, const struct stall_record *stall, uint64_t idle,
                         uint64_t delay)
{
	uint64_t rest = idle - delay;

	switch (plant->kind->measure) {
	case MEASURE_DELAYED:
		return delay - in_proportion(delay, plant->elsewhere_ns, plant->loop_ns);
	case MEASURE_BLOCKED:
		/* The device was still busy when the stall began: of the CPU time as much as of the stall. */
		return rest -
		       at_most(in_proportion(stall->cpu_ns, idle, stall->end_ns - stall->start_ns), rest);
	default:
		/* What the plant ran beside is spread over the stall like the rest of it. */
		return rest - in_proportion(rest, stall->aside_ns, stall->cpu_ns);
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
		uint64_t planted = share_of(plant, stall, idle, delay);

		sum.planted_ns += planted;
		sum.beside_ns += idle_within(workload, begun, stall->end_ns) - planted;
		if (measure != MEASURE_DELAYED)
			sum.contended_ns += delay;
	}
	return sum;
}
