/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Findings: the few causes that are worth a person's attention, in words, with what to do about each.
 *
 * A finding is one (code, role) pair. Where several GPUs share it, the one with the most to gain is named and
 * the others are evidence. No finding comes from a device that was idle less than 3 % of its window, from a
 * cause below 1 % of the window (host.launch_bound: 3 %, since recording adds to those gaps), or from what no
 * one can act on (device.floor, external.no_work, unknown.*); tool.overhead needs 5 % of the window.
 */
#ifndef WHYIDLE_REPORT_FINDINGS_H
#define WHYIDLE_REPORT_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "attribute/analysis.h"
#include "base/array.h"

#define FINDINGS_MOST 5

struct finding {
	uint32_t rank; /* from 1 */
	enum cause_code code;
	enum cause_role role;
	enum confidence confidence;
	uint32_t device;    /* dense index of the session */
	uint64_t window_ns; /* of that device */
	uint64_t idle_ns;
	uint64_t gain_low_ns, gain_high_ns;
	char *title;  /* one sentence; names of the target are escaped and cut */
	char *advice; /* one concrete action */
	char *hint;   /* more about it; "" if there is none */
	struct {
		ARRAY(char *)
	} evidence; /* never empty */
};

struct findings {
	ARRAY(struct finding)
};

/* At most FINDINGS_MOST, by gain (high), then idle time. Returns 0 or -ENOMEM; findings_free in either case.
 */
int findings_make(struct findings *findings, const struct analysis *analysis);
void findings_free(struct findings *findings);

/* True if a device was idle so little that nothing of it becomes a finding. */
bool findings_device_healthy(const struct device_report *device);

/* What cause_detail.holder did: "held by", "woken by" or "the CPU went to". */
const char *findings_holder_label(enum cause_code code);

/* The names of a cause's threads, "loader-0, loader-1" or "python3 ×4", cut to `columns`. Returns `buffer`.
 */
const char *findings_thread_names(char *buffer, size_t size, const struct cause *cause, unsigned columns);

#endif
