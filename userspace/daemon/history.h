/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recordings that the daemon has on disk, each a session file: windows (the rolling history), and those
 * that were kept because of a trigger or a request. Both have a hard limit of size and one of age; the oldest
 * go first. What a daemon before has left is found again when the history is opened.
 *
 *	FOLDER/windows/<start>-<length>.whyidle    start: CLOCK_REALTIME ms, length: ms
 *	FOLDER/kept/<start>-<reason>.whyidle
 *
 * Names that are not of this form are left alone and not counted. Files are readable by their owner only.
 */
#ifndef WHYIDLE_DAEMON_HISTORY_H
#define WHYIDLE_DAEMON_HISTORY_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

enum history_kind { HISTORY_WINDOWS, HISTORY_KEPT, HISTORY_KINDS };

struct history_item {
	uint64_t start_ms, length_ms; /* length: of windows only */
	uint64_t bytes;
	char name[80];
};

struct history {
	char *folder;
	int fds[HISTORY_KINDS]; /* of the two folders */
	struct {
		ARRAY(struct history_item)
	} items[HISTORY_KINDS]; /* by start */
	uint64_t bytes[HISTORY_KINDS];
};

/* Makes the folders that are missing and reads what is there. Returns 0 or a negative errno with `error`. */
int history_open(struct history *history, const char *folder, struct error *error);
void history_close(struct history *history);

/* Path of a window that begins now, where its writer shall put it; unfinished until history_add. */
void history_path(const struct history *history, uint64_t start_ms, char path[PATH_MAX]);

/* The window at that path is complete. Returns 0, or a negative errno: then the file is gone. */
int history_add(struct history *history, uint64_t start_ms, uint64_t length_ms);

/* Takes an unfinished window away. */
void history_drop(struct history *history, uint64_t start_ms);

/*
 * Keeps the window that began at start_ms under a reason (letters, digits and '-'). It takes no more room on
 * disk than before. `name` gets the name of the file in FOLDER/kept. Returns 0 or a negative errno.
 */
int history_keep(struct history *history, uint64_t start_ms, const char *reason, char name[80]);

/* Removes what is over a limit of size, or older than age_ms at now_ms. Returns how many files went. */
unsigned history_trim(struct history *history, enum history_kind kind, uint64_t limit_bytes, uint64_t age_ms,
                      uint64_t now_ms);

/* Path of an item. */
void history_item_path(const struct history *history, enum history_kind kind, const struct history_item *item,
                       char path[PATH_MAX]);

#endif
