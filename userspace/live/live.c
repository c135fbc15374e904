// SPDX-License-Identifier: GPL-2.0-only
#include "live/live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/control.h"
#include "live/keys.h"
#include "live/page.h"
#include "live/status.h"

struct live {
	struct screen *screen;
	const struct live_options *options;
	struct live_state state;
	json_t *status;
	uint64_t now_ms,
	    next_ns;         /* when the status was asked for (CLOCK_REALTIME); when the next one will be */
	struct error failed; /* why there was no newer one, code 0: there was */
	int signals, signal;
};

json_t *live_ask(const char *control, int timeout_ms, struct error *error)
{
	char *answer;
	size_t length;
	json_t *status;

	if (control_ask(control, "status", timeout_ms, &answer, &length, NULL, NULL, error))
		return NULL;
	status = status_parse(answer, length, error);
	free(answer);
	return status;
}

static void take_status(struct live *live, json_t *status)
{
	json_decref(live->status);
	live->status = status;
	live->now_ms = clock_ns(CLOCK_REALTIME) / 1000000;
}

static void ask_again(struct live *live)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	json_t *status;

	if (live->state.paused || now_ns < live->next_ns)
		return;
	live->failed = (struct error){0};
	status = live_ask(live->options->control, LIVE_PATIENCE_MS, &live->failed);
	if (status)
		take_status(live, status);
	live->next_ns = now_ns + live->options->interval_ns;
}

/* Which processes: all for the page of one, so that a filter does not hide it. */
static struct process_choice choice_now(const struct live *live)
{
	struct process_choice choice = live->options->choice;

	choice.sort = live->state.sort;
	choice.reverse = live->state.reverse;
	choice.filter = live->state.place == LIVE_ALL ? live->state.filter : NULL;
	return choice;
}

static int show(struct live *live, const struct live_processes *list)
{
	struct page_view view = {
	    .now_ms = live->now_ms,
	    .choice = choice_now(live),
	    .state = &live->state,
	    .message = live->failed.code ? live->failed.text : NULL,
	};
	struct page page;
	int err;

	screen_size(live->screen, &view.width, &view.height);
	err = page_make(&page, live->status, list, &view);
	if (!err) {
		screen_draw(live->screen, &page, live->state.repaint);
		live->state.repaint = false;
		live->state.rows = page.rows;
	}
	page_free(&page);
	return err;
}

static void take_signals(struct live *live)
{
	struct signalfd_siginfo info;

	while (read(live->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGWINCH)
			screen_resize(live->screen);
		else
			live->signal = (int)info.ssi_signo;
	}
}

static void take_keys(struct live *live, const struct live_processes *list, bool ended)
{
	int key = screen_key(live->screen);

	if (key < 0 && ended) /* the terminal has gone */
		live->state.quit = true;
	for (; key >= 0 && !live->state.quit; key = screen_key(live->screen))
		live_key(&live->state, key, list);
}

static void wait_for_news(struct live *live, const struct live_processes *list)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
	                       {.fd = live->signals, .events = POLLIN}};
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	int wait = -1;

	if (!live->state.paused)
		wait = live->next_ns > now_ns ? (int)((live->next_ns - now_ns) / 1000000) + 1 : 0;
	if (poll(fds, 2, wait) <= 0)
		return;
	take_signals(live);
	if (fds[0].revents)
		take_keys(live, list, fds[0].revents & (POLLHUP | POLLERR));
}

static int turn(struct live *live)
{
	struct process_choice choice = choice_now(live);
	struct live_processes list;
	int err = processes_list(&list, live->status, &choice);

	if (err)
		return err;
	err = show(live, &list);
	if (!err)
		wait_for_news(live, &list);
	array_free(&list);
	return err;
}

static int open_signals(struct live *live, sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	live->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (live->signals < 0 || sigprocmask(SIG_BLOCK, &set, before))
		return -errno;
	screen_resize(live->screen); /* it may have changed before */
	return 0;
}

int live_run(struct screen *screen, const struct live_options *options, json_t *status, int *signal,
             struct error *error)
{
	struct live live = {
	    .screen = screen,
	    .options = options,
	    .state = {.sort = options->choice.sort, .reverse = options->choice.reverse},
	    .next_ns = clock_ns(CLOCK_MONOTONIC) + options->interval_ns,
	};
	sigset_t before;
	int err;

	sigemptyset(&before);
	if (options->choice.filter)
		snprintf(live.state.filter, sizeof(live.state.filter), "%s", options->choice.filter);
	take_status(&live, status);
	err = open_signals(&live, &before);
	while (!err && !live.state.quit && !live.signal) {
		err = turn(&live);
		ask_again(&live);
	}
	*signal = live.signal;
	json_decref(live.status);
	if (live.signals >= 0) {
		close(live.signals);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	return err ? error_set(error, err, "top: %s", strerror(-err)) : 0;
}
