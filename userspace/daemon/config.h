/* SPDX-License-Identifier: GPL-2.0-only */
/* What the daemon is told to do: the values of its options and of its configuration file. */
#ifndef WHYIDLE_DAEMON_CONFIG_H
#define WHYIDLE_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

/* What makes the daemon keep a recording by itself; 0 switches a trigger off. */
struct trigger_config {
	uint64_t idle_ppm;     /* a GPU is idle for more than this share of its time … */
	uint64_t idle_time_ns; /* … for so long */
	uint64_t gap_ns;       /* a single gap longer than this */
	uint64_t step_percent; /* a step that takes so much of the median: 300 for three times as long */
	uint64_t rate_ppm;     /* a process launches less than this share of what it usually does */
	uint64_t pause_ns;     /* at least this long from one kept recording to the next */
};

struct daemon_config {
	uint64_t budget_ppm;                    /* of one CPU and of the launch path */
	uint64_t interval_ns;                   /* from one window to the next, if the budget allows */
	uint64_t window_ns;                     /* length of a window */
	const char *listen;                     /* of the metrics, "none": no port */
	const char *control;                    /* path of the control socket, "none": no socket */
	const char *group;                      /* who may dump and stop besides root, NULL: nobody */
	const char *history;                    /* folder of the windows and of what is kept */
	uint64_t history_bytes, history_age_ns; /* of windows: the older ones go */
	uint64_t kept_bytes, kept_age_ns;       /* of recordings that were kept */
	struct trigger_config trigger;
};

/* The defaults, as the help of the options has them. */
void daemon_config_init(struct daemon_config *config);

#endif
