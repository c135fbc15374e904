// SPDX-License-Identifier: GPL-2.0-only
#include "live/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NCURSES_NOMACROS /* functions only: they are looked up by name */
#define NCURSES_WIDECHAR 1
#include <curses.h>

#include "base/library.h"

#define CURSES_LIBRARY   "libncursesw.so.6"
#define ESCAPE_MS        50 /* what comes later after an Escape is no part of a key */
#define USUAL_WIDTH      80
#define USUAL_HEIGHT     24
#define NO_SCREEN        "plain text only"
#define COLOUR_OF(style) ((short)((style) + 1)) /* pair 0 is the terminal's own */

struct curses {
	void *handle;
	/* As in term.h, which makes macros of common words. */
	int (*setupterm)(const char *terminal, int file, int *status);
	char *(*tigetstr)(const char *name);
	__typeof__(&newterm) newterm;
	__typeof__(&delscreen) delscreen;
	__typeof__(&newwin) newwin;
	__typeof__(&delwin) delwin;
	__typeof__(&endwin) endwin;
	__typeof__(&cbreak) cbreak;
	__typeof__(&noecho) noecho;
	__typeof__(&nonl) nonl;
	__typeof__(&curs_set) curs_set;
	__typeof__(&keypad) keypad;
	__typeof__(&wtimeout) wtimeout;
	__typeof__(&wgetch) wgetch;
	__typeof__(&set_escdelay) set_escdelay;
	__typeof__(&has_colors) has_colors;
	__typeof__(&start_color) start_color;
	__typeof__(&use_default_colors) use_default_colors;
	__typeof__(&init_pair) init_pair;
	__typeof__(&wattr_set) wattr_set;
	__typeof__(&wmove) wmove;
	__typeof__(&wclrtoeol) wclrtoeol;
	__typeof__(&waddnstr) waddnstr;
	__typeof__(&wrefresh) wrefresh;
	__typeof__(&clearok) clearok;
	__typeof__(&resizeterm) resizeterm;
	__typeof__(&wresize) wresize;
};

struct screen {
	struct curses curses;
	SCREEN *terminal;
	WINDOW *window;
	unsigned width, height;
	bool coloured, wide; /* wide: it shows UTF-8 */
};

static int load_curses(struct curses *curses, struct error *error)
{
	const struct library_symbol symbols[] = {
	    {"setupterm", &curses->setupterm},
	    {"tigetstr", &curses->tigetstr},
	    {"newterm", &curses->newterm},
	    {"delscreen", &curses->delscreen},
	    {"newwin", &curses->newwin},
	    {"delwin", &curses->delwin},
	    {"endwin", &curses->endwin},
	    {"cbreak", &curses->cbreak},
	    {"noecho", &curses->noecho},
	    {"nonl", &curses->nonl},
	    {"curs_set", &curses->curs_set},
	    {"keypad", &curses->keypad},
	    {"wtimeout", &curses->wtimeout},
	    {"wgetch", &curses->wgetch},
	    {"set_escdelay", &curses->set_escdelay},
	    {"has_colors", &curses->has_colors},
	    {"start_color", &curses->start_color},
	    {"use_default_colors", &curses->use_default_colors},
	    {"init_pair", &curses->init_pair},
	    {"wattr_set", &curses->wattr_set},
	    {"wmove", &curses->wmove},
	    {"wclrtoeol", &curses->wclrtoeol},
	    {"waddnstr", &curses->waddnstr},
	    {"wrefresh", &curses->wrefresh},
	    {"clearok", &curses->clearok},
	    {"resizeterm", &curses->resizeterm},
	    {"wresize", &curses->wresize},
	};

	return library_open(&curses->handle, CURSES_LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]),
	                    NO_SCREEN, "libncursesw6", error);
}

static int check_terminal(const struct curses *curses, struct error *error)
{
	const char *name = getenv("TERM"), *place;
	int status;

	if (!name || curses->setupterm(NULL, STDOUT_FILENO, &status) != OK)
		return error_set(error, -ENOTSUP, NO_SCREEN ": the terminal '%s' is not known",
		                 name ? name : "");
	place = curses->tigetstr("cup");
	if (!place || place == (char *)-1)
		return error_set(error, -ENOTSUP, NO_SCREEN ": the terminal '%s' cannot place its cursor",
		                 name);
	return 0;
}

/* The size that the kernel knows, or a usual one. */
static void ask_size(struct screen *screen)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row) {
		size.ws_col = USUAL_WIDTH;
		size.ws_row = USUAL_HEIGHT;
	}
	screen->width = size.ws_col;
	screen->height = size.ws_row;
}

/* https://no-color.org: a variable that is not empty. */
static void set_colours(struct screen *screen)
{
	static const short colours[STYLES] = {
	    [STYLE_PLAIN] = -1,
	    [STYLE_HEAD] = -1,
	    [STYLE_BUSY] = COLOR_GREEN,
	    [STYLE_REST] = -1,
	    [STYLE_SELECTED] = -1,
	    [STYLE_WARNING] = COLOR_RED,
	    [STYLE_CAUSE] = COLOR_RED,
	    [STYLE_CAUSE + 1] = COLOR_YELLOW,
	    [STYLE_CAUSE + 2] = COLOR_MAGENTA,
	    [STYLE_CAUSE + 3] = COLOR_CYAN,
	    [STYLE_CAUSE + 4] = COLOR_BLUE,
	    [STYLE_CAUSE + 5] = -1,
	};
	const struct curses *curses = &screen->curses;
	const char *without = getenv("NO_COLOR");

	if ((without && *without) || !curses->has_colors() || curses->start_color() != OK ||
	    curses->use_default_colors() != OK)
		return;
	screen->coloured = true;
	for (int style = 0; style < STYLES; style++)
		curses->init_pair(COLOUR_OF(style), colours[style], -1);
}

static int take_terminal(struct screen *screen, struct error *error)
{
	const struct curses *curses = &screen->curses;
	int err = check_terminal(curses, error);

	if (err)
		return err;
	setlocale(LC_CTYPE, "");
	screen->wide = !strcmp(nl_langinfo(CODESET), "UTF-8");
	screen->terminal = curses->newterm(NULL, stdout, stdin);
	if (!screen->terminal)
		return error_set(error, -ENOTSUP, NO_SCREEN ": the terminal cannot be used");
	curses->set_escdelay(ESCAPE_MS);
	curses->cbreak();
	curses->noecho();
	curses->nonl();
	curses->curs_set(0);
	set_colours(screen);
	ask_size(screen);
	curses->resizeterm((int)screen->height, (int)screen->width);
	screen->window = curses->newwin(0, 0, 0, 0);
	if (!screen->window)
		return error_no_memory(error);
	curses->keypad(screen->window, true);
	curses->wtimeout(screen->window, 0);
	return 0;
}

int screen_open(struct screen **result, struct error *error)
{
	struct screen *screen;
	int err;

	*result = NULL;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error_set(error, -ENOTSUP, NO_SCREEN ": this is no terminal");
	screen = calloc(1, sizeof(*screen));
	if (!screen)
		return error_no_memory(error);
	err = load_curses(&screen->curses, error);
	err = err ?: take_terminal(screen, error);
	if (err) {
		screen_close(screen);
		return err;
	}
	*result = screen;
	return 0;
}

void screen_size(const struct screen *screen, unsigned *width, unsigned *height)
{
	*width = screen->width;
	*height = screen->height;
}

void screen_resize(struct screen *screen)
{
	ask_size(screen);
	screen->curses.resizeterm((int)screen->height, (int)screen->width);
	screen->curses.wresize(screen->window, (int)screen->height, (int)screen->width);
	screen->curses.clearok(screen->window, true);
}

static void set_style(const struct screen *screen, enum page_style style)
{
	attr_t attributes = A_NORMAL;

	if (style == STYLE_SELECTED)
		attributes = A_REVERSE;
	else if (style == STYLE_HEAD || style == STYLE_WARNING)
		attributes = A_BOLD;
	screen->curses.wattr_set(screen->window, attributes, screen->coloured ? COLOUR_OF(style) : 0, NULL);
}

/* Where the terminal shows no UTF-8, one '?' stands for a character that is not ASCII. */
static void put(const struct screen *screen, const char *text, size_t length)
{
	if (screen->wide) {
		screen->curses.waddnstr(screen->window, text, (int)length);
		return;
	}
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte < 0x80)
			screen->curses.waddnstr(screen->window, text + i, 1);
		else if (byte >= 0xc0)
			screen->curses.waddnstr(screen->window, "?", 1);
	}
}

/* One line of the page from byte `at` on; returns where the next one begins. */
static size_t draw_line(struct screen *screen, const struct page *page, size_t at, size_t *mark)
{
	const char *newline = memchr(page->text + at, '\n', page->length - at);
	size_t end = newline ? (size_t)(newline - page->text) : page->length;

	while (at < end) {
		size_t to = end;

		for (; *mark < page->marks.count && page->marks.items[*mark].at <= at; (*mark)++)
			set_style(screen, page->marks.items[*mark].style);
		if (*mark < page->marks.count && page->marks.items[*mark].at < to)
			to = page->marks.items[*mark].at;
		put(screen, page->text + at, to - at);
		at = to;
	}
	return newline ? end + 1 : end;
}

/* What is longer than the screen is wide runs on in the next line, which is wiped before it is written. */
void screen_draw(struct screen *screen, const struct page *page, bool repaint)
{
	const struct curses *curses = &screen->curses;
	size_t at = 0, mark = 0;

	set_style(screen, STYLE_PLAIN);
	for (unsigned row = 0; row < screen->height; row++) {
		curses->wmove(screen->window, (int)row, 0);
		curses->wclrtoeol(screen->window);
		if (at < page->length)
			at = draw_line(screen, page, at, &mark);
	}
	if (repaint)
		curses->clearok(screen->window, true);
	curses->wrefresh(screen->window);
}

int screen_key(struct screen *screen)
{
	static const struct {
		int curses, key;
	} keys[] = {
	    {KEY_UP, LIVE_KEY_UP},         {KEY_DOWN, LIVE_KEY_DOWN},
	    {KEY_PPAGE, LIVE_KEY_PAGE_UP}, {KEY_NPAGE, LIVE_KEY_PAGE_DOWN},
	    {KEY_HOME, LIVE_KEY_HOME},     {KEY_END, LIVE_KEY_END},
	    {KEY_ENTER, LIVE_KEY_ENTER},   {KEY_LEFT, LIVE_KEY_LEFT},
	    {KEY_RIGHT, LIVE_KEY_ENTER},   {KEY_BACKSPACE, LIVE_KEY_BACKSPACE},
	};
	int got = screen->curses.wgetch(screen->window);

	if (got == ERR)
		return -1;
	if (got < KEY_MIN)
		return got;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (keys[i].curses == got)
			return keys[i].key;
	}
	return LIVE_KEY_OTHER;
}

void screen_close(struct screen *screen)
{
	if (!screen)
		return;
	if (screen->window)
		screen->curses.delwin(screen->window);
	if (screen->terminal) {
		screen->curses.endwin();
		screen->curses.delscreen(screen->terminal);
	}
	/* The library stays: it has hung handlers of signals into the process. */
	free(screen);
}
