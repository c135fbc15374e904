// SPDX-License-Identifier: GPL-2.0-only
/* Options and quantities of the command line. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/quantity.h"
#include "collect/pure_doctor_report.h"
#include "collect/recorder.h"

Test(quantity, bytes)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {{"0", 0},          {"65536", 65536},   {"64K", 65536},    {"64k", 65536},
	            {"16M", 16 << 20}, {"1G", 1ULL << 30}, {"2MiB", 2 << 20}, {"2MB", 2 << 20}};
	static const char *const bad[] = {"", "K", "-1", "1.5M", "1T", "1KK", "1 K", "0x10", "1Mi"};
	uint64_t value;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert_eq(quantity_bytes(good[i].text, &value), 0, "%s", good[i].text);
		cr_assert_eq(value, good[i].value, "%s", good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(quantity_bytes(bad[i], &value), -EINVAL, "%s", bad[i]);
	cr_assert_eq(quantity_bytes("99999999999999999999", &value), -ERANGE);
	cr_assert_eq(quantity_bytes("18446744073709551615K", &value), -ERANGE);
}

Test(quantity, times)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {{"0", 0},         {"1ns", 1},          {"250us", 250000},
	            {"4ms", 4000000}, {"0.5s", 500000000}, {"1.0000000019s", 1000000001}};
	static const char *const bad[] = {"",     "4",  "ms",   "4 ms",  "-4ms",
	                                  "4.ms", "4y", "4msx", "1..2s", ".5s"};
	uint64_t value;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert_eq(quantity_time(good[i].text, &value), 0, "%s", good[i].text);
		cr_assert_eq(value, good[i].value, "%s", good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(quantity_time(bad[i], &value), -EINVAL, "%s", bad[i]);
	cr_assert_eq(quantity_time("99999999999s", &value), -ERANGE);
}

Test(quantity, seconds_where_no_unit_is_given)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
	    {"0", 0}, {"10", 10000000000}, {"2.5", 2500000000}, {"500ms", 500000000}, {"3s", 3000000000}};
	static const char *const bad[] = {"", "s", "2.", "-1", "2 s", "2y"};
	uint64_t value;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert_eq(quantity_seconds(good[i].text, &value), 0, "%s", good[i].text);
		cr_assert_eq(value, good[i].value, "%s", good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(quantity_seconds(bad[i], &value), -EINVAL, "%s", bad[i]);
	cr_assert_eq(quantity_seconds("99999999999", &value), -ERANGE);
}

Test(quantity, windows)
{
	static const char *const bad[] = {"",      "1",  "1.5",    "a..b",  "1..2..3",
	                                  "1..2s", "1.", "1.x..2", "-1..2", "1. .2"};
	struct window window;

	cr_assert_eq(quantity_window("1.5..3", &window), 0);
	cr_assert(window.given && window.from.given && window.to.given);
	cr_assert_eq(window.from.ns, 1500000000);
	cr_assert_eq(window.to.ns, 3000000000ULL);
	cr_assert_eq(quantity_window("1..2", &window), 0);
	cr_assert_eq(window.from.ns, 1000000000);
	cr_assert_eq(window.to.ns, 2000000000);
	cr_assert_eq(quantity_window("..0.25", &window), 0);
	cr_assert(!window.from.given);
	cr_assert_eq(window.to.ns, 250000000);
	cr_assert_eq(quantity_window("3569925065781..3569928295279", &window), 0);
	cr_assert(window.from.absolute && window.to.absolute);
	cr_assert_eq(window.from.ns, 3569925065781ULL);
	cr_assert_eq(quantity_window("1000000000..", &window), 0);
	cr_assert(!window.from.absolute, "1e9 is not larger than 1e9");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(quantity_window(bad[i], &window), -EINVAL, "%s", bad[i]);
	cr_assert_eq(quantity_window("99999999999999999999..", &window), -ERANGE);
}

Test(quantity, window_in_a_session)
{
	struct window window;
	uint64_t start, end;

	quantity_window("1..2", &window);
	cr_assert_eq(window_resolve(&window, 5000000000ULL, 9000000000ULL, &start, &end), 0);
	cr_assert_eq(start, 6000000000ULL);
	cr_assert_eq(end, 7000000000ULL);
	quantity_window("..", &window);
	cr_assert_eq(window_resolve(&window, 5, 9, &start, &end), 0);
	cr_assert_eq(start, 5);
	cr_assert_eq(end, 9);
	quantity_window("6000000000..7000000000", &window);
	cr_assert_eq(window_resolve(&window, 5000000000ULL, 9000000000ULL, &start, &end), 0);
	cr_assert_eq(start, 6000000000ULL);
	quantity_window("2..1", &window);
	cr_assert_eq(window_resolve(&window, 0, 9000000000ULL, &start, &end), -EINVAL);
	quantity_window("10..11", &window);
	cr_assert_eq(window_resolve(&window, 0, 9000000000ULL, &start, &end), -EINVAL, "after the end");
	quantity_window("..1000000001", &window);
	cr_assert_eq(window_resolve(&window, 5000000000ULL, 9000000000ULL, &start, &end), -EINVAL,
	             "before the start");
}

/* ---- record, with a recorder that only notes what it was told ---- */

static struct recorder_options told;
static char told_line[256], told_output[64], told_command[256];
static int told_count;
static int fail_with;

static int note_record(const struct recorder_options *options, const struct recorder_observer *observer,
                       struct recorder_result *result, struct error *error)
{
	(void)observer;
	told = *options;
	snprintf(told_line, sizeof(told_line), "%s", options->options);
	snprintf(told_output, sizeof(told_output), "%s", options->output ? options->output : "(default)");
	for (size_t i = 0; options->command[i]; i++) {
		strcat(told_command, i ? " " : "");
		strcat(told_command, options->command[i]);
	}
	told_count++;
	memset(result, 0, sizeof(*result));
	result->exit_status = 42;
	result->file_complete = true;
	return fail_with ? error_set(error, fail_with, "it failed") : 0;
}

static uint32_t examined;

static int note_examine(uint32_t pid, struct doctor_report *report, struct error *error)
{
	struct doctor_check *check;

	(void)error;
	examined = pid;
	doctor_add(report, "kernel", DOCTOR_OK, "a kernel\nof %d lines", 2);
	check = doctor_add(report, "bpf_load", fail_with ? DOCTOR_MISSING : DOCTOR_OK, "it");
	check->essential = true;
	doctor_fix(check, "do %s", "this");
	return 0;
}

static const struct command_services services = {.record = note_record, .examine = note_examine};

#define RUN(command, ...)                                                                                    \
	({                                                                                                   \
		char *argv_[] = {(char *)(command).spec->name, __VA_ARGS__ __VA_OPT__(, ) NULL};             \
		(command).run(&services, sizeof(argv_) / sizeof(argv_[0]) - 1, argv_);                       \
	})

TestSuite(cli, .init = cr_redirect_stderr);

Test(cli, record_passes_everything_on)
{
	int status = RUN(command_record, "-o", "out.whyidle", "--ring-size=8M", "--bridge-ring-size", "64K",
	                 "--sample-period", "1ms", "--min-offcpu=10us", "--uprobes", "never", "--as-root",
	                 "--user-stacks=samples", "--no-report", "-q", "--", "python3", "-o", "--json");

	cr_assert_eq(status, 42, "the command's own status");
	cr_assert_eq(told_count, 1);
	cr_assert_str_eq(told_command, "python3 -o --json");
	cr_assert_str_eq(told_output, "out.whyidle");
	cr_assert_eq(told.bpf_ring_bytes, 8 << 20);
	cr_assert_eq(told.bridge_ring_bytes, 64 << 10);
	cr_assert_eq(told.sample_period_ns, 1000000);
	cr_assert_eq(told.min_offcpu_ns, 10000);
	cr_assert_eq(told.uprobes, RECORDER_UPROBES_NEVER);
	cr_assert_eq(told.user_stacks, RECORDER_STACKS_SAMPLES);
	cr_assert(told.as_root && !told.no_bpf && !told.no_bridge);
	cr_assert(strstr(told_line, "--ring-size=8M") && !strstr(told_line, "python3"), "%s", told_line);
}

Test(cli, record_defaults)
{
	cr_assert_eq(RUN(command_record, "--no-report", "true", "--as-root"), 42);
	cr_assert_eq(told.sample_period_ns, 10000000);
	cr_assert_eq(told.min_offcpu_ns, 0);
	cr_assert_eq(told.uprobes, RECORDER_UPROBES_AUTO);
	cr_assert_eq(told.user_stacks, RECORDER_STACKS_ALL);
	cr_assert(!told.as_root, "what follows the command is the command's");
	cr_assert_str_eq(told_output, "(default)");
}

Test(cli, record_failure_gives_the_status_it_came_with)
{
	fail_with = -ENOENT;
	cr_assert_eq(RUN(command_record, "--", "nosuch"), 42);
	cr_assert_eq(told_count, 1);
}

Test(cli, record_usage_errors)
{
	cr_assert_eq(RUN(command_record), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--nonsense", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "-Z", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "-o"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--ring-size", "5000", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--ring-size", "12K", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--user-stacks=some", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--uprobes=maybe", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--no-bpf", "--no-bridge", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--quiet=yes", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--duration", "0", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--delay", "soon", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--delay", "1", "--pid", "1"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--kill", "sigterm", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "-d", "1", "--kill", "softly", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--capture-range", "nvtx:", "--", "true"), STATUS_USAGE);
	cr_assert_eq(RUN(command_record, "--steps", "1..2", "--no-report", "--", "true"), STATUS_USAGE);
	cr_assert_eq(told_count, 0);
}

Test(cli, report_usage_errors)
{
	cr_assert_eq(RUN(command_report), STATUS_USAGE);
	/* Several files are the ranks of a job: these are not there. */
	cr_assert_eq(RUN(command_report, "/nonexistent/a", "/nonexistent/b"), STATUS_FAILED);
	cr_assert_eq(RUN(command_report, "a", "--gpu", "x"), STATUS_USAGE);
	cr_assert_eq(RUN(command_report, "a", "--gpu", "-1"), STATUS_USAGE);
	cr_assert_eq(RUN(command_report, "a", "--pid", "0"), STATUS_USAGE);
	cr_assert_eq(RUN(command_report, "a", "--window", "1"), STATUS_USAGE);
	cr_assert_eq(RUN(command_report, "/nonexistent/file.whyidle"), STATUS_FAILED);
}

Test(cli, error_is_one_line_that_names_the_option)
{
	struct error error = {0};
	bool value = false;
	int first;

	cr_assert_eq(options_parse(command_record.spec, 2, (char *[]){"record", "--rung-size=3", NULL},
	                           &value, &first, &error),
	             OPTIONS_BAD);
	cr_assert_str_eq(error.text, "record: unknown option --rung-size (see whyidle record --help)");
}

Test(cli, doctor_status_follows_the_findings, .init = cr_redirect_stdout)
{
	cr_assert_eq(RUN(command_doctor, "--json"), STATUS_DONE);
	fail_with = 1;
	cr_assert_eq(RUN(command_doctor), STATUS_FAILED);
	cr_assert_eq(RUN(command_doctor, "extra"), STATUS_USAGE);
	cr_assert_eq(examined, 0);
	fail_with = 0;
	cr_assert_eq(RUN(command_doctor, "-p", "123"), STATUS_DONE);
	cr_assert_eq(examined, 123);
	cr_assert_eq(RUN(command_doctor, "--pid=0"), STATUS_USAGE);
	cr_assert_eq(RUN(command_doctor, "--pid", "5000000"), STATUS_USAGE);
}

/* A copy of the help text; to be freed. */
static char *help_of(const struct command_spec *spec, bool all)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	options_help(out, spec, all);
	fclose(out);
	return text;
}

Test(cli, help_comes_from_the_table, .init = cr_redirect_stdout)
{
	char *brief = help_of(command_record.spec, false), *all = help_of(command_record.spec, true);
	char row[64];

	for (size_t i = 0; i < command_record.spec->option_count; i++) {
		const struct option_spec *option = &command_record.spec->options[i];

		cr_assert(strstr(brief, option->name), "%s", option->name);
		cr_assert(strstr(all, option->name), "%s", option->name);
		if (!option->argument)
			continue;
		snprintf(row, sizeof(row), "--%s %s", option->name, option->argument);
		cr_assert_eq(!strstr(brief, row), option->advanced, "%s", row);
	}
	cr_assert(strstr(brief, command_record.spec->examples));
	cr_assert(strstr(all, command_record.spec->notes));
	cr_assert(!strstr(brief, command_record.spec->notes));
	free(brief);
	free(all);
	cr_assert_eq(RUN(command_record, "--help-all"), STATUS_DONE);
	cr_assert_eq(RUN(command_record, "--help"), STATUS_DONE);
	cr_assert_eq(RUN(command_report, "-h"), STATUS_DONE);
}
