// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/history.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".whyidle"

static const char *const folders[HISTORY_KINDS] = {[HISTORY_WINDOWS] = "windows", [HISTORY_KEPT] = "kept"};

/* A window while it is written: not counted, and removed by the next daemon if this one does not end it. */
static void unfinished_name(char name[80], uint64_t start_ms)
{
	snprintf(name, 80, "%" PRIu64 ".part", start_ms);
}

/* Start and the rest of a name of the form <digits>-<rest>SUFFIX. */
static bool parse_name(const char *name, uint64_t *start_ms, char rest[80])
{
	size_t length = strlen(name), end = length - strlen(SUFFIX);
	char *after;

	if (length >= 80 || length <= strlen(SUFFIX) || strcmp(name + end, SUFFIX) ||
	    !isdigit((unsigned char)name[0]))
		return false;
	errno = 0;
	*start_ms = strtoull(name, &after, 10);
	if (errno || *after != '-' || after + 1 >= name + end)
		return false;
	snprintf(rest, 80, "%.*s", (int)(name + end - after - 1), after + 1);
	return true;
}

static int parse_item(struct history_item *item, enum history_kind kind, const char *name)
{
	char rest[80], *after;

	if (!parse_name(name, &item->start_ms, rest))
		return -EINVAL;
	if (kind == HISTORY_WINDOWS) {
		errno = 0;
		item->length_ms = strtoull(rest, &after, 10);
		if (errno || *after || !isdigit((unsigned char)rest[0]))
			return -EINVAL;
	}
	snprintf(item->name, sizeof(item->name), "%s", name);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct history_item *x = a, *y = b;

	return x->start_ms != y->start_ms ? (x->start_ms < y->start_ms ? -1 : 1) : strcmp(x->name, y->name);
}

static int add_file(struct history *history, enum history_kind kind, const char *name)
{
	struct history_item item = {0}, *slot;
	struct stat status;

	if (parse_item(&item, kind, name) ||
	    fstatat(history->fds[kind], name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode))
		return 0;
	slot = array_add(&history->items[kind]);
	if (!slot)
		return -ENOMEM;
	item.bytes = (uint64_t)status.st_blocks * 512;
	*slot = item;
	history->bytes[kind] += item.bytes;
	return 0;
}

static int read_folder(struct history *history, enum history_kind kind)
{
	int fd = dup(history->fds[kind]), err = 0;
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	const char *dot;

	if (!folder) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (entry = readdir(folder))) {
		dot = strrchr(entry->d_name, '.');
		if (dot && !strcmp(dot, ".part") && isdigit((unsigned char)entry->d_name[0]))
			unlinkat(history->fds[kind], entry->d_name, 0);
		else
			err = add_file(history, kind, entry->d_name);
	}
	closedir(folder);
	array_sort(&history->items[kind], by_start);
	return err;
}

static int make_folder(const char *path)
{
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

int history_open(struct history *history, const char *folder, struct error *error)
{
	char path[PATH_MAX];
	int err = 0;

	*history = (struct history){.fds = {-1, -1}};
	history->folder = strdup(folder);
	if (!history->folder)
		return error_no_memory(error);
	err = make_folder(folder);
	for (int kind = 0; kind < HISTORY_KINDS && !err; kind++) {
		if (snprintf(path, sizeof(path), "%s/%s", folder, folders[kind]) >= (int)sizeof(path))
			err = -ENAMETOOLONG;
		if (!err)
			err = make_folder(path);
		if (err)
			break;
		history->fds[kind] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		err = history->fds[kind] < 0 ? -errno : read_folder(history, kind);
	}
	return err ? error_set(error, err, "cannot keep recordings in %s: %s", folder, strerror(-err)) : 0;
}

void history_close(struct history *history)
{
	for (int kind = 0; kind < HISTORY_KINDS; kind++) {
		if (history->folder && history->fds[kind] >= 0)
			close(history->fds[kind]);
		array_free(&history->items[kind]);
	}
	free(history->folder);
	memset(history, 0, sizeof(*history));
}

void history_item_path(const struct history *history, enum history_kind kind, const struct history_item *item,
                       char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s/%s", history->folder, folders[kind], item->name);
}

void history_path(const struct history *history, uint64_t start_ms, char path[PATH_MAX])
{
	struct history_item item;

	unfinished_name(item.name, start_ms);
	history_item_path(history, HISTORY_WINDOWS, &item, path);
}

int history_add(struct history *history, uint64_t start_ms, uint64_t length_ms)
{
	int fd = history->fds[HISTORY_WINDOWS], err;
	char from[80], to[80];

	unfinished_name(from, start_ms);
	snprintf(to, sizeof(to), "%" PRIu64 "-%" PRIu64 SUFFIX, start_ms, length_ms);
	err = renameat(fd, from, fd, to) ? -errno : add_file(history, HISTORY_WINDOWS, to);
	if (err)
		history_drop(history, start_ms);
	return err;
}

void history_drop(struct history *history, uint64_t start_ms)
{
	char name[80];

	unfinished_name(name, start_ms);
	unlinkat(history->fds[HISTORY_WINDOWS], name, 0);
}

int history_keep(struct history *history, uint64_t start_ms, const char *reason, char name[80])
{
	const struct history_item *item, *found = NULL;
	int err;

	array_for_each (item, &history->items[HISTORY_WINDOWS]) {
		if (item->start_ms == start_ms)
			found = item;
	}
	if (!found)
		return -ENOENT;
	snprintf(name, 80, "%" PRIu64 "-%.40s" SUFFIX, start_ms, reason);
	if (linkat(history->fds[HISTORY_WINDOWS], found->name, history->fds[HISTORY_KEPT], name, 0)) {
		err = -errno;
		/* Kept already, for the same reason. */
		return err == -EEXIST ? 0 : err;
	}
	err = add_file(history, HISTORY_KEPT, name);
	array_sort(&history->items[HISTORY_KEPT], by_start);
	return err;
}

unsigned history_trim(struct history *history, enum history_kind kind, uint64_t limit_bytes, uint64_t age_ms,
                      uint64_t now_ms)
{
	unsigned gone = 0;

	while (gone < history->items[kind].count) {
		const struct history_item *item = &history->items[kind].items[gone];
		bool old = age_ms && item->start_ms + age_ms < now_ms;

		if (!old && history->bytes[kind] <= limit_bytes)
			break;
		unlinkat(history->fds[kind], item->name, 0);
		history->bytes[kind] -= item->bytes;
		gone++;
	}
	if (gone) {
		history->items[kind].count -= gone;
		memmove(history->items[kind].items, history->items[kind].items + gone,
		        history->items[kind].count * sizeof(struct history_item));
	}
	return gone;
}
