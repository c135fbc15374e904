/* SPDX-License-Identifier: GPL-2.0-only */
/* What keys do to what is shown. No terminal in here. */
#ifndef WHYIDLE_LIVE_KEYS_H
#define WHYIDLE_LIVE_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "live/processes.h"

#define LIVE_FILTER 32 /* bytes of a filter, its NUL included */

/* Keys that are no characters; smaller ones are bytes. */
enum live_key {
	LIVE_KEY_UP = 0x100,
	LIVE_KEY_DOWN,
	LIVE_KEY_PAGE_UP,
	LIVE_KEY_PAGE_DOWN,
	LIVE_KEY_HOME,
	LIVE_KEY_END,
	LIVE_KEY_ENTER,
	LIVE_KEY_LEFT,
	LIVE_KEY_BACKSPACE,
	LIVE_KEY_OTHER /* does nothing */
};

enum live_place {
	LIVE_ALL,     /* GPUs and processes */
	LIVE_PROCESS, /* one process */
	LIVE_HELP,
};

struct live_state {
	enum live_place place;
	enum process_sort sort;
	bool reverse;
	bool paused;  /* what is shown stays as it is */
	bool editing; /* keys go to the filter */
	bool repaint; /* all of the screen, whatever is thought to be on it; who draws resets it */
	bool quit;
	char filter[LIVE_FILTER];
	uint32_t selected; /* pid; 0: the first of the list */
	uint32_t pid;      /* of LIVE_PROCESS */
	char name[FORMAT_TEXT_SIZE(PROCESS_NAME)];
	unsigned rows; /* of processes that the screen has: a page */
};

/* A key was pressed while `list` was shown (sorted and filtered as the state says). */
void live_key(struct live_state *state, int key, const struct live_processes *list);

/* The selected process of the list; SIZE_MAX if it is empty. */
size_t live_selected(const struct live_state *state, const struct live_processes *list);

#endif
