/* SPDX-License-Identifier: GPL-2.0-only */
#include "trace/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* Makes sure that it is ours alone before anything in it is destroyed. */
static int take(int fd, const char *path, struct error *error)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return error_set(error, -errno, "cannot examine %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return error_set(error, -EINVAL, "%s is not a regular file: a session needs one", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return error_set(error, -EBUSY, "another recording is writing %s: name another file", path);
	if (ftruncate(fd, 0) < 0)
		return error_set(error, -errno, "cannot empty %s: %s", path, strerror(errno));
	return 0;
}

int output_open(const char *path, struct error *error)
{
	int fd, rc;

	if (!strcmp(path, "-"))
		return error_set(error, -EINVAL,
		                 "a session cannot be written to standard output: name a file");
	/* O_NONBLOCK: a pipe nobody reads must fail, not wait. */
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0 && errno == ENXIO)
		return error_set(error, -EINVAL, "%s is not a regular file: a session needs one", path);
	if (fd < 0 && errno == EISDIR)
		return error_set(error, -EISDIR, "%s is a directory: name a file in it", path);
	if (fd < 0)
		return error_set(error, -errno, "cannot create %s: %s", path, strerror(errno));
	rc = take(fd, path, error);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

int output_write(int fd, const void *bytes, size_t length, uint64_t offset)
{
	const struct timespec no_wait = {0};
	const uint8_t *next = bytes;
	sigset_t too_large, before;
	int rc = 0;

	sigemptyset(&too_large);
	sigaddset(&too_large, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &too_large, &before);
	while (length && !rc) {
		ssize_t written = pwrite(fd, next, length, (off_t)offset);

		if (written > 0) {
			next += written;
			length -= (size_t)written;
			offset += (uint64_t)written;
		} else if (written == 0) {
			rc = -EIO;
		} else if (errno != EINTR) {
			rc = -errno;
		}
	}
	/* Beyond the limit the kernel also sent the signal to this thread: take it away again. */
	if (rc == -EFBIG && !sigismember(&before, SIGXFSZ))
		sigtimedwait(&too_large, NULL, &no_wait);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

bool output_has_room(int fd, uint64_t offset, uint64_t length)
{
	struct rlimit limit;
	struct statvfs space;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    offset + length > limit.rlim_cur)
		return false;
	return fstatvfs(fd, &space) || (uint64_t)space.f_bavail * space.f_frsize >= length;
}
