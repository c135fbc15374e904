// SPDX-License-Identifier: GPL-2.0-only
#include "live/top_text.h"

#include <errno.h>
#include <string.h>

#include "report/format.h"

#define CAUSES       6 /* of a GPU that are shown */
#define NAME_COLUMNS 15
#define BAR_LEAST    10
#define BAR_BESIDE   36 /* columns of what stands beside the bar */

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static double real(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* A text of the daemon's, fit for a terminal. */
static const char *text(char *buffer, size_t size, const json_t *object, const char *key, unsigned columns)
{
	return format_text(buffer, size, json_string_value(json_object_get(object, key)), columns);
}

static void put_head(FILE *out, const json_t *status)
{
	const json_t *budget = json_object_get(status, "budget"),
	             *next = json_object_get(budget, "next_window_s");
	char state[FORMAT_TEXT_SIZE(16)], version[FORMAT_TEXT_SIZE(16)], up[FORMAT_FIGURE];

	fprintf(out, "whyidle %s, up %s; budget %.3g %% of a CPU, %s%s\n",
	        text(version, sizeof(version), status, "version", 16),
	        format_duration(up, number(status, "uptime_ns")), real(budget, "share") * 100,
	        text(state, sizeof(state), budget, "state", 16),
	        json_is_false(json_object_get(budget, "met")) ? ": exceeded" : "");
	fprintf(out, "spent: %.3f %% without windows; launches in windows +%.1f %%; ",
	        real(budget, "standing") * 100, real(budget, "slowdown") * 100);
	if (json_is_number(next))
		fprintf(out, "next in %.0f s\n", json_number_value(next));
	else
		fputs(real(budget, "interval_s") > 0 ? "none comes\n" : "by request only\n", out);
}

/* Busy as '#', idle as '.'. */
static void put_bar(FILE *out, uint64_t busy, uint64_t all, unsigned columns)
{
	unsigned filled = all ? (unsigned)((double)busy / (double)all * columns + 0.5) : 0;

	fputc('[', out);
	for (unsigned i = 0; i < columns; i++)
		fputc(i < filled ? '#' : '.', out);
	fputc(']', out);
}

/* The names of the threads of a cause, as many as fit. */
static void put_threads(FILE *out, const json_t *cause, unsigned columns)
{
	const json_t *threads = json_object_get(cause, "threads");
	const char *before = "";
	json_t *thread;
	size_t i;

	json_array_foreach(threads, i, thread)
	{
		char name[FORMAT_TEXT_SIZE(NAME_COLUMNS)];
		unsigned taken;

		text(name, sizeof(name), thread, "comm", NAME_COLUMNS);
		taken = format_columns(name) + (unsigned)strlen(before);
		if (taken > columns)
			break;
		fprintf(out, "%s%s", before, name);
		columns -= taken;
		before = ", ";
	}
}

static void put_causes(FILE *out, const json_t *gpu, uint64_t all, const struct top_view *view)
{
	json_t *cause;
	size_t i;

	json_array_foreach(json_object_get(gpu, "causes"), i, cause)
	{
		char code[FORMAT_TEXT_SIZE(22)], role[FORMAT_TEXT_SIZE(9)], share[FORMAT_FIGURE];

		if (i == CAUSES) {
			fputs("    …\n", out);
			break;
		}
		fputs("    ", out);
		format_left(out, text(code, sizeof(code), cause, "code", 22), 23);
		format_left(out, text(role, sizeof(role), cause, "role", 9), 10);
		format_right(out, format_percent(share, number(cause, "ns"), all), 7);
		fputs("  ", out);
		put_threads(out, cause, view->width - 46);
		fputc('\n', out);
	}
}

static void put_finding(FILE *out, const json_t *report, uint64_t device, const struct top_view *view)
{
	json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(report, "findings"), i, finding)
	{
		char line[FORMAT_TEXT_SIZE(400)];

		if (number(finding, "device") != device)
			continue;
		fputs("    ", out);
		format_wrapped(out, text(line, sizeof(line), finding, "title", 400), view->width, 4, 4);
		return;
	}
}

static void put_gpus(FILE *out, const json_t *report, const struct top_view *view)
{
	json_t *gpu;
	size_t i;

	json_array_foreach(json_object_get(report, "gpus"), i, gpu)
	{
		uint64_t busy = number(gpu, "busy_ns"), all = busy + number(gpu, "idle_ns");
		uint64_t device = number(gpu, "device");
		unsigned columns = view->width - BAR_BESIDE;
		char name[FORMAT_TEXT_SIZE(40)], first[FORMAT_FIGURE], second[FORMAT_FIGURE];

		fprintf(out, "\nGPU %llu %s\n  ", (unsigned long long)device,
		        text(name, sizeof(name), gpu, "name", 40));
		put_bar(out, busy, all, columns > BAR_LEAST ? columns : BAR_LEAST);
		fprintf(out, " busy %s, idle %s\n", format_percent(first, busy, all),
		        format_percent(second, all - busy, all));
		put_causes(out, gpu, all, view);
		put_finding(out, report, device, view);
	}
	if (!i)
		fputs("\nNo GPU was used in the last window.\n", out);
}

static void put_window(FILE *out, const json_t *status, const struct top_view *view)
{
	const json_t *window = json_object_get(status, "window"), *report = json_object_get(window, "report");
	char length[FORMAT_FIGURE], timeline[FORMAT_TEXT_SIZE(16)], reason[FORMAT_TEXT_SIZE(16)];
	uint64_t start_ms = number(window, "start_ms");

	if (!json_is_object(report)) {
		fputs("\nThere was no window yet: causes of idle GPU time are not known.\n", out);
		return;
	}
	fprintf(out, "last window: %s, %llu s ago (%s), GPU timeline %s\n",
	        format_duration(length, number(window, "length_ns")),
	        view->now_ms > start_ms ? (unsigned long long)((view->now_ms - start_ms) / 1000) : 0ULL,
	        text(reason, sizeof(reason), window, "reason", 16),
	        text(timeline, sizeof(timeline), json_object_get(report, "source"), "gpu_timeline", 16));
	put_gpus(out, report, view);
}

/* The pod where there is one, else the container. */
static const char *place_of(const json_t *process)
{
	const char *pod = json_string_value(json_object_get(process, "pod"));

	return pod && *pod ? "pod" : "container";
}

static void put_processes(FILE *out, const json_t *status, const struct top_view *view)
{
	const json_t *processes = json_object_get(status, "processes");
	json_t *process;
	size_t i;

	if (!json_array_size(processes)) {
		fputs("\nNo process uses a GPU.\n", out);
		return;
	}
	fputs("\n    PID PROCESS          CPUS NO CPU   DISK SWITCH/S LAUNCH/S IN\n", out);
	json_array_foreach(processes, i, process)
	{
		char name[FORMAT_TEXT_SIZE(NAME_COLUMNS)], place[FORMAT_TEXT_SIZE(40)];

		if (view->pid && number(process, "pid") != view->pid)
			continue;
		fprintf(out, "%7llu ", (unsigned long long)number(process, "pid"));
		format_left(out, text(name, sizeof(name), process, "process", NAME_COLUMNS), NAME_COLUMNS);
		fprintf(out, " %5.2f %6.2f %6.2f %8.0f %8.0f %s\n", real(process, "cpu"),
		        real(process, "runqueue"), real(process, "disk"), real(process, "switches"),
		        real(process, "launches_per_s"),
		        text(place, sizeof(place), process, place_of(process),
		             view->width > 102 ? 40 : view->width - 62));
	}
}

int top_text(FILE *out, const json_t *status, const struct top_view *view, struct error *error)
{
	const char *schema = json_string_value(json_object_get(status, "schema"));

	if (!schema || strcmp(schema, "whyidle.status/1"))
		return error_set(error, -EPROTO, "this is not the status of a daemon of this version");
	put_head(out, status);
	put_window(out, status, view);
	put_processes(out, status, view);
	return ferror(out) ? error_set(error, -EIO, "cannot write") : 0;
}
