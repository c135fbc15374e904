// SPDX-License-Identifier: GPL-2.0-only
/* What the ranks of a job look like to a person and to a program. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "golden.h"
#include "report/report.h"
#include "report_fixture.h"

#define US 1000ULL

static struct ranks_member *add_member(struct ranks_report *ranks, const char *path, uint64_t wait_ns,
                                       uint64_t caused_ns)
{
	struct ranks_member *member = array_add(&ranks->members);

	cr_assert_not_null(member);
	*member = (struct ranks_member){
	    .rank = (uint32_t)ranks->members.count - 1,
	    .input = (uint32_t)ranks->members.count - 1,
	    .path = path,
	    .device_name = "GPU of a test",
	    .window_start_ns = 1000 * MS,
	    .window_end_ns = 13000 * MS,
	    .busy_ns = 11000 * MS,
	    .idle_ns = 1000 * MS,
	    .collective_ns = 4000 * MS,
	    .alone_ns = 3000 * MS,
	    .wait_ns = wait_ns,
	    .idle_wait_ns = wait_ns / 2,
	    .caused_ns = caused_ns,
	    .caused_delay_ns = caused_ns / 3,
	    .collectives = 1200,
	    .matched = 1190,
	    .clock = {.state = CLOCK_SAME},
	};
	return member;
}

static void add_cause(struct ranks_report *ranks, uint32_t late, uint32_t root, enum late_reason reason,
                      const char *detail, uint64_t ns)
{
	struct ranks_cause *cause = array_add(&ranks->causes);

	cr_assert_not_null(cause);
	*cause = (struct ranks_cause){
	    .late = late,
	    .root = root,
	    .reason = reason,
	    .code = reason == LATE_IDLE || reason == LATE_HOST ? CAUSE_WAIT_DISK : CAUSE_DEVICE_PEER,
	    .role = reason == LATE_IDLE || reason == LATE_HOST ? ROLE_WORKER : ROLE_DEVICE,
	    .confidence = CONFIDENCE_HIGH,
	    .thread = reason == LATE_IDLE ? "loader\033[31m" : "",
	    .detail = detail,
	    .via = reason == LATE_IDLE ? "train ← loader\033[31m" : "",
	    .wait_ns = ns,
	    .delay_ns = ns / 3,
	    .collectives = 300,
	};
}

static void fill(struct ranks_report *ranks)
{
	struct ranks_member *member;
	struct ranks_group *group;
	uint32_t *missing;

	*ranks = (struct ranks_report){
	    .inputs = 3,
	    .world_size = 4,
	    .span_ns = 12000 * MS,
	    .matched = 1190,
	    .notable = 310,
	    .wait_ns = 5000 * MS,
	    .charged_ns = 4900 * MS,
	    .undecided_ns = 60 * MS,
	    .uncharged_ns = 40 * MS,
	    .delay_ns = 1600 * MS,
	    .pattern = PATTERN_STEADY,
	    .slowest = 1,
	};
	missing = array_add(&ranks->missing);
	*missing = 3;
	add_member(ranks, "traces/rank0.json.gz", 2500 * MS, 0);
	member = add_member(ranks, "traces/rank1.json.gz", 0, 4900 * MS);
	member->last_count = 300;
	member->slowest_steps = 39;
	member->clock = (struct ranks_clock){CLOCK_SHIFTED, -12345 * (int64_t)US, 3.5e-6, 4 * US, 1190};
	member = add_member(ranks, "traces/\001rank2.json.gz", 2400 * MS, 0);
	member->clock = (struct ranks_clock){CLOCK_SAME, 0, 0, 3 * US, 1190};
	group = array_add(&ranks->groups);
	*group = (struct ranks_group){3, "AllReduce", 1190, 10, 1, 12, 400 * US, 0};
	add_cause(ranks, 1, 1, LATE_IDLE, "/data/shard-7\n", 3000 * MS);
	add_cause(ranks, 1, 0, LATE_HOST, "", 1000 * MS);
	add_cause(ranks, 1, 1, LATE_COMPUTE, "more kernels", 600 * MS);
	add_cause(ranks, 1, 1, LATE_COPY, "", 200 * MS);
	add_cause(ranks, 1, 1, LATE_BEFORE, "", 100 * MS);
	for (unsigned i = 0; i < 40; i++) {
		struct ranks_step *step = array_add(&ranks->steps);
		char **name = array_add(&ranks->owned);

		cr_assert(asprintf(name, "ProfilerStep#%u", i) > 0);
		*step = (struct ranks_step){*name,
		                            (1000 + 300 * i) * MS,
		                            (1300 + 300 * i) * MS,
		                            30 * MS + i * US,
		                            (100 + i) * MS,
		                            40 * MS,
		                            i ? 1 : RANKS_NONE,
		                            i ? 0 : RANKS_NONE,
		                            30};
	}
}

static char *text_of(const struct ranks_report *ranks, bool verbose)
{
	struct report_text_options options = {.width = 100, .verbose = verbose};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	cr_assert_eq(report_ranks_text(out, ranks, &options), 0);
	fclose(out);
	return text;
}

Test(report_ranks, text)
{
	struct ranks_report ranks;
	char *text;

	fill(&ranks);
	text = text_of(&ranks, false);
	golden_check("report_ranks.txt", text);
	cr_assert_null(strchr(text, '\033'));
	cr_assert_null(strchr(text, '\001'));
	free(text);
	text = text_of(&ranks, true);
	cr_assert_not_null(strstr(text, "(40 of 40)"));
	free(text);
	ranks_report_free(&ranks);
}

Test(report_ranks, single_rank_blames_nobody)
{
	struct ranks_report ranks = {.inputs = 1, .world_size = 2, .slowest = RANKS_NONE};
	uint32_t *missing = array_add(&ranks.missing);
	char *text;

	*missing = 1;
	add_member(&ranks, "one.json", 0, 0);
	text = text_of(&ranks, false);
	cr_assert_not_null(strstr(text, "1,200 collectives"), "%s", text);
	cr_assert_not_null(strstr(text, "cannot be told from"), "%s", text);
	cr_assert_not_null(strstr(text, "not given: 1"), "%s", text);
	cr_assert_null(strstr(text, "last"), "%s", text);
	cr_assert(report_ranks_wanted(&ranks));
	free(text);
	ranks_report_free(&ranks);
}

Test(report_ranks, nothing_to_say_for_one_input_without_collectives)
{
	struct ranks_report ranks = {.inputs = 1, .world_size = 1, .slowest = RANKS_NONE};

	add_member(&ranks, "one.json", 0, 0)->collectives = 0;
	cr_assert_not(report_ranks_wanted(&ranks));
	ranks_report_free(&ranks);
}

static char *json_of(const struct ranks_report *ranks, size_t reports)
{
	struct analysis analysis;
	struct error error = {0};
	const char *texts[3];
	char *report, *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	fixture_starved(&analysis);
	report = fixture_json(&analysis);
	fixture_free(&analysis);
	for (size_t i = 0; i < reports; i++)
		texts[i] = report;
	cr_assert_eq(report_ranks_json(out, ranks, texts, reports, &error), 0, "%s", error.text);
	fclose(out);
	free(report);
	return text;
}

static json_int_t integer(json_t *object, const char *key)
{
	cr_assert(json_is_integer(json_object_get(object, key)), "%s", key);
	return json_integer_value(json_object_get(object, key));
}

Test(report_ranks, json)
{
	struct ranks_report ranks;
	json_t *document, *part, *cause;
	char *text;

	fill(&ranks);
	text = json_of(&ranks, 3);
	document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(document);
	free(text);
	cr_assert_eq(json_array_size(json_object_get(document, "reports")), 3);
	part = json_object_get(document, "ranks");
	cr_assert_eq(integer(part, "slowest"), 1);
	cr_assert_eq(json_array_size(json_object_get(part, "members")), 3);
	cr_assert_eq(json_array_size(json_object_get(part, "steps")), 40);
	cause = json_array_get(json_object_get(part, "causes"), 1);
	cr_assert_eq(integer(cause, "rank"), 1);
	cr_assert_eq(integer(cause, "root_rank"), 0);
	cr_assert_str_eq(json_string_value(json_object_get(cause, "code")), "wait.disk");
	cause = json_array_get(json_object_get(part, "causes"), 2);
	cr_assert(json_is_null(json_object_get(cause, "code")));
	json_decref(document);
	ranks_report_free(&ranks);
}

/* A report that is made with the ranks is the one that they are added to afterwards. */
Test(report_ranks, json_of_one_at_once)
{
	struct ranks_report ranks;
	struct analysis analysis;
	struct error error = {0};
	char *at_once, *added;
	json_t *first, *second;
	size_t size;
	FILE *out = open_memstream(&at_once, &size);

	cr_assert_not_null(out);
	fill(&ranks);
	fixture_starved(&analysis);
	cr_assert_eq(report_json_with_ranks(out, &analysis, &ranks, &error), 0, "%s", error.text);
	fclose(out);
	fixture_free(&analysis);
	added = json_of(&ranks, 1);
	first = json_loads(at_once, JSON_REJECT_DUPLICATES, NULL);
	second = json_loads(added, JSON_REJECT_DUPLICATES, NULL);
	cr_assert(first && second && json_object_get(first, "ranks"));
	cr_assert(json_equal(first, second));
	json_decref(first);
	json_decref(second);
	free(at_once);
	free(added);
	ranks_report_free(&ranks);
}

Test(report_ranks, follows_the_schema)
{
	struct ranks_report ranks;

	if (access("docs/report.schema.json", R_OK))
		cr_skip_test("not run from the root of the repository");
	if (system("python3 -c '' 2>/dev/null"))
		cr_skip_test("no python3");
	fill(&ranks);
	for (size_t reports = 1; reports <= 3; reports += 2) {
		FILE *check = popen("python3 tests/e2e/schema.py --strict docs/report.schema.json -", "w");
		char *text = json_of(&ranks, reports);

		cr_assert_not_null(check);
		fputs(text, check);
		free(text);
		cr_assert_eq(pclose(check), 0, "with %zu inputs", reports);
	}
	ranks_report_free(&ranks);
}
