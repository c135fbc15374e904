// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "live/live.h"
#include "live/page.h"
#include "live/screen.h"

#define PATIENCE    10000 /* ms for an answer, where nobody waits for keys */
#define WIDTH       80
#define LEAST_WIDTH 60
#define MOST_WIDTH  200

struct top_values {
	bool once, batch, reverse;
	uint64_t interval_ns, pid;
	int sort;
	const char *control, *filter;
};

#define FIELD(name) offsetof(struct top_values, name)

static const struct option_spec options[] = {
    {.name = "once", .help = "show the state once and end", .kind = OPTION_FLAG, .offset = FIELD(once)},
    {.name = "batch",
     .help = "one state below the other, as plain text: for files, pipes and terminals without a screen",
     .kind = OPTION_FLAG,
     .offset = FIELD(batch)},
    {.name = "interval",
     .argument = "TIME",
     .help = "from one state to the next (default 2s)",
     .kind = OPTION_TIME,
     .offset = FIELD(interval_ns),
     .min = 200000000,
     .max = 3600000000000},
    {.name = "sort",
     .argument = "COLUMN",
     .help = "order of the processes (default idle)",
     .kind = OPTION_CHOICE,
     .offset = FIELD(sort),
     .choices = process_sort_names},
    {.name = "reverse", .help = "the other way round", .kind = OPTION_FLAG, .offset = FIELD(reverse)},
    {.name = "filter",
     .argument = "TEXT",
     .help = "list only processes with this in their name, container, pod or pid",
     .kind = OPTION_TEXT,
     .offset = FIELD(filter)},
    {.name = "pid",
     .argument = "PID",
     .help = "list only this process",
     .kind = OPTION_NUMBER,
     .offset = FIELD(pid),
     .max = 4194304},
    {.name = "control",
     .argument = "PATH",
     .help = "control socket of the daemon (default /run/whyidle/control)",
     .kind = OPTION_TEXT,
     .offset = FIELD(control)},
};

static const struct command_spec spec = {
    .name = "top",
    .usage = "[options]",
    .summary = "Shows what a running daemon sees: idle GPU time by cause, and the processes.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
};

static unsigned width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return WIDTH;
	return size.ws_col < LEAST_WIDTH ? LEAST_WIDTH : size.ws_col > MOST_WIDTH ? MOST_WIDTH : size.ws_col;
}

static struct process_choice choice_of(const struct top_values *values)
{
	return (struct process_choice){
	    .sort = (enum process_sort)values->sort,
	    .reverse = values->reverse,
	    .filter = values->filter,
	    .pid = (uint32_t)values->pid,
	};
}

/* Takes the reference to the status. */
static int print(const struct top_values *values, json_t *status, struct error *error)
{
	struct page_view view = {
	    .width = width(),
	    .now_ms = clock_ns(CLOCK_REALTIME) / 1000000,
	    .choice = choice_of(values),
	};
	int err = page_write(stdout, status, &view, error);

	json_decref(status);
	if (!err && fflush(stdout))
		err = error_set(error, -errno, "cannot write: %s", strerror(errno));
	return err;
}

/* Takes the reference to the first status. */
static int print_all(const struct top_values *values, json_t *status, struct error *error)
{
	int err = print(values, status, error);

	while (!err && !values->once) {
		poll(NULL, 0, (int)(values->interval_ns / 1000000));
		status = live_ask(values->control, PATIENCE, error);
		if (!status)
			return error->code;
		fputc('\n', stdout);
		err = print(values, status, error);
	}
	return err;
}

/* Takes the reference to the first status. *signal: what ended it, 0: nothing did. */
static int show(const struct top_values *values, json_t *status, struct screen *screen, int *signal,
                struct error *error)
{
	struct live_options options = {
	    .control = values->control,
	    .interval_ns = values->interval_ns,
	    .choice = choice_of(values),
	};
	int err = live_run(screen, &options, status, signal, error);

	screen_close(screen);
	return err;
}

static int run_top(const struct top_values *values, int *signal, struct error *error)
{
	bool plain = values->once || values->batch || !isatty(STDOUT_FILENO);
	json_t *status = live_ask(values->control, PATIENCE, error);
	struct screen *screen = NULL;
	struct error why;

	if (!status)
		return error->code;
	if (!plain && screen_open(&screen, &why))
		command_error(&why); /* what is missing; then as plain text */
	return screen ? show(values, status, screen, signal, error) : print_all(values, status, error);
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct top_values values = {.interval_ns = 2000000000, .control = "/run/whyidle/control"};
	enum options_result parsed;
	struct error error = {0};
	int first, err, ended_by = 0;

	(void)services;
	parsed = options_parse(&spec, argc, argv, &values, &first, &error);
	if (parsed == OPTIONS_OK && first != argc) {
		error_set(&error, -EINVAL, "top: what is '%s'? (see whyidle top --help)", argv[first]);
		parsed = OPTIONS_BAD;
	}
	if (parsed != OPTIONS_OK)
		return command_leave(&spec, parsed, &error);
	err = run_top(&values, &ended_by, &error);
	if (ended_by) { /* the terminal is as it was; the library of the screen has a handler of its own */
		signal(ended_by, SIG_DFL);
		raise(ended_by);
	}
	if (!err)
		return STATUS_DONE;
	command_error(&error);
	return STATUS_FAILED;
}

const struct command command_top = {&spec, run};
