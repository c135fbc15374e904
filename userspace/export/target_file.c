// SPDX-License-Identifier: GPL-2.0-only
#include "export/target_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_special(struct target_file *file, const char *path, struct error *error)
{
	/* O_NONBLOCK: a pipe that nobody reads must fail, not wait. */
	file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file->fd < 0)
		return error_set(error, -errno, "cannot write %s: %s", path, strerror(errno));
	if (fcntl(file->fd, F_SETFL, 0) < 0)
		return error_set(error, -errno, "cannot write %s: %s", path, strerror(errno));
	return 0;
}

int target_file_create(struct target_file *file, const char *path, struct error *error)
{
	struct stat status;
	bool exists = !stat(path, &status);

	*file = (struct target_file){.fd = -1};
	if (exists && S_ISDIR(status.st_mode))
		return error_set(error, -EISDIR, "%s is a directory: name a file in it", path);
	if (exists && !S_ISREG(status.st_mode))
		return open_special(file, path, error);
	/* The link stays, what it points to is replaced. */
	file->path = exists ? realpath(path, NULL) : strdup(path);
	if (!file->path)
		return error_set(error, -errno, "cannot write %s: %s", path, strerror(errno));
	if (asprintf(&file->written, "%s.partial-XXXXXX", file->path) < 0) {
		file->written = NULL;
		return error_no_memory(error);
	}
	file->fd = mkostemp(file->written, O_CLOEXEC);
	if (file->fd < 0) {
		int err = -errno;

		free(file->written);
		file->written = NULL;
		return error_set(error, err, "cannot create %s: %s", path, strerror(-err));
	}
	return 0;
}

int target_file_commit(struct target_file *file, struct error *error)
{
	int err = 0;

	if (file->fd >= 0 && close(file->fd))
		err = error_set(error, -errno, "cannot write %s: %s", file->path ? file->path : "the output",
		                strerror(errno));
	file->fd = -1;
	if (!err && file->written && rename(file->written, file->path))
		err = error_set(error, -errno, "cannot create %s: %s", file->path, strerror(errno));
	if (!err) {
		free(file->written);
		file->written = NULL;
	}
	target_file_discard(file);
	return err;
}

void target_file_discard(struct target_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->written)
		unlink(file->written);
	free(file->written);
	free(file->path);
	*file = (struct target_file){.fd = -1};
}
