// SPDX-License-Identifier: GPL-2.0-only
/* A table of causes for each GPU, and how it was recorded. */
#include <inttypes.h>
#include <string.h>

#include "report/format.h"
#include "report/text.h"

#define CAUSES_MOST 12 /* rows without --verbose */

enum column {
	COLUMN_CODE = 22,
	COLUMN_ROLE = 9,
	COLUMN_TIME = 8,
	COLUMN_SHARE = 8,
	COLUMN_GAPS = 9,
	COLUMN_CONFIDENCE = 8,
};

static void print_device_heading(const struct text *text, const struct device_report *device)
{
	char name[FORMAT_TEXT_SIZE(48)], heading[sizeof(name) + 48];

	snprintf(heading, sizeof(heading), "GPU %" PRIu32 ": %s%s", device->device,
	         format_text(name, sizeof(name), device->name, 48), device->simulated ? " (simulated)" : "");
	text_heading(text, heading);
}

static void print_device_figures(const struct text *text, const struct device_report *device)
{
	uint64_t window = text_window_ns(device);
	char busy[FORMAT_FIGURE], idle[FORMAT_FIGURE], all[FORMAT_FIGURE], compute[FORMAT_FIGURE];
	char busy_share[FORMAT_FIGURE], idle_share[FORMAT_FIGURE], gaps[32], ops[32], line[512];
	char late[FORMAT_FIGURE], queued[FORMAT_FIGURE], unknown[FORMAT_FIGURE];

	snprintf(line, sizeof(line), "busy %s (%s), idle %s (%s) of %s; %s gaps, %s operations",
	         format_duration(busy, device->busy_ns), format_percent(busy_share, device->busy_ns, window),
	         format_duration(idle, device->idle_ns), format_percent(idle_share, device->idle_ns, window),
	         format_duration(all, window), format_count(gaps, device->gap_count),
	         format_count(ops, device->op_count));
	format_paragraph(text->out, line, text->width, 2, 4);
	snprintf(line, sizeof(line),
	         "idle time by launch: late %s, queued %s, not known %s; busy with kernels other than "
	         "collectives %s",
	         format_percent(late, device->late_ns, device->idle_ns),
	         format_percent(queued, device->queued_ns, device->idle_ns),
	         format_percent(unknown, device->unknown_ns, device->idle_ns),
	         format_duration(compute, device->compute_busy_ns));
	format_paragraph(text->out, line, text->width, 2, 4);
}

static void print_row(const struct text *text, const char *code, const char *role, const char *time,
                      const char *share, const char *gaps, const char *confidence, const char *threads)
{
	fputs("  ", text->out);
	format_left(text->out, code, COLUMN_CODE);
	format_left(text->out, role, COLUMN_ROLE);
	format_right(text->out, time, COLUMN_TIME);
	format_right(text->out, share, COLUMN_SHARE);
	format_right(text->out, gaps, COLUMN_GAPS);
	fputs("  ", text->out);
	if (*threads) {
		format_left(text->out, confidence, COLUMN_CONFIDENCE);
		fputs(threads, text->out);
	} else {
		fputs(confidence, text->out);
	}
	fputc('\n', text->out);
}

static void print_cause(const struct text *text, const struct device_report *device,
                        const struct cause *cause)
{
	enum {
		FIXED = 4 + COLUMN_CODE + COLUMN_ROLE + COLUMN_TIME + COLUMN_SHARE + COLUMN_GAPS +
		        COLUMN_CONFIDENCE
	};
	char time[FORMAT_FIGURE], share[FORMAT_FIGURE], gaps[32], names[FORMAT_TEXT_SIZE(100)];

	print_row(text, cause_code_name(cause->code), cause_role_name(cause->role),
	          format_duration(time, cause->ns), format_percent(share, cause->ns, device->idle_ns),
	          format_count(gaps, cause->gap_count), confidence_name(cause->confidence),
	          findings_thread_names(names, sizeof(names), cause, text->width - FIXED));
}

static void print_causes(const struct text *text, const struct device_report *device)
{
	size_t shown = device->causes.count;
	uint64_t rest = 0;

	if (!text->verbose && shown > CAUSES_MOST)
		shown = CAUSES_MOST;
	if (!shown)
		return;
	print_row(text, "cause", "role", "time", "of idle", "gaps", "conf.", "threads");
	for (size_t i = 0; i < device->causes.count; i++) {
		if (i < shown)
			print_cause(text, device, &device->causes.items[i]);
		else
			rest += device->causes.items[i].ns;
	}
	if (shown < device->causes.count) {
		char time[FORMAT_FIGURE], share[FORMAT_FIGURE], label[32];

		snprintf(label, sizeof(label), "%zu more", device->causes.count - shown);
		print_row(text, label, "", format_duration(time, rest),
		          format_percent(share, rest, device->idle_ns), "", "", "");
	}
}

void text_devices(const struct text *text)
{
	const struct device_report *device;

	array_for_each (device, &text->analysis->devices) {
		print_device_heading(text, device);
		if (!text_window_ns(device)) {
			fputs("  no operations\n", text->out);
			continue;
		}
		print_device_figures(text, device);
		print_causes(text, device);
	}
}

/* ---- how it was recorded ---- */

#define LABEL_COLUMNS 13

static void print_fact(const struct text *text, const char *label, const char *value)
{
	fprintf(text->out, "  %-*s ", LABEL_COLUMNS - 3, label);
	format_wrapped(text->out, value, text->width, LABEL_COLUMNS, LABEL_COLUMNS);
}

static const char *timeline_words(const char *timeline)
{
	if (!timeline || !strcmp(timeline, "none"))
		return "no GPU timeline";
	if (!strcmp(timeline, "cupti"))
		return "GPU timeline from CUPTI";
	if (!strcmp(timeline, "imported"))
		return "GPU timeline imported";
	return "GPU timeline inferred";
}

/* Time of an event since the recording began, which --window takes too. */
static const char *format_since_start(char buffer[FORMAT_FIGURE], const struct analysis *analysis,
                                      uint64_t ns)
{
	return format_duration(buffer, ns > analysis->session_start_ns ? ns - analysis->session_start_ns : 0);
}

static void print_window(const struct text *text, const struct device_report *device)
{
	char from[FORMAT_FIGURE], to[FORMAT_FIGURE], lead[FORMAT_FIGURE], trail[FORMAT_FIGURE], line[256];

	snprintf(line, sizeof(line),
	         "GPU %" PRIu32 ": %s to %s; not counted: %s before it (lead-in), %s after it (trail-out)",
	         device->device, format_since_start(from, text->analysis, device->window_start_ns),
	         format_since_start(to, text->analysis, device->window_end_ns),
	         format_duration(lead, device->lead_in_ns), format_duration(trail, device->trail_out_ns));
	print_fact(text, "window", line);
}

/* Which file to install debug symbols for, where that would name many functions. */
static void print_unnamed(const struct text *text)
{
	const struct stack_report *stacks = &text->analysis->stacks;
	char line[640], file[FORMAT_TEXT_SIZE(100)], id[FORMAT_TEXT_SIZE(64)] = "", share[FORMAT_FIGURE];

	if (!stacks->unnamed_file || stacks->frames < 100 || stacks->unnamed_in_file * 20 < stacks->frames)
		return;
	if (stacks->unnamed_build_id)
		format_text(id, sizeof(id), stacks->unnamed_build_id, 64);
	snprintf(line, sizeof(line),
	         "%s of the sampled functions are in %s, without names: its debug symbols would give them "
	         "(report --symbols DIR%s%s)",
	         format_share(share, stacks->unnamed_in_file, stacks->frames),
	         format_text(file, sizeof(file), stacks->unnamed_file, 100), *id ? "; build id " : "", id);
	print_fact(text, "", line);
}

static void print_stacks(const struct text *text)
{
	const struct analysis *analysis = text->analysis;
	const struct stack_report *stacks = &analysis->stacks;
	char line[256], count[32], named[FORMAT_FIGURE], complete[FORMAT_FIGURE];
	double seconds = (double)(analysis->session_end_ns - analysis->session_start_ns) / 1e9;

	if (!stacks->cost.copied || analysis->session_end_ns <= analysis->session_start_ns)
		return;
	snprintf(line, sizeof(line),
	         "%s taken, %.1f MB/s; %s of the sampled functions have names, %s of the waits over 1 ms a "
	         "complete stack",
	         format_count(count, stacks->cost.sent), (double)stacks->cost.sent_bytes / seconds / 1e6,
	         stacks->frames ? format_share(named, stacks->frames_named, stacks->frames) : "none",
	         stacks->long_waits ? format_share(complete, stacks->long_waits_complete, stacks->long_waits)
	                            : "none");
	print_fact(text, "stacks", line);
	print_unnamed(text);
}

void text_recording(const struct text *text)
{
	const struct analysis *analysis = text->analysis;
	const struct device_report *device;
	char line[512], command[FORMAT_TEXT_SIZE(160)], tier[FORMAT_TEXT_SIZE(8)],
	    source[FORMAT_TEXT_SIZE(16)];
	char time[FORMAT_FIGURE];

	text_heading(text, "How it was recorded");
	if (analysis->command)
		print_fact(
		    text, "command",
		    format_text(command, sizeof(command), analysis->command, text->width - LABEL_COLUMNS));
	format_text(tier, sizeof(tier), analysis->tier ? analysis->tier : "not known", 9);
	format_text(source, sizeof(source), analysis->source ? analysis->source : "session", 16);
	snprintf(line, sizeof(line), "%s, tier %s, %s, %s long", source, tier,
	         timeline_words(analysis->timeline),
	         format_since_start(time, analysis, analysis->session_end_ns));
	print_fact(text, "source", line);
	array_for_each (device, &analysis->devices) {
		if (text_window_ns(device))
			print_window(text, device);
	}
	print_stacks(text);
	print_fact(text, "losses", text_losses(line, sizeof(line), &analysis->losses) ? line : "none");
}
