// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/format.h"
#include "report/report_compare.h"
#include "report/text.h"
#include "symbols/demangle.h"

#define ROWS_MOST 10 /* of a table, without --verbose */

#define COLUMN_NAME   34
#define COLUMN_AMOUNT 11
#define COLUMN_NOISE  12

#define AMOUNT 48 /* bytes that any figure fits in, also a signed one */

struct page {
	FILE *out;
	struct text text; /* for styles and headings only */
	bool verbose;
	unsigned width;
};

/* What a figure is measured in. */
enum unit {
	UNIT_TIME,  /* ns, shown as a duration */
	UNIT_SHARE, /* 0..1, shown in percent; changes in points */
	UNIT_COUNT,
};

static enum unit unit_of(const struct compare_pair *pair)
{
	return pair->basis == COMPARE_PER_STEP ? UNIT_TIME : UNIT_SHARE;
}

static const char *amount(char buffer[AMOUNT], double value, enum unit unit)
{
	if (unit == UNIT_TIME)
		return format_duration(buffer, (uint64_t)llround(fabs(value)));
	if (unit == UNIT_SHARE)
		snprintf(buffer, AMOUNT, fabs(value) >= 0.0995 ? "%.1f %%" : "%.2f %%", 100 * fabs(value));
	else
		snprintf(buffer, AMOUNT, fabs(value) < 99.95 ? "%.1f" : "%.0f", fabs(value));
	return buffer;
}

/* A change without its sign, as of an amount of this unit. */
static const char *difference(char buffer[AMOUNT], double value, enum unit unit)
{
	if (unit == UNIT_SHARE)
		snprintf(buffer, AMOUNT, "%.2f pt", 100 * fabs(value));
	else
		amount(buffer, value, unit);
	return buffer;
}

static const char *sign(double value)
{
	return value > 0 ? "+" : value < 0 ? "-" : "";
}

/* "-26.1 %, noise ±1.2 %": relative to the amount before. */
static void print_relative(FILE *out, const struct figure *figure)
{
	double before = figure->before.value;

	if (before > 0)
		fprintf(out, "%s%.1f %%", sign(figure->change), 100 * fabs(figure->change) / before);
	if (before > 0 && figure->known)
		fprintf(out, ", noise ±%.1f %%", 100 * figure->noise / before);
}

/* "-3.81 ms, noise ±0.40 ms" */
static void print_absolute(FILE *out, const struct figure *figure, enum unit unit)
{
	char change[AMOUNT], noise[AMOUNT];

	fprintf(out, "%s%s", sign(figure->change), difference(change, figure->change, unit));
	if (figure->known)
		fprintf(out, ", noise ±%s", difference(noise, figure->noise, unit));
}

/* ---- the answer ---- */

static const char *verdict_words(enum compare_verdict verdict)
{
	static const char *const words[] = {
	    [COMPARE_SAME] = "No difference beyond noise",
	    [COMPARE_BETTER] = "AFTER is better",
	    [COMPARE_WORSE] = "AFTER is worse",
	    [COMPARE_UNKNOWN] = "Too little was recorded to tell a difference from noise",
	};

	return words[verdict];
}

/* "; of 4 GPUs 2 are better, 1 worse" */
static void print_others(FILE *out, const struct comparison *comparison)
{
	size_t counts[COMPARE_UNKNOWN + 1] = {0};
	const struct compare_pair *pair;

	if (comparison->pairs.count < 2)
		return;
	array_for_each (pair, &comparison->pairs)
		counts[pair->verdict]++;
	fprintf(out, "; of %zu GPUs %zu better, %zu worse", comparison->pairs.count, counts[COMPARE_BETTER],
	        counts[COMPARE_WORSE]);
}

static void print_verdict(FILE *out, const struct comparison *comparison)
{
	const struct compare_pair *pair = comparison->answer;
	const struct figure *main = compare_main_figure(pair);
	char before[AMOUNT], after[AMOUNT];
	enum unit unit = unit_of(pair);

	fprintf(out, "%s: %s %s instead of %s (", verdict_words(comparison->verdict),
	        amount(after, main->after.value, unit),
	        pair->basis == COMPARE_PER_STEP ? "per step" : "of the time idle",
	        amount(before, main->before.value, unit));
	if (pair->basis == COMPARE_PER_STEP)
		print_relative(out, main);
	else
		print_absolute(out, main, unit);
	fputs(")", out);
	print_others(out, comparison);
	fputs(".\n", out);
}

static void print_idle(FILE *out, const struct compare_pair *pair)
{
	char name[FORMAT_TEXT_SIZE(32)], before[AMOUNT], after[AMOUNT];

	fprintf(out, "GPU %" PRIu32 " (%s) was idle %s of the time instead of %s (", pair->before->device,
	        format_text(name, sizeof(name), pair->before->name, 32),
	        amount(after, pair->idle_share.after.value, UNIT_SHARE),
	        amount(before, pair->idle_share.before.value, UNIT_SHARE));
	print_absolute(out, &pair->idle_share, UNIT_SHARE);
	fputs(").\n", out);
}

static void print_cause_changed(FILE *out, const struct compare_pair *pair)
{
	const struct compare_cause *cause = pair->causes.items;
	char before[AMOUNT], after[AMOUNT];
	enum unit unit = unit_of(pair);

	if (!pair->causes.count || cause->figure.change == 0) {
		fputs("No cause of idle time changed.\n", out);
		return;
	}
	fprintf(
	    out, "%s: %s@%s, %s%s instead of %s (",
	    cause->figure.beyond ? "The cause that changed most" : "No cause changed beyond noise; the most",
	    cause_code_name(cause->code), cause_role_name(cause->role),
	    amount(after, cause->figure.after.value, unit), unit == UNIT_TIME ? " per step" : " of the time",
	    amount(before, cause->figure.before.value, unit));
	print_absolute(out, &cause->figure, unit);
	fputs(").\n", out);
}

/* ---- tables ---- */

static void print_head(const struct page *page, const char *name)
{
	fputs("  ", page->out);
	format_left(page->out, name, COLUMN_NAME);
	format_right(page->out, "before", COLUMN_AMOUNT);
	format_right(page->out, "after", COLUMN_AMOUNT);
	format_right(page->out, "change", COLUMN_NOISE);
	format_right(page->out, "noise", COLUMN_NOISE);
	fputc('\n', page->out);
}

static void print_row(const struct page *page, const char *name, const struct figure *figure, enum unit unit,
                      const char *remark)
{
	char before[AMOUNT], after[AMOUNT], text[AMOUNT], change[AMOUNT + 4], noise[AMOUNT + 4];

	fputs("  ", page->out);
	format_left(page->out, name, COLUMN_NAME);
	format_right(page->out, amount(before, figure->before.value, unit), COLUMN_AMOUNT);
	format_right(page->out, amount(after, figure->after.value, unit), COLUMN_AMOUNT);
	snprintf(change, sizeof(change), "%s%s", sign(figure->change),
	         difference(text, figure->change, unit));
	format_right(page->out, change, COLUMN_NOISE);
	if (figure->known)
		snprintf(noise, sizeof(noise), "±%s", difference(text, figure->noise, unit));
	format_right(page->out, figure->known ? noise : "not known", COLUMN_NOISE);
	fprintf(page->out, "%s%s\n", *remark ? "  " : "", remark);
}

static const char *remark_of(const struct figure *figure)
{
	return !figure->beyond ? "" : figure->change < 0 ? "less" : "more";
}

/* "155 steps by the rhythm of 70 operations, 5.26 ms to 39.9 ms, median 17.2 ms; 2 for warm-up left out" */
static void print_cut(const struct page *page, const char *label, const struct device_measure *device)
{
	char least[FORMAT_FIGURE], most[FORMAT_FIGURE], median[FORMAT_FIGURE], whole[FORMAT_FIGURE],
	    time[FORMAT_FIGURE];
	char name[FORMAT_TEXT_SIZE(80)], steps[32], line[512], path[FORMAT_TEXT_SIZE(60)];
	size_t used;

	format_text(path, sizeof(path), device->path, 60);
	format_duration(whole, device->window_end_ns - device->window_start_ns);
	format_duration(time, measure_time_ns(device));
	format_count(steps, device->steps);
	used = (size_t)snprintf(line, sizeof(line), "%s: %s: ", label, path);
	if (device->origin == STEPS_NONE) {
		snprintf(line + used, sizeof(line) - used, "no steps found; %s in %u slice%s", whole,
		         device->batches, device->batches == 1 ? "" : "s");
		format_paragraph(page->out, line, page->width, 2, 4);
		return;
	}
	used += (size_t)snprintf(
	    line + used, sizeof(line) - used, "%s steps %s", steps,
	    text_step_origin(name, sizeof(name), device->origin, device->step_name, device->period_ops));
	used += (size_t)snprintf(line + used, sizeof(line) - used, ", %s to %s, median %s; they are %s of %s",
	                         format_duration(least, device->step_least_ns),
	                         format_duration(most, device->step_most_ns),
	                         format_duration(median, device->step_median_ns), time, whole);
	if (device->warm_up)
		snprintf(line + used, sizeof(line) - used,
		         "; %" PRIu64 " at the beginning left out as warm-up", device->warm_up);
	format_paragraph(page->out, line, page->width, 2, 4);
}

static void print_causes(const struct page *page, const struct compare_pair *pair)
{
	const struct compare_cause *cause;
	size_t shown = 0;

	if (!pair->causes.count)
		return;
	print_head(page, pair->basis == COMPARE_PER_STEP ? "idle time per step by cause"
	                                                 : "idle share of the time by cause");
	array_for_each (cause, &pair->causes) {
		char name[64];

		if (shown++ == ROWS_MOST && !page->verbose) {
			fprintf(page->out, "  %zu more\n", pair->causes.count - ROWS_MOST);
			break;
		}
		snprintf(name, sizeof(name), "%s@%s", cause_code_name(cause->code),
		         cause_role_name(cause->role));
		print_row(page, name, &cause->figure, unit_of(pair), remark_of(&cause->figure));
	}
}

static void print_kernels(const struct page *page, const struct compare_pair *pair)
{
	const struct compare_kernel *kernel;
	size_t shown = 0;

	if (!pair->kernels.count)
		return;
	print_head(page, pair->basis == COMPARE_PER_STEP ? "GPU time per step by operation"
	                                                 : "GPU time as share of the time");
	array_for_each (kernel, &pair->kernels) {
		char name[FORMAT_TEXT_SIZE(COLUMN_NAME)], remark[AMOUNT * 3], before[AMOUNT], after[AMOUNT];
		char *brief;

		if (shown++ == ROWS_MOST && !page->verbose) {
			fprintf(page->out, "  %zu more\n", pair->kernels.count - ROWS_MOST);
			break;
		}
		brief = symbol_short(kernel->name);
		format_text(name, sizeof(name), brief ? brief : kernel->name, COLUMN_NAME - 1);
		free(brief);
		remark[0] = '\0';
		if (kernel->count.beyond)
			snprintf(remark, sizeof(remark), "%s, %s instead of %s calls a %s",
			         remark_of(&kernel->figure),
			         amount(after, kernel->count.after.value, UNIT_COUNT),
			         amount(before, kernel->count.before.value, UNIT_COUNT),
			         pair->basis == COMPARE_PER_STEP ? "step" : "second");
		print_row(page, name, &kernel->figure, unit_of(pair),
		          *remark ? remark : remark_of(&kernel->figure));
	}
}

static void print_pair(const struct page *page, const struct compare_pair *pair)
{
	char heading[64 + FORMAT_TEXT_SIZE(40)], name[FORMAT_TEXT_SIZE(40)];

	snprintf(heading, sizeof(heading), "GPU %" PRIu32 ": %s", pair->before->device,
	         format_text(name, sizeof(name), pair->before->name, 40));
	text_heading(&page->text, heading);
	print_cut(page, "before", pair->before);
	print_cut(page, "after", pair->after);
	fputc('\n', page->out);
	print_head(page, "");
	if (pair->basis == COMPARE_PER_STEP) {
		print_row(page, "time per step", &pair->step, UNIT_TIME, remark_of(&pair->step));
		print_row(page, "idle per step", &pair->idle, UNIT_TIME, remark_of(&pair->idle));
	}
	print_row(page, "idle share of the time", &pair->idle_share, UNIT_SHARE,
	          remark_of(&pair->idle_share));
	fputc('\n', page->out);
	print_causes(page, pair);
	fputc('\n', page->out);
	print_kernels(page, pair);
}

int report_compare_text(FILE *out, const struct comparison *comparison,
                        const struct report_text_options *options)
{
	struct page page = {.out = out, .width = WIDTH_DEFAULT, .text = {.out = out}};
	const struct compare_pair *pair;
	char **line;

	if (options) {
		page.text.colour = options->colour;
		page.verbose = options->verbose;
		page.width = options->width ? options->width : WIDTH_DEFAULT;
	}
	if (!comparison->answer) {
		fputs("There is nothing to compare: a run has no GPU operation.\n", out);
		return fflush(out) || ferror(out) ? -EIO : 0;
	}
	text_style_on(&page.text, TEXT_STRONG);
	print_verdict(out, comparison);
	text_style_off(&page.text);
	print_idle(out, comparison->answer);
	print_cause_changed(out, comparison->answer);
	array_for_each (line, &comparison->notes) {
		text_style_on(&page.text, TEXT_WARNING);
		format_paragraph(out, *line, page.width, 0, 2);
		text_style_off(&page.text);
	}
	array_for_each (pair, &comparison->pairs)
		print_pair(&page, pair);
	fputs(
	    "\nNoise is what chance explains with a probability of 99 %, from the spread inside each run.\n",
	    out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
