/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the doctor found: a list of checks, each with what to do about it.
 */
#ifndef WHYIDLE_COLLECT_DOCTOR_REPORT_H
#define WHYIDLE_COLLECT_DOCTOR_REPORT_H

#include <stdbool.h>

#include "base/array.h"

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_DEGRADED, /* recording works, but not all of it */
	DOCTOR_MISSING,  /* recording does not work (essential checks) or a part of it is not there */
	DOCTOR_NOTE,     /* a fact, neither good nor bad */
};

struct doctor_check {
	const char *name; /* stable, for programs: "kernel", "btf", "bpf_load" … */
	enum doctor_status status;
	bool essential; /* DOCTOR_MISSING means that `record` fails, or that the process shows nothing */
	bool process;   /* about the process that was asked for, not the machine */
	char *detail;   /* what was found; no control characters */
	char *fix;      /* what to do, NULL if there is nothing to do */
};

struct doctor_report {
	ARRAY(struct doctor_check)
};

/* Adds a check; NULL if memory ran out (which doctor_fix takes). Valid until the next one is added. */
struct doctor_check *doctor_add(struct doctor_report *report, const char *name, enum doctor_status status,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Says what to do about it. */
void doctor_fix(struct doctor_check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* True if nothing essential is missing. */
bool doctor_can_record(const struct doctor_report *report);

void doctor_report_free(struct doctor_report *report);

#endif
