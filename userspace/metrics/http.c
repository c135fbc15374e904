// SPDX-License-Identifier: GPL-2.0-only
#include "metrics/http.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/library.h"

#define HTTP_LIBRARY          "libmicrohttpd.so.12"
#define HTTP_CONNECTIONS      16
#define HTTP_TIMEOUT_S        5
#define HTTP_CONNECTION_BYTES 32768
#define HTTP_BACKLOG          32

/* The functions of the library in use. */
struct http_library {
	void *handle;
	__typeof__(&MHD_start_daemon) start;
	__typeof__(&MHD_stop_daemon) stop;
	__typeof__(&MHD_run) run;
	__typeof__(&MHD_get_timeout) timeout;
	__typeof__(&MHD_get_daemon_info) info;
	__typeof__(&MHD_create_response_from_buffer) response;
	__typeof__(&MHD_destroy_response) response_free;
	__typeof__(&MHD_add_response_header) header;
	__typeof__(&MHD_queue_response) queue;
	__typeof__(&MHD_lookup_connection_value) request_header;
};

struct http_server {
	struct http_library library;
	struct http_server_options options;
	struct MHD_Daemon *daemon;
	int listener; /* owned by the daemon once that runs */
	int epoll;    /* of the daemon */
	uint16_t port;
	uint64_t requests;
};

static int load_library(struct http_library *library, struct error *error)
{
	const struct library_symbol symbols[] = {
	    {"MHD_start_daemon", &library->start},
	    {"MHD_stop_daemon", &library->stop},
	    {"MHD_run", &library->run},
	    {"MHD_get_timeout", &library->timeout},
	    {"MHD_get_daemon_info", &library->info},
	    {"MHD_create_response_from_buffer", &library->response},
	    {"MHD_destroy_response", &library->response_free},
	    {"MHD_add_response_header", &library->header},
	    {"MHD_queue_response", &library->queue},
	    {"MHD_lookup_connection_value", &library->request_header},
	};

	return library_open(&library->handle, HTTP_LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]),
	                    "no metrics port", "libmicrohttpd12 or libmicrohttpd12t64", error);
}

int http_listen_parse(const char *text, char *address, size_t size, uint16_t *port, struct error *error)
{
	const char *colon = strrchr(text, ':'), *from = text;
	size_t length = colon ? (size_t)(colon - text) : 0;
	unsigned long number;
	char *end;

	if (!colon || !length || colon[1] < '0' || colon[1] > '9')
		return error_set(error, -EINVAL, "'%s' is not ADDRESS:PORT (as in 127.0.0.1:9837)", text);
	number = strtoul(colon + 1, &end, 10);
	if (*end || number > 65535)
		return error_set(error, -EINVAL, "'%s' is not a port", colon + 1);
	if (text[0] == '[' && colon[-1] == ']') {
		from++;
		length -= 2;
	}
	if (!length || length >= size)
		return error_set(error, -EINVAL, "'%s' is not ADDRESS:PORT", text);
	memcpy(address, from, length);
	address[length] = '\0';
	*port = number;
	return 0;
}

static int socket_address(const char *text, struct sockaddr_storage *address, socklen_t *length,
                          struct error *error)
{
	struct sockaddr_in *four = (void *)address;
	struct sockaddr_in6 *six = (void *)address;
	char host[INET6_ADDRSTRLEN] = "";
	uint16_t port = 0;
	int err = http_listen_parse(text, host, sizeof(host), &port, error);

	if (err)
		return err;
	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		*length = sizeof(*four);
	} else if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		*length = sizeof(*six);
	} else {
		return error_set(error, -EINVAL, "'%s' is not an address in numbers", host);
	}
	return 0;
}

static int listen_on(struct http_server *server, const char *text, struct error *error)
{
	struct sockaddr_storage address;
	socklen_t length = 0;
	int one = 1, err = socket_address(text, &address, &length, error);

	if (err)
		return err;
	server->listener = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listener < 0)
		return error_set(error, -errno, "cannot make a socket for %s: %s", text, strerror(errno));
	setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(server->listener, (void *)&address, length) || listen(server->listener, HTTP_BACKLOG) ||
	    getsockname(server->listener, (void *)&address, &length))
		return error_set(error, -errno, "cannot listen on %s: %s", text, strerror(errno));
	server->port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
	                                                  : ((struct sockaddr_in6 *)&address)->sin6_port);
	return 0;
}

static enum MHD_Result reply(struct http_server *server, struct MHD_Connection *connection, unsigned status,
                             struct http_answer *answer, const char *allow)
{
	const struct http_library *library = &server->library;
	struct MHD_Response *response;
	enum MHD_Result result;

	response = library->response(answer->length, answer->body,
	                             answer->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (!response) {
		free(answer->body);
		return MHD_NO;
	}
	if (answer->content_type)
		library->header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->content_type);
	if (allow)
		library->header(response, MHD_HTTP_HEADER_ALLOW, allow);
	result = library->queue(connection, status, response);
	library->response_free(response);
	return result;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
	struct http_server *server = context;
	struct http_answer answer = {.content_type = "text/plain; charset=utf-8"};
	const char *accept, *allow = NULL;
	unsigned status = MHD_HTTP_OK;
	static char seen;
	int err;

	(void)version;
	(void)upload;
	if (!*state) { /* the headers only: an answer now would end the connection */
		*state = &seen;
		return MHD_YES;
	}
	if (*upload_size) { /* thrown away */
		*upload_size = 0;
		return MHD_YES;
	}
	server->requests++;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD)) {
		allow = "GET, HEAD";
		status = MHD_HTTP_METHOD_NOT_ALLOWED;
	} else {
		accept = server->library.request_header(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
		err = server->options.answer(server->options.context, path, accept, &answer);
		if (err)
			status = err == -ENOENT ? MHD_HTTP_NOT_FOUND : MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
	return reply(server, connection, status, &answer, allow);
}

static int start(struct http_server *server, struct error *error)
{
	const union MHD_DaemonInfo *info;

	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): a library without it was refused */
	server->daemon = server->library.start(
	    MHD_USE_EPOLL, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, server->listener,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
	    (unsigned)HTTP_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_BYTES,
	    MHD_OPTION_END);
	if (!server->daemon)
		return error_set(error, -EIO, "cannot start the HTTP server on %s", server->options.listen);
	server->listener = -1;
	info = server->library.info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return error_set(error, -EIO, "the HTTP server cannot be polled");
	server->epoll = info->epoll_fd;
	return 0;
}

int http_server_open(struct http_server **result, const struct http_server_options *options,
                     struct error *error)
{
	struct http_server *server = calloc(1, sizeof(*server));
	int err;

	*result = NULL;
	if (!server)
		return error_no_memory(error);
	server->options = *options;
	server->listener = server->epoll = -1;
	err = load_library(&server->library, error);
	if (!err)
		err = listen_on(server, options->listen, error);
	if (!err)
		err = start(server, error);
	if (err) {
		http_server_close(server);
		return err;
	}
	*result = server;
	return 0;
}

int http_server_fd(const struct http_server *server)
{
	return server->epoll;
}

int http_server_timeout(struct http_server *server)
{
	MHD_UNSIGNED_LONG_LONG left;

	if (server->library.timeout(server->daemon, &left) != MHD_YES)
		return -1;
	return left > HTTP_TIMEOUT_S * 1000ULL ? HTTP_TIMEOUT_S * 1000 : (int)left;
}

void http_server_run(struct http_server *server)
{
	server->library.run(server->daemon);
}

uint16_t http_server_port(const struct http_server *server)
{
	return server->port;
}

uint64_t http_server_requests(const struct http_server *server)
{
	return server->requests;
}

void http_server_close(struct http_server *server)
{
	if (!server)
		return;
	if (server->daemon)
		server->library.stop(server->daemon);
	if (server->listener >= 0)
		close(server->listener);
	if (server->library.handle)
		dlclose(server->library.handle);
	free(server);
}
