// SPDX-License-Identifier: GPL-2.0-only
#include "live/keys.h"

#include <string.h>

#define ESCAPE     0x1b
#define RUBOUT     0x7f
#define CONTROL(c) ((c)&0x1f)

size_t live_selected(const struct live_state *state, const struct live_processes *list)
{
	size_t at = processes_find(list, state->selected);

	if (at < list->count)
		return at;
	return list->count ? 0 : SIZE_MAX;
}

static void move(struct live_state *state, const struct live_processes *list, long by)
{
	size_t at = live_selected(state, list), last = list->count - 1;

	if (at == SIZE_MAX)
		return;
	if (by < 0)
		at = (size_t)-by > at ? 0 : at - (size_t)-by;
	else
		at = (size_t)by > last - at ? last : at + (size_t)by;
	state->selected = list->items[at].pid;
}

static void drill_down(struct live_state *state, const struct live_processes *list)
{
	size_t at = live_selected(state, list);

	if (at == SIZE_MAX)
		return;
	state->selected = state->pid = list->items[at].pid;
	memcpy(state->name, list->items[at].name, sizeof(state->name));
	state->place = LIVE_PROCESS;
}

/* Letters, digits and the like: what names are made of. */
static void edit(struct live_state *state, int key)
{
	size_t length = strlen(state->filter);

	switch (key) {
	case '\r':
	case '\n':
	case LIVE_KEY_ENTER:
		state->editing = false;
		break;
	case ESCAPE:
		state->editing = false;
		state->filter[0] = '\0';
		break;
	case RUBOUT:
	case '\b':
	case LIVE_KEY_BACKSPACE:
		if (length)
			state->filter[length - 1] = '\0';
		break;
	case CONTROL('u'):
		state->filter[0] = '\0';
		break;
	default:
		if (key >= ' ' && key < RUBOUT && length + 1 < sizeof(state->filter)) {
			state->filter[length] = (char)key;
			state->filter[length + 1] = '\0';
		}
	}
}

/* Keys that do the same wherever one is. Returns whether it was one. */
static bool take_common(struct live_state *state, int key)
{
	switch (key) {
	case 'q':
		state->quit = true;
		return true;
	case 'p':
	case ' ':
		state->paused = !state->paused;
		return true;
	case CONTROL('l'):
		state->repaint = true;
		return true;
	case '?':
	case 'h':
		state->place = LIVE_HELP;
		return true;
	default:
		return false;
	}
}

static void take_in_list(struct live_state *state, int key, const struct live_processes *list)
{
	long page = state->rows > 1 ? (long)state->rows : 1;

	switch (key) {
	case LIVE_KEY_UP:
	case 'k':
		move(state, list, -1);
		break;
	case LIVE_KEY_DOWN:
	case 'j':
		move(state, list, 1);
		break;
	case LIVE_KEY_PAGE_UP:
		move(state, list, -page);
		break;
	case LIVE_KEY_PAGE_DOWN:
		move(state, list, page);
		break;
	case LIVE_KEY_HOME:
	case 'g':
		move(state, list, -(long)list->count);
		break;
	case LIVE_KEY_END:
	case 'G':
		move(state, list, (long)list->count);
		break;
	case LIVE_KEY_ENTER:
	case '\r':
	case '\n':
		drill_down(state, list);
		break;
	case 's':
		state->sort = (state->sort + 1) % SORTS;
		break;
	case 'S':
		state->sort = (state->sort + SORTS - 1) % SORTS;
		break;
	case 'r':
		state->reverse = !state->reverse;
		break;
	case '/':
	case 'f':
		state->editing = true;
		break;
	case ESCAPE:
		state->filter[0] = '\0';
		break;
	default:
		break;
	}
}

void live_key(struct live_state *state, int key, const struct live_processes *list)
{
	if (state->editing) {
		edit(state, key);
		return;
	}
	if (state->place == LIVE_HELP) { /* any key leaves it; it is back where it was called */
		state->place = state->pid ? LIVE_PROCESS : LIVE_ALL;
		state->quit = key == 'q';
		return;
	}
	if (take_common(state, key))
		return;
	if (state->place == LIVE_ALL) {
		take_in_list(state, key, list);
	} else if (key == ESCAPE || key == LIVE_KEY_LEFT || key == LIVE_KEY_BACKSPACE || key == RUBOUT ||
	           key == '\b') {
		state->place = LIVE_ALL;
		state->pid = 0;
	}
}
