/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands of the program. Each parses its own options, prints its own errors (one line on stderr) and
 * returns the exit status.
 *
 * What needs BPF or root reaches them through struct command_services, filled in by main: the commands
 * themselves can so be tested without either.
 */
#ifndef WHYIDLE_CLI_COMMAND_H
#define WHYIDLE_CLI_COMMAND_H

#include "base/error.h"
#include "cli/options.h"

/* Exit statuses; a recorded command's own status is passed through. */
#define STATUS_DONE   0
#define STATUS_FAILED 1
#define STATUS_USAGE  2
#define STATUS_LIMIT  3 /* a --fail-if limit was exceeded */

struct recorder_options;
struct recorder_observer;
struct recorder_result;
struct doctor_report;
struct daemon_options;

struct command_services {
	int (*record)(const struct recorder_options *options, const struct recorder_observer *observer,
	              struct recorder_result *result, struct error *error);
	int (*examine)(uint32_t pid, struct doctor_report *report, struct error *error);
	int (*daemon)(const struct daemon_options *options, struct error *error);
};

struct command {
	const struct command_spec *spec;
	int (*run)(const struct command_services *services, int argc, char **argv);
};

extern const struct command command_record, command_report, command_compare, command_export, command_doctor,
    command_dump, command_daemon, command_top;

/* Prints "whyidle: TEXT" on stderr. */
void command_error(const struct error *error);

/* For a parse that did not end in OPTIONS_OK: prints the help or the error, and returns the exit status. */
int command_leave(const struct command_spec *spec, enum options_result result, const struct error *error);

#endif
