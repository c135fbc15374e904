/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plays the collector for the bridges of a command, without BPF, root or a session file, and prints what they
 *send as text, one record a line: to look at what CUPTI delivers, and to test the bridge.
 *
 *	ring_dump [-b BYTES] [-f MS] [-d MS] [-k MS] [-c MS] [-q] [-o FILE] BRIDGE COMMAND [ARGUMENT]…
 *
 *	-b BYTES  capacity of a ring (a power of two, default 4 MiB)
 *	-f MS     flush period that is asked of the bridge (default 100)
 *	-d MS     read the rings only that often (default 10)
 *	-k MS     behave like a killed collector after that time: close everything, read no more
 *	-c MS     behave like a collector that ends: mark the rings closed, read no more
 *	-q        print only the records of which there are few
 *	-o FILE   write there instead of to standard output
 *
 * Ends with a line of totals and the command's exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cupti_bridge/ring.h"

#define MAX_PEERS 64
#define MAX_TYPES 16

struct peer {
	int fd;
	struct ring_control *control;
	const uint8_t *data;
	uint64_t tail;
	uint32_t pid; /* from the socket's credentials */
	char **names; /* by id */
	uint32_t name_count;
};

struct options {
	uint64_t capacity;
	uint32_t flush_ms, poll_ms, kill_ms, close_ms;
	bool quiet;
	FILE *out;
};

static struct options options = {.capacity = 4u << 20, .flush_ms = 100, .poll_ms = 10};
static struct peer peers[MAX_PEERS];
static uint32_t peer_count;
static uint64_t totals[MAX_TYPES];

static void fail(const char *what)
{
	fprintf(stderr, "ring_dump: %s: %s\n", what, strerror(errno));
	exit(125);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int listen_abstract(char *name, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int length = snprintf(name, size, "whyidle-dump-%d", getpid());

	memcpy(address.sun_path + 1, name, (size_t)length);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&address,
	         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) ||
	    listen(fd, MAX_PEERS))
		fail("socket");
	return fd;
}

static void send_offer(int fd, int memory)
{
	struct ring_offer offer = {
	    .magic = RING_MAGIC,
	    .version = RING_VERSION,
	    .capacity = options.capacity,
	    .flush_period_ms = options.flush_ms,
	};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {
	    .header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct iovec data = {&offer, sizeof(offer)};
	struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &memory, sizeof(memory));
	if (sendmsg(fd, &message, MSG_NOSIGNAL) != (ssize_t)sizeof(offer))
		fail("sendmsg");
}

static void accept_peer(int listener)
{
	size_t size = RING_CONTROL_SIZE + options.capacity;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	int memory = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct ucred credentials = {0};
	socklen_t length = sizeof(credentials);
	struct peer *peer = &peers[peer_count];

	if (fd < 0 || memory < 0 || peer_count == MAX_PEERS || ftruncate(memory, (off_t)size) ||
	    fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		fail("ring");
	peer->fd = fd;
	peer->control = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (peer->control == MAP_FAILED)
		fail("mmap");
	peer->data = (uint8_t *)peer->control + RING_CONTROL_SIZE;
	peer->control->magic = RING_MAGIC;
	peer->control->version = RING_VERSION;
	peer->control->capacity = options.capacity;
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length);
	peer->pid = (uint32_t)credentials.pid;
	send_offer(fd, memory);
	close(memory);
	peer_count++;
}

static void add_name(struct peer *peer, const struct ring_name *name)
{
	if (name->id >= peer->name_count) {
		uint32_t count = name->id + 256;
		char **names = realloc(peer->names, count * sizeof(*names));

		if (!names)
			fail("names");
		memset(names + peer->name_count, 0, (count - peer->name_count) * sizeof(*names));
		peer->names = names;
		peer->name_count = count;
	}
	peer->names[name->id] = strndup(name->name, name->length);
}

static const char *name_of(const struct peer *peer, uint32_t id)
{
	return id < peer->name_count && peer->names[id] ? peer->names[id] : "?";
}

static void print_operation(const struct peer *peer, const struct ring_record *record)
{
	const struct ring_kernel *kernel = (const void *)record;
	const struct ring_memcpy *copy = (const void *)record;
	const struct ring_memset *set = (const void *)record;

	fprintf(options.out,
	        "start=%" PRIu64 " end=%" PRIu64 " device=%u context=%u stream=%u correlation=%u ",
	        kernel->start_ns, kernel->end_ns, kernel->device, kernel->context, kernel->stream,
	        kernel->correlation);
	if (record->type == RING_KERNEL)
		fprintf(options.out, "graph=%u node=%" PRIu64 " grid=%u,%u,%u block=%u,%u,%u name=%s\n",
		        kernel->graph, kernel->graph_node, kernel->grid[0], kernel->grid[1], kernel->grid[2],
		        kernel->block[0], kernel->block[1], kernel->block[2], name_of(peer, kernel->name));
	else if (record->type == RING_MEMCPY)
		fprintf(options.out, "graph=%u bytes=%" PRIu64 " kind=%u source=%u target=%u flags=%u\n",
		        copy->graph, copy->bytes, copy->copy_kind, copy->source_kind, copy->target_kind,
		        copy->flags);
	else
		fprintf(options.out, "graph=%u bytes=%" PRIu64 " memory=%u\n", set->graph, set->bytes,
		        set->memory_kind);
}

static void print_hello(const struct ring_hello *hello)
{
	fprintf(options.out,
	        "pid=%u cupti=%u driver=%u clock=%u clock_error=%" PRIu64 " simulated=%u path=%.*s\n",
	        hello->pid, hello->cupti_version, hello->driver_version, hello->clock, hello->clock_error_ns,
	        hello->simulated, (int)hello->path_length, hello->path);
}

static void print_device(const struct peer *peer, const struct ring_device *device)
{
	fprintf(options.out, "device=%u sms=%u compute=%u.%u memory=%" PRIu64 " uuid=", device->device,
	        device->sm_count, device->compute_major, device->compute_minor, device->memory_bytes);
	for (int i = 0; i < 16; i++)
		fprintf(options.out, "%02x", device->uuid[i]);
	fprintf(options.out, " name=%s\n", name_of(peer, device->name));
}

static void print_record(struct peer *peer, const struct ring_record *record)
{
	static const char *const types[] = {"PAD",      "HELLO",  "STATUS", "NAME", "DEVICE",
	                                    "KERNEL",   "MEMCPY", "MEMSET", "API",  "SYNC",
	                                    "OVERHEAD", "LOSS",   "RANGE"};
	const struct ring_status *status = (const void *)record;
	const struct ring_api *api = (const void *)record;
	const struct ring_sync *sync = (const void *)record;
	const struct ring_overhead *overhead = (const void *)record;
	const struct ring_loss *loss = (const void *)record;
	const struct ring_range *range = (const void *)record;
	const struct ring_name *name = (const void *)record;

	totals[record->type < MAX_TYPES ? record->type : 0]++;
	if (record->type == RING_NAME)
		add_name(peer, name);
	if (options.quiet && record->type != RING_HELLO && record->type != RING_STATUS &&
	    record->type != RING_LOSS && record->type != RING_DEVICE)
		return;
	fprintf(options.out, "%u %s ", peer->pid,
	        record->type <= RING_RANGE ? types[record->type] : "UNKNOWN");
	switch (record->type) {
	case RING_HELLO:
		print_hello((const void *)record);
		break;
	case RING_STATUS:
		fprintf(options.out, "time=%" PRIu64 " phase=%u error=%d text=%.*s\n", status->time_ns,
		        status->phase, status->error, (int)status->text_length, status->text);
		break;
	case RING_NAME:
		fprintf(options.out, "id=%u name=%.*s\n", name->id, (int)name->length, name->name);
		break;
	case RING_DEVICE:
		print_device(peer, (const void *)record);
		break;
	case RING_KERNEL:
	case RING_MEMCPY:
	case RING_MEMSET:
		print_operation(peer, record);
		break;
	case RING_API:
		fprintf(options.out,
		        "start=%" PRIu64 " end=%" PRIu64
		        " tid=%u correlation=%u domain=%u result=%d function=%s\n",
		        api->start_ns, api->end_ns, api->tid, api->correlation, api->domain, api->result,
		        name_of(peer, api->function));
		break;
	case RING_SYNC:
		fprintf(options.out,
		        "start=%" PRIu64 " end=%" PRIu64
		        " type=%u context=%u stream=%u correlation=%u event=%u\n",
		        sync->start_ns, sync->end_ns, sync->type, sync->context, sync->stream,
		        sync->correlation, sync->event);
		break;
	case RING_OVERHEAD:
		fprintf(options.out, "start=%" PRIu64 " end=%" PRIu64 " kind=%u tid=%u\n", overhead->start_ns,
		        overhead->end_ns, overhead->kind, overhead->tid);
		break;
	case RING_LOSS:
		fprintf(options.out, "start=%" PRIu64 " end=%" PRIu64 " cause=%u count=%" PRIu64 "\n",
		        loss->start_ns, loss->end_ns, loss->cause, loss->count);
		break;
	case RING_RANGE:
		fprintf(options.out, "start=%" PRIu64 " end=%" PRIu64 " tid=%u kind=%u", range->start_ns,
		        range->end_ns, range->tid, range->kind);
		fprintf(options.out, " domain=%s", name_of(peer, range->domain));
		fprintf(options.out, " name=%s\n", name_of(peer, range->name));
		break;
	default:
		fprintf(options.out, "size=%u\n", record->size);
	}
}

/* A tool for one's own bridge: it stops at the first thing that makes no sense instead of coping with it. */
static void drain(struct peer *peer)
{
	uint64_t head = __atomic_load_n(&peer->control->head, __ATOMIC_ACQUIRE);

	if (head - peer->tail > options.capacity) {
		fprintf(stderr, "ring_dump: bad head\n");
		exit(125);
	}
	while (peer->tail < head) {
		uint64_t offset = peer->tail & (options.capacity - 1);
		const struct ring_record *record = (const void *)(peer->data + offset);

		if (record->size < sizeof(*record) || record->size % 8 ||
		    record->size > options.capacity - offset || record->size > head - peer->tail) {
			fprintf(stderr, "ring_dump: bad record of %u bytes\n", record->size);
			exit(125);
		}
		if (record->type != RING_PAD)
			print_record(peer, record);
		peer->tail += record->size;
	}
	__atomic_store_n(&peer->control->tail, peer->tail, __ATOMIC_RELEASE);
}

static pid_t start_command(const char *bridge, char **command, const char *socket_name)
{
	char path[4096];
	pid_t child;

	if (!realpath(bridge, path))
		fail(bridge);
	child = fork();
	if (child < 0)
		fail("fork");
	if (child)
		return child;
	setenv("CUDA_INJECTION64_PATH", path, 1);
	setenv(RING_SOCKET_ENV, socket_name, 1);
	execvp(command[0], command);
	fprintf(stderr, "ring_dump: %s: %s\n", command[0], strerror(errno));
	_exit(127);
}

static void print_end(int status)
{
	for (uint32_t i = 0; i < peer_count; i++)
		fprintf(options.out,
		        "%u END phase=%u lost_records=%" PRIu64 " cupti_lost=%" PRIu64 " bridge_ns=%" PRIu64
		        "\n",
		        peers[i].pid, peers[i].control->phase, peers[i].control->lost_records,
		        peers[i].control->cupti_lost, peers[i].control->bridge_ns);
	fprintf(options.out,
	        "TOTAL peers=%u kernel=%" PRIu64 " memcpy=%" PRIu64 " memset=%" PRIu64 " api=%" PRIu64
	        " sync=%" PRIu64 " overhead=%" PRIu64 " device=%" PRIu64 " name=%" PRIu64 " loss=%" PRIu64
	        " status=%" PRIu64 "\n",
	        peer_count, totals[RING_KERNEL], totals[RING_MEMCPY], totals[RING_MEMSET], totals[RING_API],
	        totals[RING_SYNC], totals[RING_OVERHEAD], totals[RING_DEVICE], totals[RING_NAME],
	        totals[RING_LOSS], totals[RING_STATUS]);
	if (WIFSIGNALED(status))
		fprintf(options.out, "KILLED signal=%d\n", WTERMSIG(status));
	else
		fprintf(options.out, "EXIT status=%d\n", WEXITSTATUS(status));
	fflush(options.out);
}

static uint64_t parse_number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (*end || end == text) {
		fprintf(stderr, "ring_dump: not a number: %s\n", text);
		exit(2);
	}
	return value;
}

static void parse_options(int argc, char **argv)
{
	int option;

	options.out = stdout;
	while ((option = getopt(argc, argv, "+b:f:d:k:c:qo:")) != -1) {
		switch (option) {
		case 'b':
			options.capacity = parse_number(optarg);
			break;
		case 'f':
			options.flush_ms = (uint32_t)parse_number(optarg);
			break;
		case 'd':
			options.poll_ms = (uint32_t)parse_number(optarg);
			break;
		case 'k':
			options.kill_ms = (uint32_t)parse_number(optarg);
			break;
		case 'c':
			options.close_ms = (uint32_t)parse_number(optarg);
			break;
		case 'q':
			options.quiet = true;
			break;
		case 'o':
			options.out = fopen(optarg, "we");
			if (!options.out)
				fail(optarg);
			break;
		default:
			exit(2);
		}
	}
	if (argc - optind < 2) {
		fprintf(stderr,
		        "usage: ring_dump [-b BYTES] [-f MS] [-d MS] [-k MS] [-c MS] [-q] [-o FILE] BRIDGE "
		        "COMMAND [ARGUMENT]…\n");
		exit(2);
	}
}

/* What a killed collector leaves behind: nothing but the memory that the bridge has mapped. */
static void vanish(int listener)
{
	close(listener);
	for (uint32_t i = 0; i < peer_count; i++)
		close(peers[i].fd);
}

int main(int argc, char **argv)
{
	char name[64];
	uint64_t begin = now_ms();
	bool gone = false;
	int listener, status = 0;
	pid_t child;

	parse_options(argc, argv);
	listener = listen_abstract(name, sizeof(name));
	child = start_command(argv[optind], argv + optind + 1, name);
	signal(SIGINT, SIG_IGN); /* the command gets it too; its end is reported */
	for (bool ended = false; !ended;) {
		struct pollfd wait = {.fd = gone ? -1 : listener, .events = POLLIN};

		if (poll(&wait, 1, (int)options.poll_ms) > 0)
			accept_peer(listener);
		ended = waitpid(child, &status, WNOHANG) == child;
		for (uint32_t i = 0; !gone && i < peer_count; i++)
			drain(&peers[i]);
		if (!gone && options.kill_ms && now_ms() - begin >= options.kill_ms) {
			vanish(listener);
			gone = true;
		}
		if (!gone && options.close_ms && now_ms() - begin >= options.close_ms) {
			for (uint32_t i = 0; i < peer_count; i++)
				__atomic_store_n(&peers[i].control->closed, 1, __ATOMIC_RELEASE);
			gone = true;
		}
	}
	print_end(status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
