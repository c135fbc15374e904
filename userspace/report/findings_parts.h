/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to the findings: how one is put into words, and what proves it. */
#ifndef WHYIDLE_REPORT_FINDINGS_PARTS_H
#define WHYIDLE_REPORT_FINDINGS_PARTS_H

#include <stdio.h>

#include "report/findings.h"
#include "report/format.h"

#define NAME_COLUMNS 24 /* one thread's name */

/* A cause together with the device it belongs to. */
struct candidate {
	const struct device_report *device;
	const struct cause *cause;
};

struct candidates {
	ARRAY(struct candidate)
};

static inline bool same_kind(const struct cause *a, const struct cause *b)
{
	return a->code == b->code && a->role == b->role;
}

/* A thread's name, "?" if it has none. */
static inline const char *name_text(char buffer[FORMAT_TEXT_SIZE(NAME_COLUMNS)], const char *comm)
{
	return format_text(buffer, FORMAT_TEXT_SIZE(NAME_COLUMNS), *comm ? comm : "?", NAME_COLUMNS);
}

/* The title of a finding: one sentence. */
void title_print(FILE *out, const struct candidate *candidate);

/* Fills finding->evidence. Returns 0 or -ENOMEM. */
int evidence_make(struct finding *finding, const struct candidate *candidate, const struct candidates *all);

#endif
