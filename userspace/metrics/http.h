/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small HTTP server for the metrics, through libmicrohttpd. The library is opened when it is needed, so
 * that recording and reporting do not depend on it.
 *
 * It has no thread of its own: the owner polls http_server_fd and calls http_server_run. Clients are not
 * trusted: their number, the time they may take, and the memory of each are bounded, and only GET and HEAD of
 * what `answer` knows are served.
 */
#ifndef WHYIDLE_METRICS_HTTP_H
#define WHYIDLE_METRICS_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct http_server;

struct http_answer {
	char *body; /* freed by the server */
	size_t length;
	const char *content_type; /* a constant */
};

struct http_server_options {
	const char *listen; /* "ADDRESS:PORT", "[ADDRESS]:PORT"; port 0: any that is free */
	/* Fills in the answer to a GET of `path`. Returns 0, -ENOENT, or another negative errno. */
	int (*answer)(void *context, const char *path, const char *accept, struct http_answer *answer);
	void *context;
};

/* Returns 0, or a negative errno with `error`: -ENOTSUP where the library is not installed. */
int http_server_open(struct http_server **server, const struct http_server_options *options,
                     struct error *error);

/* Polls readable when there is something to do. */
int http_server_fd(const struct http_server *server);

/* When http_server_run must be called even if nothing happens, in ms; -1: never. */
int http_server_timeout(struct http_server *server);

void http_server_run(struct http_server *server);

/* Port it listens on. */
uint16_t http_server_port(const struct http_server *server);

/* Requests answered so far, refused ones too. */
uint64_t http_server_requests(const struct http_server *server);

/* NULL is allowed. */
void http_server_close(struct http_server *server);

/* Splits "ADDRESS:PORT" into a numeric address and a port. Returns 0 or -EINVAL with `error`. */
int http_listen_parse(const char *text, char *address, size_t size, uint16_t *port, struct error *error);

#endif
