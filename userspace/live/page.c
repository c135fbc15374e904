// SPDX-License-Identifier: GPL-2.0-only
#include "live/page.h"

#include <errno.h>
#include <string.h>

#include "live/status.h"

#define LEAST_ROWS   3 /* of processes on a screen, where there are so many */
#define WORD_COLUMNS 16

void page_style(struct page *page, enum page_style style)
{
	struct page_mark *mark;

	fflush(page->out);
	mark = array_add(&page->marks);
	if (mark) /* else it stays in the style that it is in */
		*mark = (struct page_mark){page->length, style};
}

static void put_head(struct page *page, const json_t *status, const struct page_view *view)
{
	const json_t *budget = json_object_get(status, "budget"),
	             *next = json_object_get(budget, "next_window_s");
	char state[FORMAT_TEXT_SIZE(WORD_COLUMNS)], version[FORMAT_TEXT_SIZE(WORD_COLUMNS)],
	    up[FORMAT_FIGURE];

	page_style(page, STYLE_HEAD);
	fprintf(page->out, "whyidle %s, up %s; budget %.3g %% of a CPU, %s%s%s\n",
	        status_text(version, sizeof(version), status, "version", WORD_COLUMNS),
	        format_duration(up, status_number(status, "uptime_ns")), status_real(budget, "share") * 100,
	        status_text(state, sizeof(state), budget, "state", WORD_COLUMNS),
	        json_is_false(json_object_get(budget, "met")) ? ": exceeded" : "",
	        view->state && view->state->paused ? "; paused" : "");
	page_style(page, STYLE_PLAIN);
	fprintf(page->out, "spent: %.3f %% without windows; launches in windows +%.1f %%; ",
	        status_real(budget, "standing") * 100, status_real(budget, "slowdown") * 100);
	if (json_is_number(next))
		fprintf(page->out, "next in %.0f s\n", json_number_value(next));
	else
		fputs(status_real(budget, "interval_s") > 0 ? "none comes\n" : "by request only\n",
		      page->out);
}

/* Returns whether there was a window. */
static bool put_window(struct page *page, const json_t *status, const struct page_view *view)
{
	const json_t *window = json_object_get(status, "window"), *report = status_report(status);
	char length[FORMAT_FIGURE], timeline[FORMAT_TEXT_SIZE(WORD_COLUMNS)],
	    reason[FORMAT_TEXT_SIZE(WORD_COLUMNS)];
	uint64_t start_ms = status_number(window, "start_ms");

	if (!report) {
		fputs("\nThere was no window yet: causes of idle GPU time are not known.\n", page->out);
		return false;
	}
	fprintf(page->out, "last window: %s, %llu s ago (%s), GPU timeline %s\n",
	        format_duration(length, status_number(window, "length_ns")),
	        view->now_ms > start_ms ? (unsigned long long)((view->now_ms - start_ms) / 1000) : 0ULL,
	        status_text(reason, sizeof(reason), window, "reason", WORD_COLUMNS),
	        status_text(timeline, sizeof(timeline), json_object_get(report, "source"), "gpu_timeline",
	                    WORD_COLUMNS));
	return true;
}

/* ---- processes ---- */

/* The columns of figures, those that are left out first on a narrow terminal last. */
static const struct column {
	enum process_sort sort;
	const char *title;
	unsigned columns; /* with the space before it */
	unsigned decimals;
	double factor;
} columns_known[] = {
    {SORT_IDLE, "IDLE%", 6, 1, 100},   {SORT_CPU, "CPUS", 6, 2, 1},  {SORT_LAUNCHES, "LAUNCH/S", 9, 0, 1},
    {SORT_RUNQUEUE, "NOCPU", 6, 2, 1}, {SORT_DISK, "DISK", 6, 2, 1}, {SORT_SWITCHES, "SWITCH/S", 9, 0, 1},
};

#define COLUMNS     (sizeof(columns_known) / sizeof(columns_known[0]))
#define BEFORE      (7 + 1 + PROCESS_NAME) /* pid and name */
#define PLACE_LEAST 6

/* How many of the columns fit; what is left is in *place. */
static size_t columns_fit(const struct page_view *view, unsigned *place)
{
	unsigned used = BEFORE + 1;
	size_t count = 0;

	while (count < COLUMNS && used + columns_known[count].columns + PLACE_LEAST <= view->width)
		used += columns_known[count++].columns;
	*place = view->width > used ? view->width - used : 0;
	if (*place > PROCESS_PLACE)
		*place = PROCESS_PLACE;
	return count;
}

static void put_titles(struct page *page, const struct page_view *view)
{
	unsigned place;
	size_t count = columns_fit(view, &place);

	page_style(page, STYLE_HEAD);
	fputs("\n    PID ", page->out);
	format_left(page->out, "PROCESS", PROCESS_NAME);
	for (size_t i = 0; i < count; i++)
		format_right(page->out, columns_known[i].title, columns_known[i].columns);
	fputs(" IN\n", page->out);
	page_style(page, STYLE_PLAIN);
}

static void put_process(struct page *page, const struct live_process *process, const struct page_view *view)
{
	char text[FORMAT_TEXT_SIZE(PROCESS_PLACE)];
	unsigned place;
	size_t count = columns_fit(view, &place);

	fprintf(page->out, "%7u ", process->pid);
	format_left(page->out, process->name, PROCESS_NAME);
	for (size_t i = 0; i < count; i++) {
		const struct column *column = &columns_known[i];
		double value = process->figures[column->sort];

		if (value < 0)
			format_right(page->out, "-", column->columns);
		else
			fprintf(page->out, " %*.*f", (int)column->columns - 1, (int)column->decimals,
			        value * column->factor);
	}
	fprintf(page->out, " %s\n", format_text(text, sizeof(text), process->place, place));
}

static void put_none(struct page *page, const json_t *status, const struct page_view *view)
{
	char filter[FORMAT_TEXT_SIZE(LIVE_FILTER)];

	if (!json_array_size(json_object_get(status, "processes")))
		fputs("\nNo process uses a GPU.\n", page->out);
	else if (view->choice.filter && *view->choice.filter)
		fprintf(page->out, "\nNo process with '%s' uses a GPU.\n",
		        format_text(filter, sizeof(filter), view->choice.filter, LIVE_FILTER));
	else
		fprintf(page->out, "\nProcess %u uses no GPU.\n", view->choice.pid);
}

/* `rows` of them, such that the selected one is among them. */
static void put_processes(struct page *page, const json_t *status, const struct live_processes *list,
                          const struct page_view *view, size_t rows)
{
	size_t selected = view->state ? live_selected(view->state, list) : SIZE_MAX, first = 0;

	if (!list->count) {
		put_none(page, status, view);
		return;
	}
	if (selected != SIZE_MAX && selected >= rows)
		first = selected - rows + 1;
	put_titles(page, view);
	for (size_t i = first; i < list->count && i - first < rows; i++) {
		page_style(page, i == selected ? STYLE_SELECTED : STYLE_PLAIN);
		put_process(page, &list->items[i], view);
	}
	page_style(page, STYLE_PLAIN);
}

/* ---- one process, help ---- */

static void put_one(struct page *page, const json_t *status, const struct live_processes *list,
                    const struct page_view *view)
{
	size_t at = processes_find(list, view->state->pid);
	const struct live_process *process;

	page_style(page, STYLE_HEAD);
	fprintf(page->out, "\nProcess %u %s\n", view->state->pid, view->state->name);
	page_style(page, STYLE_PLAIN);
	if (at == list->count) {
		fputs("It uses no GPU any more.\n", page->out);
		return;
	}
	process = &list->items[at];
	if (*process->place)
		fprintf(page->out, "in %s\n", process->place);
	fprintf(page->out, "%llu threads in %llu processes: it and what it forked\n",
	        (unsigned long long)status_number(process->object, "threads"),
	        (unsigned long long)status_number(process->object, "processes"));
	put_titles(page, view);
	put_process(page, process, view);
	page_blame(page, status, process, view);
}

static const char help[] = "\n"
                           "GPU     # busy, letters idle for a cause, . idle for others: of the last window\n"
                           "IDLE%   share of the last window in which GPUs were idle because of it\n"
                           "CPUS    CPUs in use              NOCPU  threads that were ready and had none\n"
                           "DISK    threads that waited for storage    SWITCH/S, LAUNCH/S  a second\n"
                           "\n"
                           "up, down, PgUp, PgDn, j, k   select a process      Enter  show it, Esc: back\n"
                           "s, S    sort by the next, the previous column      r      reverse\n"
                           "/       filter by name, container, pod or pid      Esc    no filter\n"
                           "p       pause, go on                               ^L     paint again\n"
                           "?       this help                                  q      quit\n";

/* ---- all of it ---- */

static void put_last_line(struct page *page, const struct page_view *view)
{
	const struct live_state *state = view->state;

	if (view->message) {
		char line[FORMAT_TEXT_SIZE(400)];

		page_style(page, STYLE_WARNING);
		fprintf(page->out, "%s\n", format_text(line, sizeof(line), view->message, view->width));
		return;
	}
	page_style(page, STYLE_HEAD);
	if (state->editing)
		fprintf(page->out, "filter: %s_\n", state->filter);
	else if (state->place == LIVE_HELP)
		fputs("any key: back  q quit\n", page->out);
	else if (state->place == LIVE_PROCESS)
		fputs("Esc back  p pause  ? help  q quit\n", page->out);
	else
		fprintf(page->out, "q quit  Enter process  s sort: %s%s  / filter%s%s  p pause  ? help\n",
		        process_sort_names[state->sort], state->reverse ? " (reverse)" : "",
		        *state->filter ? ": " : "", state->filter);
	page_style(page, STYLE_PLAIN);
}

static unsigned lines_of(struct page *page)
{
	unsigned count = 0;

	fflush(page->out);
	for (size_t i = 0; i < page->length; i++)
		count += page->text[i] == '\n';
	return count;
}

/* GPUs and processes; those get what is left of the height, but some lines at least. */
static void put_all(struct page *page, const json_t *status, const struct live_processes *list,
                    const struct page_view *view, unsigned detail)
{
	unsigned used, room = view->height ? view->height - 1 : 0;
	size_t rows = list->count;

	if (put_window(page, status, view))
		page_gpus(page, status, view, detail);
	used = lines_of(page) + 2; /* an empty line and the titles */
	page->needs = used + (unsigned)(rows < LEAST_ROWS ? rows : LEAST_ROWS);
	if (view->height && used + rows > room)
		rows = used < room ? room - used : 1;
	page->rows = (unsigned)rows;
	put_processes(page, status, list, view, rows);
	if (!view->height && view->choice.pid && list->count)
		page_blame(page, status, list->items, view);
}

/* All but the last line. */
static void put_body(struct page *page, const json_t *status, const struct live_processes *list,
                     const struct page_view *view, unsigned detail)
{
	enum live_place place = view->state ? view->state->place : LIVE_ALL;

	put_head(page, status, view);
	if (place == LIVE_HELP) {
		fputs(help, page->out);
	} else if (place == LIVE_PROCESS) {
		put_window(page, status, view);
		put_one(page, status, list, view);
	} else {
		put_all(page, status, list, view, detail);
	}
}

static void cut_to(struct page *page, unsigned lines)
{
	size_t at = 0;

	fflush(page->out);
	for (unsigned i = 0; i < lines && at < page->length; i++) {
		const char *end = memchr(page->text + at, '\n', page->length - at);

		at = end ? (size_t)(end - page->text) + 1 : page->length;
	}
	fseek(page->out, (long)at, SEEK_SET);
	fflush(page->out);
	while (page->marks.count && page->marks.items[page->marks.count - 1].at > at)
		page->marks.count--;
}

static int start(struct page *page)
{
	*page = (struct page){0};
	page->out = open_memstream(&page->text, &page->length);
	return page->out ? 0 : -ENOMEM;
}

static int finish(struct page *page)
{
	int failed = ferror(page->out);

	return fflush(page->out) || failed ? -ENOMEM : 0;
}

/* To the height, with the last line. */
static void fit(struct page *page, const struct page_view *view)
{
	unsigned lines = lines_of(page), room = view->height - 1;

	if (lines > room)
		cut_to(page, room);
	for (; lines < room; lines++)
		fputc('\n', page->out);
	put_last_line(page, view);
}

int page_make(struct page *page, const json_t *status, const struct live_processes *list,
              const struct page_view *view)
{
	unsigned detail = PAGE_CAUSES;
	int err;

	for (;; detail--) {
		err = start(page);
		if (err)
			return err;
		put_body(page, status, list, view, detail);
		if (!view->height || !detail || page->needs < view->height)
			break;
		page_free(page);
	}
	if (view->height)
		fit(page, view);
	return finish(page);
}

void page_free(struct page *page)
{
	if (page->out)
		fclose(page->out);
	free(page->text);
	array_free(&page->marks);
	*page = (struct page){0};
}

int page_write(FILE *out, const json_t *status, const struct page_view *view, struct error *error)
{
	struct live_processes list;
	struct page page = {0};
	int err = processes_list(&list, status, &view->choice);

	if (err)
		return error_no_memory(error);
	err = page_make(&page, status, &list, view);
	if (err)
		error_no_memory(error);
	else if (fwrite(page.text, 1, page.length, out) != page.length || ferror(out))
		err = error_set(error, -EIO, "cannot write");
	page_free(&page);
	array_free(&list);
	return err;
}
