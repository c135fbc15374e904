/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/collector_link.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cupti_bridge/ring.h"

#define TIMEOUT_MS        500 /* for each of connecting and receiving */
#define DESCRIPTOR_NUMBER 200 /* or the next free one above it */

/* Moves a descriptor out of the way of a target that expects the lowest numbers for its own. */
static int move_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_NUMBER);

	if (moved < 0)
		moved = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* a low limit on descriptors */
	close(fd);
	return moved;
}

static int connect_to(const char *name)
{
	struct timeval timeout = {.tv_usec = TIMEOUT_MS * 1000L};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(name);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	int fd;

	if (!length || length > sizeof(address.sun_path) - 1)
		return -1;
	memcpy(address.sun_path + 1, name, length); /* the NUL before it makes it abstract */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	fd = move_up(fd);
	if (fd < 0)
		return -1;
	/* The send time-out also bounds a connect to a full backlog. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
	    connect(fd, (struct sockaddr *)&address, size)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Receives the offer and the memfd with it. Returns the memfd or -1. */
static int receive_offer(int fd, struct ring_offer *offer)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec data = {.iov_base = offer, .iov_len = sizeof(*offer)};
	struct msghdr message = {
	    .msg_iov = &data,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	int memory;
	ssize_t size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);

	header = size >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&memory, CMSG_DATA(header), sizeof(memory));
	if (size != (ssize_t)sizeof(*offer)) {
		close(memory);
		return -1;
	}
	return memory;
}

/* Maps the ring. Without the seal on shrinking its other end could make this process fault: refuse. */
static bool map_offer(struct collector_link *link, int memory, const struct ring_offer *offer)
{
	int seals = fcntl(memory, F_GET_SEALS);
	size_t size;

	if (offer->magic != RING_MAGIC || offer->version != RING_VERSION || offer->capacity < 4096 ||
	    offer->capacity > (1ULL << 40) || (offer->capacity & (offer->capacity - 1)))
		return false;
	size = RING_CONTROL_SIZE + offer->capacity;
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || lseek(memory, 0, SEEK_END) < (off_t)size)
		return false;
	link->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (link->memory == MAP_FAILED) {
		link->memory = NULL;
		return false;
	}
	link->capacity = offer->capacity;
	link->flush_period_ms = offer->flush_period_ms;
	return true;
}

/* A number that the kernel gives to one socket ever; 0 for what is no socket, or a kernel before 4.12. */
static uint64_t socket_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) ? 0 : cookie;
}

bool collector_link_open(struct collector_link *link, const char *name)
{
	struct ring_offer offer = {0};
	int memory;
	bool mapped;

	memset(link, 0, sizeof(*link));
	link->fd = connect_to(name);
	if (link->fd < 0)
		return false;
	memory = receive_offer(link->fd, &offer);
	mapped = memory >= 0 && map_offer(link, memory, &offer);
	if (memory >= 0)
		close(memory);
	if (!mapped) {
		close(link->fd);
		link->fd = -1;
		return false;
	}
	link->cookie = socket_cookie(link->fd);
	return true;
}

/* The descriptor, or -1 if its number no longer stands for the socket. */
static int own_descriptor(struct collector_link *link)
{
	int fd = __atomic_load_n(&link->fd, __ATOMIC_RELAXED);

	if (fd < 0)
		return -1;
	if (!link->cookie || socket_cookie(fd) != link->cookie) {
		__atomic_store_n(&link->fd, -1, __ATOMIC_RELAXED);
		return -1;
	}
	return fd;
}

bool collector_link_is_down(struct collector_link *link)
{
	struct pollfd poll_fd = {.fd = own_descriptor(link), .events = POLLRDHUP};

	return poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) == 1 &&
	       (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void collector_link_drop(struct collector_link *link)
{
	int fd = own_descriptor(link);

	if (fd >= 0)
		close(fd);
	link->fd = -1;
}
