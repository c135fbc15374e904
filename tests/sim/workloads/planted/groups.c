/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plants in which several others feed the launcher, or nobody does: pools of workers, clients of a server.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

#define LAUNCHER (1u << PLACE_LAUNCHER)
#define POOL     4

/*
 * Pool: each worker prepares an item in POOL stalls (asleep, so that they do not need as many CPUs); the
 * launcher takes the items in order and has each worker begin the next one as soon as it has taken its last.
 * With a slow worker the others prepare an item in one stall, and wait with it until the slow one has
 * delivered.
 */
struct pool {
	pid_t workers[POOL];
	int requests[POOL], items[POOL];
	uint64_t turn;
};

static void pool_worker(uint64_t work_ns, int requests, int items)
{
	char byte;

	while (read(requests, &byte, 1) == 1) {
		sleep_ns(work_ns);
		if (write(items, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static void start_pool(struct plant *plant, uint64_t others_ns)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	check(pool, "calloc");
	plant->state = pool;
	for (int i = 0; i < POOL; i++) {
		int down[2], up[2];

		check(!pipe(down), "pipe");
		check(!pipe(up), "pipe");
		pool->workers[i] = fork_named("worker");
		if (!pool->workers[i])
			pool_worker(i ? others_ns : POOL * plant->duration_ns, down[0], up[1]);
		close(down[0]);
		close(up[1]);
		pool->requests[i] = down[1];
		pool->items[i] = up[0];
		check(write(pool->requests[i], "", 1) == 1, "write to a worker");
	}
}

static void start_even_pool(struct plant *plant)
{
	start_pool(plant, POOL * plant->duration_ns);
}

static void start_uneven_pool(struct plant *plant)
{
	start_pool(plant, plant->duration_ns);
}

/* What was taken last is ordered anew before the next item is waited for. */
static void order_item(struct plant *plant)
{
	struct pool *pool = plant->state;

	if (pool->turn)
		check(write(pool->requests[(pool->turn - 1) % POOL], "", 1) == 1, "write to a worker");
}

static void take_item(struct plant *plant)
{
	struct pool *pool = plant->state;
	char byte;

	check(read(pool->items[pool->turn % POOL], &byte, 1) == 1, "read from a worker");
	pool->turn++;
}

static void end_pool(struct plant *plant)
{
	struct pool *pool = plant->state;

	for (int i = 0; i < POOL; i++) {
		kill(pool->workers[i], SIGKILL);
		waitpid(pool->workers[i], NULL, 0);
		close(pool->requests[i]);
		close(pool->items[i]);
	}
	free(pool);
}

/* A server that waits for a client from outside to want something, and answers it. */
struct server {
	int listener, client;
	bool owes_answer;
};

static void open_server(struct plant *plant)
{
	struct server *server = calloc(1, sizeof(*server));
	struct sockaddr_un address;

	check(server, "calloc");
	check(plant->clients, "a server without --socket");
	plant->state = server;
	if (!plant->duration_ns)
		return;
	address = socket_address(plant->clients);
	server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(server->listener >= 0, "socket");
	check(!bind(server->listener, (struct sockaddr *)&address, sizeof(address)), plant->clients);
	check(!listen(server->listener, 1), "listen");
	server->client = accept(server->listener, NULL, NULL);
	check(server->client >= 0, "accept");
}

static void answer_client(struct plant *plant)
{
	struct server *server = plant->state;

	if (server->owes_answer)
		check(send(server->client, "", 1, MSG_NOSIGNAL) == 1, "answer to the client");
	server->owes_answer = true;
}

static void await_client(struct plant *plant)
{
	struct server *server = plant->state;
	char byte;

	check(read(server->client, &byte, 1) == 1, "request of the client");
}

int ask_for_work(const char *socket_path, uint64_t every_ns)
{
	struct sockaddr_un address = socket_address(socket_path);
	int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;

	check(file >= 0, "socket");
	while (connect(file, (struct sockaddr *)&address, sizeof(address)))
		sleep_ns(1000000);
	do {
		sleep_ns(every_ns);
	} while (send(file, "", 1, MSG_NOSIGNAL) == 1 && read(file, &byte, 1) == 1);
	return 0;
}

const struct plant_kind kinds_of_groups[] = {
    {.name = "pool",
     .code = "wait.sleep",
     .role = "worker",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_even_pool,
     .prepare = order_item,
     .run = take_item,
     .tear_down = end_pool},
    {.name = "pool_slow",
     .code = "wait.sleep",
     .role = "worker",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_uneven_pool,
     .prepare = order_item,
     .run = take_item,
     .tear_down = end_pool},
    {.name = "no_work",
     .code = "wait.sleep", /* the client, on this machine, sleeps between its requests */
     .role = "process",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = open_server,
     .prepare = answer_client,
     .run = await_client},
    {.name = NULL},
};
