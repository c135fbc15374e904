// SPDX-License-Identifier: GPL-2.0-only
#include "cli/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "import/import.h"

static int add(struct inputs *inputs, const char *path, struct error *error)
{
	char **slot = array_add(inputs);

	if (slot)
		*slot = strdup(path);
	return slot && *slot ? 0 : error_no_memory(error);
}

static int compare_path(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int add_entry(struct inputs *inputs, const char *folder, const char *name, struct error *error)
{
	struct error unknown = {0};
	struct stat status;
	char *path;
	int err = 0;

	if (asprintf(&path, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name) < 0)
		return error_no_memory(error);
	/* What lies beside the traces, like notes and logs, is none of ours. */
	if (!stat(path, &status) && S_ISREG(status.st_mode) &&
	    import_recognise(path, &unknown) != IMPORT_UNKNOWN)
		err = add(inputs, path, error);
	free(path);
	return err;
}

static int add_folder(struct inputs *inputs, const char *folder, struct error *error)
{
	size_t before = inputs->count;
	DIR *directory = opendir(folder);
	struct dirent *entry;
	int err = 0;

	if (!directory)
		return error_set(error, -errno, "cannot open %s: %s", folder, strerror(errno));
	while (!err && (entry = readdir(directory))) {
		if (entry->d_name[0] != '.')
			err = add_entry(inputs, folder, entry->d_name, error);
	}
	closedir(directory);
	if (!err && inputs->count == before)
		err = error_set(error, -ENOENT,
		                "%s holds no session file and no trace: give the files or another directory",
		                folder);
	if (!err)
		qsort_items(inputs->items + before, inputs->count - before, sizeof(*inputs->items),
		            compare_path);
	return err;
}

int inputs_collect(struct inputs *inputs, char *const *operands, int count, struct error *error)
{
	struct stat status;
	int err = 0;

	for (int i = 0; !err && i < count; i++) {
		if (!stat(operands[i], &status) && S_ISDIR(status.st_mode))
			err = add_folder(inputs, operands[i], error);
		else
			err = add(inputs, operands[i], error);
	}
	return err;
}

void inputs_free(struct inputs *inputs)
{
	char **path;

	array_for_each (path, inputs)
		free(*path);
	array_free(inputs);
}
