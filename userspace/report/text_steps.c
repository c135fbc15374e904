// SPDX-License-Identifier: GPL-2.0-only
/* The steps of each GPU, and what slow ones waited for. */
#include <inttypes.h>
#include <stdlib.h>

#include "report/format.h"
#include "report/text.h"

#define SLOW_SHOWN 5 /* without --verbose */

const char *text_step_origin(char *buffer, size_t size, enum steps_origin origin, const char *name,
                             uint64_t period_ops)
{
	char shown[FORMAT_TEXT_SIZE(40)], ops[32];

	if (origin == STEPS_NAMED)
		snprintf(buffer, size, "named %s by the program",
		         format_text(shown, sizeof(shown), name, 40));
	else
		snprintf(buffer, size, "by the rhythm of %s operations", format_count(ops, period_ops));
	return buffer;
}

/* What of its idle time made a step longer, the largest first, at most two. */
static void put_reasons(const struct text *text, const struct slow_step *slow)
{
	char amount[FORMAT_FIGURE], comm[FORMAT_TEXT_SIZE(20)];
	size_t shown = 0;

	if (slow->busy_more_ns > 0 && (uint64_t)slow->busy_more_ns >= slow->more_ns / 10) {
		fprintf(text->out, "the GPU's own work +%s",
		        format_duration(amount, (uint64_t)slow->busy_more_ns));
		shown++;
	}
	for (size_t i = 0; i < slow->causes.count && shown < 2; i++, shown++) {
		const struct step_cause *cause = &slow->causes.items[i];

		if (shown && cause->more_ns < slow->more_ns / 10)
			break;
		fprintf(text->out, "%s%s@%s +%s", shown ? ", " : "", cause_code_name(cause->code),
		        cause_role_name(cause->role), format_duration(amount, cause->more_ns));
		if (cause->tid)
			fprintf(text->out, " (%s %" PRIu32 ")",
			        format_text(comm, sizeof(comm), cause->comm, 20), cause->tid);
	}
}

static void put_slow(const struct text *text, const struct step_report *report, const struct slow_step *slow)
{
	const struct step_figures *step = &report->steps.items[slow->step];
	char begins[FORMAT_FIGURE], took[FORMAT_FIGURE], more[FORMAT_FIGURE], number[24];
	uint64_t from = step->start_ns > text->analysis->session_start_ns
	                    ? step->start_ns - text->analysis->session_start_ns
	                    : 0;

	snprintf(number, sizeof(number), "%" PRIu64, step->number);
	fputs("  ", text->out);
	format_right(text->out, number, 8);
	format_right(text->out, format_duration(begins, from), 10);
	format_right(text->out, format_duration(took, step->end_ns - step->start_ns), 10);
	format_right(text->out, format_duration(more, slow->more_ns), 10);
	fputs("  ", text->out);
	put_reasons(text, slow);
	fputc('\n', text->out);
}

static void put_figures(const struct text *text, const struct step_report *report)
{
	char origin[FORMAT_TEXT_SIZE(80)], count[32], least[FORMAT_FIGURE], most[FORMAT_FIGURE];
	char median[FORMAT_FIGURE], line[sizeof(origin) + 256], slow[32], more[FORMAT_FIGURE], warm[64] = "";

	if (report->warm_up)
		snprintf(warm, sizeof(warm), "; %" PRIu64 " more for warm-up", report->warm_up);
	snprintf(line, sizeof(line), "%s steps %s: median %s, %s to %s%s",
	         format_count(count, report->steps.count - report->warm_up),
	         text_step_origin(origin, sizeof(origin), report->origin, report->name, report->period_ops),
	         format_duration(median, report->median_ns), format_duration(least, report->least_ns),
	         format_duration(most, report->most_ns), warm);
	format_paragraph(text->out, line, text->width, 2, 4);
	if (!report->slow_count) {
		fputs("  none is slow against the others\n", text->out);
		return;
	}
	snprintf(line, sizeof(line), "%s slow %s took %s more than %s normal %s",
	         format_count(slow, report->slow_count), report->slow_count == 1 ? "one" : "ones",
	         format_duration(more, report->slow_more_ns), report->slow_count == 1 ? "a" : "as many",
	         report->slow_count == 1 ? "one" : "ones");
	format_paragraph(text->out, line, text->width, 2, 4);
}

void text_steps(const struct text *text)
{
	const struct device_report *device;

	array_for_each (device, &text->analysis->devices) {
		const struct step_report *report = &device->steps;
		char heading[48];

		if (report->origin == STEPS_NONE)
			continue;
		snprintf(heading, sizeof(heading), "Steps of GPU %" PRIu32, device->device);
		text_heading(text, heading);
		put_figures(text, report);
		if (report->slow.count)
			fputs("      step    begins      took    longer  because of\n", text->out);
		for (size_t i = 0; i < report->slow.count && (text->verbose || i < SLOW_SHOWN); i++)
			put_slow(text, report, &report->slow.items[i]);
		if (!text->verbose && report->slow_count > SLOW_SHOWN)
			fprintf(text->out, "  and %" PRIu64 " more (--verbose, --table steps)\n",
			        report->slow_count - SLOW_SHOWN);
	}
}
