/* SPDX-License-Identifier: GPL-2.0-only */
/* Takes the last windows of a running daemon out of its history: `whyidle dump -d`. */
#ifndef WHYIDLE_CLI_DAEMON_WINDOWS_H
#define WHYIDLE_CLI_DAEMON_WINDOWS_H

#include <stdint.h>

#include "base/error.h"

/*
 * Asks the daemon that listens on `control` for the windows of the last duration_ns (1 s to a day), and
 * writes each as a session file into `folder`, which is there. Calls `written` with the path of each, the
 * newest first. Returns 0 or a negative errno
 * with `error`.
 */
int daemon_windows_take(const char *control, uint64_t duration_ns, const char *folder,
                        void (*written)(const char *path), struct error *error);

#endif
