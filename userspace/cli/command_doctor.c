// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/quantity.h"
#include "collect/pure_doctor_report.h"

#define PID_MAX (1u << 22) /* PID_MAX_LIMIT of the kernel */

struct doctor_values {
	const char *pid;
	bool json;
};

static const struct option_spec options[] = {
    {.name = "pid",
     .letter = 'p',
     .argument = "PID",
     .help = "what a recording of this process would show, and why not more",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct doctor_values, pid)},
    {.name = "json",
     .help = "print the findings as JSON",
     .kind = OPTION_FLAG,
     .offset = offsetof(struct doctor_values, json)},
};

static const struct command_spec spec = {
    .name = "doctor",
    .usage = "[-p PID] [--json]",
    .summary = "Tells what this machine, or of one process, can and cannot be recorded, and how to fix it.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .notes = "The exit status is 0 if recording is possible, else 1. With --pid it is also 1 if the process "
             "does not\n"
             "use CUDA. Of the machine only what is degraded or missing is then shown (all of it with "
             "--json). Nothing\n"
             "is attached to the process.\n",
};

static const char *status_word(enum doctor_status status)
{
	static const char *const words[] = {[DOCTOR_OK] = "ok",
	                                    [DOCTOR_DEGRADED] = "degraded",
	                                    [DOCTOR_MISSING] = "missing",
	                                    [DOCTOR_NOTE] = "note"};

	return words[status];
}

/* True if all that --inject needs is there. */
static bool can_attach(const struct doctor_report *report)
{
	static const char *const needed[] = {"attach", "process_cupti", "cupti_user"};
	const struct doctor_check *check;

	array_for_each (check, report) {
		for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
			if (!strcmp(check->name, needed[i]) && check->status == DOCTOR_DEGRADED)
				return false;
		}
	}
	return true;
}

static void print_text(const struct doctor_report *report, uint32_t pid)
{
	const struct doctor_check *check;

	array_for_each (check, report) {
		if (pid && !check->process && (check->status == DOCTOR_OK || check->status == DOCTOR_NOTE))
			continue;
		printf("%-9s %-26s %s\n", status_word(check->status), check->name, check->detail);
		if (check->fix)
			printf("%-36s → %s\n", "", check->fix);
	}
	if (!doctor_can_record(report))
		puts(pid ? "\nNothing would be seen of it: see what is missing."
		         : "\nRecording is not possible: see what is missing.");
	else if (!pid)
		puts("\nRecording is possible.");
	else if (can_attach(report))
		printf("\nRecording is possible: whyidle record -p %u --inject, with times of CUPTI.\n", pid);
	else
		printf("\nRecording is possible: whyidle record -p %u, with a GPU timeline inferred from its "
		       "calls.\n",
		       pid);
}

static int print_json(const struct doctor_report *report, uint32_t pid)
{
	json_t *checks = json_array();
	json_t *root = json_pack("{s:s, s:{s:s, s:s}, s:b, s:o}", "schema", "whyidle.doctor/1", "tool",
	                         "name", "whyidle", "version", WHYIDLE_VERSION, "can_record",
	                         doctor_can_record(report), "checks", checks);
	const struct doctor_check *check;
	int err = 0;

	if (root && pid && json_object_set_new(root, "pid", json_integer(pid)))
		err = -ENOMEM;
	array_for_each (check, report) {
		/* Bytes that are not UTF-8 cannot be packed: such a text is left out. */
		json_t *item = json_pack("{s:s, s:s, s:b, s:b, s:s*, s:s*}", "name", check->name, "status",
		                         status_word(check->status), "essential", check->essential, "process",
		                         check->process, "detail", check->detail, "fix", check->fix);

		if (!item || json_array_append_new(checks, item))
			err = -ENOMEM;
	}
	if (!root || json_dumpf(root, stdout, JSON_INDENT(2)) || putchar('\n') == EOF)
		err = -EIO;
	json_decref(root);
	return err;
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct doctor_values values = {0};
	struct doctor_report report = {0};
	enum options_result parsed;
	struct error error = {0};
	int first, status;
	uint64_t pid = 0;

	parsed = options_parse(&spec, argc, argv, &values, &first, &error);
	if (parsed == OPTIONS_OK && first < argc) {
		error_set(&error, -EINVAL, "doctor: takes no argument: %s (see whyidle doctor --help)",
		          argv[first]);
		parsed = OPTIONS_BAD;
	}
	if (parsed == OPTIONS_OK && values.pid &&
	    (quantity_number(values.pid, &pid) || !pid || pid > PID_MAX)) {
		error_set(&error, -EINVAL, "doctor: not a process id: '%s'", values.pid);
		parsed = OPTIONS_BAD;
	}
	if (parsed != OPTIONS_OK)
		return command_leave(&spec, parsed, &error);
	if (services->examine((uint32_t)pid, &report, &error)) {
		command_error(&error);
		status = STATUS_FAILED;
	} else {
		if (!values.json)
			print_text(&report, (uint32_t)pid);
		status = doctor_can_record(&report) ? STATUS_DONE : STATUS_FAILED;
		if ((values.json && print_json(&report, (uint32_t)pid)) || fflush(stdout)) {
			error_set(&error, -EIO, "cannot write to standard output");
			command_error(&error);
			status = STATUS_FAILED;
		}
	}
	doctor_report_free(&report);
	return status;
}

const struct command command_doctor = {&spec, run};
