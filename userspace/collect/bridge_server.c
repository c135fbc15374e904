// SPDX-License-Identifier: GPL-2.0-only
#include "collect/bridge_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "collect/job_rank.h"
#include "collect/process_info.h"
#include "collect/pure_bridge_convert.h"
#include "collect/pure_ring_reader.h"
#include "cupti_bridge/attach.h"
#include "cupti_bridge/ring.h"

#define DEFAULT_RING_BYTES      (32u << 20)
#define DEFAULT_FLUSH_PERIOD_MS 250
#define MAX_CONNECTIONS         256
#define MAX_ACCEPTS_PER_POLL    64
#define MAX_REMEMBERED          4096           /* processes whose fate is kept after they left */
#define CLOCK_SLACK_NS          10000000000ULL /* times this far outside the recording are still believed */
#define NAMESPACE_RETRY_NS      100000000ULL

struct bridge {
	int fd;       /* a socket, or the pipe of one that was put into a running process */
	bool adopted; /* the latter */
	uint32_t pid;
	void *memory; /* control page and ring */
	size_t memory_size;
	struct ring_reader *reader;
	struct bridge_convert convert;
	struct index_map tids; /* the target's thread ids → ours, if its pid namespace is another one */
	uint64_t tids_read_ns;
	uint64_t polled_ns; /* time of the last drain without news of losses */
	bool ran;           /* CUPTI was running at some time */
	bool told;          /* a line about its failure has been said */
	bool told_invalid;
};

struct fate {
	uint32_t pid;
	enum bridge_state state;
	char text[BRIDGE_TEXT];
};

struct bridge_server {
	struct bridge_server_options options;
	int listener, epoll;
	char name[64];
	uint64_t opened_ns, from_ns;
	struct bridge_tables tables;
	struct bridge *bridges[MAX_CONNECTIONS];
	size_t count;
	struct {
		ARRAY(struct fate)
	} fates;
	struct bridge_server_stats ended; /* summed over bridges that have left */
	bool told_full;
	bool finishing; /* we end, not the bridges */
};

static void tell(const struct bridge_server *server, uint32_t pid, const char *what)
{
	if (server->options.degraded)
		server->options.degraded(server->options.context, pid, what);
}

/* ---- listening ---- */

static int make_name(char *name, size_t size)
{
	uint64_t secret[2];

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return -errno;
	snprintf(name, size, "whyidle-%016llx%016llx", (unsigned long long)secret[0],
	         (unsigned long long)secret[1]);
	return 0;
}

static int listen_on(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(name);
	int fd, err;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	memcpy(address.sun_path + 1, name, length); /* abstract: begins with a NUL byte */
	if (bind(fd, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + 1 + length) < 0 ||
	    listen(fd, MAX_ACCEPTS_PER_POLL) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static int watch(struct bridge_server *server, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int bridge_server_open(struct bridge_server **out, const struct bridge_server_options *options,
                       struct error *error)
{
	struct bridge_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return error_no_memory(error);
	server->options = *options;
	if (!server->options.ring_bytes)
		server->options.ring_bytes = DEFAULT_RING_BYTES;
	if (!server->options.flush_period_ms)
		server->options.flush_period_ms = DEFAULT_FLUSH_PERIOD_MS;
	server->listener = server->epoll = -1;
	server->opened_ns = clock_ns(CLOCK_MONOTONIC);
	server->from_ns = options->wait ? UINT64_MAX : 0;
	err = make_name(server->name, sizeof(server->name));
	if (err)
		goto fail;
	server->listener = err = listen_on(server->name);
	if (err < 0)
		goto fail;
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0) {
		err = -errno;
		goto fail;
	}
	err = watch(server, server->listener, EPOLLIN);
	if (err)
		goto fail;
	*out = server;
	return 0;
fail:
	error_set(error, err, "cannot open a socket for the CUPTI bridge: %s", strerror(-err));
	bridge_server_close(server);
	return err;
}

void bridge_server_begin(struct bridge_server *server)
{
	server->from_ns = clock_ns(CLOCK_MONOTONIC);
}

const char *bridge_server_name(const struct bridge_server *server)
{
	return server->name;
}

int bridge_server_fd(const struct bridge_server *server)
{
	return server->epoll;
}

/* ---- one bridge ---- */

static void bridge_free(struct bridge *bridge)
{
	if (!bridge)
		return;
	if (bridge->memory) {
		if (bridge->reader)
			ring_reader_shut(bridge->reader);
		munmap(bridge->memory, bridge->memory_size);
	}
	if (bridge->fd >= 0)
		close(bridge->fd);
	bridge_convert_free(&bridge->convert);
	index_map_free(&bridge->tids);
	free(bridge->reader);
	free(bridge);
}

/* Makes the ring; its size is sealed, so that the target cannot make a read of ours fault by truncating it.
 */
static int make_ring(struct bridge *bridge, uint64_t capacity)
{
	int fd = memfd_create("whyidle-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	bridge->memory_size = RING_CONTROL_SIZE + capacity;
	if (ftruncate(fd, bridge->memory_size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	bridge->memory = mmap(NULL, bridge->memory_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bridge->memory == MAP_FAILED) {
		bridge->memory = NULL;
		err = -errno;
		close(fd);
		return err;
	}
	ring_reader_format(bridge->memory, capacity);
	ring_reader_init(bridge->reader, bridge->memory, capacity);
	return fd;
}

static int send_offer(const struct bridge_server *server, int socket, int ring)
{
	struct ring_offer offer = {
	    .magic = RING_MAGIC,
	    .version = RING_VERSION,
	    .capacity = server->options.ring_bytes,
	    .flush_period_ms = server->options.flush_period_ms,
	};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = &offer, .iov_len = sizeof(offer)};
	struct msghdr message = {
	    .msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = sizeof(control.space),
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &ring, sizeof(int));
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Thread id as the target sees it → ours: read once from /proc, again when an unknown one turns up. */
static uint32_t translate_tid(void *context, uint32_t tid)
{
	struct bridge *bridge = context;
	uint32_t host;
	uint64_t now;

	if (index_map_get(&bridge->tids, tid, &host))
		return host;
	now = clock_ns(CLOCK_MONOTONIC);
	if (now - bridge->tids_read_ns > NAMESPACE_RETRY_NS) {
		bridge->tids_read_ns = now;
		process_namespace_tids(bridge->pid, &bridge->tids);
		if (index_map_get(&bridge->tids, tid, &host))
			return host;
	}
	return 0; /* gone already: the call is dropped and counted */
}

/* A bridge without ring and descriptor yet, NULL if memory ran out. */
static struct bridge *new_bridge(struct bridge_server *server, uint32_t pid)
{
	struct bridge *bridge = calloc(1, sizeof(*bridge));

	if (!bridge)
		return NULL;
	bridge->fd = -1;
	bridge->pid = pid;
	bridge->polled_ns = clock_ns(CLOCK_MONOTONIC);
	bridge_convert_init(&bridge->convert, &server->tables, pid);
	bridge->convert.earliest_ns =
	    server->opened_ns > CLOCK_SLACK_NS ? server->opened_ns - CLOCK_SLACK_NS : 0;
	bridge->reader = calloc(1, sizeof(*bridge->reader));
	if (bridge->reader)
		return bridge;
	bridge_free(bridge);
	return NULL;
}

static void enlist(struct bridge_server *server, struct bridge *bridge)
{
	server->bridges[server->count++] = bridge;
	server->ended.processes++;
}

static int add_bridge(struct bridge_server *server, int fd, uint32_t pid)
{
	struct bridge *bridge = new_bridge(server, pid);
	int ring, err;

	if (!bridge) {
		close(fd);
		return -ENOMEM;
	}
	bridge->fd = fd;
	ring = err = make_ring(bridge, server->options.ring_bytes);
	if (err >= 0) {
		err = send_offer(server, fd, ring);
		close(ring);
	}
	if (!err)
		err = watch(server, fd,
		            EPOLLRDHUP); /* not EPOLLIN: a bridge that talks must not keep us awake */
	if (err) {
		bridge_free(bridge);
		return err;
	}
	enlist(server, bridge);
	return 0;
}

/* Names a process that has connected. */
static int write_name(const struct bridge_server *server, uint32_t pid, struct session_writer *writer,
                      struct error *error)
{
	struct record_task task = {.header = {.type = RECORD_TASK, .size = sizeof(task)},
	                           .time_ns = clock_ns(CLOCK_MONOTONIC),
	                           .pid = pid,
	                           .tid = pid};
	char name[32];

	if (!server->options.write_names)
		return 0;
	process_name(pid, name, sizeof(name));
	task.comm = session_writer_cstring(writer, name);
	return task.comm ? session_writer_put(writer, &task, error) : 0;
}

/* Returns 0 or the first error of the writer. */
static int accept_bridges(struct bridge_server *server, struct session_writer *writer, struct error *error)
{
	int failed = 0;

	for (int i = 0; i < MAX_ACCEPTS_PER_POLL; i++) {
		struct ucred peer;
		socklen_t length = sizeof(peer);
		char text[128];
		int fd, err;

		fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			break;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.pid <= 0 ||
		    (peer.uid != server->options.uid && peer.uid != 0)) {
			close(fd);
			continue;
		}
		if (server->count == MAX_CONNECTIONS) {
			if (!server->told_full)
				tell(
				    server, 0,
				    "too many processes use CUDA at once: further ones have no GPU timeline");
			server->told_full = true;
			close(fd);
			continue;
		}
		if (server->options.connects)
			server->options.connects(server->options.context, peer.pid);
		err = add_bridge(server, fd, peer.pid);
		if (!err) {
			err = write_name(server, peer.pid, writer, failed ? NULL : error);
			failed = failed ? failed : err;
			err = job_rank_put(writer, peer.pid, failed ? NULL : error);
			failed = failed ? failed : err;
		} else {
			snprintf(text, sizeof(text), "no GPU timeline for it: cannot make its ring: %s",
			         strerror(-err));
			tell(server, peer.pid, text);
		}
	}
	return failed;
}

static enum bridge_state state_of(const struct bridge *bridge)
{
	if (bridge->reader->broken || bridge->convert.phase == RING_PHASE_FAILED)
		return BRIDGE_FAILED;
	if (bridge->convert.phase == RING_PHASE_STOPPED)
		return BRIDGE_ENDED;
	return bridge->convert.phase == RING_PHASE_RUNNING ? BRIDGE_RUNNING : BRIDGE_STARTING;
}

/* Says what went wrong with a bridge, once. */
static void report_trouble(struct bridge_server *server, struct bridge *bridge)
{
	char text[BRIDGE_TEXT + 128];

	if (bridge->convert.phase == RING_PHASE_RUNNING || bridge->convert.operations)
		bridge->ran = true;
	if (!bridge->told && bridge->reader->broken) {
		snprintf(text, sizeof(text),
		         "its GPU timeline ends early: what it sent could not be read: %s",
		         bridge->reader->broken);
		tell(server, bridge->pid, text);
		bridge->told = true;
	} else if (!bridge->told && bridge->convert.phase == RING_PHASE_FAILED) {
		snprintf(text, sizeof(text), "no GPU timeline for it: %s",
		         bridge->convert.text[0] ? bridge->convert.text : "CUPTI could not be used");
		tell(server, bridge->pid, text);
		bridge->told = true;
	}
	if (!bridge->told_invalid && bridge->convert.invalid) {
		tell(server, bridge->pid, "it sent records that make no sense; they were left out");
		bridge->told_invalid = true;
	}
}

/* Losses that no RING_LOSS record has told yet: of records that made no sense, and of a broken ring. */
static int write_silent_losses(struct bridge *bridge, uint64_t invalid_before, bool was_broken, uint64_t now,
                               struct session_writer *writer, struct error *error)
{
	uint64_t count = bridge->convert.invalid - invalid_before;

	if (bridge->reader->broken && !was_broken)
		count++;
	return bridge_convert_loss(&bridge->convert, RECORD_LOSS_BRIDGE_RING, bridge->polled_ns, now, count,
	                           writer, error);
}

/* Moves one batch of a ring to the session. Goes on after an error of the writer: the ring must be emptied.
 */
static int drain(struct bridge_server *server, struct bridge *bridge, struct session_writer *writer,
                 struct error *error)
{
	const struct ring_record *record;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), invalid = bridge->convert.invalid;
	bool was_broken = bridge->reader->broken;
	int err = 0, one;

	bridge->convert.latest_ns = now + CLOCK_SLACK_NS;
	bridge->convert.from_ns = server->from_ns;
	if (ring_reader_begin(bridge->reader)) {
		while ((record = ring_reader_next(bridge->reader))) {
			one = bridge_convert_record(&bridge->convert, record, writer, err ? NULL : error);
			if (!err)
				err = one;
			if (record->type == RING_HELLO && bridge->convert.hello_pid != bridge->pid) {
				bridge->convert.translate_tid = translate_tid;
				bridge->convert.translate_context = bridge;
			}
		}
		ring_reader_end(bridge->reader);
	}
	one = write_silent_losses(bridge, invalid, was_broken, now, writer, err ? NULL : error);
	if (bridge->reader->broken && !was_broken)
		ring_reader_shut(bridge->reader);
	bridge->polled_ns = now;
	report_trouble(server, bridge);
	return err ? err : one;
}

/*
 * Losses that the control page counts but no RING_LOSS record told, because there was never room for one. The
 * page is the target's: what it says can only make the report more careful.
 */
static int write_counted_losses(struct bridge_server *server, struct bridge *bridge, uint64_t now,
                                struct session_writer *writer, struct error *error)
{
	struct bridge_convert *convert = &bridge->convert;
	uint64_t ring = __atomic_load_n(&bridge->reader->control->lost_records, __ATOMIC_RELAXED);
	uint64_t cupti = __atomic_load_n(&bridge->reader->control->cupti_lost, __ATOMIC_RELAXED);
	uint64_t more_ring = ring > convert->lost_ring ? ring - convert->lost_ring : 0;
	uint64_t more_cupti = cupti > convert->lost_cupti ? cupti - convert->lost_cupti : 0;
	uint64_t since = server->from_ns > server->opened_ns ? server->from_ns : server->opened_ns;
	int err;

	if (since > now) /* never begun */
		return 0;
	err = bridge_convert_loss(convert, RECORD_LOSS_BRIDGE_RING, since, now, more_ring, writer, error);
	if (!err)
		err = bridge_convert_loss(convert, RECORD_LOSS_CUPTI, since, now, more_cupti, writer, error);
	convert->lost_ring += more_ring;
	convert->lost_cupti += more_cupti;
	return err;
}

static void add_stats(struct bridge_server_stats *stats, const struct bridge *bridge)
{
	stats->records += bridge->convert.records;
	stats->operations += bridge->convert.operations;
	stats->lost_ring += bridge->convert.lost_ring;
	stats->lost_cupti += bridge->convert.lost_cupti;
	stats->invalid += bridge->convert.invalid;
	stats->ran += bridge->ran;
}

static void remember(struct bridge_server *server, const struct bridge *bridge)
{
	struct fate *fate;
	enum bridge_state state = state_of(bridge);

	if (server->fates.count == MAX_REMEMBERED)
		return;
	fate = array_add(&server->fates);
	if (!fate)
		return;
	fate->pid = bridge->pid;
	fate->state = state == BRIDGE_FAILED ? BRIDGE_FAILED : BRIDGE_ENDED;
	memcpy(fate->text, bridge->convert.text, sizeof(fate->text));
}

/*
 * A process that was killed could not hand over what CUPTI still held. One whose CUPTI ran and gave nothing
 * may have another user of it that did not subscribe and took the records over: libkineto does that with
 * KINETO_USE_DAEMON (seen with torch 2.11).
 */
static void report_end(struct bridge_server *server, const struct bridge *bridge)
{
	char text[128];

	if (bridge->ran && !bridge->told && !bridge->convert.operations && !bridge->convert.left_out)
		tell(server, bridge->pid,
		     "no GPU timeline for it: CUPTI delivered no GPU operation: it ran none, or another "
		     "profiler in it "
		     "took CUPTI's records (KINETO_USE_DAEMON is one way)");
	if (!server->finishing && state_of(bridge) == BRIDGE_RUNNING) {
		snprintf(text, sizeof(text),
		         "it ended without a flush: its last %u ms on the GPU may be missing",
		         server->options.flush_period_ms);
		tell(server, bridge->pid, text);
	}
}

/* Last drain of a bridge, its closing records, and out. */
static int retire(struct bridge_server *server, size_t index, struct session_writer *writer,
                  struct error *error)
{
	struct bridge *bridge = server->bridges[index];
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int err, one;

	err = drain(server, bridge, writer, error);
	one = write_counted_losses(server, bridge, now, writer, err ? NULL : error);
	err = err ? err : one;
	one = bridge_convert_state(&bridge->convert, now, bridge->convert.phase,
	                           __atomic_load_n(&bridge->reader->control->bridge_ns, __ATOMIC_RELAXED),
	                           bridge->convert.text, writer, err ? NULL : error);
	report_end(server, bridge);
	remember(server, bridge);
	add_stats(&server->ended, bridge);
	bridge_free(bridge);
	server->bridges[index] = server->bridges[--server->count];
	return err ? err : one;
}

static bool hung_up(const struct bridge *bridge)
{
	struct pollfd pipe = {.fd = bridge->fd};
	char byte;
	ssize_t got;

	if (bridge->adopted)
		return poll(&pipe, 1, 0) == 1;
	got = recv(bridge->fd, &byte, sizeof(byte), MSG_DONTWAIT);
	return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

int bridge_server_poll(struct bridge_server *server, struct session_writer *writer, struct error *error)
{
	int err, one;

	err = accept_bridges(server, writer, error);
	for (size_t i = 0; i < server->count;) {
		if (hung_up(server->bridges[i])) {
			one = retire(server, i, writer, err ? NULL : error);
		} else {
			one = drain(server, server->bridges[i], writer, err ? NULL : error);
			i++;
		}
		err = err ? err : one;
	}
	return err;
}

/* ---- bridges that were put into running processes ---- */

uint64_t bridge_server_ring_bytes(const struct bridge_server *server)
{
	return server->options.ring_bytes;
}

uint32_t bridge_server_flush_period_ms(const struct bridge_server *server)
{
	return server->options.flush_period_ms;
}

/* The ring was made by the target: inject/ has checked that its size is right and sealed. */
static int map_ring(struct bridge *bridge, int ring, uint64_t capacity)
{
	bridge->memory_size = RING_CONTROL_SIZE + capacity;
	bridge->memory = mmap(NULL, bridge->memory_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
	if (bridge->memory == MAP_FAILED) {
		bridge->memory = NULL;
		return -errno;
	}
	ring_reader_init(bridge->reader, bridge->memory, capacity);
	return 0;
}

int bridge_server_adopt(struct bridge_server *server, uint32_t pid, int ring, int pipe,
                        struct session_writer *writer, struct error *error)
{
	struct bridge *bridge = server->count < MAX_CONNECTIONS ? new_bridge(server, pid) : NULL;
	int err;

	if (!bridge) {
		close(ring);
		close(pipe);
		return error_set(error, -ENOMEM, "too many processes use CUDA at once");
	}
	bridge->fd = pipe;
	bridge->adopted = true;
	err = map_ring(bridge, ring, server->options.ring_bytes);
	close(ring);
	if (!err)
		err = watch(server, pipe, 0); /* its other end closing is always told */
	if (err) {
		bridge_free(bridge);
		return error_set(error, err, "cannot read the ring of process %u: %s", pid, strerror(-err));
	}
	enlist(server, bridge);
	return write_name(server, pid, writer, error);
}

void bridge_server_stop(struct bridge_server *server)
{
	static const char stop = ATTACH_STOP;

	/* A pipe whose reader has gone is dropped by the next poll. SIGPIPE is blocked in a recording. */
	for (size_t i = 0; i < server->count; i++)
		if (server->bridges[i]->adopted && !hung_up(server->bridges[i]) &&
		    write(server->bridges[i]->fd, &stop, sizeof(stop)) < 0)
			continue;
}

size_t bridge_server_adopted(const struct bridge_server *server)
{
	size_t count = 0;

	for (size_t i = 0; i < server->count; i++)
		count += server->bridges[i]->adopted;
	return count;
}

enum bridge_state bridge_server_state(const struct bridge_server *server, uint32_t pid, const char **text)
{
	const char *unused;

	if (!text)
		text = &unused;
	*text = "";
	for (size_t i = 0; i < server->count; i++) {
		if (server->bridges[i]->pid == pid) {
			*text = server->bridges[i]->convert.text;
			return state_of(server->bridges[i]);
		}
	}
	for (size_t i = server->fates.count; i-- > 0;) {
		if (server->fates.items[i].pid == pid) {
			*text = server->fates.items[i].text;
			return server->fates.items[i].state;
		}
	}
	return BRIDGE_ABSENT;
}

int bridge_server_finish(struct bridge_server *server, struct session_writer *writer, struct error *error)
{
	int err = 0, one;

	server->finishing = true;
	for (size_t i = 0; i < server->count; i++)
		ring_reader_shut(server->bridges[i]->reader);
	while (server->count) {
		one = retire(server, server->count - 1, writer, err ? NULL : error);
		err = err ? err : one;
	}
	return err;
}

void bridge_server_stats(const struct bridge_server *server, struct bridge_server_stats *stats)
{
	*stats = server->ended;
	stats->connected = server->count;
	for (size_t i = 0; i < server->count; i++)
		add_stats(stats, server->bridges[i]);
}

void bridge_server_close(struct bridge_server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < server->count; i++)
		bridge_free(server->bridges[i]);
	if (server->epoll >= 0)
		close(server->epoll);
	if (server->listener >= 0)
		close(server->listener);
	bridge_tables_free(&server->tables);
	array_free(&server->fates);
	free(server);
}
