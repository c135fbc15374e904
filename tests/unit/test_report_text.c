// SPDX-License-Identifier: GPL-2.0-only
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "golden.h"
#include "report/format.h"
#include "report/report.h"
#include "report_fixture.h"

/* ---- figures and names ---- */

Test(report_format, duration_has_three_digits)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
	    {0, "0 ns"},
	    {1, "1 ns"},
	    {999, "999 ns"},
	    {1000, "1.00 µs"},
	    {1004, "1.00 µs"},
	    {1005, "1.01 µs"},
	    {9994, "9.99 µs"},
	    {9995, "10.0 µs"},
	    {99949, "99.9 µs"},
	    {99950, "100 µs"},
	    {999499, "999 µs"},
	    {999500, "1.00 ms"},
	    {14200000, "14.2 ms"},
	    {999499999, "999 ms"},
	    {999500000, "1.00 s"},
	    {3147000000, "3.15 s"},
	    {59949999999, "59.9 s"},
	    {999499999999, "999 s"},
	    {86400000000000, "86400 s"},
	    {UINT64_MAX, "18446744073 s"},
	};
	char buffer[FORMAT_FIGURE];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_str_eq(format_duration(buffer, cases[i].ns), cases[i].text);
}

Test(report_format, percent_never_rounds_to_all_or_nothing)
{
	char buffer[FORMAT_FIGURE];

	cr_assert_str_eq(format_percent(buffer, 0, 0), "0 %");
	cr_assert_str_eq(format_percent(buffer, 0, 9), "0 %");
	cr_assert_str_eq(format_percent(buffer, 9, 9), "100 %");
	cr_assert_str_eq(format_percent(buffer, 99999, 100000), "99.9 %");
	cr_assert_str_eq(format_percent(buffer, 1, 100000), "<0.1 %");
	cr_assert_str_eq(format_percent(buffer, 783, 1000), "78.3 %");
	cr_assert_str_eq(format_share(buffer, 782, 1000), "78 %");
	cr_assert_str_eq(format_share(buffer, 99, 1000), "9.9 %");
	cr_assert_str_eq(format_share(buffer, 9999, 10000), "99 %");
	cr_assert_str_eq(format_share(buffer, 10, 10), "100 %");
}

Test(report_format, count_is_grouped)
{
	char buffer[32];

	cr_assert_str_eq(format_count(buffer, 0), "0");
	cr_assert_str_eq(format_count(buffer, 999), "999");
	cr_assert_str_eq(format_count(buffer, 123456), "123,456");
	cr_assert_str_eq(format_count(buffer, UINT64_MAX), "18,446,744,073,709,551,615");
}

Test(report_format, text_is_escaped_and_cut)
{
	static const struct {
		const char *from;
		unsigned columns;
		const char *to;
	} cases[] = {
	    {NULL, 8, ""},
	    {"plain", 5, "plain"},
	    {"plainer", 5, "plai…"},
	    {"a\033[2J", 20, "a\\x1b[2J"},
	    {"a\nb\tc\177", 20, "a\\x0ab\\x09c\\x7f"},
	    {"\xff", 20, "\\xff"},
	    {"\xc3", 20, "\\xc3"},                            /* cut short */
	    {"\xc0\x80", 20, "\\xc0\\x80"},                   /* overlong */
	    {"\xed\xa0\x80", 20, "\\xed\\xa0\\x80"},          /* surrogate */
	    {"\xf4\x90\x80\x80", 20, "\\xf4\\x90\\x80\\x80"}, /* beyond U+10FFFF */
	    {"\xc2\x9b"
	     "31m",
	     20, "\\xc2\\x9b31m"}, /* C1 control sequence introducer */
	    {"a\xe2\x80\xae"
	     "b",
	     20, "a\\xe2\\x80\\xaeb"}, /* right-to-left override */
	    {"µs ← 日本", 9, "µs ← 日本"},
	    {"日本語", 5, "日本…"},
	    {"日本語", 4, "日…"},
	    {"\033\033", 5, "\\x1b…"},
	    {"ab", 0, ""},
	};
	char buffer[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		format_text(buffer, sizeof(buffer), cases[i].from, cases[i].columns);
		cr_assert_str_eq(buffer, cases[i].to);
		cr_assert_leq(format_columns(buffer), cases[i].columns);
	}
}

Test(report_format, text_fits_any_buffer)
{
	char buffer[16];

	for (size_t size = 1; size < sizeof(buffer); size++) {
		memset(buffer, '#', sizeof(buffer));
		format_text(buffer, size, "日\033µ…abcdefgh", 40);
		cr_assert_lt(strnlen(buffer, sizeof(buffer)), size);
		cr_assert_eq(buffer[size], '#');
	}
}

Test(report_format, wrapped_keeps_figures_whole)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	format_paragraph(out, "it was  idle for 78 % of the time", 18, 2, 4);
	fclose(out);
	cr_assert_str_eq(text, "  it was idle for\n    78 % of the\n    time\n");
	free(text);
}

Test(report_format, json_text_is_valid_utf8)
{
	char *text = format_json_text("a\xff"
	                              "b\xe2\x80",
	                              100);

	cr_assert_str_eq(text, "a\xef\xbf\xbd"
	                       "b\xef\xbf\xbd\xef\xbf\xbd");
	free(text);
	text = format_json_text("ab日本", 6);
	cr_assert_str_eq(text, "ab日…");
	free(text);
	text = format_json_text("ab日", 5);
	cr_assert_str_eq(text, "ab日");
	free(text);
}

/* ---- whole reports ---- */

static void check_golden(void (*fixture)(struct analysis *), const char *name)
{
	struct analysis analysis;
	char *text;

	fixture(&analysis);
	text = fixture_text(&analysis);
	golden_check(name, text);
	free(text);
	fixture_free(&analysis);
}

Test(report_text, golden_starved)
{
	check_golden(fixture_starved, "report_starved.txt");
}

Test(report_text, golden_healthy)
{
	check_golden(fixture_healthy, "report_healthy.txt");
}

Test(report_text, golden_lock)
{
	check_golden(fixture_lock, "report_lock.txt");
}

Test(report_text, golden_several)
{
	check_golden(fixture_several, "report_several.txt");
}

Test(report_text, golden_lost)
{
	check_golden(fixture_lost, "report_lost.txt");
}

Test(report_text, golden_hostile)
{
	check_golden(fixture_hostile, "report_hostile.txt");
}

Test(report_text, golden_no_operations)
{
	check_golden(fixture_empty, "report_no_operations.txt");
}

/* The nth line (from 1) of a report, to be freed. */
static char *line_of(const char *text, unsigned number)
{
	while (--number) {
		text = strchr(text, '\n');
		cr_assert_not_null(text);
		text++;
	}
	return strndup(text, strcspn(text, "\n"));
}

Test(report_text, first_three_lines_are_the_answer)
{
	struct analysis analysis;
	char *text, *line;

	fixture_starved(&analysis);
	text = fixture_text(&analysis);
	line = line_of(text, 1);
	cr_assert_str_eq(line, "GPU 0 (NVIDIA H200) was idle 78.3 % of 4.02 s (3.15 s in 247 gaps).");
	free(line);
	line = line_of(text, 2);
	cr_assert_str_eq(
	    line, "GPU 0 waited 78 % of its idle time for 2 workers that were busy computing (loader-0, "
	          "loader-1).");
	free(line);
	line = line_of(text, 3);
	cr_assert_not_null(strstr(line, "num_workers=6"));
	cr_assert_not_null(strstr(line, "At most 2.46 s (61 %) to gain."));
	free(line);
	free(text);
	fixture_free(&analysis);
}

Test(report_text, simulated_is_said_in_the_fourth_line)
{
	struct analysis analysis;
	char *text, *line;

	fixture_starved(&analysis);
	text = fixture_text(&analysis);
	cr_assert_null(strstr(text, "simulated"));
	free(text);
	analysis.simulated = analysis.devices.items[0].simulated = true;
	text = fixture_text(&analysis);
	line = line_of(text, 4);
	cr_assert_not_null(strstr(line, "The GPU was simulated"));
	free(line);
	free(text);
	fixture_free(&analysis);
}

Test(report_text, replayed_gain_is_a_range)
{
	struct analysis analysis;
	char *text;

	fixture_starved(&analysis);
	analysis.devices.items[0].causes.items[0].gain_low_ns = 2000 * MS;
	text = fixture_text(&analysis);
	cr_assert_not_null(strstr(text, "2.00 s to 2.46 s (up to 61 %) to gain."));
	free(text);
	analysis.devices.items[0].causes.items[0].gain_low_ns =
	    analysis.devices.items[0].causes.items[0].gain_high_ns;
	text = fixture_text(&analysis);
	cr_assert_not_null(strstr(text, "About 2.46 s (61 %) to gain."));
	free(text);
	fixture_free(&analysis);
}

Test(report_text, idle_without_a_finding_says_why)
{
	struct analysis analysis;
	char *text;

	fixture_empty(&analysis);
	fixture_device(&analysis, "NVIDIA H200", 1000 * MS);
	fixture_cause(&analysis.devices.items[0], CAUSE_UNKNOWN_LOST, ROLE_DEVICE, 3000 * MS);
	text = fixture_text(&analysis);
	cr_assert_not_null(strstr(text, "100 % of its idle time is not explained: records were lost here"));
	cr_assert_not_null(strstr(text, "--ring-size"));
	cr_assert_null(strstr(text, "Findings"));
	free(text);
	fixture_free(&analysis);
}

/* A window given by the user in which nothing ran is idle, which is not the same as a GPU that was never
 * used. */
Test(report_text, window_without_operations)
{
	struct analysis analysis;
	char *text;

	fixture_empty(&analysis);
	fixture_device(&analysis, "NVIDIA H200", 0)->op_count = 0;
	fixture_cause(&analysis.devices.items[0], CAUSE_EXTERNAL_NO_WORK, ROLE_DEVICE, 1000 * MS);
	text = fixture_text(&analysis);
	cr_assert_eq(strncmp(text, "GPU 0 (NVIDIA H200) was idle 100 % of 1.00 s", 44), 0);
	cr_assert_not_null(strstr(text, "(external.no_work)"));
	free(text);
	fixture_free(&analysis);
}

/* The chain names the blamed thread once, whether or not `via` ends in it. */
Test(report_text, chain_names_each_thread_once)
{
	static const char *const vias[] = {"main ← pt_data_pin ← loader-0", "main ← pt_data_pin", NULL};
	struct analysis analysis;
	struct chain_link *link;
	char *text;

	for (size_t i = 0; i < sizeof(vias) / sizeof(vias[0]); i++) {
		fixture_empty(&analysis);
		fixture_device(&analysis, "NVIDIA H200", 1000 * MS);
		fixture_cause(&analysis.devices.items[0], CAUSE_WAIT_DISK, ROLE_WORKER, 1000 * MS);
		link = fixture_link(fixture_gap(&analysis.devices.items[0], 0, "step"), 1240, 1240,
		                    "loader-0", "blocked", CAUSE_WAIT_DISK, ROLE_WORKER, MS);
		link->via = vias[i];
		text = fixture_text(&analysis);
		cr_assert_not_null(strstr(text, vias[i]
		                                    ? "  main ← pt_data_pin ← loader-0 (1240/1240): wait.disk"
		                                    : "  loader-0 (1240/1240): wait.disk"));
		free(text);
		fixture_free(&analysis);
	}
}

/* No line is wider than asked for, whatever the names; the three sentences at the top may be. */
static void check_width(const struct analysis *analysis, unsigned width)
{
	const struct report_text_options options = {.width = width, .verbose = true};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	unsigned number = 1;

	cr_assert_eq(report_text(out, analysis, &options), 0);
	cr_assert_eq(fclose(out), 0);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), number++) {
		cr_assert_leq(format_columns(line), number <= 3 ? 180 : width, "line %u: %s", number, line);
		for (const char *c = line; *c; c++)
			cr_assert((unsigned char)*c >= 0x20 && *c != 0x7f, "control character in line %u",
			          number);
	}
	free(text);
}

Test(report_text, lines_fit_the_width)
{
	static void (*const fixtures[])(struct analysis *) = {
	    fixture_starved, fixture_healthy, fixture_lock, fixture_several, fixture_lost, fixture_hostile};
	struct analysis analysis;

	for (size_t i = 0; i < sizeof(fixtures) / sizeof(fixtures[0]); i++) {
		fixtures[i](&analysis);
		check_width(&analysis, 80);
		check_width(&analysis, 100);
		check_width(&analysis, 160);
		fixture_free(&analysis);
	}
}

Test(report_text, colour_only_where_asked_for)
{
	struct report_text_options options;
	struct analysis analysis;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fixture_starved(&analysis);
	report_text_options_for(&options, out);
	cr_assert(!options.colour);
	options.colour = true;
	cr_assert_eq(report_text(out, &analysis, &options), 0);
	cr_assert_eq(fclose(out), 0);
	cr_assert_eq(strncmp(text, "\033[1mGPU 0", 9), 0);
	free(text);
	text = fixture_text(&analysis);
	cr_assert_null(strchr(text, '\033'));
	free(text);
	fixture_free(&analysis);
}

Test(report_text, full_disk_is_an_error)
{
	struct analysis analysis;
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		cr_skip_test("no /dev/full");
	fixture_starved(&analysis);
	cr_assert_eq(report_text(out, &analysis, NULL), -EIO);
	fclose(out);
	fixture_free(&analysis);
}
