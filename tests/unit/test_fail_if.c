// SPDX-License-Identifier: GPL-2.0-only
/* --fail-if: expressions, and what they are held against. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fail_if.h"
#include "report_fixture.h"

static struct fail_limit parsed(const char *text)
{
	struct fail_limit limit;
	struct error error = {0};

	cr_assert_eq(fail_limit_parse(&limit, text, &error), 0, "%s: %s", text, error.text);
	return limit;
}

static unsigned code_count(const struct fail_limit *limit)
{
	unsigned count = 0;

	for (int code = 0; code < CAUSE_COUNT; code++)
		count += limit->causes.codes[code];
	return count;
}

Test(fail_if, plain_limits)
{
	struct fail_limit limit = parsed("idle > 20%");

	cr_assert_eq(limit.metric, FAIL_IDLE);
	cr_assert_float_eq(limit.share, 0.2, 1e-12);
	cr_assert_null(limit.base);
	cr_assert_not(limit.or_equal);
	limit = parsed("  idle>=0.25 % ");
	cr_assert(limit.or_equal);
	cr_assert_float_eq(limit.share, 0.0025, 1e-12);
}

Test(fail_if, causes)
{
	struct fail_limit limit = parsed("cause:wait.disk > 5%");

	cr_assert_eq(limit.metric, FAIL_CAUSE);
	cr_assert(limit.causes.codes[CAUSE_WAIT_DISK]);
	cr_assert_eq(code_count(&limit), 1);
	cr_assert_not(limit.causes.has_role);
	limit = parsed("cause:wait.disk@worker>5%");
	cr_assert(limit.causes.has_role);
	cr_assert_eq(limit.causes.role, ROLE_WORKER);
	cr_assert(cause_set_holds(&limit.causes, CAUSE_WAIT_DISK, ROLE_WORKER));
	cr_assert_not(cause_set_holds(&limit.causes, CAUSE_WAIT_DISK, ROLE_LAUNCHER));
	limit = parsed("cause:memory > 5%");
	cr_assert_eq(code_count(&limit), 4, "all of memory.*");
}

Test(fail_if, bases)
{
	struct fail_limit limit = parsed("idle worse than a run by 3 by 3%");

	cr_assert_str_eq(limit.base, "a run by 3");
	cr_assert_float_eq(limit.share, 0.03, 1e-12);
	fail_limit_free(&limit);
	limit = parsed("step worse than BEFORE by 0%");
	cr_assert_eq(limit.metric, FAIL_STEP);
	cr_assert_str_eq(limit.base, "BEFORE");
	fail_limit_free(&limit);
	limit = parsed("cause:host.gil@launcher worse than x.whyidle by 1.5%");
	cr_assert_str_eq(limit.base, "x.whyidle");
	cr_assert(limit.causes.codes[CAUSE_HOST_GIL]);
	fail_limit_free(&limit);
}

Test(fail_if, bad_expressions)
{
	static const char *const bad[] = {"",
	                                  "idle",
	                                  "idle >",
	                                  "idle > 20",
	                                  "idle > %",
	                                  "idle > 20%%",
	                                  "idle > 20% x",
	                                  "idle > -1%",
	                                  "idle > 1.%",
	                                  "idle > .5%",
	                                  "idle > 1e3%",
	                                  "idle > 12345678%",
	                                  "idle < 20%",
	                                  "idle 20%",
	                                  "busy > 20%",
	                                  "idler > 20%",
	                                  "step > 20%",
	                                  "cause: > 5%",
	                                  "cause:wait.dis > 5%",
	                                  "cause:wait.disk@nobody > 5%",
	                                  "cause:wait.disk@ > 5%",
	                                  "cause:wait. > 5%",
	                                  "idle worse by 3%",
	                                  "idle worse than by 3%",
	                                  "idle worse than x",
	                                  "idle worse than x by",
	                                  "idle worse than x by 3",
	                                  "idle worsethan x by 3%",
	                                  "idle > 1%\n",
	                                  "\033[31m > 1%"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fail_limit limit;
		struct error error = {0};

		cr_assert_eq(fail_limit_parse(&limit, bad[i], &error), -EINVAL, "%s", bad[i]);
		cr_assert(error.text[0] && !strpbrk(error.text, "\n\033"), "%s", error.text);
		fail_limit_free(&limit);
	}
}

static unsigned exceeded(const struct analysis *analysis, const char *text, char **said)
{
	struct fail_check check;
	struct error error = {0};
	size_t size;
	FILE *out = open_memstream(said, &size);

	cr_assert_eq(fail_check_begin(&check, &text, 1, out, &error), 0);
	cr_assert_eq(fail_check_input(&check, NULL, analysis, "run", &error), 0);
	cr_assert_eq(fail_check_finish(&check, &error), 0, "%s", error.text);
	fclose(out);
	fail_check_free(&check);
	return check.exceeded;
}

/* The starved fixture: idle 3.147 s of 4.02 s; 300 ms wait.disk of workers. */
Test(fail_if, held_against_an_analysis)
{
	static const struct {
		const char *text;
		unsigned exceeded;
	} cases[] = {{"idle > 78%", 1},
	             {"idle > 79%", 0},
	             {"cause:wait.disk > 7%", 1},
	             {"cause:wait.disk > 8%", 0},
	             {"cause:wait.disk@worker > 7%", 1},
	             {"cause:wait.disk@launcher > 0%", 0},
	             {"cause:host > 60%", 1},
	             {"cause:wait.network > 0%", 0},
	             {"cause:wait.network >= 0%", 1}};
	struct analysis analysis;

	fixture_starved(&analysis);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *said = NULL;

		cr_assert_eq(exceeded(&analysis, cases[i].text, &said), cases[i].exceeded, "%s",
		             cases[i].text);
		cr_assert_eq(strlen(said) > 0, cases[i].exceeded > 0);
		if (cases[i].exceeded)
			cr_assert(strstr(said, cases[i].text) &&
			              strchr(said, '\n') == said + strlen(said) - 1,
			          "one line: %s", said);
		free(said);
	}
	fixture_free(&analysis);
}

Test(fail_if, nothing_to_judge_by)
{
	const char *text = "idle > 20%";
	struct analysis analysis;
	struct fail_check check;
	struct error error = {0};

	fixture_empty(&analysis);
	cr_assert_eq(fail_check_begin(&check, &text, 1, stderr, &error), 0);
	cr_assert_eq(fail_check_input(&check, NULL, &analysis, "run", &error), 0);
	cr_assert_eq(fail_check_finish(&check, &error), -ENODATA);
	fail_check_free(&check);
	fixture_free(&analysis);
}
