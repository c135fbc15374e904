/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to the text about ranks: what its files share. */
#ifndef WHYIDLE_REPORT_TEXT_RANKS_H
#define WHYIDLE_REPORT_TEXT_RANKS_H

#include <stdbool.h>
#include <stdio.h>

#include "ranks/ranks.h"

struct ranks_page {
	FILE *out;
	const struct ranks_report *ranks;
	unsigned width;
	bool colour, verbose;
};

/* After an empty line. */
void ranks_page_heading(const struct ranks_page *page, const char *line);

/* The number of a member. */
uint32_t ranks_page_rank(const struct ranks_page *page, uint32_t member);

/* "wait.disk@worker", "compute was longer"; fits into 96 bytes. */
void ranks_reason_text(char *buffer, size_t size, enum late_reason reason, enum cause_code code,
                       enum cause_role role);

/* What the job as a whole spent its time on, and what each rank waited for. */
void ranks_page_path(const struct ranks_page *page);
void ranks_page_peers(const struct ranks_page *page);
/* Returns 0 or -ENOMEM. */
int ranks_page_findings(const struct ranks_page *page);

#endif
