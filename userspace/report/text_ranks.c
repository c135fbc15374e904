// SPDX-License-Identifier: GPL-2.0-only
/* Several ranks of one job: who made the others wait. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/advice.h"
#include "report/format.h"
#include "report/report.h"
#include "report/text.h"
#include "report/text_ranks.h"

#define CAUSES_MOST  8 /* rows without --verbose */
#define STEPS_MOST   5
#define STEP_REASON  100
#define RANKS_LISTED 12 /* missing ranks that are listed by number */

enum column {
	COLUMN_RANK = 6,
	COLUMN_FIGURE = 9,
	COLUMN_COUNT = 8,
	COLUMN_REASON = 31,
	COLUMN_CONFIDENCE = 8,
};

static void strong(const struct ranks_page *page, const char *line)
{
	if (page->colour)
		fputs("\033[1m", page->out);
	fputs(line, page->out);
	if (page->colour)
		fputs("\033[0m", page->out);
	fputc('\n', page->out);
}

void ranks_page_heading(const struct ranks_page *page, const char *line)
{
	fputc('\n', page->out);
	strong(page, line);
}

uint32_t ranks_page_rank(const struct ranks_page *page, uint32_t member)
{
	return page->ranks->members.items[member].rank;
}

/* ---- the answer ---- */

/* What a late rank was doing, to follow "because". */
static void print_reason(FILE *out, const struct ranks_cause *cause)
{
	char thread[FORMAT_TEXT_SIZE(24)], detail[FORMAT_TEXT_SIZE(48)];

	format_text(thread, sizeof(thread), cause->thread, 24);
	format_text(detail, sizeof(detail), cause->detail, 48);
	switch (cause->reason) {
	case LATE_COMPUTE:
		fprintf(out, "its compute was longer (%s)", detail);
		return;
	case LATE_COPY:
		fputs("its copies took longer", out);
		return;
	case LATE_TRANSFER:
		fputs("earlier collectives kept it longer", out);
		return;
	case LATE_BEFORE:
		fputs("of something before the first collective in the traces", out);
		return;
	case LATE_IDLE:
		fputs("its GPU was idle: ", out);
		break;
	case LATE_HOST:
		fputs("its host launched the collective late: ", out);
		break;
	}
	fprintf(out, "%s (%s@%s%s%s%s%s)", cause_code_meaning(cause->code), cause_code_name(cause->code),
	        cause_role_name(cause->role), *thread ? ", " : "", thread, *detail ? ", " : "", detail);
}

static int print_advice(const struct ranks_page *page, const struct ranks_cause *cause)
{
	uint32_t rank = ranks_page_rank(page, cause->root);
	char thread[FORMAT_TEXT_SIZE(24)], *action, *hint;
	struct advice_facts facts = {0};
	int err;

	switch (cause->reason) {
	case LATE_COMPUTE:
		fprintf(page->out,
		        !strcmp(cause->detail, "more kernels")
		            ? "balance the work: rank %" PRIu32 " is given more than the others."
		            : "compare clocks, power and temperature of rank %" PRIu32
		              "'s GPU with the others'; its input may also be larger.",
		        rank);
		return 0;
	case LATE_COPY:
		fprintf(page->out,
		        "take copies (checkpoints, logging) of rank %" PRIu32
		        " off the path, or do them on all ranks.",
		        rank);
		return 0;
	case LATE_TRANSFER:
	case LATE_BEFORE:
		fputs("record more steps; this part has no cause in the traces.", page->out);
		return 0;
	default:
		break;
	}
	if (*cause->thread)
		facts.thread = format_text(thread, sizeof(thread), cause->thread, 24);
	err = advice_make(&action, &hint, cause->code, cause->role, &facts);
	if (!err)
		fprintf(page->out, "on rank %" PRIu32 ": %s", rank, action);
	free(action);
	free(hint);
	return err;
}

/* The largest cause of a rank's lateness. */
static const struct ranks_cause *top_cause(const struct ranks_report *ranks, uint32_t member)
{
	const struct ranks_cause *cause;

	array_for_each (cause, &ranks->causes) {
		if (cause->late == member)
			return cause;
	}
	return NULL;
}

static int print_answer(const struct ranks_page *page)
{
	const struct ranks_report *ranks = page->ranks;
	const struct ranks_member *member;
	const struct ranks_cause *cause;
	char caused[FORMAT_FIGURE], share[FORMAT_FIGURE], delay[FORMAT_FIGURE], part[FORMAT_FIGURE],
	    line[320];
	int err;

	if (!ranks->matched) {
		strong(page, "No collective was found on several ranks, so nothing can be said across them.");
		return 0;
	}
	if (ranks->slowest == RANKS_NONE) {
		strong(page, "No rank made the others wait for longer than the clocks can tell.");
		return 0;
	}
	member = &ranks->members.items[ranks->slowest];
	cause = top_cause(ranks, ranks->slowest);
	format_duration(caused, member->caused_ns);
	format_share(share, member->caused_ns, ranks->wait_ns);
	snprintf(line, sizeof(line),
	         "%s %" PRIu32 " cost the other ranks %s of GPU time in collectives, %s of all waiting; it "
	         "came last to %" PRIu64 " of %" PRIu64 " notable waits.",
	         ranks->pattern == PATTERN_RANDOM ? "Ranks come last at random: rank" : "Rank", member->rank,
	         caused, share, member->last_count, ranks->notable);
	strong(page, line);
	if (!cause)
		return 0;
	fputs("It was late mostly because ", page->out);
	if (cause->root != cause->late)
		fprintf(page->out, "rank %" PRIu32 " kept it, where ", ranks_page_rank(page, cause->root));
	print_reason(page->out, cause);
	fputs(".\nDo this: ", page->out);
	err = print_advice(page, cause);
	fprintf(page->out, " At most %s (%s) to gain.\n", format_duration(delay, member->caused_delay_ns),
	        format_share(part, member->caused_delay_ns, ranks->span_ns));
	return err;
}

/* ---- what it rests on ---- */

static void print_missing(const struct ranks_page *page)
{
	const struct ranks_report *ranks = page->ranks;
	char line[512];
	size_t used;

	if (!ranks->missing.count)
		return;
	used = (size_t)snprintf(line, sizeof(line),
	                        "The job has %" PRIu32 " ranks; not given: ", ranks->world_size);
	for (size_t i = 0; i < ranks->missing.count && i < RANKS_LISTED; i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%" PRIu32, i ? ", " : "",
		                         ranks->missing.items[i]);
	if (ranks->missing.count > RANKS_LISTED)
		used += (size_t)snprintf(line + used, sizeof(line) - used, " and %zu more",
		                         ranks->missing.count - RANKS_LISTED);
	snprintf(line + used, sizeof(line) - used, "%s",
	         ranks->members.count > 1 ? ". They may have come later than any rank shown here." : ".");
	format_paragraph(page->out, line, page->width, 0, 2);
}

static void print_waits(const struct ranks_page *page)
{
	const struct ranks_report *ranks = page->ranks;
	char line[512], matched[32], span[FORMAT_FIGURE], waits[FORMAT_FIGURE], charged[FORMAT_FIGURE];
	char undecided[FORMAT_FIGURE], uncharged[FORMAT_FIGURE];

	snprintf(
	    line, sizeof(line),
	    "%s collectives compared over %s. Waits of all ranks: %s; charged to the rank that came last "
	    "%s, the last ones too close to tell %s, shorter than the error of the clocks %s.",
	    format_count(matched, ranks->matched), format_duration(span, ranks->span_ns),
	    format_duration(waits, ranks->wait_ns),
	    format_percent(charged, ranks->charged_ns, ranks->wait_ns),
	    format_percent(undecided, ranks->undecided_ns, ranks->wait_ns),
	    format_percent(uncharged, ranks->uncharged_ns, ranks->wait_ns));
	format_paragraph(page->out, line, page->width, 2, 4);
}

static void print_basis(const struct ranks_page *page)
{
	const struct ranks_report *ranks = page->ranks;
	const struct ranks_group *group;
	const char **note;
	char line[512];

	snprintf(line, sizeof(line), "%zu ranks from %" PRIu32 " input%s.", ranks->members.count,
	         ranks->inputs, ranks->inputs == 1 ? "" : "s");
	format_paragraph(page->out, line, page->width, 2, 4);
	if (ranks->matched)
		print_waits(page);
	array_for_each (group, &ranks->groups) {
		char transfer[FORMAT_FIGURE];

		snprintf(line, sizeof(line),
		         "%" PRIu32 " rank%s, %s: %" PRIu64 " on all of them, %" PRIu64
		         " missing on some, %" PRIu64
		         " that some left before the last came; the transfer itself "
		         "takes %s",
		         group->members, group->members == 1 ? "" : "s", group->operations, group->matched,
		         group->incomplete, group->apart, format_duration(transfer, group->transfer_ns));
		if (group->members > 1 || page->verbose)
			format_paragraph(page->out, line, page->width, 2, 4);
	}
	array_for_each (note, &ranks->notes) {
		char text[FORMAT_TEXT_SIZE(400)];

		format_paragraph(page->out, format_text(text, sizeof(text), *note, 400), page->width, 2, 4);
	}
}

/* ---- tables ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void clock_text(char *buffer, size_t size, const struct ranks_clock *clock)
{
	char offset[FORMAT_FIGURE], error[FORMAT_FIGURE];

	format_duration(error, clock->error_ns);
	if (clock->state == CLOCK_UNALIGNED)
		snprintf(buffer, size, "not aligned");
	else if (clock->state == CLOCK_SAME && !clock->collectives)
		snprintf(buffer, size, "the clock used");
	else if (clock->state == CLOCK_SAME)
		snprintf(buffer, size, "agrees, ±%s", error);
	else
		snprintf(buffer, size, "off by %s%s, ±%s", clock->offset_ns < 0 ? "-" : "",
		         format_duration(offset, (uint64_t)llabs(clock->offset_ns)), error);
}

static void print_member(const struct ranks_page *page, const struct ranks_member *member)
{
	uint64_t window = member->window_end_ns - member->window_start_ns;
	char figure[FORMAT_FIGURE], count[32], clock[96], name[FORMAT_TEXT_SIZE(32)];

	snprintf(count, sizeof(count), "%" PRIu32, member->rank);
	fputs("  ", page->out);
	format_left(page->out, count, COLUMN_RANK);
	format_right(page->out, format_percent(figure, member->idle_ns, window), COLUMN_FIGURE);
	format_right(page->out, format_duration(figure, member->wait_ns), COLUMN_FIGURE);
	format_right(page->out, format_percent(figure, member->idle_ns + member->idle_wait_ns, window),
	             COLUMN_FIGURE);
	format_right(page->out, format_count(count, member->last_count), COLUMN_COUNT);
	format_right(page->out, format_duration(figure, member->caused_ns), COLUMN_FIGURE);
	format_right(page->out, format_count(count, member->slowest_steps), COLUMN_COUNT);
	clock_text(clock, sizeof(clock), &member->clock);
	fprintf(page->out, "  %s  %s\n", format_text(name, sizeof(name), base_name(member->path), 32), clock);
	if (member->clock.state == CLOCK_SHIFTED && fabs(member->clock.drift) > 0)
		fprintf(page->out, "  %*sits clock gains %.1f µs a second\n", COLUMN_RANK, "",
		        member->clock.drift * 1e6);
}

static void print_members(const struct ranks_page *page)
{
	static const struct {
		const char *title;
		unsigned width;
	} columns[] = {{"idle", COLUMN_FIGURE}, {"waits", COLUMN_FIGURE},  {"idle+w.", COLUMN_FIGURE},
	               {"last", COLUMN_COUNT},  {"caused", COLUMN_FIGURE}, {"slowest", COLUMN_COUNT}};
	const struct ranks_member *member;

	fputs("  ", page->out);
	format_left(page->out, "rank", COLUMN_RANK);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		format_right(page->out, columns[i].title, columns[i].width);
	fputs("  input, clock\n", page->out);
	array_for_each (member, &page->ranks->members)
		print_member(page, member);
	if (!page->ranks->matched)
		return;
	format_paragraph(
	    page->out,
	    "waits: in collectives, for the last rank; idle+w.: idle time with those waits in which "
	    "nothing else ran (device.peer); last: notable waits that it came last to; caused: waits "
	    "of the others for it; slowest: steps",
	    page->width, 2, 4);
}

void ranks_reason_text(char *buffer, size_t size, enum late_reason reason, enum cause_code code,
                       enum cause_role role)
{
	static const char *const texts[] = {
	    [LATE_COMPUTE] = "compute was longer",
	    [LATE_COPY] = "copies were longer",
	    [LATE_TRANSFER] = "earlier collectives",
	    [LATE_BEFORE] = "before the first collective",
	};

	if (reason == LATE_IDLE || reason == LATE_HOST)
		snprintf(buffer, size, "%s@%s%s", cause_code_name(code), cause_role_name(role),
		         reason == LATE_HOST ? " (busy)" : "");
	else
		snprintf(buffer, size, "%s", texts[reason]);
}

static void print_cause(const struct ranks_page *page, const struct ranks_cause *cause)
{
	char figure[FORMAT_FIGURE], reason[96], text[FORMAT_TEXT_SIZE(48)], thread[FORMAT_TEXT_SIZE(36)];

	snprintf(reason, sizeof(reason), "%" PRIu32, ranks_page_rank(page, cause->late));
	fputs("  ", page->out);
	format_left(page->out, reason, COLUMN_RANK);
	ranks_reason_text(reason, sizeof(reason), cause->reason, cause->code, cause->role);
	format_left(page->out, reason, COLUMN_REASON);
	format_right(page->out, format_duration(figure, cause->wait_ns), COLUMN_FIGURE);
	format_right(page->out, format_percent(figure, cause->wait_ns, page->ranks->wait_ns), COLUMN_FIGURE);
	format_right(page->out, format_duration(figure, cause->delay_ns), COLUMN_FIGURE);
	fputs("  ", page->out);
	format_left(page->out, confidence_name(cause->confidence), COLUMN_CONFIDENCE);
	format_text(thread, sizeof(thread), *cause->via ? cause->via : cause->thread, 36);
	format_text(text, sizeof(text), cause->detail, 48);
	if (cause->root != cause->late)
		fprintf(page->out, "via rank %" PRIu32 "%s", ranks_page_rank(page, cause->root),
		        *thread || *text ? ": " : "");
	fprintf(page->out, "%s%s%s", thread, *thread && *text ? " " : "", text);
	fputc('\n', page->out);
}

static void print_causes(const struct ranks_page *page)
{
	const struct ranks_report *ranks = page->ranks;
	size_t shown = ranks->causes.count;

	if (!shown)
		return;
	if (!page->verbose && shown > CAUSES_MOST)
		shown = CAUSES_MOST;
	ranks_page_heading(page, "Why they came late");
	fputs("  ", page->out);
	format_left(page->out, "rank", COLUMN_RANK);
	format_left(page->out, "reason", COLUMN_REASON);
	format_right(page->out, "waits", COLUMN_FIGURE);
	format_right(page->out, "of all", COLUMN_FIGURE);
	format_right(page->out, "to gain", COLUMN_FIGURE);
	fputs("  ", page->out);
	format_left(page->out, "conf.", COLUMN_CONFIDENCE);
	fputs("what\n", page->out);
	for (size_t i = 0; i < shown; i++)
		print_cause(page, &ranks->causes.items[i]);
	if (shown < ranks->causes.count)
		fprintf(page->out, "  %zu more\n", ranks->causes.count - shown);
}

static int compare_step(const void *a, const void *b)
{
	const struct ranks_step *const *x = a, *const *y = b;
	int order = ((*x)->wait_ns < (*y)->wait_ns) - ((*x)->wait_ns > (*y)->wait_ns);

	return order ? order : ((*x)->start_ns > (*y)->start_ns) - ((*x)->start_ns < (*y)->start_ns);
}

/* " (wait.disk@worker)", "" if nothing is known. */
static const char *step_reason(const struct ranks_page *page, const struct ranks_step *step, char *buffer)
{
	const struct ranks_cause *cause;
	char text[STEP_REASON - 4];

	*buffer = '\0';
	if (step->cause == RANKS_NONE)
		return buffer;
	cause = &page->ranks->causes.items[step->cause];
	ranks_reason_text(text, sizeof(text), cause->reason, cause->code, cause->role);
	snprintf(buffer, STEP_REASON, " (%s)", text);
	return buffer;
}

static int print_steps(const struct ranks_page *page)
{
	const struct ranks_report *ranks = page->ranks;
	const struct ranks_step **order;
	size_t shown = ranks->steps.count;
	char line[128];

	if (!shown)
		return 0;
	order = calloc(shown, sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < shown; i++)
		order[i] = &ranks->steps.items[i];
	qsort_items(order, shown, sizeof(*order), compare_step);
	if (shown > STEPS_MOST && !page->verbose)
		shown = STEPS_MOST;
	snprintf(line, sizeof(line), "Steps with the most waiting (%zu of %zu)", shown, ranks->steps.count);
	ranks_page_heading(page, line);
	for (size_t i = 0; i < shown; i++) {
		char skew[FORMAT_FIGURE], wait[FORMAT_FIGURE], length[FORMAT_FIGURE], rank[32] = "none",
		                                                                      reason[STEP_REASON];
		const struct ranks_step *step = order[i];

		if (step->slowest != RANKS_NONE)
			snprintf(rank, sizeof(rank), "%" PRIu32, ranks_page_rank(page, step->slowest));
		fprintf(page->out, "  %s: slowest rank %s%s, skew %s, waits %s, %s long\n", step->name, rank,
		        step_reason(page, step, reason), format_duration(skew, step->skew_ns),
		        format_duration(wait, step->wait_ns),
		        format_duration(length, step->end_ns - step->start_ns));
	}
	free(order);
	return 0;
}

/* One rank alone: what its collectives took, and that nobody can say whom they waited for. */
static void print_single(const struct ranks_page *page, const struct ranks_member *member)
{
	char count[32], total[FORMAT_FIGURE], alone[FORMAT_FIGURE], share[FORMAT_FIGURE], line[512];

	ranks_page_heading(page, "Collectives");
	snprintf(
	    line, sizeof(line),
	    "rank %" PRIu32 ": %s collectives, %s of the busy time, %s of it (%s of the window) with nothing "
	    "else on the GPU. How much of that was waiting for another rank cannot be told from one rank.",
	    member->rank, format_count(count, member->collectives),
	    format_duration(total, member->collective_ns), format_duration(alone, member->alone_ns),
	    format_percent(share, member->alone_ns, member->window_end_ns - member->window_start_ns));
	format_paragraph(page->out, line, page->width, 2, 4);
}

bool report_ranks_wanted(const struct ranks_report *ranks)
{
	const struct ranks_member *member;

	array_for_each (member, &ranks->members) {
		if (member->collectives)
			return true;
	}
	return ranks->world_size > 1 || ranks->inputs > 1;
}

int report_ranks_text(FILE *out, const struct ranks_report *ranks, const struct report_text_options *options)
{
	struct ranks_page page = {.out = out, .ranks = ranks, .width = WIDTH_DEFAULT};
	int err = 0;

	if (options) {
		page.width = options->width ? options->width : WIDTH_DEFAULT;
		page.colour = options->colour;
		page.verbose = options->verbose;
	}
	if (ranks->members.count == 1) {
		if (ranks->members.items[0].collectives)
			print_single(&page, ranks->members.items);
		print_missing(&page);
		return ferror(out) ? -EIO : 0;
	}
	err = print_answer(&page);
	print_missing(&page);
	ranks_page_heading(&page, "Ranks");
	print_basis(&page);
	print_members(&page);
	print_causes(&page);
	ranks_page_peers(&page);
	ranks_page_path(&page);
	if (!err)
		err = ranks_page_findings(&page);
	if (!err)
		err = print_steps(&page);
	return err ? err : ferror(out) ? -EIO : 0;
}
