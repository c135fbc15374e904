/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the daemon share. Private to daemon/. */
#ifndef WHYIDLE_DAEMON_STATE_H
#define WHYIDLE_DAEMON_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/allowance.h"
#include "daemon/budget.h"
#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/history.h"
#include "daemon/results.h"
#include "daemon/targets.h"
#include "daemon/triggers.h"
#include "daemon/window.h"
#include "metrics/http.h"
#include "metrics/metrics.h"

#define SECOND_NS 1000000000ULL

#define SPENT_SAMPLES   60 /* of what was spent, one each SPENT_PERIOD_NS */
#define SPENT_PERIOD_NS (5 * SECOND_NS)

struct bpf_source;
struct counters;
struct discover;

/* The last window that gave a result. */
struct last_window {
	struct window_result result;
	uint64_t serial; /* number of the window, 0: there was none yet */
	uint64_t start_ms, length_ns;
	char reason[16];
};

struct daemon {
	const struct daemon_options *options;
	struct daemon_config config;

	struct metrics *metrics;
	struct {
		char *text; /* NULL: not made since the figures were new */
		size_t length;
	} pages[METRICS_FORMATS]; /* the text of the metrics */
	struct budget budget;
	struct targets targets;
	struct triggers triggers;
	struct history history;

	struct http_server *http;    /* NULL: no port */
	struct allowance http_share; /* of CPU time for it */
	struct control *control;     /* NULL: no socket */
	struct counters *counters;   /* NULL: not available */
	struct bpf_source *source;   /* NULL: no windows */
	struct discover *discover;
	int stats; /* keeps the kernel counting the time of BPF programs, -1: it does not */
	int signals;
	sigset_t old_mask;
	bool mask_set, stop;

	struct window_process window; /* pid 0: none runs */
	uint64_t window_length_ns;
	char window_reason[16];
	bool window_wanted; /* a client asked for one */
	uint64_t hit_ns;    /* what a hit of a probe costs on this machine, 0: not known */
	unsigned failures;  /* windows in a row that gave nothing */
	struct last_window last;

	uint64_t start_ns, next_tick_ns;
	uint64_t own_cpu_ns, switch_ns; /* as far as they were charged */
	bool split;                     /* the program at the switch runs */
	struct {
		uint64_t at_ns, spent_ns;
	} spent[SPENT_SAMPLES]; /* a ring */
	unsigned spent_next;
};

/* daemon.c */
void daemon_log(const struct daemon *daemon, enum daemon_log_level level, const char *event, json_t *facts,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

/* watch.c: discovery, counters, costs */
int watch_open(struct daemon *daemon, struct error *error);
void watch_close(struct daemon *daemon);
void watch_tick(struct daemon *daemon, uint64_t now_ns);
void watch_gauges(struct daemon *daemon, uint64_t now_ns);
void watch_identity(struct identity *identity, uint32_t pid); /* what cannot be read is "" */

/* windows.c */
void windows_poll(struct daemon *daemon, uint64_t now_ns);  /* begins one, or ends one that takes too long */
void windows_ended(struct daemon *daemon, uint64_t now_ns); /* its process has ended */
void windows_stop(struct daemon *daemon);

/* answers.c */
void answers_renew(struct daemon *daemon); /* there are new figures */
int answer_http(void *context, const char *path, const char *accept, struct http_answer *answer);
void answer_control(void *context, const char *request, bool owner, struct control_answer *answer);

#endif
