// SPDX-License-Identifier: GPL-2.0-only
/* The client's side of control.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/control.h"

#define ANSWER_LIMIT (16u << 20)
#define READ_BYTES   65536

struct answer {
	char *text;
	size_t length, room;
	int *files;
	size_t file_count;
};

static int connect_to(const char *path, struct error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(error, -ENAMETOOLONG, "the path of the control socket is too long: %s",
		                 path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(error, -errno, "cannot make a socket: %s", strerror(errno));
	if (!connect(fd, (void *)&address, sizeof(address)))
		return fd;
	if (errno == ENOENT || errno == ECONNREFUSED)
		error_set(error, -errno, "no daemon answers on %s (start one: whyidle daemon)", path);
	else
		error_set(error, -errno, "cannot reach the daemon on %s: %s", path, strerror(errno));
	close(fd);
	return error->code;
}

static void take_files(struct answer *answer, struct msghdr *message)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
			if (answer->files && answer->file_count < CONTROL_FILES)
				answer->files[answer->file_count++] = fd;
			else
				close(fd);
		}
	}
}

/* Returns the bytes taken, 0 at the end, or a negative errno. */
static ssize_t take_part(struct answer *answer, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * CONTROL_FILES)];
		struct cmsghdr align;
	} control;
	struct iovec part;
	struct msghdr message = {.msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = control.bytes,
	                         .msg_controllen = sizeof(control.bytes)};
	ssize_t got;

	if (answer->room - answer->length < READ_BYTES) {
		char *text = realloc(answer->text, answer->room + READ_BYTES + answer->room / 2);

		if (!text)
			return -ENOMEM;
		answer->text = text;
		answer->room += READ_BYTES + answer->room / 2;
	}
	part = (struct iovec){answer->text + answer->length, answer->room - answer->length - 1};
	got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	if (got < 0)
		return errno == EINTR ? 1 : -errno;
	take_files(answer, &message);
	answer->length += (size_t)got;
	answer->text[answer->length] = '\0';
	return answer->length > ANSWER_LIMIT ? -EFBIG : got;
}

int control_ask(const char *path, const char *request, int timeout_ms, char **text, size_t *length,
                int *files, size_t *file_count, struct error *error)
{
	struct answer answer = {.files = files};
	int fd = connect_to(path, error), err = 0;
	ssize_t got = 1;

	if (fd < 0)
		return fd;
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0 || send(fd, "\n", 1, MSG_NOSIGNAL) < 0)
		err = -errno;
	while (!err && got > 0) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		int count = poll(&ready, 1, timeout_ms);

		if (count < 0 && errno == EINTR)
			continue;
		got = count < 0 ? -errno : count ? take_part(&answer, fd) : -ETIMEDOUT;
		err = got < 0 ? (int)got : 0;
	}
	close(fd);
	if (!err && !answer.length)
		err = -ECONNRESET;
	if (file_count)
		*file_count = err ? 0 : answer.file_count;
	if (!err) {
		*text = answer.text;
		*length = answer.length;
		return 0;
	}
	for (size_t i = 0; i < answer.file_count; i++)
		close(files[i]);
	free(answer.text);
	return error_set(error, err, "no answer from the daemon on %s: %s", path, strerror(-err));
}
