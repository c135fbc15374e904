// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/families.h"
#include "daemon/notify.h"
#include "daemon/state.h"

#define TICK_NS        SECOND_NS
#define SELDOM_TICK_NS (10 * SECOND_NS) /* where even the counters cost too much */
#define HTTP_PART      5                /* the port may cost this part of the budget … */
#define HTTP_LEAST     0.0002 /* … and this share of a CPU: whoever looks now and then is answered */

void daemon_log(const struct daemon *daemon, enum daemon_log_level level, const char *event, json_t *facts,
                const char *format, ...)
{
	struct error line;
	char text[ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	error_set(&line, 0, "%s", text); /* takes control characters out */
	daemon->options->log(daemon->options->context, level, event, line.text, facts);
}

/* ---- opening ---- */

static int block_signals(struct daemon *daemon, struct error *error)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, &daemon->old_mask))
		return error_set(error, -errno, "cannot block signals: %s", strerror(errno));
	daemon->mask_set = true;
	daemon->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (daemon->signals < 0)
		return error_set(error, -errno, "cannot watch signals: %s", strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

static bool wanted(const char *text)
{
	return text && strcmp(text, "none");
}

static int open_control(struct daemon *daemon, struct error *error)
{
	struct control_options options = {
	    .path = daemon->config.control,
	    .group = daemon->config.group,
	    .request = answer_control,
	    .context = daemon,
	};

	return wanted(options.path) ? control_open(&daemon->control, &options, error) : 0;
}

static int open_http(struct daemon *daemon, struct error *error)
{
	struct http_server_options options = {
	    .listen = daemon->config.listen,
	    .answer = answer_http,
	    .context = daemon,
	};
	int err = wanted(options.listen) ? http_server_open(&daemon->http, &options, error) : 0;

	if (!err && daemon->http)
		daemon_log(daemon, DAEMON_INFO, "listening",
		           json_pack("{si}", "port", http_server_port(daemon->http)),
		           "metrics on %s, port %u", options.listen, http_server_port(daemon->http));
	return err;
}

static int open_all(struct daemon *daemon, struct error *error)
{
	int err;

	daemon->metrics = metrics_new(families, FAMILY_COUNT);
	if (!daemon->metrics)
		return error_no_memory(error);
	err = daemon->options->load(daemon->options->context, &daemon->config, error);
	err = err ?: block_signals(daemon, error);
	/* First the socket: it says if another daemon has the history. */
	err = err ?: open_control(daemon, error);
	err = err ?: history_open(&daemon->history, daemon->config.history, error);
	err = err ?: open_http(daemon, error);
	err = err ?: watch_open(daemon, error);
	return err;
}

static void close_all(struct daemon *daemon)
{
	windows_stop(daemon);
	watch_close(daemon);
	http_server_close(daemon->http);
	control_close(daemon->control);
	history_close(&daemon->history);
	window_result_free(&daemon->last.result);
	answers_renew(daemon);
	metrics_free(daemon->metrics);
	if (daemon->signals >= 0)
		close(daemon->signals);
	if (daemon->mask_set)
		sigprocmask(SIG_SETMASK, &daemon->old_mask, NULL);
}

/* ---- running ---- */

static double http_share(const struct daemon *daemon)
{
	double share = (double)daemon->config.budget_ppm / BUDGET_PPM / HTTP_PART;

	return share > HTTP_LEAST ? share : HTTP_LEAST;
}

/* Whoever asks more often than the port may cost waits: an answer must not cost the windows. */
static void run_http(struct daemon *daemon)
{
	uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	http_server_run(daemon->http);
	allowance_spend(&daemon->http_share, clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
}

/*
 * A new configuration takes effect where nothing is lost by it: what was counted and recorded stays. Port,
 * socket and folder are those of the start.
 */
static void reload(struct daemon *daemon)
{
	struct daemon_config config;
	struct error error;
	bool moved;

	if (daemon->options->load(daemon->options->context, &config, &error)) {
		daemon_log(daemon, DAEMON_ERROR, "reload_failed", NULL,
		           "the configuration stays as it was: %s", error.text);
		return;
	}
	moved = strcmp(config.listen, daemon->config.listen) ||
	        strcmp(config.control, daemon->config.control) ||
	        strcmp(config.history, daemon->config.history);
	daemon->config = config;
	allowance_configure(&daemon->http_share, http_share(daemon));
	budget_configure(&daemon->budget, config.budget_ppm, config.interval_ns, config.window_ns);
	answers_renew(daemon);
	daemon_log(daemon, DAEMON_INFO, "reloaded", NULL, "the configuration was loaded again%s",
	           moved ? "; another port, socket or folder takes a restart" : "");
}

static void handle_signals(struct daemon *daemon)
{
	struct signalfd_siginfo info;

	while (read(daemon->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(daemon);
		else
			daemon->stop = true;
	}
}

static void tick(struct daemon *daemon, uint64_t now_ns)
{
	if (now_ns < daemon->next_tick_ns)
		return;
	daemon->next_tick_ns = now_ns + (daemon->budget.level == BUDGET_T0_SELDOM ? SELDOM_TICK_NS : TICK_NS);
	watch_tick(daemon, now_ns);
	answers_renew(daemon);
	if (daemon->control)
		control_expire(daemon->control, now_ns);
}

/* `http_wait_ns`: how long the port is left alone, 0: not at all. */
static int time_left_ms(const struct daemon *daemon, uint64_t now_ns, uint64_t http_wait_ns)
{
	int left = daemon->next_tick_ns > now_ns ? (int)((daemon->next_tick_ns - now_ns) / 1000000) + 1 : 0;
	int http = -1;

	if (http_wait_ns)
		http = http_wait_ns < SECOND_NS ? (int)(http_wait_ns / 1000000) + 1 : -1;
	else if (daemon->http)
		http = http_server_timeout(daemon->http);
	return http >= 0 && http < left ? http : left;
}

static void loop(struct daemon *daemon)
{
	enum { SIGNALS, HTTP, CONTROL, WINDOW, FDS };
	struct pollfd fds[FDS];

	while (!daemon->stop) {
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
		uint64_t http_wait_ns = allowance_wait_ns(&daemon->http_share, now_ns);

		for (int i = 0; i < FDS; i++)
			fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
		fds[SIGNALS].fd = daemon->signals;
		if (daemon->http && !http_wait_ns)
			fds[HTTP].fd = http_server_fd(daemon->http);
		if (daemon->control)
			fds[CONTROL].fd = control_fd(daemon->control);
		if (daemon->window.pid)
			fds[WINDOW].fd = daemon->window.pidfd;
		poll(fds, FDS, time_left_ms(daemon, now_ns, http_wait_ns));
		now_ns = clock_ns(CLOCK_MONOTONIC);
		handle_signals(daemon);
		if (daemon->http && !http_wait_ns)
			run_http(daemon);
		if (fds[CONTROL].revents)
			control_run(daemon->control, now_ns);
		if (fds[WINDOW].revents)
			windows_ended(daemon, now_ns);
		tick(daemon, now_ns);
		windows_poll(daemon, now_ns);
	}
}

int daemon_run(const struct daemon_options *options, struct error *error)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));
	int err;

	if (!daemon)
		return error_no_memory(error);
	daemon->options = options;
	daemon->signals = daemon->stats = -1;
	daemon->history.fds[0] = daemon->history.fds[1] = -1;
	daemon->start_ns = clock_ns(CLOCK_MONOTONIC);
	err = open_all(daemon, error);
	if (!err) {
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

		daemon->own_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		*metrics_at(daemon->metrics, FAMILY_COST, now_ns, "start") = daemon->own_cpu_ns / 1e9;
		allowance_init(&daemon->http_share, http_share(daemon), now_ns);
		budget_init(&daemon->budget, daemon->config.budget_ppm, daemon->config.interval_ns,
		            daemon->config.window_ns, now_ns);
		daemon->next_tick_ns = now_ns;
		daemon_log(daemon, DAEMON_INFO, "started",
		           json_pack("{ss sf}", "version", WHYIDLE_VERSION, "budget_ratio",
		                     daemon->config.budget_ppm / 1e6),
		           "watching; budget %.3g %% of a CPU and of the launch path",
		           daemon->config.budget_ppm / 1e4);
		notify_manager("READY=1");
		loop(daemon);
		notify_manager("STOPPING=1");
		daemon_log(daemon, DAEMON_INFO, "stopped", NULL, "stopped");
	}
	close_all(daemon);
	free(daemon);
	return err;
}
