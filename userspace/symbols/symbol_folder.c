// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/symbol_folder.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

#define MAX_FILES     20000
#define MIN_ID_DIGITS 8
#define MAX_ID_DIGITS 128

/* Where the file with a build id may lie: its first two digits, the others; or all of them twice. */
static const struct {
	const char *format;
	bool split;
} layouts[] = {
    {"%s/.build-id/%.2s/%s.debug", true},
    {"%s/.build-id/%.2s/%s", true},
    {"%s/usr/lib/debug/.build-id/%.2s/%s.debug", true},
    {"%s/%s/debuginfo", false},
    {"%s/%s/executable", false},
};

struct symbol_folder {
	char *path;
	bool scanned; /* nothing is left to be looked at but what the layouts name */
	struct {
		ARRAY(struct binary *)
	} binaries;
	struct {
		ARRAY(char *)
	} looked_for; /* build ids that were looked for where the layouts have them */
};

int symbol_folder_open(struct symbol_folder **folder, const char *path, bool whole, struct error *error)
{
	struct stat info;

	*folder = NULL;
	if (stat(path, &info))
		return error_set(error, -errno, "cannot look for symbols in %s: %s", path, strerror(errno));
	if (!S_ISDIR(info.st_mode))
		return error_set(error, -ENOTDIR, "cannot look for symbols in %s: it is no folder", path);
	*folder = calloc(1, sizeof(**folder));
	if (*folder) {
		(*folder)->path = strdup(path);
		(*folder)->scanned = !whole;
	}
	if (*folder && (*folder)->path)
		return 0;
	symbol_folder_close(*folder);
	*folder = NULL;
	return error_no_memory(error);
}

/* Keeps the file if it has a build id, and `wanted` if that is not NULL. */
static void take_file(struct symbol_folder *folder, const char *path, const char *wanted)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct binary *binary = NULL, **slot;
	struct stat info;

	if (fd < 0)
		return;
	if (fstat(fd, &info) || !S_ISREG(info.st_mode))
		close(fd);
	else
		binary = binary_open(fd);
	slot = binary && *binary_build_id(binary) && (!wanted || !strcmp(binary_build_id(binary), wanted))
	           ? array_add(&folder->binaries)
	           : NULL;
	if (slot)
		*slot = binary;
	else
		binary_free(binary);
}

static void look_in_layouts(struct symbol_folder *folder, const char *build_id)
{
	char path[PATH_MAX], **slot, *const *known;

	array_for_each (known, &folder->looked_for) {
		if (!strcmp(*known, build_id))
			return;
	}
	slot = array_add(&folder->looked_for);
	if (!slot)
		return;
	*slot = strdup(build_id);
	if (!*slot) {
		folder->looked_for.count--;
		return;
	}
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		int length = layouts[i].split
		                 ? snprintf(path, sizeof(path), layouts[i].format, folder->path, build_id,
		                            build_id + 2)
		                 : snprintf(path, sizeof(path), layouts[i].format, folder->path, build_id);

		if (length < (int)sizeof(path))
			take_file(folder, path, build_id);
	}
}

/* All files of the folder, whatever they are called. */
static void scan(struct symbol_folder *folder)
{
	char *const paths[] = {folder->path, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	uint32_t files = 0;
	const FTSENT *entry;

	while (tree && files < MAX_FILES && (entry = fts_read(tree))) {
		if (entry->fts_info != FTS_F)
			continue;
		files++;
		take_file(folder, entry->fts_accpath, NULL);
	}
	if (tree)
		fts_close(tree);
}

static bool is_build_id(const char *text)
{
	size_t length = strspn(text, "0123456789abcdef");

	return !text[length] && length >= MIN_ID_DIGITS && length <= MAX_ID_DIGITS;
}

static struct binary *next_known(const struct symbol_folder *folder, const char *build_id, uint32_t *at)
{
	while (*at < folder->binaries.count) {
		struct binary *binary = folder->binaries.items[(*at)++];

		if (!strcmp(binary_build_id(binary), build_id))
			return binary;
	}
	return NULL;
}

struct binary *symbol_folder_find(struct symbol_folder *folder, const char *build_id, uint32_t *at)
{
	struct binary *found;

	if (!is_build_id(build_id))
		return NULL;
	look_in_layouts(folder, build_id);
	found = next_known(folder, build_id, at);
	if (found || folder->scanned)
		return found;
	folder->scanned = true;
	scan(folder);
	return next_known(folder, build_id, at);
}

void symbol_folder_close(struct symbol_folder *folder)
{
	struct binary **binary;
	char **known;

	if (!folder)
		return;
	array_for_each (binary, &folder->binaries)
		binary_free(*binary);
	array_for_each (known, &folder->looked_for)
		free(*known);
	array_free(&folder->binaries);
	array_free(&folder->looked_for);
	free(folder->path);
	free(folder);
}
