// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "daemon/control.h"
#include "live/top_text.h"

#define PATIENCE      10000 /* ms for an answer */
#define WIDTH         80
#define LEAST_WIDTH   60
#define MOST_WIDTH    200
#define HOME_AND_WIPE "\x1b[H\x1b[J"

struct top_values {
	bool once, batch;
	uint64_t interval_ns, pid;
	const char *control;
};

#define FIELD(name) offsetof(struct top_values, name)

static const struct option_spec options[] = {
    {.name = "once", .help = "show the state once and end", .kind = OPTION_FLAG, .offset = FIELD(once)},
    {.name = "batch",
     .help = "one state below the other, for files and pipes; without it a terminal is redrawn",
     .kind = OPTION_FLAG,
     .offset = FIELD(batch)},
    {.name = "interval",
     .argument = "TIME",
     .help = "from one state to the next (default 2s)",
     .kind = OPTION_TIME,
     .offset = FIELD(interval_ns),
     .min = 200000000,
     .max = 3600000000000},
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
    .summary = "Shows what a running daemon sees: idle GPU time by cause, and the processes. Ctrl-C ends it.",
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

static int show(const struct top_values *values, const char *before, struct error *error)
{
	struct top_view view = {
	    .width = width(),
	    .now_ms = clock_ns(CLOCK_REALTIME) / 1000000,
	    .pid = (uint32_t)values->pid,
	};
	json_error_t what;
	json_t *status;
	size_t length;
	char *answer;
	int err = control_ask(values->control, "status", PATIENCE, &answer, &length, NULL, NULL, error);

	if (err)
		return err;
	status = json_loadb(answer, length, JSON_ALLOW_NUL, &what);
	free(answer);
	fputs(before, stdout);
	err = top_text(stdout, status, &view, error);
	json_decref(status);
	if (!err && fflush(stdout))
		err = error_set(error, -errno, "cannot write: %s", strerror(errno));
	return err;
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct top_values values = {.interval_ns = 2000000000, .control = "/run/whyidle/control"};
	enum options_result parsed;
	struct error error = {0};
	const char *between;
	int first, err;

	(void)services;
	parsed = options_parse(&spec, argc, argv, &values, &first, &error);
	if (parsed == OPTIONS_OK && first != argc) {
		error_set(&error, -EINVAL, "top: what is '%s'? (see whyidle top --help)", argv[first]);
		parsed = OPTIONS_BAD;
	}
	if (parsed != OPTIONS_OK)
		return command_leave(&spec, parsed, &error);
	between = !values.batch && isatty(STDOUT_FILENO) ? HOME_AND_WIPE : "\n";
	err = show(&values, !values.once && *between != '\n' ? between : "", &error);
	while (!err && !values.once) {
		poll(NULL, 0, (int)(values.interval_ns / 1000000));
		err = show(&values, between, &error);
	}
	if (!err)
		return STATUS_DONE;
	command_error(&error);
	return STATUS_FAILED;
}

const struct command command_top = {&spec, run};
