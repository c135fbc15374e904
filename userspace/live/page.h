/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `whyidle top` shows, as text with styles: the same for a file, a pipe and a screen. A line is never
 * longer than the view is wide (where that is 80 columns or more) and holds nothing that a terminal would
 * take for a command, whatever targets are called.
 */
#ifndef WHYIDLE_LIVE_PAGE_H
#define WHYIDLE_LIVE_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/array.h"
#include "base/error.h"
#include "live/keys.h"
#include "live/processes.h"

#define PAGE_CAUSES 6 /* of a GPU that are shown at most */

enum page_style {
	STYLE_PLAIN,
	STYLE_HEAD,
	STYLE_BUSY,
	STYLE_REST, /* idle for causes that have no style of their own */
	STYLE_SELECTED,
	STYLE_WARNING,
	STYLE_CAUSE, /* of the largest cause; the next ones follow */
	STYLES = STYLE_CAUSE + PAGE_CAUSES
};

/* From this byte of the text on, another style. */
struct page_mark {
	size_t at;
	enum page_style style;
};

struct page {
	FILE *out;
	char *text; /* lines, each with its newline */
	size_t length;
	struct {
		ARRAY(struct page_mark)
	} marks;
	unsigned rows;  /* of processes that there is room for */
	unsigned needs; /* lines that the list of GPUs and some processes take */
};

struct page_view {
	unsigned width;                 /* columns */
	unsigned height;                /* lines at most, 0: as many as it takes */
	uint64_t now_ms;                /* CLOCK_REALTIME: how old a window is */
	struct process_choice choice;   /* which processes */
	const struct live_state *state; /* of a screen: keys and selection are shown; NULL: text only */
	const char *message;            /* one line for a person, NULL: none */
};

/*
 * Makes the page. `list`: the processes of the status that the view chooses, sorted. With a height the last
 * line is the one with the keys, and less is said of GPUs where there are many. Returns 0 or -ENOMEM;
 * page_free also after an error.
 */
int page_make(struct page *page, const json_t *status, const struct live_processes *list,
              const struct page_view *view);

/* Makes a page without a height and writes its text. Returns 0, -ENOMEM, or -EIO with `error`. */
int page_write(FILE *out, const json_t *status, const struct page_view *view, struct error *error);

void page_free(struct page *page);

/* For the parts of a page. */
void page_style(struct page *page, enum page_style style);

/* page_gpus.c: `detail` causes of each GPU; without any the chain is left out too. */
void page_gpus(struct page *page, const json_t *status, const struct page_view *view, unsigned detail);
/* The causes that a process is to blame for, and its gap; page_gpus.c */
void page_blame(struct page *page, const json_t *status, const struct live_process *process,
                const struct page_view *view);

#endif
