// SPDX-License-Identifier: GPL-2.0-only
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/report.h"
#include "report_fixture.h"

static void (*const fixtures[])(struct analysis *) = {fixture_empty,  fixture_starved, fixture_healthy,
                                                      fixture_lock,   fixture_several, fixture_lost,
                                                      fixture_hostile};
#define FIXTURE_COUNT (sizeof(fixtures) / sizeof(fixtures[0]))

static json_t *report_of(void (*fixture)(struct analysis *))
{
	struct analysis analysis;
	json_error_t error;
	json_t *report;
	char *text;

	fixture(&analysis);
	text = fixture_json(&analysis);
	report = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	cr_assert_not_null(report, "%s in line %d", error.text, error.line);
	free(text);
	fixture_free(&analysis);
	return report;
}

/* Follows keys (and array indices in decimal) down from `value`. */
static json_t *at(json_t *value, const char *path)
{
	char *copy = strdup(path);

	for (char *key = strtok(copy, "/"); key; key = strtok(NULL, "/")) {
		value = json_is_array(value) ? json_array_get(value, (size_t)atoi(key))
		                             : json_object_get(value, key);
		cr_assert_not_null(value, "no %s in %s", key, path);
	}
	free(copy);
	return value;
}

static json_int_t integer_at(json_t *value, const char *path)
{
	value = at(value, path);
	cr_assert(json_is_integer(value), "%s is no integer", path);
	return json_integer_value(value);
}

static const char *text_at(json_t *value, const char *path)
{
	value = at(value, path);
	cr_assert(json_is_string(value), "%s is no string", path);
	return json_string_value(value);
}

Test(report_json, starved)
{
	json_t *report = report_of(fixture_starved);

	cr_assert_str_eq(text_at(report, "schema"), "whyidle.report/1");
	cr_assert_str_eq(text_at(report, "tool/name"), "whyidle");
	cr_assert_str_eq(text_at(report, "tool/version"), WHYIDLE_VERSION);
	cr_assert_str_eq(text_at(report, "source/kind"), "session");
	cr_assert_str_eq(text_at(report, "source/tier"), "T2");
	cr_assert_str_eq(text_at(report, "source/gpu_timeline"), "cupti");
	cr_assert(json_is_false(at(report, "source/simulated")));
	cr_assert_eq(integer_at(report, "window/start_ns"), 1310000000);
	cr_assert_eq(integer_at(report, "window/end_ns"), 5330000000);
	cr_assert_str_eq(text_at(report, "gpus/0/uuid"), "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0");
	cr_assert_eq(integer_at(report, "gpus/0/busy_ns"), 873000000);
	cr_assert_eq(integer_at(report, "gpus/0/idle_ns"), 3147000000);
	cr_assert_eq(integer_at(report, "gpus/0/idle_by_launch_ns/late"), 3147000000);
	cr_assert_str_eq(text_at(report, "gpus/0/causes/0/code"), "host.user_code");
	cr_assert_str_eq(text_at(report, "gpus/0/causes/0/role"), "worker");
	cr_assert_eq(integer_at(report, "gpus/0/causes/0/gain_ns/0"), 0);
	cr_assert_eq(integer_at(report, "gpus/0/causes/0/gain_ns/1"), 2460000000);
	cr_assert_float_eq(json_real_value(at(report, "gpus/0/causes/0/share_of_idle")), 0.781697, 1e-6);
	cr_assert_str_eq(text_at(report, "gpus/0/causes/0/waiter/comm"), "main");
	cr_assert_eq(integer_at(report, "gpus/0/causes/0/group/enough"), 6);
	cr_assert_str_eq(text_at(report, "gpus/0/causes/1/detail/syscall"), "pread64");
	cr_assert_null(json_object_get(at(report, "gpus/0/causes/1/detail"), "python"));
	cr_assert_str_eq(text_at(report, "gpus/0/top_gaps/0/ended_by/launch"), "cudaLaunchKernel");
	cr_assert(json_is_null(at(report, "gpus/0/top_gaps/1/ended_by")));
	cr_assert_str_eq(text_at(report, "gpus/0/top_gaps/0/chain/1/via"), "main ← pt_data_pin ← loader-0");
	cr_assert_eq(integer_at(report, "findings/0/rank"), 1);
	cr_assert_eq(integer_at(report, "findings/0/device"), 0);
	cr_assert_eq(integer_at(report, "findings/0/idle_ns"), 2460000000);
	json_decref(report);
}

Test(report_json, causes_sum_to_idle)
{
	for (size_t i = 0; i < FIXTURE_COUNT; i++) {
		json_t *report = report_of(fixtures[i]), *gpu, *cause;
		size_t g, c;

		json_array_foreach(at(report, "gpus"), g, gpu)
		{
			json_int_t sum = 0;

			json_array_foreach(at(gpu, "causes"), c, cause) sum += integer_at(cause, "ns");
			cr_assert_eq(sum, integer_at(gpu, "idle_ns"));
		}
		json_decref(report);
	}
}

Test(report_json, window_spans_all_devices_that_worked)
{
	struct analysis analysis;
	json_t *report;
	char *text;

	fixture_several(&analysis);
	analysis.devices.items[1].window_start_ns = 7;
	analysis.devices.items[2].window_end_ns = 99999 * MS;
	analysis.devices.items[3].window_start_ns = analysis.devices.items[3].window_end_ns =
	    1; /* did nothing */
	text = fixture_json(&analysis);
	report = json_loads(text, 0, NULL);
	cr_assert_eq(integer_at(report, "window/start_ns"), 7);
	cr_assert_eq(integer_at(report, "window/end_ns"), (json_int_t)(99999 * MS));
	json_decref(report);
	free(text);
	fixture_free(&analysis);
}

Test(report_json, no_operations)
{
	json_t *report = report_of(fixture_empty);

	cr_assert_eq(json_array_size(at(report, "gpus")), 0);
	cr_assert_eq(json_array_size(at(report, "findings")), 0);
	cr_assert_eq(integer_at(report, "window/start_ns"), 1000000000);
	cr_assert_eq(integer_at(report, "window/end_ns"), 6000000000);
	json_decref(report);
}

Test(report_json, losses_and_limits)
{
	json_t *report = report_of(fixture_lost);

	cr_assert_eq(integer_at(report, "losses/bpf_ring"), 123456);
	cr_assert_eq(integer_at(report, "losses/cupti"), 7);
	cr_assert_eq(integer_at(report, "losses/file"), 0);
	cr_assert(json_is_null(at(report, "user_stacks")), "none were taken");
	cr_assert(json_is_true(at(report, "source/incomplete")));
	cr_assert_eq(json_array_size(at(report, "degraded")), 1);
	json_decref(report);
}

/* jansson refuses invalid UTF-8 when it loads, so that loading is half of the test. */
Test(report_json, hostile_names_are_cut_and_replaced)
{
	json_t *report = report_of(fixture_hostile);

	cr_assert_str_eq(text_at(report, "gpus/0/name"), "\033[31mGPU\xef\xbf\xbd\xef\xbf\xbd\n");
	cr_assert_str_eq(text_at(report, "gpus/0/causes/0/threads/0/cmdline"), "\xef\xbf\xbd");
	cr_assert_eq(strlen(text_at(report, "gpus/0/top_gaps/0/ended_by/kernel")), 4096 + strlen("…"));
	json_decref(report);
}

Test(report_json, numbers_out_of_range_stay_valid)
{
	struct analysis analysis;
	json_t *report;
	char *text;

	fixture_starved(&analysis);
	analysis.losses.file = UINT64_MAX;
	analysis.devices.items[0].causes.items[0].group.running = 0.0 / 0.0;
	text = fixture_json(&analysis);
	report = json_loads(text, 0, NULL);
	cr_assert_not_null(report);
	cr_assert_eq(integer_at(report, "losses/file"), INT64_MAX);
	json_decref(report);
	free(text);
	fixture_free(&analysis);
}

Test(report_json, full_disk_is_an_error)
{
	struct analysis analysis;
	struct error error = {0};
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		cr_skip_test("no /dev/full");
	fixture_starved(&analysis);
	cr_assert_eq(report_json(out, &analysis, &error), -EIO);
	cr_assert_not_null(strstr(error.text, "cannot write"));
	fclose(out);
	fixture_free(&analysis);
}

/* Exit status of the validator for a document. */
static int schema_status(const char *arguments, const char *document)
{
	char command[256];
	FILE *check;
	int status;

	snprintf(command, sizeof(command), "python3 tests/e2e/schema.py %s 2>/dev/null", arguments);
	check = popen(command, "w");
	cr_assert_not_null(check);
	fputs(document, check);
	status = pclose(check);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The validator is worth something only if it refuses. */
Test(report_json, validator_refuses_faults)
{
	char path[] = "/tmp/whyidle-schema-XXXXXX", arguments[128], strict[128];
	static const char *const schema =
	    "{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": {\"$ref\": "
	    "\"#/$defs/n\"}, "
	    "\"b\": {\"enum\": [\"x\", null]}, \"c\": {\"type\": \"array\", \"maxItems\": 1, \"items\": "
	    "{\"type\": "
	    "[\"string\", \"null\"]}}}, \"$defs\": {\"n\": {\"type\": \"integer\", \"minimum\": 0}}}";
	static const char *const good[] = {"{\"a\": 0}", "{\"a\": 1, \"b\": null, \"c\": [\"s\"]}"};
	static const char *const bad[] = {"[]",
	                                  "{}",
	                                  "{\"a\": -1}",
	                                  "{\"a\": true}",
	                                  "{\"a\": 1.5}",
	                                  "{\"a\": 1, \"b\": \"y\"}",
	                                  "{\"a\": 1, \"c\": [1]}",
	                                  "{\"a\": 1, \"c\": [null, null]}",
	                                  "{\"a\": "};
	int fd;

	if (access("tests/e2e/schema.py", R_OK))
		cr_skip_test("not run from the root of the repository");
	if (system("python3 -c '' 2>/dev/null"))
		cr_skip_test("no python3");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, schema, strlen(schema)), (ssize_t)strlen(schema));
	close(fd);
	snprintf(arguments, sizeof(arguments), "%s -", path);
	snprintf(strict, sizeof(strict), "--strict %s -", path);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect_eq(schema_status(strict, good[i]), 0, "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(schema_status(arguments, bad[i]), 1, "%s", bad[i]);
	cr_expect_eq(schema_status(arguments, "{\"a\": 1, \"z\": 1}"), 0);
	cr_expect_eq(schema_status(strict, "{\"a\": 1, \"z\": 1}"), 1);
	/* A keyword that it does not know is refused, not passed over. */
	fd = open(path, O_WRONLY | O_TRUNC);
	cr_assert_eq(write(fd, "{\"oneOf\": []}", 13), 13);
	close(fd);
	cr_expect_eq(schema_status(arguments, "1"), 2);
	unlink(path);
}

/* Every fixture against docs/report.schema.json; --strict also refuses what the schema does not mention. */
Test(report_json, follows_the_schema)
{
	struct analysis analysis;

	if (access("docs/report.schema.json", R_OK))
		cr_skip_test("not run from the root of the repository");
	if (system("python3 -c '' 2>/dev/null"))
		cr_skip_test("no python3");
	for (size_t i = 0; i < FIXTURE_COUNT; i++) {
		FILE *check = popen("python3 tests/e2e/schema.py --strict docs/report.schema.json -", "w");
		struct error error = {0};

		cr_assert_not_null(check);
		fixtures[i](&analysis);
		cr_assert_eq(report_json(check, &analysis, &error), 0);
		cr_assert_eq(pclose(check), 0, "fixture %zu does not follow the schema", i);
		fixture_free(&analysis);
	}
}
