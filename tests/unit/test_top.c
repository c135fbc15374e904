// SPDX-License-Identifier: GPL-2.0-only
/* What `whyidle top` shows of statuses made by hand, as text and on a screen. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/page.h"
#include "live/status.h"

#define HEAD                                                                                                 \
	"{\"schema\": \"whyidle.status/1\", \"version\": \"0.1.0\", \"uptime_ns\": 65000000000,"             \
	" \"budget\": {\"share\": 0.005, \"state\": \"short\", \"met\": true, \"standing\": 0.0012,"         \
	"              \"slowdown\": 0.083, \"next_window_s\": 7.2},"

/* Caller frees. NULL with the error's code in *err if it is refused. */
static char *shown(const char *json, unsigned width, uint32_t pid, int *err)
{
	struct page_view view = {.width = width, .now_ms = 1005000, .choice = {.pid = pid}};
	struct error error = {0};
	json_t *status = status_parse(json, strlen(json), &error);
	char *text = NULL;
	size_t length;
	FILE *out;

	*err = error.code;
	if (!status)
		return NULL;
	out = open_memstream(&text, &length);
	*err = page_write(out, status, &view, &error);
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
    "\"launches_per_s\": 9000, \"threads\": 4, \"processes\": 2, \"idle\": 0.7, \"observed_ns\": 1000,"
    "   \"causes\": [{\"device\": 0, \"code\": \"wait.lock\", \"role\": \"launcher\", \"comm\": "
    "\"tr\\u0007\","
    "    \"tid\": 14, \"ns\": 700}]},"
    "  {\"pid\": 13, \"process\": \"serve\", \"container\": \"\", \"pod\": \"a-pod\"}],"
    " \"window\": {\"serial\": 3, \"start_ms\": 1000000, \"length_ns\": 1000000000, \"reason\": \"schedule\","
    "  \"report\": {\"source\": {\"gpu_timeline\": \"inferred\"},"
    "   \"findings\": [{\"device\": 1, \"title\": \"of another\"}, {\"device\": 0, \"title\": \"GPU 0 waited "
    "for a lock.\"}],"
    "   \"gpus\": [{\"device\": 0, \"name\": \"H200\", \"busy_ns\": 250, \"idle_ns\": 750, \"causes\": ["
    "    {\"code\": \"wait.lock\", \"role\": \"launcher\", \"ns\": 700, \"threads\": [{\"comm\": "
    "\"train\"}]},"
    "    {\"code\": \"host.gil\", \"role\": \"thread\", \"ns\": 50, \"threads\": []}],"
    "    \"top_gaps\": [{\"start_ns\": 0, \"end_ns\": 10}, {\"start_ns\": 100, \"end_ns\": 400, \"chain\": ["
    "     {\"pid\": 12, \"tid\": 14, \"comm\": \"tr\\u0007\", \"code\": \"wait.lock\", \"start_ns\": 100, "
    "\"end_ns\": 150, \"detail\": {\"holder\": \"w\\u001b]0;x (15)\"}},"
    "     {\"pid\": 12, \"tid\": 14, \"comm\": \"train\", \"code\": \"host.gil\", \"start_ns\": 150, "
    "\"end_ns\": 230},"
    "     {\"pid\": 12, \"tid\": 14, \"comm\": \"train\", \"code\": \"wait.lock\", \"start_ns\": 230, "
    "\"end_ns\": 330},"
    "     {\"pid\": 12, \"tid\": 99, \"comm\": \"train\", \"code\": \"new.code\", \"start_ns\": 330, "
    "\"end_ns\": 360},"
    "     {\"pid\": 12, \"tid\": 99, \"comm\": \"train\", \"code\": \"wait.disk\", \"start_ns\": 360, "
    "\"end_ns\": 380}]}]}]}}}";

Test(top, what_is_idle_and_why)
{
	int err;
	char *text = shown(busy, 80, 0, &err);

	cr_assert_eq(err, 0);
	check_width(text, 80);
	cr_assert(strstr(text, "budget 0.5 % of a CPU, short\n"), "%s", text);
	cr_assert(strstr(text, "next in 7 s"), "%s", text);
	cr_assert(strstr(text, "5 s ago (schedule), GPU timeline inferred"), "%s", text);
	cr_assert(strstr(text, "[###########aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabb] busy 25.0 %, idle 75.0 %"),
	          "%s", text);
	cr_assert(strstr(text, "a wait.lock              launcher   70.0 %  train\n"), "%s", text);
	cr_assert(strstr(text, "b host.gil "), "%s", text);
	cr_assert(strstr(text, "    worst gap 300 ns: 150 ns "), "%s", text);
	cr_assert(strstr(text, "GPU 0 waited for a lock.\n"), "%s", text);
	cr_assert_not(strstr(text, "of another"), "%s", text);
	cr_assert(strstr(text, "  70.0  1.50     9000  0.25  0.00     1200 0123456789ab\n"), "%s", text);
	cr_assert(strstr(text, "     13 serve               -     -        -     -     -        - a-pod\n"),
	          "%s", text);
	cr_assert_null(strchr(text, '\x1b'), "a name reached the terminal as it is");
	cr_assert_null(strchr(text, '\a'));
	free(text);
}

Test(top, one_process)
{
	int err;
	char *text = shown(busy, 60, 13, &err);

	cr_assert_eq(err, 0);
	check_width(text, 80);
	cr_assert(strstr(text, "IDLE%  CPUS LAUNCH/S NOCPU IN\n"), "columns that do not fit are left out: %s",
	          text);
	cr_assert(strstr(text, "serve"), "%s", text);
	cr_assert(strstr(text, "It was in no window yet"), "%s", text);
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
	text = shown(busy, 80, 4711, &err);
	cr_assert(strstr(text, "Process 4711 uses no GPU."), "%s", text);
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

/* ---- on a screen ---- */

/* A screen of a height; caller frees. *marks: styles that begin somewhere, as bits. */
static char *screen(const char *json, unsigned width, unsigned height, struct live_state *state,
                    unsigned *styles)
{
	struct page_view view = {
	    .width = width,
	    .height = height,
	    .now_ms = 1005000,
	    .state = state,
	    .choice = {.sort = state->sort, .filter = state->filter},
	};
	json_t *status = json_loads(json, 0, NULL);
	const struct page_mark *mark;
	struct live_processes list;
	struct page page;
	unsigned lines = 0;
	size_t before = 0;
	char *text;

	cr_assert_eq(processes_list(&list, status, &view.choice), 0);
	cr_assert_eq(page_make(&page, status, &list, &view), 0);
	for (size_t i = 0; i < page.length; i++)
		lines += page.text[i] == '\n';
	cr_assert_eq(lines, height, "%u lines: %s", lines, page.text);
	*styles = 0;
	array_for_each (mark, &page.marks) {
		cr_assert(mark->at >= before && mark->at <= page.length);
		before = mark->at;
		*styles |= 1u << mark->style;
	}
	text = strdup(page.text);
	page_free(&page);
	array_free(&list);
	json_decref(status);
	return text;
}

Test(top, a_screen_has_its_height_and_says_the_keys)
{
	struct live_state state = {.selected = 13};
	unsigned styles;
	char *text = screen(busy, 80, 24, &state, &styles);

	check_width(text, 80);
	cr_assert(strstr(text, "\nq quit  Enter process  s sort: idle  / filter  p pause  ? help\n"), "%s",
	          text);
	cr_assert(styles & 1u << STYLE_SELECTED);
	cr_assert(styles & 1u << STYLE_BUSY);
	cr_assert(styles & 1u << (STYLE_CAUSE + 1));
	free(text);
	/* Where there is little room, GPUs are a line each, and the selected process is still there. */
	text = screen(busy, 80, 9, &state, &styles);
	cr_assert(strstr(text, "  0 [####"), "%s", text);
	cr_assert_not(strstr(text, "worst gap"), "%s", text);
	cr_assert(strstr(text, " 13 serve"), "%s", text);
	free(text);
	for (unsigned height = 1; height < 9; height++)
		free(screen(busy, 20, height, &state, &styles));
}

Test(top, many_processes_scroll)
{
	struct live_state state = {.sort = SORT_PID};
	unsigned styles;
	size_t length;
	char *json, *text;
	FILE *out = open_memstream(&json, &length);

	fputs(HEAD " \"window\": null, \"processes\": [", out);
	for (int i = 1; i <= 100; i++)
		fprintf(out, "%s{\"pid\": %d, \"process\": \"p%d\"}", i > 1 ? "," : "", i, i);
	fputs("]}", out);
	fclose(out);
	text = screen(json, 80, 24, &state, &styles);
	cr_assert(strstr(text, " p1 ") && !strstr(text, " p100 "), "%s", text);
	free(text);
	state.selected = 100;
	text = screen(json, 80, 24, &state, &styles);
	cr_assert(strstr(text, " p100 ") && !strstr(text, " p1 "), "%s", text);
	free(text);
	free(json);
}

Test(top, one_process_and_one_that_has_gone)
{
	struct live_state state = {.place = LIVE_PROCESS, .pid = 12, .name = "train"};
	unsigned styles;
	char *text = screen(busy, 80, 24, &state, &styles);

	cr_assert(strstr(text, "Process 12 train\n"), "%s", text);
	cr_assert(strstr(text, "4 threads in 2 processes"), "%s", text);
	cr_assert(strstr(text, "because of it for 70.0 % of the last window:\n"), "%s", text);
	cr_assert(strstr(text, "(14), GPU 0\n"), "%s", text);
	cr_assert(strstr(text, "worst gap 300 ns"), "%s", text);
	cr_assert_not(strstr(text, "serve"), "%s", text);
	free(text);
	state.pid = 13;
	text = screen(busy, 80, 24, &state, &styles);
	cr_assert(strstr(text, "It was in no window yet"), "%s", text);
	cr_assert_not(strstr(text, "worst gap"), "another's");
	free(text);
	state.pid = 14;
	text = screen(busy, 80, 24, &state, &styles);
	cr_assert(strstr(text, "It uses no GPU any more."), "%s", text);
	free(text);
	state.place = LIVE_HELP;
	text = screen(busy, 80, 24, &state, &styles);
	check_width(text, 80);
	cr_assert(strstr(text, "\nany key: back  q quit\n"), "%s", text);
	free(text);
}

Test(top, a_message_takes_the_place_of_the_keys)
{
	struct live_state state = {.paused = true};
	struct page_view view = {
	    .width = 80, .height = 12, .state = &state, .message = "no\x1b[2J daemon answers"};
	json_t *status = json_loads(busy, 0, NULL);
	struct live_processes list;
	struct page page;

	cr_assert_eq(processes_list(&list, status, &view.choice), 0);
	cr_assert_eq(page_make(&page, status, &list, &view), 0);
	cr_assert(strstr(page.text, "daemon answers\n"), "%s", page.text);
	cr_assert(strstr(page.text, "; paused\n"), "%s", page.text);
	cr_assert_null(strchr(page.text, '\x1b'));
	page_free(&page);
	array_free(&list);
	json_decref(status);
}
