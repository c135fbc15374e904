// SPDX-License-Identifier: GPL-2.0-only
/* Windows of full capture: when they begin, and what becomes of their results. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collect/discover.h"
#include "daemon/families.h"
#include "daemon/state.h"

#define MAX_FAILURES 3                /* in a row: then windows wait … */
#define FAILURE_NS   (60 * SECOND_NS) /* … for so long */
#define FILE_SHARE   4                /* a window takes this part of the history at most */

static uint64_t real_ms(void)
{
	return clock_ns(CLOCK_REALTIME) / 1000000;
}

/* ---- beginning ---- */

/* Why a window shall begin now, NULL: it shall not. */
static const char *reason_now(struct daemon *daemon, uint64_t now_ns)
{
	const struct target *shifted;

	if (!daemon->source || daemon->window.pid || !daemon->targets.items.count)
		return NULL;
	if (daemon->failures >= MAX_FAILURES && now_ns < daemon->budget.last_window_ns + FAILURE_NS)
		return NULL;
	if (daemon->window_wanted)
		return budget_has_windows(&daemon->budget) && daemon->budget.credit_ns > 0 ? "request" : NULL;
	if (daemon->counters && !targets_settled(&daemon->targets))
		return NULL;
	if (budget_allows(&daemon->budget, now_ns, BUDGET_SCHEDULED))
		return "schedule";
	if (!budget_allows(&daemon->budget, now_ns, BUDGET_TRIGGERED))
		return NULL;
	if (triggers_want_window(&daemon->triggers) &&
	    now_ns >= daemon->budget.last_window_ns + daemon->config.interval_ns / 2 &&
	    budget_allows(&daemon->budget, now_ns, BUDGET_FOLLOWED))
		return "idle";
	shifted = targets_shifted(&daemon->targets);
	return !shifted ? NULL : shifted->has_window ? "shift" : "new";
}

static void begin(struct daemon *daemon, const char *reason)
{
	uint32_t *pids = calloc(daemon->targets.items.count, sizeof(*pids));
	struct pid_list family = {0};
	struct window_options options = {
	    .source = daemon->source,
	    .pids = pids,
	    .pid_count = daemon->targets.items.count,
	    .length_ns = budget_window_length(&daemon->budget),
	    .max_bytes = daemon->config.history_bytes / FILE_SHARE,
	    .samples = daemon->budget.level < BUDGET_CHEAP,
	    .user_stacks = daemon->budget.level < BUDGET_CHEAP,
	    .hit_ns = daemon->hit_ns,
	    .reason = daemon->window_reason,
	};
	char path[PATH_MAX];
	uint64_t start_ms = real_ms();
	struct error error;

	if (!pids)
		return;
	for (size_t i = 0; i < options.pid_count; i++) {
		pids[i] = daemon->targets.items.items[i].pid;
		discover_family(daemon->discover, pids[i], &family); /* without memory: fewer are recorded */
	}
	options.family = family.items;
	options.family_count = family.count;
	snprintf(daemon->window_reason, sizeof(daemon->window_reason), "%s", reason);
	daemon->window_wanted = false;
	daemon->window_length_ns = options.length_ns;
	history_path(&daemon->history, start_ms, path);
	options.path = path;
	if (window_start(&daemon->window, &options, &error)) {
		daemon->window.pid = 0;
		daemon->failures++;
		daemon_log(daemon, DAEMON_WARNING, "window_failed", NULL, "%s", error.text);
	} else {
		daemon->window.start_ms = start_ms;
		targets_window(&daemon->targets);
	}
	free(pids);
	array_free(&family);
}

void windows_poll(struct daemon *daemon, uint64_t now_ns)
{
	const char *reason = reason_now(daemon, now_ns);

	if (daemon->window.pid && now_ns > daemon->window.deadline_ns)
		window_kill(&daemon->window);
	if (reason)
		begin(daemon, reason);
}

/* ---- ending ---- */

/* Who a process is. Workers are no targets themselves: they are looked up, and are in their parent's
 * container. */
static const struct identity *identify(void *context, uint32_t pid)
{
	static struct identity unknown;
	struct daemon *daemon = context;
	const struct target *target = targets_find(&daemon->targets, pid);

	if (target)
		return &target->identity;
	memset(&unknown, 0, sizeof(unknown));
	if (pid)
		watch_identity(&unknown, pid);
	return &unknown;
}

static void keep(struct daemon *daemon, unsigned fired, uint64_t now_ns)
{
	char name[80] = "";
	bool kept;
	int err;

	if (!fired)
		return;
	kept = triggers_may_keep(&daemon->triggers, &daemon->config.trigger, now_ns);
	for (int i = 0; i < TRIGGER_COUNT; i++) {
		if (!(fired & 1u << i))
			continue;
		*metrics_at(daemon->metrics, FAMILY_TRIGGERS, now_ns, trigger_name(i), kept ? "yes" : "no") +=
		    1;
		if (!kept)
			continue;
		err = history_keep(&daemon->history, daemon->window.start_ms, trigger_name(i), name);
		daemon_log(daemon, err ? DAEMON_WARNING : DAEMON_INFO, "trigger",
		           json_pack("{ss ss}", "trigger", trigger_name(i), "file", err ? "" : name),
		           err ? "trigger %s: the recording cannot be kept: %s"
		               : "trigger %s: the recording is kept as %s",
		           trigger_name(i), err ? strerror(-err) : name);
		break; /* one file is enough, however many triggers it is for */
	}
}

static void take_result(struct daemon *daemon, struct window_result *result, uint64_t now_ns)
{
	struct last_window *last = &daemon->last;
	uint64_t length_ns = result->length_ns ? result->length_ns : daemon->window_length_ns;
	unsigned fired;

	window_result_count(result, daemon->metrics, now_ns, length_ns, identify, daemon);
	*metrics_at(daemon->metrics, FAMILY_WINDOWS, now_ns, daemon->window_reason) += 1;
	*metrics_at(daemon->metrics, FAMILY_WINDOW_SECONDS, now_ns, NULL) += length_ns / 1e9;
	*metrics_at(daemon->metrics, FAMILY_WINDOW_LAST, now_ns, NULL) = daemon->window.start_ms / 1e3;
	fired = triggers_judge(&daemon->triggers, &daemon->config.trigger, result, &daemon->targets,
	                       daemon->window.start_ns, length_ns);
	keep(daemon, fired, now_ns);
	window_result_free(&last->result);
	last->result = *result;
	last->serial++;
	last->start_ms = daemon->window.start_ms;
	last->length_ns = length_ns;
	memcpy(last->reason, daemon->window_reason, sizeof(last->reason));
}

static void charge(struct daemon *daemon, const struct window_end *end, const struct window_result *result)
{
	uint64_t spent[BUDGET_PARTS] = {
	    [BUDGET_CAPTURE] = end->cpu_ns,
	    [BUDGET_PROBES] = result->probes_ns,
	};

	budget_window(&daemon->budget, spent, daemon->window.start_ns, daemon->window_length_ns,
	              result->slowdown);
}

static void failed(struct daemon *daemon, uint64_t now_ns, const struct error *error)
{
	daemon->failures++;
	*metrics_at(daemon->metrics, FAMILY_WINDOW_FAILURES, now_ns, NULL) += 1;
	daemon_log(daemon, DAEMON_WARNING, "window_failed",
	           json_pack("{ss si}", "reason", daemon->window_reason, "in_a_row", daemon->failures),
	           "a window gave no result: %s", error->text);
}

static void trim(struct daemon *daemon)
{
	const struct daemon_config *config = &daemon->config;
	uint64_t now_ms = real_ms();

	history_trim(&daemon->history, HISTORY_WINDOWS, config->history_bytes,
	             config->history_age_ns / 1000000, now_ms);
	history_trim(&daemon->history, HISTORY_KEPT, config->kept_bytes, config->kept_age_ns / 1000000,
	             now_ms);
}

void windows_ended(struct daemon *daemon, uint64_t now_ns)
{
	uint64_t start_ms = daemon->window.start_ms;
	struct window_result result = {0};
	struct window_end end;
	struct error error;
	int err = window_finish(&daemon->window, &end, &error);

	if (!err)
		err = window_result_parse(&result, end.text, end.length, &error);
	free(end.text);
	answers_renew(daemon);
	charge(daemon, &end, &result);
	if (err) {
		window_result_free(&result);
		history_drop(&daemon->history, start_ms);
		failed(daemon, now_ns, &error);
		return;
	}
	daemon->failures = 0;
	err = history_add(&daemon->history, start_ms, daemon->window_length_ns / 1000000);
	if (err)
		daemon_log(daemon, DAEMON_WARNING, "history_failed", NULL,
		           "a window cannot be kept on disk: %s", strerror(-err));
	take_result(daemon, &result, now_ns);
	trim(daemon);
}

void windows_stop(struct daemon *daemon)
{
	struct window_end end;
	struct error error;

	if (!daemon->window.pid)
		return;
	window_kill(&daemon->window);
	window_finish(&daemon->window, &end, &error);
	free(end.text);
	history_drop(&daemon->history, daemon->window.start_ms);
}
