// SPDX-License-Identifier: GPL-2.0-only
/* What the daemon answers on its port and on its control socket. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/blame.h"
#include "daemon/state.h"
#include "base/utf8.h"

#define MAX_DUMP_S 86400

/*
 * The text of the metrics, made once for all who ask until there are new figures: whoever asks often costs
 * little. NULL if memory ran out.
 */
static const char *page(struct daemon *daemon, enum metrics_format format, size_t *length)
{
	if (!daemon->pages[format].text) {
		watch_gauges(daemon, clock_ns(CLOCK_MONOTONIC));
		daemon->pages[format].text =
		    metrics_text(daemon->metrics, format, &daemon->pages[format].length);
	}
	*length = daemon->pages[format].length;
	return daemon->pages[format].text;
}

void answers_renew(struct daemon *daemon)
{
	for (int format = 0; format < METRICS_FORMATS; format++) {
		free(daemon->pages[format].text);
		daemon->pages[format].text = NULL;
	}
}

int answer_http(void *context, const char *path, const char *accept, struct http_answer *answer)
{
	struct daemon *daemon = context;
	enum metrics_format format = metrics_accepted(accept);
	const char *text;

	if (!strcmp(path, "/healthz")) {
		answer->body = strdup("ok\n");
		answer->length = 3;
		return answer->body ? 0 : -ENOMEM;
	}
	if (strcmp(path, "/metrics"))
		return -ENOENT;
	text = page(daemon, format, &answer->length);
	answer->body = text ? strdup(text) : NULL;
	answer->content_type = metrics_content_type(format);
	return answer->body ? 0 : -ENOMEM;
}

/* ---- the control socket ---- */

/* A name of a target as JSON. */
static json_t *name(const char *text)
{
	char *valid = utf8_copy(text);
	json_t *value = valid ? json_string(valid) : NULL;

	free(valid);
	return value ? value : json_string("");
}

static json_t *make_budget(const struct daemon *daemon, uint64_t now_ns)
{
	const struct budget *budget = &daemon->budget;
	uint64_t due = budget_due_ns(budget);

	return json_pack(
	    "{sf ss sb sf sf sf so}", "share", budget->share_ppm / 1e6, "state",
	    budget_level_name(budget->level), "met", budget->met, "standing", budget->standing, "slowdown",
	    budget->slowdown, "interval_s", budget->interval_ns / 1e9, "next_window_s",
	    due == UINT64_MAX ? json_null() : json_real(due > now_ns ? (due - now_ns) / 1e9 : 0));
}

static uint32_t root_of(void *context, uint32_t pid)
{
	const struct daemon *daemon = context;

	return targets_root(&daemon->targets, pid);
}

static json_t *make_processes(struct daemon *daemon)
{
	const struct target *target;
	json_t *list = json_array();

	array_for_each (target, &daemon->targets.items) {
		const struct target_profile *now = &target->now;
		json_t *item = json_pack(
		    "{sI so ss ss sI sI sf sf sf sf sf}", "pid", (json_int_t)target->pid, "process",
		    name(target->identity.process), "container", target->identity.container, "pod",
		    target->identity.pod, "threads", (json_int_t)target->threads, "processes",
		    (json_int_t)target->processes, "cpu", now->cpu, "runqueue", now->runqueue, "disk",
		    now->disk, "switches", now->switches, "launches_per_s", target->launch_rate);

		blame_put(item, daemon->last.result.report, target->pid, root_of, daemon);
		json_array_append_new(list, item);
	}
	return list;
}

static json_t *make_window(const struct daemon *daemon, uint64_t known)
{
	const struct last_window *last = &daemon->last;
	json_t *window;

	if (!last->serial)
		return json_null();
	window = json_pack("{sI sI sI ss}", "serial", (json_int_t)last->serial, "start_ms",
	                   (json_int_t)last->start_ms, "length_ns", (json_int_t)last->length_ns, "reason",
	                   last->reason);
	if (last->serial != known)
		json_object_set(window, "report", last->result.report);
	return window;
}

static json_t *make_status(struct daemon *daemon, uint64_t known)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	return json_pack("{ss ss sI so so so}", "schema", "whyidle.status/1", "version", WHYIDLE_VERSION,
	                 "uptime_ns", (json_int_t)(now_ns - daemon->start_ns), "budget",
	                 make_budget(daemon, now_ns), "processes", make_processes(daemon), "window",
	                 make_window(daemon, known));
}

static json_t *refuse(const char *why)
{
	return json_pack("{ss}", "error", why);
}

/* The windows of the last seconds, newest first, as files. */
static json_t *make_dump(const struct daemon *daemon, const char *seconds, struct control_answer *answer)
{
	const struct history *history = &daemon->history;
	uint64_t now_ms = clock_ns(CLOCK_REALTIME) / 1000000, wanted;
	char *end, line[160];
	json_t *list;

	errno = 0;
	wanted = strtoull(seconds, &end, 10);
	if (errno || end == seconds || *end || !wanted || wanted > MAX_DUMP_S)
		return refuse("dump: from 1 to 86400 seconds");
	list = json_array();
	for (size_t i = history->items[HISTORY_WINDOWS].count;
	     i-- > 0 && answer->file_count < CONTROL_FILES;) {
		const struct history_item *item = &history->items[HISTORY_WINDOWS].items[i];
		int fd;

		if (item->start_ms + item->length_ms + wanted * 1000 < now_ms)
			break;
		fd = openat(history->fds[HISTORY_WINDOWS], item->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			continue;
		answer->files[answer->file_count++] = fd;
		json_array_append_new(list, json_pack("{sI sI}", "start_ms", (json_int_t)item->start_ms,
		                                      "length_ms", (json_int_t)item->length_ms));
	}
	if (answer->file_count)
		return json_pack("{so}", "windows", list);
	json_decref(list);
	snprintf(line, sizeof(line),
	         "there was no window in the last %" PRIu64 " s (budget state: %s; %zu processes)", wanted,
	         budget_level_name(daemon->budget.level), daemon->targets.items.count);
	return refuse(line);
}

static json_t *make_kept(const struct daemon *daemon)
{
	const struct history_item *item;
	json_t *list = json_array();
	char path[PATH_MAX];

	array_for_each (item, &daemon->history.items[HISTORY_KEPT]) {
		history_item_path(&daemon->history, HISTORY_KEPT, item, path);
		json_array_append_new(list, json_pack("{sI sI ss}", "start_ms", (json_int_t)item->start_ms,
		                                      "bytes", (json_int_t)item->bytes, "path", path));
	}
	return json_pack("{so}", "kept", list);
}

/* The same as on the port, for where there is none. */
static json_t *make_metrics(struct daemon *daemon)
{
	size_t length;
	const char *text = page(daemon, METRICS_OPENMETRICS, &length);

	return text ? json_pack("{ss}", "metrics", text) : refuse("out of memory");
}

static json_t *own_request(struct daemon *daemon, const char *request)
{
	if (!strcmp(request, "stop"))
		daemon->stop = true;
	else
		kill(getpid(), SIGHUP); /* in the loop, as any other */
	return json_pack("{sb}", "done", 1);
}

static json_t *make_answer(struct daemon *daemon, const char *request, bool owner,
                           struct control_answer *answer)
{
	if (!strncmp(request, "status", 6) && (!request[6] || request[6] == ' '))
		return make_status(daemon, strtoull(request + 6, NULL, 10));
	if (!strncmp(request, "dump ", 5))
		return make_dump(daemon, request + 5, answer);
	if (!strcmp(request, "kept"))
		return make_kept(daemon);
	if (!strcmp(request, "metrics"))
		return make_metrics(daemon);
	if (!strcmp(request, "window")) {
		daemon->window_wanted = true;
		return json_pack("{sb}", "done", 1);
	}
	if (strcmp(request, "stop") && strcmp(request, "reload"))
		return refuse("unknown request");
	if (!owner) {
		daemon_log(daemon, DAEMON_WARNING, "refused", json_pack("{ss}", "request", request),
		           "a client may not %s", request);
		return refuse("only root and the daemon's own user may do this");
	}
	return own_request(daemon, request);
}

void answer_control(void *context, const char *request, bool owner, struct control_answer *answer)
{
	json_t *document = make_answer(context, request, owner, answer);

	answer->text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	answer->length = answer->text ? strlen(answer->text) : 0;
	json_decref(document);
}
