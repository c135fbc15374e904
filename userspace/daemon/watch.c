// SPDX-License-Identifier: GPL-2.0-only
/* What the daemon does once a second: looks for processes, reads the counters, charges what was spent. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "bpf/settings.h"
#include "collect/bpf_source.h"
#include "collect/counters.h"
#include "collect/discover.h"
#include "collect/probe_cost.h"
#include "collect/process_info.h"
#include "daemon/families.h"
#include "daemon/state.h"

#define LOOK_FIRST_NS  SECOND_NS
#define LOOK_LAST_NS   (4 * SECOND_NS)
#define SERIES_LIFE_NS (900 * SECOND_NS) /* a series that nothing was added to for so long goes */

/* ---- opening ---- */

static void on_degraded(void *context, const char *what)
{
	daemon_log(context, DAEMON_WARNING, "degraded", NULL, "%s", what);
}

void watch_identity(struct identity *identity, uint32_t pid)
{
	char text[PROCESS_CGROUP_TEXT];

	process_cgroups(pid, text);
	identity_from_cgroup(identity, text);
	process_name(pid, identity->process, sizeof(identity->process));
}

/* A process is watched once it has started CUDA. */
static void on_found(void *context, struct discovered *process, bool again)
{
	struct daemon *daemon = context;
	const struct target *target;
	struct identity identity;
	int err;

	(void)again;
	if (!process->started || process->user)
		return;
	watch_identity(&identity, process->pid);
	target = targets_add(&daemon->targets, process->pid, &identity);
	if (!target)
		return;
	process->user = daemon;
	err = daemon->counters ? counters_add(daemon->counters, process->pid) : 0;
	if (err)
		daemon_log(daemon, DAEMON_WARNING, "not_counted", NULL, "process %u is not counted: %s",
		           process->pid, strerror(-err));
	daemon_log(daemon, DAEMON_INFO, "process_found",
	           json_pack("{si ss ss}", "pid", process->pid, "container", target->identity.container,
	                     "pod", target->identity.pod),
	           "process %u (%s) uses a GPU", process->pid, target->identity.process);
}

static void on_gone(void *context, struct discovered *process)
{
	struct daemon *daemon = context;

	if (!process->user)
		return;
	targets_remove(&daemon->targets, process->pid);
	if (daemon->counters)
		counters_remove(daemon->counters, process->pid);
	daemon_log(daemon, DAEMON_INFO, "process_gone", json_pack("{si}", "pid", process->pid),
	           "process %u (%s) uses no GPU any more", process->pid, process->comm);
}

static void open_counters(struct daemon *daemon)
{
	struct error error;

	if (!process_in_initial_pid_namespace()) {
		daemon_log(daemon, DAEMON_WARNING, "degraded", NULL,
		           "no counters outside of windows: the daemon runs in a pid namespace of its own "
		           "(containers: share the host's, hostPID)");
		return;
	}
	if (counters_open(&daemon->counters, &error))
		daemon_log(daemon, DAEMON_WARNING, "degraded", NULL, "no counters outside of windows: %s",
		           error.text);
}

static int open_source(struct daemon *daemon, struct error *error)
{
	struct bpf_source_options options = {
	    .sample_period_ns = BPF_SOURCE_SAMPLE_PERIOD_NS,
	    .user_stacks = STACKS_OFFCPU | STACKS_SAMPLED,
	    .small = true,
	    .degraded = on_degraded,
	    .context = daemon,
	};

	return bpf_source_open(&daemon->source, &options, error);
}

int watch_open(struct daemon *daemon, struct error *error)
{
	struct discover_options options = {
	    .filter = {.all = true},
	    .first_period_ns = LOOK_FIRST_NS,
	    .last_period_ns = LOOK_LAST_NS,
	    .found = on_found,
	    .gone = on_gone,
	    .context = daemon,
	};
	int err = open_source(daemon, error);

	if (err)
		return err;
	daemon->stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (daemon->stats < 0)
		daemon_log(
		    daemon, DAEMON_WARNING, "degraded", NULL,
		    "the run time of BPF programs cannot be measured and is not in the budget (%s; it needs "
		    "CAP_SYS_ADMIN, or sysctl kernel.bpf_stats_enabled=1)",
		    strerror(errno));
	daemon->hit_ns = probe_cost_measure();
	if (!daemon->hit_ns)
		daemon_log(daemon, DAEMON_WARNING, "degraded", NULL,
		           "what a probe costs cannot be measured: the budget holds for CPU time only");
	open_counters(daemon);
	daemon->discover = discover_open(&options);
	return daemon->discover ? 0 : error_no_memory(error);
}

void watch_close(struct daemon *daemon)
{
	discover_close(daemon->discover);
	counters_close(daemon->counters);
	bpf_source_close(daemon->source);
	if (daemon->stats >= 0)
		close(daemon->stats);
	targets_free(&daemon->targets);
}

/* ---- once a second ---- */

static void charge(struct daemon *daemon)
{
	uint64_t own = clock_ns(CLOCK_PROCESS_CPUTIME_ID), ns = 0, runs;

	budget_spend(&daemon->budget, BUDGET_DAEMON, own - daemon->own_cpu_ns);
	daemon->own_cpu_ns = own;
	if (!daemon->counters)
		return;
	counters_cost(daemon->counters, &ns, &runs);
	if (ns > daemon->switch_ns)
		budget_spend(&daemon->budget, BUDGET_SWITCH, ns - daemon->switch_ns);
	daemon->switch_ns = ns;
}

static int on_thread(void *context, const struct counters_thread *thread)
{
	struct daemon *daemon = context;

	return targets_take(&daemon->targets, thread);
}

static void read_counters(struct daemon *daemon, uint64_t now_ns)
{
	struct error error;

	if (!daemon->counters || !daemon->targets.items.count)
		return;
	if (counters_read(daemon->counters, on_thread, daemon, &error))
		daemon_log(daemon, DAEMON_WARNING, "counters_failed", NULL, "%s", error.text);
	targets_read(&daemon->targets, daemon->metrics, now_ns);
}

/* The program at the switch runs while there is something to count and the budget allows it. */
static void choose_split(struct daemon *daemon)
{
	bool wanted = daemon->targets.items.count && daemon->budget.level < BUDGET_T0_REDUCED;

	if (!daemon->counters || wanted == daemon->split)
		return;
	if (!counters_split(daemon->counters, wanted) || !wanted)
		daemon->split = wanted;
}

static void tick_budget(struct daemon *daemon, uint64_t now_ns)
{
	enum budget_level before = daemon->budget.level;
	char why[256];

	if (!budget_tick(&daemon->budget, now_ns, why, sizeof(why)))
		return;
	daemon_log(daemon, daemon->budget.level > before ? DAEMON_WARNING : DAEMON_INFO, "budget_step",
	           json_pack("{ss ss sf sf}", "from", budget_level_name(before), "to",
	                     budget_level_name(daemon->budget.level), "standing_ratio",
	                     daemon->budget.standing, "budget_ratio", daemon->budget.share_ppm / 1e6),
	           "%s → %s: %s", budget_level_name(before), budget_level_name(daemon->budget.level), why);
}

static void note_spent(struct daemon *daemon, uint64_t now_ns)
{
	unsigned last = (daemon->spent_next + SPENT_SAMPLES - 1) % SPENT_SAMPLES;

	if (now_ns - daemon->spent[last].at_ns < SPENT_PERIOD_NS)
		return;
	daemon->spent[daemon->spent_next].at_ns = now_ns;
	daemon->spent[daemon->spent_next].spent_ns = budget_spent(&daemon->budget);
	daemon->spent_next = (daemon->spent_next + 1) % SPENT_SAMPLES;
}

void watch_tick(struct daemon *daemon, uint64_t now_ns)
{
	discover_poll(daemon->discover, now_ns);
	read_counters(daemon, now_ns);
	charge(daemon);
	tick_budget(daemon, now_ns);
	choose_split(daemon);
	note_spent(daemon, now_ns);
	if (now_ns > SERIES_LIFE_NS)
		metrics_expire(daemon->metrics, now_ns - SERIES_LIFE_NS);
}

/* ---- gauges ---- */

static double recent_share(const struct daemon *daemon, uint64_t now_ns)
{
	/* The oldest sample: the next one to be overwritten, or the first. */
	unsigned oldest = daemon->spent[daemon->spent_next].at_ns ? daemon->spent_next : 0;
	uint64_t since = daemon->spent[oldest].at_ns;

	if (!since)
		return 0;
	return budget_share(budget_spent(&daemon->budget) - daemon->spent[oldest].spent_ns, now_ns - since);
}

static void budget_gauges(struct daemon *daemon, uint64_t now_ns)
{
	const struct budget *budget = &daemon->budget;
	struct metrics *metrics = daemon->metrics;

	for (int part = 0; part < BUDGET_PARTS; part++)
		*metrics_at(metrics, FAMILY_COST, now_ns, budget_part_name(part)) =
		    budget->spent_ns[part] / 1e9;
	for (int level = 0; level < BUDGET_LEVELS; level++)
		*metrics_at(metrics, FAMILY_BUDGET_STATE, now_ns, budget_level_name(level)) =
		    (int)budget->level == level;
	*metrics_at(metrics, FAMILY_BUDGET_STEPS, now_ns, "down") = budget->steps_down;
	*metrics_at(metrics, FAMILY_BUDGET_STEPS, now_ns, "up") = budget->steps_up;
	*metrics_at(metrics, FAMILY_BUDGET_RATIO, now_ns, NULL) = budget->share_ppm / 1e6;
	*metrics_at(metrics, FAMILY_BUDGET_MET, now_ns, NULL) = budget->met;
	*metrics_at(metrics, FAMILY_WINDOW_INTERVAL, now_ns, NULL) = budget->interval_ns / 1e9;
	*metrics_at(metrics, FAMILY_LAUNCH_SLOWDOWN, now_ns, NULL) = budget->slowdown;
	*metrics_at(metrics, FAMILY_OVERHEAD_RATIO, now_ns, NULL) = recent_share(daemon, now_ns);
}

void watch_gauges(struct daemon *daemon, uint64_t now_ns)
{
	static const char *const kinds[HISTORY_KINDS] = {"windows", "kept"};
	struct metrics *metrics = daemon->metrics;

	budget_gauges(daemon, now_ns);
	for (int kind = 0; kind < HISTORY_KINDS; kind++) {
		*metrics_at(metrics, FAMILY_HISTORY_BYTES, now_ns, kinds[kind]) = daemon->history.bytes[kind];
		*metrics_at(metrics, FAMILY_HISTORY_SESSIONS, now_ns, kinds[kind]) =
		    daemon->history.items[kind].count;
	}
	*metrics_at(metrics, FAMILY_PROCESSES, now_ns, NULL) = daemon->targets.items.count;
	*metrics_at(metrics, FAMILY_FOLDED, now_ns, NULL) = metrics_folded(metrics);
	*metrics_at(metrics, FAMILY_BUILD, now_ns, WHYIDLE_VERSION) = 1;
}
