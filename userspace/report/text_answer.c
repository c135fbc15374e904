// SPDX-License-Identifier: GPL-2.0-only
/*
 * The top of the text report. The three lines are not broken by us: whoever reads only those gets whole
 * sentences.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/advice.h"
#include "report/format.h"
#include "report/text.h"

#define DEVICE_COLUMNS 32

/* A device that never did anything has no window. One given by the user may hold no operation: all of it is
 * idle. */
static bool has_window(const struct device_report *device)
{
	return text_window_ns(device) > 0;
}

/* Whether `a` was idle a larger part of its window than `b`. */
static bool is_idler(const struct device_report *a, const struct device_report *b)
{
	return (double)a->idle_ns * (double)text_window_ns(b) >
	       (double)b->idle_ns * (double)text_window_ns(a);
}

/* The device that the answer is about: that of the first finding, else the idlest. NULL: none did anything.
 */
static const struct device_report *answer_device(const struct text *text)
{
	const struct device_report *device, *found = NULL;

	array_for_each (device, &text->analysis->devices) {
		if (text->findings->count && device->device == text->findings->items[0].device)
			return device;
		if (has_window(device) && (!found || is_idler(device, found)))
			found = device;
	}
	return found;
}

/* "; the other 3 GPUs 2.1 % to 15.0 %" */
static void print_other_devices(const struct text *text, const struct device_report *shown)
{
	const struct device_report *device, *least = NULL, *most = NULL;
	char low[FORMAT_FIGURE], high[FORMAT_FIGURE];
	unsigned count = 0;

	array_for_each (device, &text->analysis->devices) {
		if (device == shown || !has_window(device))
			continue;
		count++;
		if (!least || is_idler(least, device))
			least = device;
		if (!most || is_idler(device, most))
			most = device;
	}
	if (!count)
		return;
	format_percent(low, least->idle_ns, text_window_ns(least));
	format_percent(high, most->idle_ns, text_window_ns(most));
	if (!strcmp(low, high))
		fprintf(text->out, "; %s idle %s", count == 1 ? "the other GPU was" : "each other GPU was",
		        low);
	else
		fprintf(text->out, "; the other %u GPUs were idle %s to %s", count, low, high);
}

static void print_how_idle(const struct text *text, const struct device_report *device)
{
	char name[FORMAT_TEXT_SIZE(DEVICE_COLUMNS)], percent[FORMAT_FIGURE], window[FORMAT_FIGURE];
	char idle[FORMAT_FIGURE], gaps[32];
	bool healthy = findings_device_healthy(device);

	format_text(name, sizeof(name), device->name, DEVICE_COLUMNS);
	format_percent(percent, healthy ? device->busy_ns : device->idle_ns, text_window_ns(device));
	format_duration(window, text_window_ns(device));
	format_duration(idle, device->idle_ns);
	format_count(gaps, device->gap_count);
	fprintf(text->out, "GPU %" PRIu32 " (%s) was %s %s of %s (%s%s in %s gap%s)", device->device, name,
	        healthy ? "busy" : "idle", percent, window, idle, healthy ? " idle" : "", gaps,
	        device->gap_count == 1 ? "" : "s");
	print_other_devices(text, device);
	fputs(".\n", text->out);
}

static void print_first_finding(const struct text *text, const struct finding *finding)
{
	char gain[FORMAT_GAIN];

	format_gain(gain, finding->gain_low_ns, finding->gain_high_ns, finding->window_ns);
	*gain = (char)toupper((unsigned char)*gain);
	fprintf(text->out, "%s\n", finding->title);
	fprintf(text->out, "Do this: %s %s to gain.\n", finding->advice, gain);
}

/* What to do about a cause that no finding speaks of. Nothing can be recorded again of another tool's trace.
 */
static int remaining_action(const struct text *text, const struct cause *cause, char **action)
{
	struct advice_facts facts = {0};
	char *hint;
	int err;

	if (cause_is_unknown(cause->code) && strcmp(text->analysis->source, "session")) {
		*action = strdup("This trace does not tell; a run under `whyidle record` would.");
		return *action ? 0 : -ENOMEM;
	}
	err = advice_make(action, &hint, cause->code, cause->role, &facts);
	free(hint);
	return err;
}

/* Idle, but nothing that could be acted on: says what most of it is. */
static int print_no_finding(const struct text *text, const struct device_report *device)
{
	const struct cause *cause = device->causes.items;
	char share[FORMAT_FIGURE], *action = NULL;
	int err;

	if (!device->causes.count) {
		fputs("No cause was found for it.\n", text->out);
		return 0;
	}
	format_share(share, cause->ns, device->idle_ns);
	if (cause_is_unknown(cause->code))
		fprintf(text->out, "%s of its idle time is not explained: %s (%s).\n", share,
		        cause_code_meaning(cause->code), cause_code_name(cause->code));
	else
		fprintf(text->out, "No cause stands out; the largest, with %s of its idle time: %s (%s).\n",
		        share, cause_code_meaning(cause->code), cause_code_name(cause->code));
	err = remaining_action(text, cause, &action);
	if (!err)
		fprintf(text->out, "Do this: %s\n", action);
	free(action);
	return err;
}

static void print_no_device(const struct text *text)
{
	const struct analysis *analysis = text->analysis;
	bool no_timeline = !analysis->timeline || !strcmp(analysis->timeline, "none");
	char time[FORMAT_FIGURE];

	format_duration(time, analysis->session_end_ns > analysis->session_start_ns
	                          ? analysis->session_end_ns - analysis->session_start_ns
	                          : 0);
	fprintf(text->out, "No GPU operation was recorded in %s, so there is no idle time to explain.\n",
	        time);
	if (analysis->degraded.count)
		fputs("What could not be recorded is listed below.\n", text->out);
	else if (no_timeline)
		fputs("There is no GPU timeline: no process loaded CUDA, or CUPTI was not found.\n",
		      text->out);
	else
		fputs("No process used CUDA while it was recorded.\n", text->out);
	fputs("Do this: run `whyidle doctor` to see what this machine can record; check that the program "
	      "uses CUDA.\n",
	      text->out);
}

int text_answer(const struct text *text)
{
	const struct device_report *device = answer_device(text);

	if (!device) {
		print_no_device(text);
		return 0;
	}
	text_style_on(text, TEXT_STRONG);
	print_how_idle(text, device);
	text_style_off(text);
	if (text->findings->count) {
		print_first_finding(text, text->findings->items);
		return 0;
	}
	if (findings_device_healthy(device)) {
		fputs("Nothing to fix: below 3 % idle, no cause is worth acting on.\n", text->out);
		return 0;
	}
	return print_no_finding(text, device);
}

/* ---- notes ---- */

static void note(const struct text *text, const char *line)
{
	text_style_on(text, TEXT_WARNING);
	format_paragraph(text->out, line, text->width, 0, 2);
	text_style_off(text);
}

/* " in <operator or annotation>, <Python function>", as far as known: imported traces name what enclosed a
 * gap. */
static void unknown_place(char *buffer, size_t size, const struct cause_detail *detail)
{
	char function[FORMAT_TEXT_SIZE(40)], python[FORMAT_TEXT_SIZE(40)];

	snprintf(buffer, size, "%s%s%s%s", detail->function || detail->python ? ", the largest part in " : "",
	         detail->function ? format_text(function, sizeof(function), detail->function, 40) : "",
	         detail->function && detail->python ? ", " : "",
	         detail->python ? format_text(python, sizeof(python), detail->python, 40) : "");
}

/* "Not explained: …" for each unknown cause that is at least 1 % of its window. */
static void note_unknown(const struct text *text, const struct device_report *device)
{
	char line[1024], share[FORMAT_FIGURE], time[FORMAT_FIGURE], place[512];
	const struct cause *cause;

	array_for_each (cause, &device->causes) {
		char *action = NULL;

		if (!cause_is_unknown(cause->code) ||
		    (double)cause->ns * 100 < (double)text_window_ns(device))
			continue;
		if (!remaining_action(text, cause, &action)) {
			unknown_place(place, sizeof(place), &cause->detail);
			snprintf(line, sizeof(line),
			         "Not explained: %s of the idle time of GPU %" PRIu32 " (%s): %s (%s)%s. %s",
			         format_share(share, cause->ns, device->idle_ns), device->device,
			         format_duration(time, cause->ns), cause_code_meaning(cause->code),
			         cause_code_name(cause->code), place, action);
			note(text, line);
		}
		free(action);
	}
}

void text_notes(const struct text *text)
{
	const struct analysis *analysis = text->analysis;
	const struct device_report *device;
	char line[1024], losses[512], what[FORMAT_TEXT_SIZE(200)];
	struct loss_report missing = analysis->losses;
	const char **degraded;

	if (analysis->simulated)
		note(text, "The GPU was simulated: its times are those of a stand-in, not of a real GPU.");
	if (analysis->incomplete)
		note(text,
		     "The recording is incomplete: it was cut off before its end. This is what was saved.");
	/* A lost stack only makes a wait harder to name: no time goes missing with it. */
	missing.stacks = missing.user_stacks = 0;
	if (text_losses(losses, sizeof(losses), &missing)) {
		snprintf(line, sizeof(line),
		         "Records were lost: %s. Idle time over them counts as unknown.lost.", losses);
		note(text, line);
	}
	array_for_each (device, &analysis->devices)
		note_unknown(text, device);
	array_for_each (degraded, &analysis->degraded) {
		snprintf(line, sizeof(line), "Limited: %s", format_text(what, sizeof(what), *degraded, 200));
		note(text, line);
	}
}
