// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/triggers.h"

#define RATE_SMOOTH  0.3 /* weight of the newest window in what a process usually launches */
#define RATE_WINDOWS 3   /* windows before that is known */
#define LEAST_RATE   10.0
#define STEPS_LEAST  5

const char *trigger_name(enum trigger trigger)
{
	static const char *const names[TRIGGER_COUNT] = {"idle", "gap", "step", "rate"};

	return names[trigger];
}

static bool idle_holds(struct triggers *triggers, const struct trigger_config *config,
                       const struct window_result *result, uint64_t start_ns, uint64_t end_ns)
{
	/* A window in which no GPU was seen says nothing. */
	if (!config->idle_ppm)
		return false;
	if (!result->observed_ns)
		return triggers->holds[TRIGGER_IDLE];
	if ((double)result->idle_ns / result->observed_ns * 1e6 <= config->idle_ppm) {
		triggers->idle_since_ns = 0;
		return false;
	}
	if (!triggers->idle_since_ns)
		triggers->idle_since_ns = start_ns;
	return end_ns - triggers->idle_since_ns >= config->idle_time_ns;
}

static bool step_holds(const struct trigger_config *config, const struct window_result *result)
{
	return config->step_percent && result->steps >= STEPS_LEAST &&
	       result->step_longest_ns * 100 > result->step_median_ns * config->step_percent;
}

static uint64_t launches_of(const struct window_result *result, uint32_t pid)
{
	const struct process_result *process;

	array_for_each (process, &result->processes) {
		if (process->pid == pid)
			return process->launches;
	}
	return 0;
}

/* While a process launches too little, what is usual stays as it was for some time. */
static bool rate_falls(const struct trigger_config *config, const struct window_result *result,
                       struct target *target, double seconds)
{
	double rate = launches_of(result, target->pid) / seconds, usual = target->launch_rate;
	bool falls = config->rate_ppm && target->launches_seen >= RATE_WINDOWS && usual >= LEAST_RATE &&
	             rate < usual * config->rate_ppm / 1e6;

	target->launches_seen++;
	target->launch_rate = usual ? usual + RATE_SMOOTH * (falls ? 0.3 : 1) * (rate - usual) : rate;
	return falls;
}

unsigned triggers_judge(struct triggers *triggers, const struct trigger_config *config,
                        const struct window_result *result, struct targets *targets, uint64_t start_ns,
                        uint64_t length_ns)
{
	bool holds[TRIGGER_COUNT] = {false};
	struct target *target;
	unsigned fired = 0;

	holds[TRIGGER_IDLE] = idle_holds(triggers, config, result, start_ns, start_ns + length_ns);
	holds[TRIGGER_GAP] = config->gap_ns && result->longest_gap_ns > config->gap_ns;
	holds[TRIGGER_STEP] = step_holds(config, result);
	array_for_each (target, &targets->items)
		holds[TRIGGER_RATE] |= rate_falls(config, result, target, length_ns / 1e9);
	for (int i = 0; i < TRIGGER_COUNT; i++) {
		if (holds[i] && !triggers->holds[i])
			fired |= 1u << i;
		triggers->holds[i] = holds[i];
	}
	return fired;
}

bool triggers_may_keep(struct triggers *triggers, const struct trigger_config *config, uint64_t now_ns)
{
	if (triggers->kept_ns && now_ns - triggers->kept_ns < config->pause_ns)
		return false;
	triggers->kept_ns = now_ns;
	return true;
}

bool triggers_want_window(const struct triggers *triggers)
{
	return triggers->idle_since_ns && !triggers->holds[TRIGGER_IDLE];
}
