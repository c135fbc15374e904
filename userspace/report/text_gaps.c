// SPDX-License-Identifier: GPL-2.0-only
/* The worst gaps of each GPU, with the chain of threads that led to each. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "report/format.h"
#include "report/text.h"

#define GAPS_MOST     5 /* without --verbose */
#define STRETCH_MOST  8 /* stretches of one chain without --verbose, each at least 1 % of its gap */
#define KERNEL_COLUMN 60
#define NAME_COLUMN   24

/* Neighbouring links that say the same. */
struct stretch {
	const struct chain_link *link; /* the longest of them: its detail is shown */
	uint64_t ns, link_ns;
};

struct stretches {
	ARRAY(struct stretch)
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_stretch(const struct chain_link *a, const struct chain_link *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->code == b->code && a->role == b->role &&
	       same_text(a->state, b->state) && same_text(a->via, b->via);
}

static int stretches_make(struct stretches *stretches, const struct gap_report *gap)
{
	const struct chain_link *link;

	array_for_each (link, &gap->chain) {
		uint64_t ns = link->end_ns - link->start_ns;
		struct stretch *last = stretches->count ? &stretches->items[stretches->count - 1] : NULL;

		if (!last || !same_stretch(last->link, link)) {
			last = array_add(stretches);
			if (!last)
				return -ENOMEM;
		}
		last->ns += ns;
		if (!last->link || ns > last->link_ns) {
			last->link = link;
			last->link_ns = ns;
		}
	}
	return 0;
}

static int longer_first(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? 1 : *a > *b ? -1 : 0;
}

/* Length from which on a stretch is among the `most` longest; 0: all are shown. */
static int shown_from(uint64_t *least, const struct stretches *stretches, size_t most)
{
	struct {
		ARRAY(uint64_t)
	} lengths = {0};

	*least = 0;
	if (stretches->count <= most)
		return 0;
	for (size_t i = 0; i < stretches->count; i++) {
		uint64_t *length = array_add(&lengths);

		if (!length) {
			array_free(&lengths);
			return -ENOMEM;
		}
		*length = stretches->items[i].ns;
	}
	array_sort(&lengths, longer_first);
	*least = lengths.items[most - 1];
	array_free(&lengths);
	return 0;
}

/* ": pread64 /data/x.bin, held by …": the most telling detail there is. */
static void append_detail(char *line, size_t size, const struct chain_link *link)
{
	const struct cause_detail *detail = &link->detail;
	char text[FORMAT_TEXT_SIZE(100)];
	size_t used = strlen(line);
	const char *separator = ": ";
	const struct {
		const char *label, *value;
	} parts[] = {
	    {"", detail->python},    {"", detail->function},
	    {"", detail->syscall},   {"", detail->path},
	    {"lock", detail->lock},  {findings_holder_label(link->code), detail->holder},
	    {"", detail->waits_for},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && used < size; i++) {
		if (!parts[i].value)
			continue;
		used += (size_t)snprintf(line + used, size - used, "%s%s%s%s", separator, parts[i].label,
		                         *parts[i].label ? " " : "",
		                         format_text(text, sizeof(text), parts[i].value,
		                                     parts[i].value == detail->waits_for ? 100 : 60));
		separator = ", ";
	}
}

/* Columns for the threads before the blamed one; none of them is cut for usual names. */
#define VIA_COLUMN 80

/* "main ← pt_data_pin ← loader-0 (1240/1240)". via may or may not end in the blamed thread itself. */
static void print_who(char *buffer, size_t size, const struct chain_link *link)
{
	static const char arrow[] = " ← ";
	char name[FORMAT_TEXT_SIZE(NAME_COLUMN)], shown[FORMAT_TEXT_SIZE(VIA_COLUMN)];
	size_t length = link->via ? strlen(link->via) : 0, own = strlen(link->comm), used = 0;
	char *via = NULL;

	if (length > own && !strcmp(link->via + length - own, link->comm))
		length -= own;
	if (length >= strlen(arrow) && !strncmp(link->via + length - strlen(arrow), arrow, strlen(arrow)))
		length -= strlen(arrow);
	if (length)
		via = strndup(link->via, length);
	if (via)
		used = (size_t)snprintf(buffer, size, "%s%s",
		                        format_text(shown, sizeof(shown), via, VIA_COLUMN), arrow);
	free(via);
	format_text(name, sizeof(name), *link->comm ? link->comm : "?", NAME_COLUMN);
	if (link->tid)
		snprintf(buffer + used, size - used, "%s (%" PRIu32 "/%" PRIu32 ")", name, link->pid,
		         link->tid);
	else
		snprintf(buffer + used, size - used, "the GPU");
}

static void print_stretch(const struct text *text, const struct stretch *stretch)
{
	enum { INDENT = 5, TIME = 8 };
	const struct chain_link *link = stretch->link;
	char time[FORMAT_FIGURE], who[FORMAT_TEXT_SIZE(VIA_COLUMN + NAME_COLUMN) + 64], line[2048];

	print_who(who, sizeof(who), link);
	snprintf(line, sizeof(line), "%s: %s (%s) %s", who, cause_code_name(link->code),
	         cause_role_name(link->role), link->state && link->tid ? link->state : "");
	append_detail(line, sizeof(line), link);
	fprintf(text->out, "%*s", INDENT, "");
	format_right(text->out, format_duration(time, stretch->ns), TIME);
	fputs("  ", text->out);
	format_wrapped(text->out, line, text->width, INDENT + TIME + 2, INDENT + TIME + 4);
}

static int print_chain(const struct text *text, const struct gap_report *gap)
{
	struct stretches stretches = {0};
	const struct stretch *stretch;
	uint64_t least = 0, rest = 0;
	size_t hidden = 0;
	int err = stretches_make(&stretches, gap);

	if (!err && !text->verbose) {
		err = shown_from(&least, &stretches, STRETCH_MOST);
		if (least < (gap->end_ns - gap->start_ns) / 100)
			least = (gap->end_ns - gap->start_ns) / 100;
	}
	array_for_each (stretch, &stretches) {
		if (err)
			break;
		if (stretch->ns >= least) {
			print_stretch(text, stretch);
		} else {
			hidden++;
			rest += stretch->ns;
		}
	}
	if (hidden) {
		char time[FORMAT_FIGURE];

		format_duration(time, rest);
		fprintf(text->out, "     ");
		format_right(text->out, time, 8);
		fprintf(text->out, "  in %zu shorter stretch%s\n", hidden, hidden == 1 ? "" : "es");
	}
	array_free(&stretches);
	return err;
}

static int print_gap(const struct text *text, const struct gap_report *gap, size_t rank)
{
	uint64_t start = text->analysis->session_start_ns;
	char time[FORMAT_FIGURE], at[FORMAT_FIGURE], kernel[FORMAT_TEXT_SIZE(KERNEL_COLUMN)];
	char launch[FORMAT_TEXT_SIZE(40)], name[FORMAT_TEXT_SIZE(NAME_COLUMN)], line[1024];
	size_t used;

	used = (size_t)snprintf(line, sizeof(line), "%zu. %s at %s, ", rank,
	                        format_duration(time, gap->end_ns - gap->start_ns),
	                        format_duration(at, gap->start_ns > start ? gap->start_ns - start : 0));
	if (gap->kernel)
		used += (size_t)snprintf(line + used, sizeof(line) - used, "ended by %s",
		                         format_name(kernel, sizeof(kernel), gap->kernel, KERNEL_COLUMN));
	else
		used += (size_t)snprintf(line + used, sizeof(line) - used, "not ended by an operation");
	if (gap->launch)
		used += (size_t)snprintf(line + used, sizeof(line) - used, ", launched with %s",
		                         format_text(launch, sizeof(launch), gap->launch, 40));
	if (gap->tid)
		snprintf(line + used, sizeof(line) - used, "%s by %s (%" PRIu32 "/%" PRIu32 ")",
		         gap->launch ? "" : ", launched",
		         format_text(name, sizeof(name), gap->comm, NAME_COLUMN), gap->pid, gap->tid);
	format_paragraph(text->out, line, text->width, 2, 5);
	return print_chain(text, gap);
}

int text_gaps(const struct text *text)
{
	const struct device_report *device;

	array_for_each (device, &text->analysis->devices) {
		size_t count = device->top_gaps.count;
		char heading[64];

		if (!text->verbose && count > GAPS_MOST)
			count = GAPS_MOST;
		if (!count)
			continue;
		snprintf(heading, sizeof(heading), "Worst gaps of GPU %" PRIu32 " (pid/tid)", device->device);
		text_heading(text, heading);
		for (size_t i = 0; i < count; i++) {
			int err = print_gap(text, &device->top_gaps.items[i], i + 1);

			if (err)
				return err;
		}
	}
	return 0;
}
