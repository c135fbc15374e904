/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The collector's side of all bridges: accepts them, gives each a shared-memory ring, and moves what they
 * write to the session. Nothing in here waits for a bridge, and none of them can harm the collector: a ring
 * that makes no sense is given up, said so, and the rest goes on.
 */
#ifndef WHYIDLE_COLLECT_BRIDGE_SERVER_H
#define WHYIDLE_COLLECT_BRIDGE_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "trace/session.h"

struct bridge_server;

struct bridge_server_options {
	uid_t uid; /* only processes of this user (and root) may connect */
	uint64_t
	    ring_bytes; /* of each process, a power of two; 0: default (32 MiB, taken as it is touched) */
	uint32_t flush_period_ms; /* how often bridges ask CUPTI for finished buffers; 0: default (250 ms) */
	bool write_names;         /* write the names of the processes: nobody else does */
	bool wait;                /* keep nothing that has a time before bridge_server_begin */
	/* Called when something is worth telling a person; pid 0 if it concerns no process. */
	void (*degraded)(void *context, uint32_t pid, const char *what);
	/* A process has connected and is held until this returns: for what must be ready before it goes on.
	 * NULL is allowed. */
	void (*connects)(void *context, uint32_t pid);
	void *context;
};

enum bridge_state {
	BRIDGE_ABSENT,   /* never connected */
	BRIDGE_STARTING, /* connected, CUPTI not yet running */
	BRIDGE_RUNNING,
	BRIDGE_FAILED, /* CUPTI could not be used, or the ring is broken */
	BRIDGE_ENDED,  /* was running; the process has gone or CUPTI was stopped */
};

struct bridge_server_stats {
	uint64_t records;    /* taken from all rings */
	uint64_t operations; /* GPU operations among them */
	uint64_t lost_ring, lost_cupti;
	uint64_t invalid;   /* records that made no sense */
	uint32_t processes; /* that ever connected */
	uint32_t connected; /* now */
	uint32_t ran;       /* processes whose CUPTI ever ran */
};

/* Listens on a fresh abstract socket. Returns 0 or a negative errno with `error`. */
int bridge_server_open(struct bridge_server **server, const struct bridge_server_options *options,
                       struct error *error);

/* Name of the socket, for RING_SOCKET_ENV. */
const char *bridge_server_name(const struct bridge_server *server);

/* A descriptor that polls readable when a bridge connects or leaves. */
int bridge_server_fd(const struct bridge_server *server);

/* From now on what bridges say is kept, but for what ended before. */
void bridge_server_begin(struct bridge_server *server);

/*
 * Accepts, drains every ring and drops those that have gone. Bounded by the capacity of the rings. Returns 0
 * or the first negative errno of the writer, having gone on with the rest.
 */
int bridge_server_poll(struct bridge_server *server, struct session_writer *writer, struct error *error);

/*
 * State of the bridge of a process. `text` (may be NULL) gets what it last said, "" if nothing; valid until
 * the next call into the server.
 */
enum bridge_state bridge_server_state(const struct bridge_server *server, uint32_t pid, const char **text);

/* What a bridge that is put into a running process is to be given (inject/inject.h). */
uint64_t bridge_server_ring_bytes(const struct bridge_server *server);
uint32_t bridge_server_flush_period_ms(const struct bridge_server *server);

/*
 * Takes over the bridge of a process that was attached: its ring (a memfd whose size is sealed) and the pipe
 * that it listens to. Both descriptors are the server's from then on, also if it fails. Returns 0 or a
 * negative errno of making it or of the writer.
 */
int bridge_server_adopt(struct bridge_server *server, uint32_t pid, int ring, int pipe,
                        struct session_writer *writer, struct error *error);

/* Asks every bridge that was taken over to hand over its last records and to leave; does not wait. */
void bridge_server_stop(struct bridge_server *server);

/* Number of bridges taken over that are still there. */
size_t bridge_server_adopted(const struct bridge_server *server);

/* Tells every bridge to stop writing, drains once more, and writes the closing records. */
int bridge_server_finish(struct bridge_server *server, struct session_writer *writer, struct error *error);

void bridge_server_stats(const struct bridge_server *server, struct bridge_server_stats *stats);

/* NULL is allowed. */
void bridge_server_close(struct bridge_server *server);

#endif
