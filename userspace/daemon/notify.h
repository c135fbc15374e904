/* SPDX-License-Identifier: GPL-2.0-only */
/* Tells a service manager how things stand (sd_notify(3)); without one nothing happens. */
#ifndef WHYIDLE_DAEMON_NOTIFY_H
#define WHYIDLE_DAEMON_NOTIFY_H

/* "READY=1", "STOPPING=1", "STATUS=…" */
void notify_manager(const char *state);

#endif
