// SPDX-License-Identifier: GPL-2.0-only
#include "collect/bridge_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Made by the build from libwhyidle_bridge.so. */
extern const unsigned char bridge_blob_start[], bridge_blob_end[];

static int write_all(int fd, const unsigned char *bytes, size_t length)
{
	while (length) {
		ssize_t written = write(fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		length -= written;
	}
	return 0;
}

static int write_library(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int err;

	if (fd < 0)
		return -errno;
	err = write_all(fd, bridge_blob_start, bridge_blob_end - bridge_blob_start);
	if (!err && fchmod(fd, 0644) < 0) /* whatever the umask is */
		err = -errno;
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

static int create_in(struct bridge_file *file, const char *parent)
{
	struct statvfs info;
	int err;

	if (statvfs(parent, &info) < 0)
		return -errno;
	if (info.f_flag & ST_NOEXEC)
		return -ENOEXEC;
	if (snprintf(file->directory, sizeof(file->directory), "%s/whyidle-XXXXXX", parent) >=
	    (int)sizeof(file->directory))
		return -ENAMETOOLONG;
	if (!mkdtemp(file->directory)) {
		file->directory[0] = '\0';
		return -errno;
	}
	snprintf(file->path, sizeof(file->path), "%s/libwhyidle_bridge.so", file->directory);
	err = write_library(file->path);
	if (!err && chmod(file->directory, 0755) < 0)
		err = -errno;
	if (err)
		bridge_file_remove(file);
	return err;
}

int bridge_file_create(struct bridge_file *file, const char *preferred, struct error *error)
{
	const char *parents[] = {preferred, "/tmp", "/var/tmp", "/dev/shm"};
	int err = -ENOENT;

	memset(file, 0, sizeof(*file));
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		/* A relative one would mean another place once the target has changed its directory. */
		if (!parents[i] || parents[i][0] != '/')
			continue;
		err = create_in(file, parents[i]);
		if (!err)
			return 0;
	}
	return error_set(error, err,
	                 "cannot write the CUPTI bridge to a temporary directory: %s (set TMPDIR)",
	                 err == -ENOEXEC ? "mounted noexec" : strerror(-err));
}

void bridge_file_remove(struct bridge_file *file)
{
	if (file->path[0])
		unlink(file->path);
	if (file->directory[0])
		rmdir(file->directory);
	memset(file, 0, sizeof(*file));
}
