// SPDX-License-Identifier: GPL-2.0-only
/* The control socket: real sockets, a client in another thread, time that is made up. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/control.h"

#define SECOND_NS   1000000000ULL
#define LARGE       (3u << 20) /* more than a socket holds */
#define PATIENCE_MS 20000

static char folder[64], path[96];

static void make_folder(void)
{
	strcpy(folder, "/tmp/whyidle-control-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/sub/control", folder);
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

/* ---- the daemon's side ---- */

struct asked {
	char last[CONTROL_REQUEST];
	unsigned count;
	bool owner;
};

/* "large" gets much, "files" two descriptors, "nothing" nothing, all else itself. */
static void answer(void *context, const char *request, bool owner, struct control_answer *answer)
{
	struct asked *asked = context;

	snprintf(asked->last, sizeof(asked->last), "%s", request);
	asked->count++;
	asked->owner = owner;
	if (!strcmp(request, "nothing"))
		return;
	if (!strcmp(request, "large")) {
		answer->text = malloc(LARGE);
		memset(answer->text, 'x', LARGE);
		answer->length = LARGE;
		return;
	}
	for (int i = 0; !strcmp(request, "files") && i < 2; i++)
		answer->files[answer->file_count++] =
		    open(i ? "/dev/zero" : "/dev/null", O_RDONLY | O_CLOEXEC);
	answer->text = strdup(request);
	answer->length = strlen(request);
}

static struct control *open_control(struct asked *asked)
{
	struct control_options options = {.path = path, .request = answer, .context = asked};
	struct control *control;
	struct error error;

	cr_assert_eq(control_open(&control, &options, &error), 0, "%s", error.text);
	return control;
}

static void serve_once(struct control *control, uint64_t now_ns)
{
	struct pollfd ready = {.fd = control_fd(control), .events = POLLIN};

	if (poll(&ready, 1, 10) > 0)
		control_run(control, now_ns);
}

/* ---- the client's side ---- */

struct client {
	const char *request;
	char *text;
	size_t length, file_count;
	int files[CONTROL_FILES], err;
	atomic_bool done;
};

static void *ask(void *context)
{
	struct client *client = context;
	struct error error;

	client->err = control_ask(path, client->request, PATIENCE_MS, &client->text, &client->length,
	                          client->files, &client->file_count, &error);
	client->done = true;
	return NULL;
}

static void serve(struct control *control, struct client *client)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, ask, client), 0);
	while (!client->done)
		serve_once(control, SECOND_NS);
	pthread_join(thread, NULL);
}

/* A client that is not control_ask. */
static int connect_raw(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	cr_assert_geq(fd, 0);
	if (!connect(fd, (void *)&address, sizeof(address)))
		return fd;
	cr_assert_eq(errno, EAGAIN, "%s", strerror(errno)); /* its queue is full */
	close(fd);
	return -1;
}

/* What is there to read: bytes, 0 at the end, -EAGAIN. A reset is an end, too. */
static ssize_t look(int fd)
{
	char buffer[4096];
	ssize_t got = read(fd, buffer, sizeof(buffer));

	return got >= 0 ? got : errno == ECONNRESET ? 0 : -errno;
}

static size_t descriptors(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* ---- tests ---- */

Test(control, requests_and_answers, .init = make_folder, .fini = remove_folder)
{
	struct asked asked = {0};
	struct control *control = open_control(&asked);
	struct client small = {.request = "status"}, large = {.request = "large"},
	              none = {.request = "nothing"};
	struct stat status;

	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(status.st_mode & 0777, 0600, "others could ask: %o", status.st_mode);
	serve(control, &small);
	cr_assert_eq(small.err, 0);
	cr_assert_str_eq(small.text, "status");
	cr_assert(asked.owner, "a client of the own user");
	serve(control, &large);
	cr_assert_eq(large.err, 0);
	cr_assert_eq(large.length, LARGE);
	for (size_t i = 0; i < LARGE; i++)
		cr_assert_eq(large.text[i], 'x');
	serve(control, &none);
	cr_assert_lt(none.err, 0);
	cr_assert_eq(asked.count, 3);
	control_close(control);
	cr_assert_neq(stat(path, &status), 0, "the socket's file is left");
	free(small.text);
	free(large.text);
}

Test(control, descriptors_go_with_an_answer_and_none_is_left, .init = make_folder, .fini = remove_folder)
{
	struct asked asked = {0};
	struct control *control = open_control(&asked);
	size_t before = descriptors();

	for (int round = 0; round < 3; round++) {
		struct client client = {.request = "files"};
		char byte = 'x';

		serve(control, &client);
		cr_assert_eq(client.err, 0);
		cr_assert_eq(client.file_count, 2);
		cr_assert_eq(read(client.files[0], &byte, 1), 0, "the first is /dev/null");
		cr_assert_eq(read(client.files[1], &byte, 1), 1);
		cr_assert_eq(byte, 0, "the second is /dev/zero");
		close(client.files[0]);
		close(client.files[1]);
		free(client.text);
		cr_assert_eq(descriptors(), before);
	}
	control_close(control);
}

Test(control, a_line_in_parts_and_lines_that_are_too_long, .init = make_folder, .fini = remove_folder)
{
	struct asked asked = {0};
	struct control *control = open_control(&asked);
	char longest[CONTROL_REQUEST], buffer[64] = "";
	int fd = connect_raw();

	cr_assert_eq(write(fd, "sta", 3), 3);
	for (int i = 0; i < 3; i++)
		serve_once(control, SECOND_NS);
	cr_assert_eq(look(fd), -EAGAIN);
	cr_assert_eq(asked.count, 0);
	cr_assert_eq(write(fd, "tus\nmore", 8), 8);
	serve_once(control, SECOND_NS);
	cr_assert_eq(read(fd, buffer, sizeof(buffer)), 6);
	cr_assert_str_eq(asked.last, "status");
	cr_assert_eq(look(fd), 0, "one line for each client");
	close(fd);

	memset(longest, 'y', sizeof(longest));
	fd = connect_raw();
	cr_assert_eq(write(fd, longest, sizeof(longest)), (ssize_t)sizeof(longest));
	for (int i = 0; i < 3; i++)
		serve_once(control, SECOND_NS);
	cr_assert_eq(look(fd), 0, "a line without an end is dropped");
	close(fd);
	longest[sizeof(longest) - 1] = '\n';
	fd = connect_raw();
	cr_assert_eq(write(fd, longest, sizeof(longest)), (ssize_t)sizeof(longest));
	for (int i = 0; i < 3; i++)
		serve_once(control, SECOND_NS);
	cr_assert_eq(look(fd), (ssize_t)sizeof(longest) - 1, "the longest that is allowed");
	close(fd);
	cr_assert_eq(asked.count, 2);
	control_close(control);
}

Test(control, who_says_nothing_holds_nobody_up_for_long, .init = make_folder, .fini = remove_folder)
{
	struct asked asked = {0};
	struct control *control = open_control(&asked);
	struct client client = {.request = "status"};
	int idle[64], count = 0, fd;

	while (count < 64 && (fd = connect_raw()) >= 0)
		idle[count++] = fd;
	cr_assert_geq(count, 16);
	for (int i = 0; i < 40; i++)
		serve_once(control, SECOND_NS);
	cr_assert_eq(look(idle[0]), -EAGAIN, "they are waited for …");
	control_expire(control, 3 * SECOND_NS);
	cr_assert_eq(look(idle[0]), -EAGAIN);
	control_expire(control, 7 * SECOND_NS);
	cr_assert_eq(look(idle[0]), 0, "… but not for ever");
	for (int i = 0; i < 40; i++)
		serve_once(control, 8 * SECOND_NS);
	control_expire(control, 14 * SECOND_NS);
	for (int i = 0; i < count; i++)
		close(idle[i]);
	for (int i = 0; i < 40; i++) /* those that were in the queue: they have gone */
		serve_once(control, 15 * SECOND_NS);
	serve(control, &client);
	cr_assert_eq(client.err, 0);
	free(client.text);
	control_close(control);
}

Test(control, who_does_not_read_is_dropped, .init = make_folder, .fini = remove_folder)
{
	struct asked asked = {0};
	struct control *control = open_control(&asked);
	int fd = connect_raw();
	size_t before = descriptors();

	cr_assert_eq(write(fd, "large\n", 6), 6);
	for (int i = 0; i < 5; i++)
		serve_once(control, SECOND_NS);
	cr_assert_eq(asked.count, 1);
	cr_assert_eq(descriptors(), before + 1);
	control_expire(control, 7 * SECOND_NS);
	cr_assert_eq(descriptors(), before);
	close(fd);
	control_close(control);
}

Test(control, what_is_in_the_way, .init = make_folder, .fini = remove_folder)
{
	struct asked asked = {0};
	struct control *first = open_control(&asked), *second;
	struct control_options options = {.path = path, .request = answer, .context = &asked};
	char away[128], too_long[200];
	struct error error;
	int fd;

	cr_assert_eq(control_open(&second, &options, &error), -EADDRINUSE);
	cr_assert(strstr(error.text, "another daemon answers"), "%s", error.text);
	cr_assert_null(second);
	/* As after a kill: the file is there, and nobody listens. */
	snprintf(away, sizeof(away), "%s.away", path);
	cr_assert_eq(rename(path, away), 0);
	control_close(first);
	cr_assert_eq(rename(away, path), 0);
	cr_assert_eq(control_ask(path, "status", 100, &(char *){NULL}, &(size_t){0}, NULL, NULL, &error),
	             -ECONNREFUSED);
	cr_assert(strstr(error.text, "no daemon answers"), "%s", error.text);
	cr_assert_eq(control_open(&first, &options, &error), 0, "%s", error.text);
	control_close(first);
	/* A file of somebody else's stays. */
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(control_open(&first, &options, &error), -EEXIST);
	cr_assert_eq(access(path, F_OK), 0);
	cr_assert_eq(unlink(path), 0);
	options.group = "no-such-group-here";
	cr_assert_eq(control_open(&first, &options, &error), -EINVAL);
	cr_assert_neq(access(path, F_OK), 0, "a socket that is not as it was wanted is left");
	options.group = NULL;
	memset(too_long, 'l', sizeof(too_long) - 1);
	too_long[0] = '/';
	too_long[sizeof(too_long) - 1] = '\0';
	options.path = too_long;
	cr_assert_eq(control_open(&first, &options, &error), -ENAMETOOLONG);
	cr_assert_eq(control_ask(too_long, "status", 100, &(char *){NULL}, &(size_t){0}, NULL, NULL, &error),
	             -ENAMETOOLONG);
	cr_assert_eq(control_ask(path, "status", 100, &(char *){NULL}, &(size_t){0}, NULL, NULL, &error),
	             -ENOENT);
}
