// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"
#include "collect/pure_doctor_report.h"

struct doctor_values {
	bool json;
};

static const struct option_spec options[] = {
    {.name = "json",
     .help = "print the findings as JSON",
     .kind = OPTION_FLAG,
     .offset = offsetof(struct doctor_values, json)},
};

static const struct command_spec spec = {
    .name = "doctor",
    .usage = "[--json]",
    .summary = "Tells what this machine can and cannot record, and how to fix it.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .notes = "The exit status is 0 if recording is possible, else 1.\n",
};

static const char *status_word(enum doctor_status status)
{
	static const char *const words[] = {[DOCTOR_OK] = "ok",
	                                    [DOCTOR_DEGRADED] = "degraded",
	                                    [DOCTOR_MISSING] = "missing",
	                                    [DOCTOR_NOTE] = "note"};

	return words[status];
}

static void print_text(const struct doctor_report *report)
{
	const struct doctor_check *check;

	array_for_each (check, report) {
		printf("%-9s %-26s %s\n", status_word(check->status), check->name, check->detail);
		if (check->fix)
			printf("%-36s → %s\n", "", check->fix);
	}
	puts(doctor_can_record(report) ? "\nRecording is possible."
	                               : "\nRecording is not possible: see what is missing.");
}

static int print_json(const struct doctor_report *report)
{
	json_t *checks = json_array();
	json_t *root = json_pack("{s:s, s:{s:s, s:s}, s:b, s:o}", "schema", "whyidle.doctor/1", "tool",
	                         "name", "whyidle", "version", WHYIDLE_VERSION, "can_record",
	                         doctor_can_record(report), "checks", checks);
	const struct doctor_check *check;
	int err = 0;

	array_for_each (check, report) {
		/* Bytes that are not UTF-8 cannot be packed: such a text is left out. */
		json_t *item = json_pack("{s:s, s:s, s:b, s:s*, s:s*}", "name", check->name, "status",
		                         status_word(check->status), "essential", check->essential, "detail",
		                         check->detail, "fix", check->fix);

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

	parsed = options_parse(&spec, argc, argv, &values, &first, &error);
	if (parsed == OPTIONS_OK && first < argc) {
		error_set(&error, -EINVAL, "doctor: takes no argument: %s (see whyidle doctor --help)",
		          argv[first]);
		parsed = OPTIONS_BAD;
	}
	if (parsed != OPTIONS_OK)
		return command_leave(&spec, parsed, &error);
	if (services->examine(&report, &error)) {
		command_error(&error);
		status = STATUS_FAILED;
	} else {
		if (!values.json)
			print_text(&report);
		status = doctor_can_record(&report) ? STATUS_DONE : STATUS_FAILED;
		if ((values.json && print_json(&report)) || fflush(stdout)) {
			error_set(&error, -EIO, "cannot write to standard output");
			command_error(&error);
			status = STATUS_FAILED;
		}
	}
	doctor_report_free(&report);
	return status;
}

const struct command command_doctor = {&spec, run};
