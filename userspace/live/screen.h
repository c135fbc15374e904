/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A page on the whole of a terminal, through ncurses, which is loaded when it is wanted. Signals of the
 * terminal's size are the caller's: it asks screen_resize.
 */
#ifndef WHYIDLE_LIVE_SCREEN_H
#define WHYIDLE_LIVE_SCREEN_H

#include "base/error.h"
#include "live/page.h"

struct screen;

/*
 * Takes the terminal that standard input and output are. -ENOTSUP with `error`: it is none, it cannot place
 * its cursor, or the library is missing; nothing was written then. *screen is released by screen_close.
 */
int screen_open(struct screen **screen, struct error *error);

/* Columns and lines. */
void screen_size(const struct screen *screen, unsigned *width, unsigned *height);

/* The terminal may have another size now. */
void screen_resize(struct screen *screen);

/* `repaint`: all of it, whatever is thought to be there. */
void screen_draw(struct screen *screen, const struct page *page, bool repaint);

/* The next key (live/keys.h) that was pressed, -1: none. Does not wait. */
int screen_key(struct screen *screen);

/* Gives the terminal back as it was. NULL is allowed. */
void screen_close(struct screen *screen);

#endif
