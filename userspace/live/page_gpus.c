// SPDX-License-Identifier: GPL-2.0-only
/* GPUs of the last window: bars, causes, the worst chain. */
#include <string.h>

#include "live/bar.h"
#include "live/chain.h"
#include "live/page.h"
#include "live/status.h"

#define NAME_COLUMNS  15
#define BAR_LEAST     10
#define BAR_BESIDE    36 /* columns of what stands beside the bar */
#define BEFORE_NAMES  46 /* columns before the names of threads */
#define TITLE_COLUMNS 400

/* The character of a cause in the bar and before its line. */
static char letter_of(size_t cause)
{
	return (char)('a' + cause);
}

static uint64_t window_of(const json_t *gpu)
{
	return status_number(gpu, "busy_ns") + status_number(gpu, "idle_ns");
}

static void put_cells(struct page *page, enum page_style style, char cell, unsigned count)
{
	page_style(page, style);
	while (count--)
		fputc(cell, page->out);
}

/* Busy as '#', idle by the largest causes as letters, the rest as '.'. */
static void put_bar(struct page *page, const json_t *gpu, unsigned columns)
{
	uint64_t parts[PAGE_CAUSES + 2] = {status_number(gpu, "busy_ns")},
	                             left = status_number(gpu, "idle_ns");
	unsigned cells[PAGE_CAUSES + 2];
	const json_t *cause;
	size_t i;

	json_array_foreach(json_object_get(gpu, "causes"), i, cause)
	{
		if (i == PAGE_CAUSES)
			break;
		parts[i + 1] = status_number(cause, "ns") < left ? status_number(cause, "ns") : left;
		left -= parts[i + 1];
	}
	parts[PAGE_CAUSES + 1] = left;
	bar_share(cells, parts, PAGE_CAUSES + 2, columns);
	page_style(page, STYLE_PLAIN);
	fputc('[', page->out);
	put_cells(page, STYLE_BUSY, '#', cells[0]);
	for (i = 0; i < PAGE_CAUSES; i++)
		put_cells(page, STYLE_CAUSE + i, letter_of(i), cells[i + 1]);
	put_cells(page, STYLE_REST, '.', cells[PAGE_CAUSES + 1]);
	page_style(page, STYLE_PLAIN);
	fputc(']', page->out);
}

/* The names of the threads of a cause, as many as fit. */
static void put_threads(struct page *page, const json_t *cause, unsigned columns)
{
	const char *before = "";
	const json_t *thread;
	size_t i;

	json_array_foreach(json_object_get(cause, "threads"), i, thread)
	{
		char name[FORMAT_TEXT_SIZE(NAME_COLUMNS)];
		unsigned taken;

		status_text(name, sizeof(name), thread, "comm", NAME_COLUMNS);
		taken = format_columns(name) + (unsigned)strlen(before);
		if (taken > columns)
			break;
		fprintf(page->out, "%s%s", before, name);
		columns -= taken;
		before = ", ";
	}
}

static void put_cause(struct page *page, const json_t *cause, uint64_t whole, size_t letter)
{
	char code[FORMAT_TEXT_SIZE(22)], role[FORMAT_TEXT_SIZE(9)], share[FORMAT_FIGURE];

	fputs("  ", page->out);
	put_cells(page, STYLE_CAUSE + letter, letter_of(letter), 1);
	page_style(page, STYLE_PLAIN);
	fputc(' ', page->out);
	format_left(page->out, status_text(code, sizeof(code), cause, "code", 22), 23);
	format_left(page->out, status_text(role, sizeof(role), cause, "role", 9), 10);
	format_right(page->out, format_percent(share, status_number(cause, "ns"), whole), 7);
	fputs("  ", page->out);
}

static void put_causes(struct page *page, const json_t *gpu, const struct page_view *view, unsigned detail)
{
	const json_t *cause;
	size_t i;

	json_array_foreach(json_object_get(gpu, "causes"), i, cause)
	{
		if (i == detail) {
			fputs("    …\n", page->out);
			break;
		}
		put_cause(page, cause, window_of(gpu), i);
		put_threads(page, cause, view->width > BEFORE_NAMES ? view->width - BEFORE_NAMES : 0);
		fputc('\n', page->out);
	}
}

static void put_words(struct page *page, const char *words, const struct page_view *view)
{
	format_paragraph(page->out, words, view->width, 4, 6);
}

/* The first finding of a GPU. */
static void put_finding(struct page *page, const json_t *report, uint64_t device,
                        const struct page_view *view)
{
	const json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(report, "findings"), i, finding)
	{
		char line[FORMAT_TEXT_SIZE(TITLE_COLUMNS)];

		if (status_number(finding, "device") != device)
			continue;
		put_words(page, status_text(line, sizeof(line), finding, "title", TITLE_COLUMNS), view);
		return;
	}
}

static void put_gpu(struct page *page, const json_t *report, const json_t *gpu, const struct page_view *view,
                    unsigned detail)
{
	uint64_t busy = status_number(gpu, "busy_ns"), all = window_of(gpu);
	unsigned columns = view->width > BAR_BESIDE + BAR_LEAST ? view->width - BAR_BESIDE : BAR_LEAST;
	char name[FORMAT_TEXT_SIZE(40)], first[FORMAT_FIGURE], second[FORMAT_FIGURE], words[CHAIN_WORDS];
	uint64_t device = status_number(gpu, "device");

	if (detail) {
		page_style(page, STYLE_HEAD);
		fprintf(page->out, "\nGPU %llu %s\n", (unsigned long long)device,
		        status_text(name, sizeof(name), gpu, "name", 40));
		page_style(page, STYLE_PLAIN);
		fputs("  ", page->out);
	} else {
		fprintf(page->out, "%3llu ", (unsigned long long)device);
	}
	put_bar(page, gpu, columns);
	fprintf(page->out, " busy %s, idle %s\n", format_percent(first, busy, all),
	        format_percent(second, all - busy, all));
	if (!detail)
		return;
	put_causes(page, gpu, view, detail);
	put_finding(page, report, device, view);
	if (chain_words(words, gpu, 0))
		put_words(page, words, view);
}

void page_gpus(struct page *page, const json_t *status, const struct page_view *view, unsigned detail)
{
	const json_t *report = status_report(status), *gpu;
	size_t i;

	if (!detail)
		fputs("GPU\n", page->out);
	json_array_foreach(json_object_get(report, "gpus"), i, gpu) put_gpu(page, report, gpu, view, detail);
	if (!i)
		fputs("\nNo GPU was used in the last window.\n", page->out);
}

void page_blame(struct page *page, const json_t *status, const struct live_process *process,
                const struct page_view *view)
{
	const json_t *cause, *gpu;
	char words[CHAIN_WORDS];
	size_t i;

	if (process->figures[SORT_IDLE] < 0) {
		fputs("\nIt was in no window yet: what it has to do with idle GPU time is not known.\n",
		      page->out);
		return;
	}
	fprintf(page->out, "\nGPUs were idle because of it for %.1f %% of the last window%s\n",
	        process->figures[SORT_IDLE] * 100,
	        json_array_size(json_object_get(process->object, "causes")) ? ":" : ".");
	json_array_foreach(json_object_get(process->object, "causes"), i, cause)
	{
		char name[FORMAT_TEXT_SIZE(NAME_COLUMNS)];

		if (i == PAGE_CAUSES)
			break;
		put_cause(page, cause, status_number(process->object, "observed_ns"), i);
		fprintf(page->out, "%s (%llu), GPU %llu\n",
		        status_text(name, sizeof(name), cause, "comm", NAME_COLUMNS),
		        (unsigned long long)status_number(cause, "tid"),
		        (unsigned long long)status_number(cause, "device"));
	}
	json_array_foreach(json_object_get(status_report(status), "gpus"), i, gpu)
	{
		if (chain_words(words, gpu, process->pid))
			put_words(page, words, view);
	}
}
