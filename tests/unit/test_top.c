// SPDX-License-Identifier: GPL-2.0-only
/* The text of `whyidle top`, from statuses made by hand. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/top_text.h"

#define HEAD                                                                                                 \
	"{\"schema\": \"whyidle.status/1\", \"version\": \"0.1.0\", \"uptime_ns\": 65000000000,"             \
	" \"budget\": {\"share\": 0.005, \"state\": \"short\", \"met\": true, \"standing\": 0.0012,"         \
	"              \"slowdown\": 0.083, \"next_window_s\": 7.2},"

/* Caller frees. NULL with the error's code in *err if it is refused. */
static char *shown(const char *json, unsigned width, uint32_t pid, int *err)
{
	struct top_view view = {.width = width, .now_ms = 1005000, .pid = pid};
	json_t *status = json_loads(json, 0, NULL);
	struct error error = {0};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	*err = top_text(out, status, &view, &error);
	fclose(out);
	json_decref(status);
	return text;
}

static void check_width(const char *text, size_t width)
{
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		cr_assert_leq(strcspn(line, "\n"), width, "%.*s", (int)strcspn(line, "\n"), line);
}

static const char busy[] = HEAD
    " \"processes\": [{\"pid\": 12, \"process\": \"train\\u001b[2J\", \"container\": \"0123456789ab\","
    "   \"pod\": \"\", \"cpu\": 1.5, \"runqueue\": 0.25, \"disk\": 0, \"switches\": 1200, "
    "\"launches_per_s\": 9000},"
    "  {\"pid\": 13, \"process\": \"serve\", \"container\": \"\", \"pod\": \"a-pod\"}],"
    " \"window\": {\"serial\": 3, \"start_ms\": 1000000, \"length_ns\": 1000000000, \"reason\": \"schedule\","
    "  \"report\": {\"source\": {\"gpu_timeline\": \"inferred\"},"
    "   \"findings\": [{\"device\": 1, \"title\": \"of another\"}, {\"device\": 0, \"title\": \"GPU 0 waited "
    "for a lock.\"}],"
    "   \"gpus\": [{\"device\": 0, \"name\": \"H200\", \"busy_ns\": 250, \"idle_ns\": 750, \"causes\": ["
    "    {\"code\": \"wait.lock\", \"role\": \"launcher\", \"ns\": 700, \"threads\": [{\"comm\": "
    "\"train\"}]},"
    "    {\"code\": \"host.gil\", \"role\": \"thread\", \"ns\": 50, \"threads\": []}]}]}}}";

Test(top, what_is_idle_and_why)
{
	int err;
	char *text = shown(busy, 80, 0, &err);

	cr_assert_eq(err, 0);
	check_width(text, 80);
	cr_assert(strstr(text, "budget 0.5 % of a CPU, short\n"), "%s", text);
	cr_assert(strstr(text, "next in 7 s"), "%s", text);
	cr_assert(strstr(text, "5 s ago (schedule), GPU timeline inferred"), "%s", text);
	cr_assert(strstr(text, "[###########.................................] busy 25.0 %, idle 75.0 %"),
	          "%s", text);
	cr_assert(strstr(text, "wait.lock              launcher   70.0 %  train\n"), "%s", text);
	cr_assert(strstr(text, "GPU 0 waited for a lock.\n"), "%s", text);
	cr_assert_not(strstr(text, "of another"), "%s", text);
	cr_assert(strstr(text, "1200     9000 0123456789ab\n"), "%s", text);
	cr_assert(strstr(text, "a-pod\n"), "%s", text);
	cr_assert_null(strchr(text, '\x1b'), "a name reached the terminal as it is");
	free(text);
}

Test(top, one_process)
{
	int err;
	char *text = shown(busy, 60, 13, &err);

	cr_assert_eq(err, 0);
	check_width(text, 80);
	cr_assert(strstr(text, "serve"), "%s", text);
	cr_assert_not(strstr(text, "0123456789ab"), "%s", text);
	free(text);
}

Test(top, nothing_to_see_is_said)
{
	int err;
	char *text = shown(HEAD " \"processes\": [], \"window\": null}", 80, 0, &err);

	cr_assert_eq(err, 0);
	cr_assert(strstr(text, "There was no window yet"), "%s", text);
	cr_assert(strstr(text, "No process uses a GPU."), "%s", text);
	free(text);
}

Test(top, what_is_no_status_is_refused)
{
	static const char *const bad[] = {"{}", "[]", "{\"schema\": \"whyidle.report/1\"}",
	                                  "{\"schema\": 3}"};
	int err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		free(shown(bad[i], 80, 0, &err));
		cr_assert_eq(err, -EPROTO, "%s", bad[i]);
	}
	/* A status with nothing in it that is right is shown as one of nothing. */
	free(shown("{\"schema\": \"whyidle.status/1\", \"window\": 3, \"processes\": {}, \"budget\": []}", 80,
	           0, &err));
	cr_assert_eq(err, 0);
}
