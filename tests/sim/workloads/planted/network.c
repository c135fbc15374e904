/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plants behind a TCP connection, twins for who waits: in one the answer is on its way for so long, in the
 * other the peer, on this machine, sleeps before it answers.
 *
 * The slow link is the loopback of a network namespace of its own, with a token bucket of one answer that
 * takes the planted time to fill. Needs the right to make one (CAP_SYS_ADMIN) and the programs ip and tc;
 * tests/proof asks first.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

#define ANSWER_BYTES 1400
#define FRAME_BYTES  (ANSWER_BYTES + 66) /* with the headers of TCP with time stamps, of IP and Ethernet */
#define MTU_BYTES    1500

struct connection {
	int file;
	pid_t peer;
};

/* In the calling thread's namespace. ends[0] is the client's. */
static void connect_by_loopback(int ends[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), at_once = 1;

	check(listener >= 0, "socket");
	check(!bind(listener, (struct sockaddr *)&address, size), "bind");
	check(!listen(listener, 1), "listen");
	check(!getsockname(listener, (struct sockaddr *)&address, &size), "getsockname");
	ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(ends[0] >= 0 && !connect(ends[0], (struct sockaddr *)&address, size), "connect");
	ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	check(ends[1] >= 0, "accept");
	close(listener);
	for (int i = 0; i < 2; i++)
		check(!setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once)),
		      "TCP_NODELAY");
}

/* The namespace is that of the sockets from then on; the calling thread is back in its own. */
static void connect_by_slow_link(int ends[2], uint64_t answer_ns)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	char command[256];

	snprintf(
	    command, sizeof(command),
	    "ip link set lo mtu %d up && tc qdisc add dev lo root tbf rate %llubit burst %d limit 1000000",
	    MTU_BYTES, (unsigned long long)(FRAME_BYTES * 8 * 1000000000ull / answer_ns), MTU_BYTES + 100);
	check(home >= 0 && !unshare(CLONE_NEWNET), "a network namespace");
	check(!system(command), command);
	connect_by_loopback(ends);
	check(!setns(home, CLONE_NEWNET), "setns");
	close(home);
}

/* What it says of itself: for how long it had no CPU since the answer before. */
struct answer {
	uint64_t delay_ns;
	char padding[ANSWER_BYTES - sizeof(uint64_t)];
};

static void answer_requests(int file, uint64_t pause_ns)
{
	static struct answer answer;
	uint64_t before = run_delay_ns();
	char request;

	while (read(file, &request, 1) == 1) {
		if (pause_ns)
			sleep_ns(pause_ns);
		answer.delay_ns = run_delay_ns() - before;
		before += answer.delay_ns;
		if (send(file, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			break;
	}
	_exit(0);
}

static void start_peer(struct plant *plant, uint64_t link_ns, uint64_t pause_ns)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	int ends[2];

	check(connection, "calloc");
	plant->state = connection;
	if (link_ns)
		connect_by_slow_link(ends, link_ns);
	else
		connect_by_loopback(ends);
	connection->peer = fork_named("peer");
	if (!connection->peer) {
		close(ends[0]);
		answer_requests(ends[1], pause_ns);
	}
	close(ends[1]);
	connection->file = ends[0];
}

static void start_far_peer(struct plant *plant)
{
	start_peer(plant, plant->duration_ns, 0);
}

static void start_sleepy_peer(struct plant *plant)
{
	start_peer(plant, 0, plant->duration_ns);
}

static uint64_t ask_peer(struct plant *plant)
{
	struct connection *connection = plant->state;
	struct answer answer;

	check(send(connection->file, "", 1, MSG_NOSIGNAL) == 1, "request to the peer");
	check(recv(connection->file, &answer, sizeof(answer), MSG_WAITALL) == sizeof(answer),
	      "answer of the peer");
	return answer.delay_ns;
}

/* Who asks over a slow network cannot tell a late peer from a late packet. */
static void ask_far_peer(struct plant *plant)
{
	ask_peer(plant);
}

static void ask_sleepy_peer(struct plant *plant)
{
	plant->helpers_delay_ns = ask_peer(plant);
}

static void end_peer(struct plant *plant)
{
	struct connection *connection = plant->state;

	close(connection->file);
	kill(connection->peer, SIGKILL);
	waitpid(connection->peer, NULL, 0);
	free(connection);
}

const struct plant_kind kinds_of_network[] = {
    {.name = "network",
     .code = "wait.network",
     .measure = MEASURE_BLOCKED,
     .places = 1u << PLACE_LAUNCHER | 1u << PLACE_THREAD | 1u << PLACE_WORKER,
     .set_up = start_far_peer,
     .run = ask_far_peer,
     .tear_down = end_peer},
    {.name = "peer_sleeps",
     .code = "wait.sleep",
     .role = "worker",
     .measure = MEASURE_BLOCKED,
     .places = 1u << PLACE_LAUNCHER,
     .set_up = start_sleepy_peer,
     .run = ask_sleepy_peer,
     .tear_down = end_peer},
    {.name = NULL},
};
