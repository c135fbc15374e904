/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a window of full capture has shown, as its child process hands it over: a JSON document
 *
 *	{"processes": [{"pid", "comm", "launches"}], "steps": {"count", "median_ns", "longest_ns"},
 *	 "cost": {"length_ns", "probes_ns", "slowdown"}, "report": docs/report.schema.json}
 *
 * and what becomes of it: metrics, and figures for the triggers.
 */
#ifndef WHYIDLE_DAEMON_RESULTS_H
#define WHYIDLE_DAEMON_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/array.h"
#include "base/error.h"
#include "daemon/identity.h"
#include "metrics/metrics.h"

#define RESULT_LIMIT (8u << 20) /* bytes of a document that are taken */

struct process_result {
	uint32_t pid;
	uint64_t launches;
};

struct window_result {
	json_t *document;              /* NULL: none */
	json_t *report;                /* in it */
	uint64_t observed_ns, idle_ns; /* of the GPU that was idle most */
	uint64_t longest_gap_ns;
	uint64_t length_ns; /* of the window; 0: not said */
	uint64_t probes_ns; /* CPU time that probes took from whoever met them */
	double slowdown;    /* by probes, of the thread with the most CUDA calls (digest_slowdown) */
	uint64_t steps, step_median_ns, step_longest_ns;
	struct {
		ARRAY(struct process_result)
	} processes;
};

/* Takes a document in. Returns 0 or -EINVAL with `error`; free in either case. */
int window_result_parse(struct window_result *result, const char *text, size_t length, struct error *error);
void window_result_free(struct window_result *result);

/* Finds who a process is; never NULL. */
typedef const struct identity *(*result_identity)(void *context, uint32_t pid);

/* Adds what the window has shown to the metrics (enum family); length_ns: how long it was. */
void window_result_count(const struct window_result *result, struct metrics *metrics, uint64_t now_ns,
                         uint64_t length_ns, result_identity identify, void *context);

#endif
