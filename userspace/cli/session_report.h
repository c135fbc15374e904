/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a session file to a printed report: what `report` does, and `record` at its end.
 */
#ifndef WHYIDLE_CLI_SESSION_REPORT_H
#define WHYIDLE_CLI_SESSION_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/quantity.h"

struct analysis_options;
struct fail_check;
struct model;
struct table_choice;

struct session_report_options {
	struct window window;
	struct range steps;                /* only these steps of the first GPU (or of `device`) */
	const char *capture_range;         /* only what the program marked (capture_range.h), NULL: all */
	int32_t device;                    /* only this one, -1 all */
	uint32_t pid;                      /* only gaps ended by this process, 0 all */
	FILE *text;                        /* where the text report goes, NULL: none */
	FILE *json;                        /* where the JSON report goes, NULL: none */
	FILE *csv;                         /* where tables go as CSV, NULL: none */
	const char *html;                  /* file for the HTML report, NULL: none */
	const struct table_choice *tables; /* these instead of the report, NULL: the report */
	const char *symbols; /* folder to look for functions in that have no names, NULL: none */
	bool verbose;
	struct fail_check *check; /* limits to hold against each input, NULL: none */
};

/* True if the report is to be about a part of the input only. */
bool session_report_is_part(const struct session_report_options *options);

/* Sets the window, if one is given, within a model. `option` is the option's name, for the error. Returns 0
 * or a negative errno with `error`. */
int choose_window(struct analysis_options *chosen, const struct model *model, const struct window *window,
                  const char *option, struct error *error);

/* Loads what a report is about: the file's model, only options->pid of it if that is given, and in `chosen`
 * the part that options->window, steps or capture_range name, of which one at most is given. Returns 0 or a
 * negative errno with `error`; the model is to be freed in either case. */
int load_part(struct model *model, struct analysis_options *chosen, const char *path,
              const struct session_report_options *options, struct error *error);

/* Returns 0 or a negative errno with `error` filled in. */
int session_report_print(const char *path, const struct session_report_options *options, struct error *error);

#endif
