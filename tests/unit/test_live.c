// SPDX-License-Identifier: GPL-2.0-only
/* Parts of the live view: bars, chains in words, lists of processes, keys; and whom the daemon blames. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blame.h"
#include "live/bar.h"
#include "live/chain.h"
#include "live/keys.h"
#include "live/processes.h"

/* ---- bars ---- */

Test(bar, parts_fill_it_and_are_where_they_belong)
{
	static const struct {
		uint64_t parts[4];
		unsigned cells, wanted[4];
	} cases[] = {
	    {{1, 1, 1, 1}, 8, {2, 2, 2, 2}},
	    {{25, 70, 5, 0}, 44, {11, 31, 2, 0}},
	    {{0, 0, 0, 0}, 10, {0, 0, 0, 0}},
	    {{1, 999999, 0, 0}, 10, {0, 10, 0, 0}},
	    {{UINT64_MAX, UINT64_MAX, 0, 0}, 10, {5, 5, 0, 0}},
	    {{3, 3, 3, 0}, 1, {0, 1, 0, 0}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned got[4];

		bar_share(got, cases[i].parts, 4, cases[i].cells);
		for (int k = 0; k < 4; k++)
			cr_assert_eq(got[k], cases[i].wanted[k], "case %zu, part %d: %u", i, k, got[k]);
	}
}

Test(bar, any_parts_use_each_cell_once_within_one_of_their_share)
{
	srand(6);
	for (int round = 0; round < 2000; round++) {
		uint64_t parts[8], whole = 0;
		unsigned got[8], cells = 1 + (unsigned)rand() % 200, sum = 0;

		for (int i = 0; i < 8; i++)
			whole += parts[i] = (uint64_t)(rand() % 4 ? rand() % 1000 : 0);
		bar_share(got, parts, 8, cells);
		for (int i = 0; i < 8; i++) {
			double share = whole ? (double)parts[i] / (double)whole * cells : 0;

			sum += got[i];
			cr_assert(got[i] <= share + 1 && got[i] + 1 >= share, "%u for %f", got[i], share);
		}
		cr_assert_eq(sum, whole ? cells : 0);
	}
}

/* ---- chains ---- */

static bool words_of(char words[CHAIN_WORDS], const char *json, unsigned pid)
{
	json_t *gpu = json_loads(json, 0, NULL);
	bool there = chain_words(words, gpu, pid);

	cr_assert_not_null(gpu);
	json_decref(gpu);
	return there;
}

#define LINK(pid, tid, comm, code, from, to, more)                                                           \
	"{\"pid\": " #pid ", \"tid\": " #tid ", \"comm\": \"" comm "\", \"code\": \"" code                   \
	"\", \"start_ns\": " #from ", \"end_ns\": " #to more "}"

Test(chain, the_longest_gap_its_parts_longest_first)
{
	char words[CHAIN_WORDS];

	cr_assert(words_of(
	    words,
	    "{\"top_gaps\": [{\"start_ns\": 5, \"end_ns\": 10}, {\"start_ns\": 0, \"end_ns\": 400, "
	    "\"chain\": [" LINK(1, 2, "a", "host.gil", 0, 30, "") "," LINK(
	        1, 2, "a", "wait.lock", 30, 130,
	        ", \"detail\": {\"holder\": \"b (9)\"}") "," LINK(1, 2, "a", "host.gil", 130, 300,
	                                                          "") "," LINK(3, 3, "c", "wait.disk", 300,
	                                                                       390, "") "," LINK(3, 4, "c",
	                                                                                         "wait.disk",
	                                                                                         390, 400,
	                                                                                         "") "]}]}",
	    0));
	cr_assert_str_eq(
	    words, "worst gap 400 ns: 200 ns a (2): waiting for the Python interpreter lock; 100 ns a (2): "
	           "waiting for a lock that another thread held [b (9)]; 90 ns c (3): waiting for storage; "
	           "10 ns other");
}

Test(chain, gaps_of_a_process)
{
	static const char gpu[] = "{\"top_gaps\": [{\"start_ns\": 0, \"end_ns\": 400, \"chain\": [" LINK(
	    1, 1, "a", "host.gil", 0, 400,
	    "") "]}, {\"start_ns\": 500, \"end_ns\": 600, \"chain\": [" LINK(7, 7, "b", "no.such", 500, 600,
	                                                                     "") "]}]}";
	char words[CHAIN_WORDS];

	cr_assert(words_of(words, gpu, 7));
	cr_assert_str_eq(words, "worst gap 100 ns: 100 ns b (7): no.such");
	cr_assert_not(words_of(words, gpu, 8));
	cr_assert_str_eq(words, "");
}

Test(chain, nothing_and_nonsense)
{
	static const char *const none[] = {"{}", "{\"top_gaps\": []}", "{\"top_gaps\": 3}"};
	char words[CHAIN_WORDS];

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_assert_not(words_of(words, none[i], 0), "%s", none[i]);
	cr_assert(
	    words_of(words, "{\"top_gaps\": [{\"start_ns\": 9, \"end_ns\": 3, \"chain\": [3, {}]}]}", 0));
	cr_assert_str_eq(words, "worst gap 0 ns");
}

Test(chain, names_are_made_fit_and_long_ones_cut)
{
	char words[CHAIN_WORDS], json[4096], name[300];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(json, sizeof(json),
	         "{\"top_gaps\": [{\"start_ns\": 0, \"end_ns\": 90, \"chain\": ["
	         "{\"tid\": 1, \"comm\": \"%s\", \"code\": \"%s\", \"start_ns\": 0, \"end_ns\": 50},"
	         "{\"tid\": 2, \"comm\": \"\\u001b[2J\\u202e\", \"code\": \"c\\n\", \"start_ns\": 50, "
	         "\"end_ns\": 90,"
	         " \"detail\": {\"holder\": \"%s\"}}]}]}",
	         name, name, name);
	cr_assert(words_of(words, json, 0));
	for (const char *at = words; *at; at++)
		cr_assert((unsigned char)*at >= ' ' && *at != 0x7f, "%s", words);
	cr_assert_null(strstr(words, "\xe2\x80\xae"), "text that runs backwards");
	cr_assert_lt(strlen(words), CHAIN_WORDS - 1);
}

/* ---- processes ---- */

static const char three[] =
    "{\"processes\": [{\"pid\": 30, \"process\": \"b\", \"idle\": 0.5, \"cpu\": 1, \"container\": \"Box\"},"
    " {\"pid\": 10, \"process\": \"C\", \"idle\": null, \"cpu\": 3, \"pod\": \"\", \"container\": \"x\"},"
    " {\"pid\": 20, \"process\": \"a\", \"idle\": 0.75, \"cpu\": 1, \"pod\": \"Pod\", \"container\": \"y\"}, "
    "4]}";

/* The pids of a list, as "30 10". */
static const char *pids(const struct process_choice *choice)
{
	static char text[64];
	json_t *status = json_loads(three, 0, NULL);
	struct live_processes list;
	const struct live_process *process;

	text[0] = '\0';
	cr_assert_eq(processes_list(&list, status, choice), 0);
	array_for_each (process, &list)
		sprintf(text + strlen(text), "%s%u", *text ? " " : "", process->pid);
	array_free(&list);
	json_decref(status);
	return text;
}

Test(processes, sorted)
{
	static const struct {
		enum process_sort sort;
		bool reverse;
		const char *wanted;
	} cases[] = {
	    {SORT_IDLE, false, "20 30 0 10"}, {SORT_IDLE, true, "10 0 30 20"},
	    {SORT_CPU, false, "10 20 30 0"},  {SORT_PID, false, "0 10 20 30"},
	    {SORT_PID, true, "30 20 10 0"},   {SORT_NAME, false, "0 10 20 30"},
	    {SORT_DISK, false, "0 10 20 30"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct process_choice choice = {.sort = cases[i].sort, .reverse = cases[i].reverse};

		cr_assert_str_eq(pids(&choice), cases[i].wanted, "%s%s: %s",
		                 process_sort_names[cases[i].sort], cases[i].reverse ? " reverse" : "",
		                 pids(&choice));
	}
	for (int i = 0; i < SORTS; i++)
		cr_assert_not_null(process_sort_names[i]);
	cr_assert_null(process_sort_names[SORTS]);
}

Test(processes, filtered)
{
	static const struct {
		const char *filter;
		uint32_t pid;
		const char *wanted;
	} cases[] = {
	    {"c", 0, "10"},  {"BOX", 0, "30"}, {"pod", 0, "20"}, {"y", 0, ""},
	    {"0", 30, "30"}, {"", 20, "20"},   {"3", 0, "30"},   {NULL, 99, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct process_choice choice = {
		    .sort = SORT_PID, .filter = cases[i].filter, .pid = cases[i].pid};

		cr_assert_str_eq(pids(&choice), cases[i].wanted, "case %zu: %s", i, pids(&choice));
	}
}

/* ---- keys ---- */

static struct live_process items[] = {{.pid = 5, .name = "five"}, {.pid = 3}, {.pid = 9}};
static const struct live_processes list = {.items = items, .count = 3};
static const struct live_processes empty;

static void press(struct live_state *state, const char *keys)
{
	for (; *keys; keys++)
		live_key(state, (unsigned char)*keys, &list);
}

Test(keys, the_selection_moves_and_stays_with_its_process)
{
	struct live_state state = {.rows = 2};

	cr_assert_eq(live_selected(&state, &list), 0);
	live_key(&state, LIVE_KEY_UP, &list);
	cr_assert_eq(state.selected, 5);
	live_key(&state, LIVE_KEY_DOWN, &list);
	cr_assert_eq(state.selected, 3);
	live_key(&state, LIVE_KEY_PAGE_DOWN, &list);
	cr_assert_eq(state.selected, 9);
	press(&state, "j");
	cr_assert_eq(state.selected, 9, "the end");
	live_key(&state, LIVE_KEY_PAGE_UP, &list);
	cr_assert_eq(state.selected, 5);
	live_key(&state, LIVE_KEY_END, &list);
	cr_assert_eq(live_selected(&state, &list), 2);
	press(&state, "gk");
	cr_assert_eq(state.selected, 5);
	state.selected = 77; /* it has gone */
	cr_assert_eq(live_selected(&state, &list), 0);
	live_key(&state, LIVE_KEY_DOWN, &empty);
	live_key(&state, LIVE_KEY_ENTER, &empty);
	cr_assert_eq(live_selected(&state, &empty), SIZE_MAX);
	cr_assert_eq(state.place, LIVE_ALL);
}

Test(keys, one_process_and_back)
{
	struct live_state state = {0};

	live_key(&state, LIVE_KEY_ENTER, &list);
	cr_assert_eq(state.place, LIVE_PROCESS);
	cr_assert_eq(state.pid, 5);
	cr_assert_str_eq(state.name, "five");
	press(&state, "js/");
	cr_assert(state.place == LIVE_PROCESS && !state.editing && state.sort == SORT_IDLE);
	press(&state, "?");
	cr_assert_eq(state.place, LIVE_HELP);
	press(&state, "x");
	cr_assert_eq(state.place, LIVE_PROCESS, "back where it was");
	press(&state, "\x1b");
	cr_assert_eq(state.place, LIVE_ALL);
	press(&state, "?x");
	cr_assert_eq(state.place, LIVE_ALL);
	cr_assert_not(state.quit);
	press(&state, "?q");
	cr_assert(state.quit);
}

Test(keys, sort_pause_paint_quit)
{
	struct live_state state = {0};

	press(&state, "s");
	cr_assert_eq(state.sort, SORT_CPU);
	press(&state, "SS");
	cr_assert_eq(state.sort, SORT_NAME, "round and round");
	press(&state, "sr");
	cr_assert(state.sort == SORT_IDLE && state.reverse);
	press(&state, "p");
	cr_assert(state.paused);
	press(&state, " ");
	cr_assert_not(state.paused);
	press(&state, "\f");
	cr_assert(state.repaint);
	live_key(&state, LIVE_KEY_OTHER, &list);
	press(&state, "z\xff");
	cr_assert_not(state.quit);
	press(&state, "q");
	cr_assert(state.quit);
}

Test(keys, a_filter_is_typed)
{
	struct live_state state = {0};

	press(&state, "/q p\x7f\x01");
	cr_assert(state.editing && !state.quit && !state.paused);
	cr_assert_str_eq(state.filter, "q ");
	live_key(&state, LIVE_KEY_UP, &list);
	live_key(&state, 0xe4, &list);
	live_key(&state, LIVE_KEY_BACKSPACE, &list);
	cr_assert_str_eq(state.filter, "q");
	press(&state, "\r");
	cr_assert_not(state.editing);
	cr_assert_str_eq(state.filter, "q");
	press(&state, "/x\x1b");
	cr_assert_str_eq(state.filter, "");
	press(&state, "/abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\n");
	cr_assert_eq(strlen(state.filter), LIVE_FILTER - 1);
	press(&state, "\x1b");
	cr_assert_str_eq(state.filter, "", "Esc in the list takes it away");
	press(&state, "/ab\x15");
	cr_assert_str_eq(state.filter, "");
	press(&state, "\x7f");
	cr_assert(state.editing);
}

/* ---- blame ---- */

static uint32_t family(void *context, uint32_t pid)
{
	(void)context;
	return pid == 101 ? 100 : pid == 100 || pid == 200 ? pid : 0;
}

Test(blame, a_process_and_what_it_forked)
{
	json_t *report =
	    json_loads("{\"gpus\": [{\"device\": 0, \"busy_ns\": 100, \"idle_ns\": 300, \"causes\": ["
	               "  {\"code\": \"wait.disk\", \"role\": \"worker\", \"threads\": [{\"pid\": 101, "
	               "\"tid\": 102, \"comm\": \"w\","
	               "   \"ns\": 40}, {\"pid\": 200, \"tid\": 200, \"comm\": \"o\", \"ns\": 60}]},"
	               "  {\"code\": \"wait.lock\", \"role\": \"launcher\", \"threads\": [{\"pid\": 100, "
	               "\"tid\": 100, \"comm\": \"l\","
	               "   \"ns\": 160}, {\"pid\": 999, \"ns\": 5}]}]}, {\"device\": 1, \"busy_ns\": 400, "
	               "\"causes\": 3}]}",
	               0, NULL);
	json_t *process = json_object(), *causes;

	blame_put(process, report, 100, family, NULL);
	cr_assert_eq(json_integer_value(json_object_get(process, "observed_ns")), 800);
	cr_assert_float_eq(json_number_value(json_object_get(process, "idle")), 0.25, 1e-9);
	causes = json_object_get(process, "causes");
	cr_assert_eq(json_array_size(causes), 2);
	cr_assert_str_eq(json_string_value(json_object_get(json_array_get(causes, 0), "code")), "wait.lock");
	cr_assert_eq(json_integer_value(json_object_get(json_array_get(causes, 1), "tid")), 102);
	cr_assert_eq(json_integer_value(json_object_get(json_array_get(causes, 1), "ns")), 40);
	json_decref(process);
	json_decref(report);
}

Test(blame, the_largest_of_many_and_no_window)
{
	json_t *report =
	    json_loads("{\"gpus\": [{\"idle_ns\": 1000, \"causes\": [{\"threads\": []}]}]}", 0, NULL);
	json_t *process = json_object(), *causes;
	json_t *threads = json_object_get(
	    json_array_get(json_object_get(json_array_get(json_object_get(report, "gpus"), 0), "causes"), 0),
	    "threads");

	for (int i = 0; i < 20; i++)
		json_array_append_new(threads, json_pack("{si si}", "pid", 100, "ns", i * 7 % 20));
	blame_put(process, report, 100, family, NULL);
	causes = json_object_get(process, "causes");
	cr_assert_eq(json_array_size(causes), BLAME_CAUSES);
	for (int i = 0; i < BLAME_CAUSES; i++)
		cr_assert_eq(json_integer_value(json_object_get(json_array_get(causes, i), "ns")), 19 - i);
	cr_assert_float_eq(json_number_value(json_object_get(process, "idle")), 0.19, 1e-9);
	json_decref(process);
	json_decref(report);
	process = json_object();
	blame_put(process, NULL, 100, family, NULL);
	cr_assert(json_is_null(json_object_get(process, "idle")));
	json_decref(process);
}
