/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to the text report: its parts, in the order in which they are printed. */
#ifndef WHYIDLE_REPORT_TEXT_H
#define WHYIDLE_REPORT_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "attribute/analysis.h"
#include "report/findings.h"

#define WIDTH_DEFAULT 100 /* columns, where nothing else is known */

struct text {
	FILE *out;
	const struct analysis *analysis;
	const struct findings *findings;
	unsigned width;
	bool colour, verbose;
};

enum text_style {
	TEXT_STRONG,
	TEXT_WARNING,
};

void text_style_on(const struct text *text, enum text_style style);
void text_style_off(const struct text *text);

/* A heading after an empty line. */
void text_heading(const struct text *text, const char *heading);

/* The three lines, and below them what a reader must know to judge them. */
int text_answer(const struct text *text);
void text_notes(const struct text *text);

void text_devices(const struct text *text);
void text_steps(const struct text *text);
void text_findings(const struct text *text);
int text_gaps(const struct text *text);
void text_recording(const struct text *text);

/* ---- shared ---- */

/* "named train_step by the program", "by the rhythm of 70 operations". Returns `buffer`. */
const char *text_step_origin(char *buffer, size_t size, enum steps_origin origin, const char *name,
                             uint64_t period_ops);

uint64_t text_window_ns(const struct device_report *device);

/* "1,234 in the kernel's ring buffer, 3 in …" into `buffer`; false if nothing was lost. */
bool text_losses(char *buffer, size_t size, const struct loss_report *losses);

#endif
