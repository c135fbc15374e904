// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/control.h"

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS     16
#define PATIENCE_NS 5000000000ULL /* of the daemon with a client */
#define BACKLOG     16

struct client {
	int fd; /* -1: free */
	bool owner;
	uint64_t since_ns;
	char request[CONTROL_REQUEST];
	size_t held;
	struct control_answer answer; /* text set: it is being sent */
	size_t sent;
};

struct control {
	struct control_options options;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int listener, epoll;
	bool bound;
	bool full; /* the listener is not polled: there is no room for another client */
	struct client clients[CLIENTS];
};

/* ---- opening ---- */

static int address_of(const char *path, struct sockaddr_un *address, struct error *error)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path))
		return error_set(error, -ENAMETOOLONG, "the path of the control socket is too long: %s",
		                 path);
	memcpy(address->sun_path, path, strlen(path) + 1);
	return 0;
}

static int make_folder(const char *path, struct error *error)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	if (mkdir(dirname(copy), 0755) && errno != EEXIST)
		return error_set(error, -errno, "cannot make the folder of %s: %s", path, strerror(errno));
	return 0;
}

/* Takes away the socket of a daemon that was killed; one that is answered is left. */
static int clear_path(const struct sockaddr_un *address, struct error *error)
{
	struct stat status;
	int fd, err = 0;

	if (lstat(address->sun_path, &status))
		return 0;
	if (!S_ISSOCK(status.st_mode))
		return error_set(error, -EEXIST, "%s is there and is no socket", address->sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(error, -errno, "cannot make a socket: %s", strerror(errno));
	if (!connect(fd, (const void *)address, sizeof(*address)) || errno == EAGAIN)
		err = error_set(error, -EADDRINUSE, "another daemon answers on %s", address->sun_path);
	else
		unlink(address->sun_path);
	close(fd);
	return err;
}

static int give_to_group(const struct control *control, struct error *error)
{
	const char *name = control->options.group;
	const struct group *group;

	if (!name)
		return 0;
	group = getgrnam(name);
	if (!group)
		return error_set(error, -EINVAL, "there is no group '%s'", name);
	if (chown(control->path, -1, group->gr_gid) || chmod(control->path, 0660))
		return error_set(error, -errno, "cannot give %s to group %s: %s", control->path, name,
		                 strerror(errno));
	return 0;
}

static int listen_on(struct control *control, struct error *error)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	struct sockaddr_un address;
	mode_t mask;
	int err = address_of(control->options.path, &address, error);

	err = err ?: make_folder(address.sun_path, error);
	err = err ?: clear_path(&address, error);
	if (err)
		return err;
	control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	control->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (control->listener < 0 || control->epoll < 0)
		return error_set(error, -errno, "cannot make the control socket: %s", strerror(errno));
	mask = umask(0177);
	err = bind(control->listener, (void *)&address, sizeof(address)) ? -errno : 0;
	umask(mask);
	if (!err) {
		control->bound = true;
		memcpy(control->path, address.sun_path, sizeof(control->path));
		err = listen(control->listener, BACKLOG) ||
		              epoll_ctl(control->epoll, EPOLL_CTL_ADD, control->listener, &event)
		          ? -errno
		          : 0;
	}
	if (err)
		return error_set(error, err, "cannot listen on %s: %s", address.sun_path, strerror(-err));
	return give_to_group(control, error);
}

int control_open(struct control **result, const struct control_options *options, struct error *error)
{
	struct control *control = calloc(1, sizeof(*control));
	int err;

	*result = NULL;
	if (!control)
		return error_no_memory(error);
	control->options = *options;
	control->listener = control->epoll = -1;
	for (int i = 0; i < CLIENTS; i++)
		control->clients[i].fd = -1;
	err = listen_on(control, error);
	if (err) {
		control_close(control);
		return err;
	}
	*result = control;
	return 0;
}

/* ---- clients ---- */

static void poll_listener(struct control *control, bool on)
{
	struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = NULL};

	epoll_ctl(control->epoll, EPOLL_CTL_MOD, control->listener, &event);
	control->full = !on;
}

/* A window's process may hold the descriptor too: what the client sees must not depend on that. */
static void drop(struct control *control, struct client *client)
{
	shutdown(client->fd, SHUT_RDWR);
	epoll_ctl(control->epoll, EPOLL_CTL_DEL, client->fd, NULL);
	close(client->fd);
	for (size_t i = 0; i < client->answer.file_count; i++)
		close(client->answer.files[i]);
	free(client->answer.text);
	*client = (struct client){.fd = -1};
	if (control->full)
		poll_listener(control, true);
}

static void admit(struct control *control, uint64_t now_ns)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	struct epoll_event event = {.events = EPOLLIN};
	struct client *client = NULL;
	int fd;

	for (int i = 0; i < CLIENTS && !client; i++) {
		if (control->clients[i].fd < 0)
			client = &control->clients[i];
	}
	if (!client) {
		poll_listener(control, false);
		return;
	}
	fd = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* No descriptor is free, say: not again at once, but when there is time (control_expire). */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			poll_listener(control, false);
		return;
	}
	event.data.ptr = client;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
	    epoll_ctl(control->epoll, EPOLL_CTL_ADD, fd, &event)) {
		close(fd);
		return;
	}
	*client = (struct client){.fd = fd, .owner = !peer.uid || peer.uid == geteuid(), .since_ns = now_ns};
}

static ssize_t send_part(struct client *client)
{
	struct iovec part = {client->answer.text + client->sent, client->answer.length - client->sent};
	union {
		char bytes[CMSG_SPACE(sizeof(int) * CONTROL_FILES)];
		struct cmsghdr align;
	} control = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	size_t size = client->answer.file_count * sizeof(int);

	if (size && !client->sent) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(size);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(header), client->answer.files, size);
	}
	return sendmsg(client->fd, &message, MSG_NOSIGNAL);
}

/* Returns false once the client is done with. */
static bool send_answer(struct control *control, struct client *client)
{
	struct epoll_event event = {.events = EPOLLOUT, .data.ptr = client};

	while (client->sent < client->answer.length) {
		ssize_t sent = send_part(client);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN) {
			epoll_ctl(control->epoll, EPOLL_CTL_MOD, client->fd, &event);
			return true;
		}
		if (sent <= 0)
			return false;
		client->sent += (size_t)sent;
	}
	return false;
}

/* Returns false once the client is done with. */
static bool take_request(struct control *control, struct client *client)
{
	ssize_t got =
	    read(client->fd, client->request + client->held, sizeof(client->request) - client->held);
	char *newline;

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!got)
		return false;
	client->held += (size_t)got;
	newline = memchr(client->request, '\n', client->held);
	if (!newline)
		return client->held < sizeof(client->request);
	*newline = '\0';
	control->options.request(control->options.context, client->request, client->owner, &client->answer);
	return client->answer.text && send_answer(control, client);
}

int control_fd(const struct control *control)
{
	return control->epoll;
}

void control_run(struct control *control, uint64_t now_ns)
{
	struct epoll_event events[CLIENTS + 1];
	int count = epoll_wait(control->epoll, events, CLIENTS + 1, 0);

	for (int i = 0; i < count; i++) {
		struct client *client = events[i].data.ptr;
		bool more;

		if (!client) {
			admit(control, now_ns);
			continue;
		}
		if (client->fd < 0)
			continue;
		if (client->answer.text)
			more = !(events[i].events & (EPOLLERR | EPOLLHUP)) && send_answer(control, client);
		else
			more = take_request(control, client);
		if (!more)
			drop(control, client);
	}
}

void control_expire(struct control *control, uint64_t now_ns)
{
	for (int i = 0; i < CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (client->fd >= 0 && now_ns - client->since_ns > PATIENCE_NS)
			drop(control, client);
	}
	if (control->full)
		poll_listener(control, true);
}

void control_close(struct control *control)
{
	if (!control)
		return;
	for (int i = 0; i < CLIENTS; i++) {
		if (control->clients[i].fd >= 0)
			drop(control, &control->clients[i]);
	}
	if (control->listener >= 0)
		close(control->listener);
	if (control->epoll >= 0)
		close(control->epoll);
	if (control->bound)
		unlink(control->path);
	free(control);
}
