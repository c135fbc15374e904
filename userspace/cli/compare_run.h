/* SPDX-License-Identifier: GPL-2.0-only */
/* From files to a comparison: what `compare` does, and --fail-if '… worse than BASE'. */
#ifndef WHYIDLE_CLI_COMPARE_RUN_H
#define WHYIDLE_CLI_COMPARE_RUN_H

#include "cli/html_file.h"
#include "cli/quantity.h"
#include "compare/compare.h"

struct compare_side {
	const char *path;       /* a file, or a directory with the files of a job */
	const char *option;     /* that a bad window is blamed on, "--window-before" */
	struct window window;   /* within each file */
	int32_t device;         /* only this one, -1 all */
	uint32_t pid;           /* only gaps that this process ended, 0 all */
	struct html_file *html; /* gets each file as a part, NULL: none */
	const char *label;      /* of these parts */
};

struct fail_check;

/*
 * Reads and measures a side, and holds `check` (NULL: none) against each of its files; one without GPU
 * operations is an error. Returns 0 or a negative errno with `error`; measurement_free in either case.
 */
int compare_measure(struct measurement *measurement, const struct compare_side *side,
                    struct fail_check *check, struct error *error);

#endif
