// SPDX-License-Identifier: GPL-2.0-only
/* Metrics and their text. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/families.h"
#include "metrics/http.h"
#include "metrics/metrics.h"

enum { PLAIN, LABELLED, NARROW };

static const struct metric_family table[] = {
    [PLAIN] = {"t_up_ratio", "ratio", "Whether\nit is \"up\".", METRIC_GAUGE, 0, {NULL}},
    [LABELLED] = {"t_idle_seconds", "seconds", "Idle.", METRIC_COUNTER, 0, {"gpu", "cause"}},
    [NARROW] = {"t_narrow", NULL, "Few.", METRIC_GAUGE, 3, {"name"}},
};

static struct metrics *fresh(void)
{
	struct metrics *metrics = metrics_new(table, sizeof(table) / sizeof(table[0]));

	cr_assert_not_null(metrics);
	return metrics;
}

static char *text_of(const struct metrics *metrics, enum metrics_format format)
{
	size_t length = 0;
	char *text = metrics_text(metrics, format, &length);

	cr_assert_not_null(text);
	cr_assert_eq(strlen(text), length);
	return text;
}

Test(metrics, both_formats)
{
	struct metrics *metrics = fresh();
	char *text;

	*metrics_at(metrics, PLAIN, 1, NULL) = 0.25;
	*metrics_at(metrics, LABELLED, 1, "0", "wait.lock") += 1.5;
	*metrics_at(metrics, LABELLED, 2, "0", "wait.lock") += 1;
	text = text_of(metrics, METRICS_OPENMETRICS);
	cr_assert_str_eq(text, "# TYPE t_up_ratio gauge\n# UNIT t_up_ratio ratio\n"
	                       "# HELP t_up_ratio Whether\\nit is \\\"up\\\".\nt_up_ratio 0.25\n"
	                       "# TYPE t_idle_seconds counter\n# UNIT t_idle_seconds seconds\n"
	                       "# HELP t_idle_seconds Idle.\n"
	                       "t_idle_seconds_total{gpu=\"0\",cause=\"wait.lock\"} 2.5\n# EOF\n");
	free(text);
	text = text_of(metrics, METRICS_TEXT);
	cr_assert_str_eq(
	    text, "# TYPE t_up_ratio gauge\n# HELP t_up_ratio Whether\\nit is \"up\".\nt_up_ratio 0.25\n"
	          "# TYPE t_idle_seconds_total counter\n# HELP t_idle_seconds_total Idle.\n"
	          "t_idle_seconds_total{gpu=\"0\",cause=\"wait.lock\"} 2.5\n");
	free(text);
	metrics_free(metrics);
}

Test(metrics, names_from_a_target_do_no_harm)
{
	struct metrics *metrics = fresh();
	char *text, *longest = calloc(1, 1000);

	*metrics_at(metrics, NARROW, 1, "a\"b\\c\nd\xff") = 1;
	text = text_of(metrics, METRICS_TEXT);
	cr_assert(strstr(text, "t_narrow{name=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} 1\n"), "%s", text);
	free(text);
	metrics_clear(metrics, NARROW);
	memset(longest, 'x', 62);
	strcat(longest, "\xc3\xa4\xc3\xa4"); /* whole characters only */
	*metrics_at(metrics, NARROW, 1, longest) = 1;
	text = text_of(metrics, METRICS_TEXT);
	longest[62] = '\0';
	cr_assert(strstr(text, longest));
	cr_assert_null(strchr(text, '\xc3'), "%s", text);
	free(text);
	free(longest);
	metrics_free(metrics);
}

Test(metrics, label_sets_are_bounded)
{
	struct metrics *metrics = fresh();
	char *text, name[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		*metrics_at(metrics, NARROW, 1, name) += 1;
	}
	text = text_of(metrics, METRICS_TEXT);
	cr_assert(
	    strstr(text, "t_narrow{name=\"n0\"} 1\nt_narrow{name=\"n1\"} 1\nt_narrow{name=\"other\"} 998\n"),
	    "%s", text);
	cr_assert_eq(metrics_folded(metrics), 998);
	free(text);
	metrics_free(metrics);
}

Test(metrics, unused_series_expire_but_families_without_labels_stay)
{
	struct metrics *metrics = fresh();
	char *text;

	*metrics_at(metrics, PLAIN, 1, NULL) = 1;
	*metrics_at(metrics, LABELLED, 10, "0", "a") = 1;
	*metrics_at(metrics, LABELLED, 20, "0", "b") = 2;
	metrics_expire(metrics, 15);
	text = text_of(metrics, METRICS_TEXT);
	cr_assert_null(strstr(text, "cause=\"a\""));
	cr_assert_not_null(strstr(text, "cause=\"b\""));
	cr_assert_not_null(strstr(text, "t_up_ratio 1"));
	free(text);
	metrics_free(metrics);
}

Test(metrics, numbers)
{
	struct metrics *metrics = fresh();
	static const struct {
		double value;
		const char *text;
	} cases[] = {
	    {0, "0"},           {1e14, "100000000000000"}, {0.1, "0.1"},
	    {INFINITY, "+Inf"}, {-INFINITY, "-Inf"},       {NAN, "NaN"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char wanted[64], *text;

		*metrics_at(metrics, PLAIN, 1, NULL) = cases[i].value;
		text = text_of(metrics, METRICS_TEXT);
		snprintf(wanted, sizeof(wanted), "t_up_ratio %s\n", cases[i].text);
		cr_assert(strstr(text, wanted), "%s is not in %s", wanted, text);
		free(text);
	}
	metrics_free(metrics);
}

Test(metrics, format_by_accept_header)
{
	cr_assert_eq(metrics_accepted(NULL), METRICS_TEXT);
	cr_assert_eq(metrics_accepted("*/*"), METRICS_TEXT);
	cr_assert_eq(metrics_accepted("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
	             METRICS_OPENMETRICS);
}

/* What a reader of metrics expects of names: https://prometheus.io/docs/practices/naming/ */
Test(metrics, families_of_the_daemon_are_named_well)
{
	for (int i = 0; i < FAMILY_COUNT; i++) {
		const struct metric_family *family = &families[i];
		size_t length = strlen(family->name);

		cr_assert(!strncmp(family->name, "whyidle_", 8), "%s", family->name);
		cr_assert_eq(strspn(family->name, "abcdefghijklmnopqrstuvwxyz_"), length, "%s", family->name);
		cr_assert_null(strstr(family->name, "_total"), "%s", family->name);
		cr_assert(family->help && family->help[strlen(family->help) - 1] == '.', "%s", family->name);
		if (family->unit)
			cr_assert_str_eq(family->name + length - strlen(family->unit), family->unit);
		for (int j = 0; j < i; j++)
			cr_assert_str_neq(family->name, families[j].name);
	}
}

Test(metrics, listen_address)
{
	struct error error;
	char address[64];
	uint16_t port;

	cr_assert_eq(http_listen_parse("127.0.0.1:9837", address, sizeof(address), &port, &error), 0);
	cr_assert_str_eq(address, "127.0.0.1");
	cr_assert_eq(port, 9837);
	cr_assert_eq(http_listen_parse("[::1]:0", address, sizeof(address), &port, &error), 0);
	cr_assert_str_eq(address, "::1");
	cr_assert_eq(port, 0);
	cr_assert_lt(http_listen_parse("127.0.0.1", address, sizeof(address), &port, &error), 0);
	cr_assert_lt(http_listen_parse(":80", address, sizeof(address), &port, &error), 0);
	cr_assert_lt(http_listen_parse("a:65536", address, sizeof(address), &port, &error), 0);
	cr_assert_lt(http_listen_parse("a:-1", address, sizeof(address), &port, &error), 0);
}
