// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/config_file.h"
#include "daemon/daemon.h"

#define LEAST_INTERVAL_NS 1000000000ULL

enum log_form {
	LOG_TEXT,
	LOG_JSON,
};

static const char *const log_words[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};

struct daemon_values {
	struct daemon_config config;
	const char *file;
	int log;
};

#define FIELD(name)   offsetof(struct daemon_values, config.name)
#define TRIGGER(name) offsetof(struct daemon_values, config.trigger.name)

static const struct option_spec options[] = {
    {.name = "config",
     .argument = "FILE",
     .help = "read options from a file, one a line as NAME = VALUE; those given here come first",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct daemon_values, file)},
    {.name = "budget",
     .argument = "SHARE",
     .help = "what the daemon may cost: a share of one CPU, and of the time of threads that launch (default "
             "0.5%)",
     .kind = OPTION_SHARE,
     .offset = FIELD(budget_ppm),
     .min = 1},
    {.name = "interval",
     .argument = "TIME",
     .help = "from one window of full capture to the next, where the budget allows; 0: none but by request "
             "(default 10s)",
     .kind = OPTION_TIME,
     .offset = FIELD(interval_ns)},
    {.name = "window",
     .argument = "TIME",
     .help = "length of a window (default 1s)",
     .kind = OPTION_TIME,
     .offset = FIELD(window_ns),
     .min = 200000000,
     .max = 60000000000},
    {.name = "listen",
     .argument = "ADDRESS:PORT",
     .help = "where /metrics is served, none: nowhere (default 127.0.0.1:9837)",
     .kind = OPTION_TEXT,
     .offset = FIELD(listen)},
    {.name = "control",
     .argument = "PATH",
     .help = "control socket for top and dump, none: no socket (default /run/whyidle/control)",
     .kind = OPTION_TEXT,
     .offset = FIELD(control)},
    {.name = "control-group",
     .argument = "GROUP",
     .help = "its members may use top and dump (default: root and the daemon's own user only)",
     .kind = OPTION_TEXT,
     .offset = FIELD(group),
     .advanced = true},
    {.name = "history",
     .argument = "FOLDER",
     .help = "where windows and kept recordings are (default /var/lib/whyidle)",
     .kind = OPTION_TEXT,
     .offset = FIELD(history)},
    {.name = "history-size",
     .argument = "BYTES",
     .help = "room for windows at most, the oldest go first (default 256M)",
     .kind = OPTION_BYTES,
     .offset = FIELD(history_bytes),
     .min = 1 << 20,
     .advanced = true},
    {.name = "history-age",
     .argument = "TIME",
     .help = "how long windows are there (default 1h)",
     .kind = OPTION_TIME,
     .offset = FIELD(history_age_ns),
     .advanced = true},
    {.name = "kept-size",
     .argument = "BYTES",
     .help = "room for recordings that triggers have kept (default 1G)",
     .kind = OPTION_BYTES,
     .offset = FIELD(kept_bytes),
     .min = 1 << 20,
     .advanced = true},
    {.name = "kept-age",
     .argument = "TIME",
     .help = "how long they are there (default 7d)",
     .kind = OPTION_TIME,
     .offset = FIELD(kept_age_ns),
     .advanced = true},
    {.name = "trigger-idle",
     .argument = "SHARE",
     .help = "keep a window when a GPU is idle for more than this, 0%: never (default 50%)",
     .kind = OPTION_SHARE,
     .offset = TRIGGER(idle_ppm),
     .advanced = true},
    {.name = "trigger-idle-time",
     .argument = "TIME",
     .help = "and has been for so long (default 30s)",
     .kind = OPTION_TIME,
     .offset = TRIGGER(idle_time_ns),
     .advanced = true},
    {.name = "trigger-gap",
     .argument = "TIME",
     .help = "keep a window with a gap longer than this, 0: never (default 500ms)",
     .kind = OPTION_TIME,
     .offset = TRIGGER(gap_ns),
     .advanced = true},
    {.name = "trigger-step",
     .argument = "PERCENT",
     .help = "keep a window with a step that takes so much of their median, 0: never (default 300)",
     .kind = OPTION_NUMBER,
     .offset = TRIGGER(step_percent),
     .advanced = true},
    {.name = "trigger-rate",
     .argument = "SHARE",
     .help =
         "keep a window in which a process launches less than this of what it did, 0%: never (default 50%)",
     .kind = OPTION_SHARE,
     .offset = TRIGGER(rate_ppm),
     .advanced = true},
    {.name = "trigger-pause",
     .argument = "TIME",
     .help = "at least so long from one kept window to the next (default 5m)",
     .kind = OPTION_TIME,
     .offset = TRIGGER(pause_ns),
     .advanced = true},
    {.name = "log",
     .argument = "FORM",
     .help = "text (for the journal) or json (one object a line), on standard error",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct daemon_values, log),
     .choices = log_words,
     .advanced = true},
};

static const struct command_spec spec = {
    .name = "daemon",
    .usage = "[options]",
    .summary = "Watches all GPU processes for good, within a budget: metrics, history, live view.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .notes =
        "SIGHUP reads the configuration file again, SIGTERM ends the daemon. docs/production.md tells what\n"
        "it needs and what it costs.\n",
};

/* The arguments, and the configuration that is in force. */
struct loader {
	int argc;
	char **argv;
	struct config_file file;
	int log;
};

/* getopt moves operands: it gets a copy. */
static int parse_arguments(const struct loader *loader, struct daemon_values *values,
                           enum options_result *parsed, struct error *error)
{
	char **copy = calloc((size_t)loader->argc + 1, sizeof(*copy));
	int first = 0;

	if (!copy)
		return error_no_memory(error);
	memcpy(copy, loader->argv, (size_t)loader->argc * sizeof(*copy));
	*parsed = options_parse(&spec, loader->argc, copy, values, &first, error);
	if (*parsed == OPTIONS_OK && first != loader->argc) {
		error_set(error, -EINVAL, "daemon: what is '%s'? (see whyidle daemon --help)", copy[first]);
		*parsed = OPTIONS_BAD;
	}
	free(copy);
	return *parsed == OPTIONS_OK ? 0 : -EINVAL;
}

static int load(void *context, struct daemon_config *config, struct error *error)
{
	struct loader *loader = context;
	struct daemon_values values = {0};
	struct config_file file = {0};
	enum options_result parsed = OPTIONS_BAD;
	int err;

	daemon_config_init(&values.config);
	err = parse_arguments(loader, &values, &parsed, error);
	if (!err && values.file) {
		err = config_file_read(&file, values.file, &spec, &values, error);
		err = err ?: parse_arguments(loader, &values, &parsed, error);
	}
	if (!err && values.config.interval_ns && values.config.interval_ns < LEAST_INTERVAL_NS)
		err = error_set(error, -EINVAL, "--interval: at least 1s, or 0 for no windows");
	if (err) {
		config_file_free(&file);
		return err;
	}
	config_file_free(&loader->file);
	loader->file = file;
	loader->log = values.log;
	*config = values.config;
	return 0;
}

static void log_json(enum daemon_log_level level, const char *event, const char *text, json_t *facts)
{
	static const char *const levels[] = {"error", "warning", "info"};
	struct timespec now;
	char stamp[40];
	struct tm parts;
	json_t *line;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(stamp + strlen(stamp), sizeof(stamp) - strlen(stamp), ".%03ldZ", now.tv_nsec / 1000000);
	line = json_pack("{ss ss ss ss%}", "time", stamp, "level", levels[level], "event", event, "text",
	                 text, strlen(text));
	if (line && facts)
		json_object_update_missing(line, facts);
	if (line)
		json_dumpf(line, stderr, JSON_COMPACT);
	fputc('\n', stderr);
	json_decref(line);
}

/* The priorities are what the journal makes of the beginning of a line (sd-daemon(3)). */
static void log_text(enum daemon_log_level level, const char *text)
{
	static const char *const priorities[] = {"<3>", "<4>", "<6>"};

	fprintf(stderr, "%swhyidle: %s\n", getenv("JOURNAL_STREAM") ? priorities[level] : "", text);
}

static void log_line(void *context, enum daemon_log_level level, const char *event, const char *text,
                     json_t *facts)
{
	const struct loader *loader = context;

	if (loader->log == LOG_JSON)
		log_json(level, event, text, facts);
	else
		log_text(level, text);
	json_decref(facts);
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct loader loader = {.argc = argc, .argv = argv};
	struct daemon_options wanted = {.load = load, .log = log_line, .context = &loader};
	struct daemon_values values = {0};
	enum options_result parsed = OPTIONS_BAD;
	struct error error = {0};
	int err = parse_arguments(&loader, &values, &parsed, &error);

	if (err)
		return command_leave(&spec, parsed, &error);
	err = services->daemon(&wanted, &error);
	config_file_free(&loader.file);
	if (!err)
		return STATUS_DONE;
	command_error(&error);
	return STATUS_FAILED;
}

const struct command command_daemon = {&spec, run};
