// SPDX-License-Identifier: GPL-2.0-only
#include "collect/pure_environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static int add(struct environment *environment, const char *text, size_t length)
{
	char **slot, *copy = strndup(text, length);

	if (!copy)
		return -ENOMEM;
	slot = array_add(environment);
	if (!slot) {
		free(copy);
		return -ENOMEM;
	}
	*slot = copy;
	return 0;
}

/* Index of a variable, `count` if it is not there. */
static size_t find(const struct environment *environment, const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < environment->count; i++) {
		if (!strncmp(environment->items[i], name, length) && environment->items[i][length] == '=')
			break;
	}
	return i;
}

int environment_copy(struct environment *environment, char *const *vector)
{
	int err = 0;

	for (; *vector && !err; vector++)
		err = add(environment, *vector, strlen(*vector));
	return err;
}

int environment_parse(struct environment *environment, const char *bytes, size_t length)
{
	int err = 0;

	while (length && !err) {
		size_t one = strnlen(bytes, length);
		size_t step = one < length ? one + 1 : one;

		if (memchr(bytes, '=', one) && bytes[0] != '=')
			err = add(environment, bytes, one);
		bytes += step;
		length -= step;
	}
	return err;
}

int environment_set(struct environment *environment, const char *name, const char *value)
{
	size_t index = find(environment, name, strlen(name));
	char **slot, *text;

	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	if (index < environment->count) {
		free(environment->items[index]);
		environment->items[index] = text;
		return 0;
	}
	slot = array_add(environment);
	if (!slot) {
		free(text);
		return -ENOMEM;
	}
	*slot = text;
	return 0;
}

const char *environment_get(const struct environment *environment, const char *name)
{
	size_t length = strlen(name), index = find(environment, name, length);

	return index < environment->count ? environment->items[index] + length + 1 : NULL;
}

static void remove_at(struct environment *environment, size_t index)
{
	free(environment->items[index]);
	memmove(environment->items + index, environment->items + index + 1,
	        (environment->count - index - 1) * sizeof(*environment->items));
	environment->count--;
}

void environment_unset(struct environment *environment, const char *name)
{
	size_t index, length = strlen(name);

	while ((index = find(environment, name, length)) < environment->count)
		remove_at(environment, index);
}

char **environment_vector(struct environment *environment)
{
	if (!array_add(environment)) /* a zeroed slot: the NULL at the end */
		return NULL;
	environment->count--;
	return environment->items;
}

void environment_free(struct environment *environment)
{
	for (size_t i = 0; i < environment->count; i++)
		free(environment->items[i]);
	array_free(environment);
}

/* Variables that sudo makes or resets: here the user's own value counts, not the one we were given. */
static bool is_of_sudo(const char *variable)
{
	static const char *const names[] = {
	    "PATH=", "HOME=", "USER=", "LOGNAME=", "SHELL=", "MAIL=", "SUDO_"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

static int adopt_invoker(struct environment *own, const struct environment *invoker)
{
	for (size_t i = 0; i < invoker->count; i++) {
		const char *variable = invoker->items[i];
		size_t length = strcspn(variable, "=");
		size_t index = find(own, variable, length);
		char *copy;

		if (index == own->count) {
			if (add(own, variable, strlen(variable)))
				return -ENOMEM;
		} else if (is_of_sudo(variable)) {
			copy = strdup(variable);
			if (!copy)
				return -ENOMEM;
			free(own->items[index]);
			own->items[index] = copy;
		}
	}
	return 0;
}

int environment_undo_sudo(struct environment *own, const struct environment *invoker,
                          const struct environment_user *user)
{
	int err = adopt_invoker(own, invoker);

	for (size_t i = 0; i < own->count;) {
		if (!strncmp(own->items[i], "SUDO_", 5))
			remove_at(own, i);
		else
			i++;
	}
	if (!err && user->name)
		err = environment_set(own, "USER", user->name);
	if (!err && user->name)
		err = environment_set(own, "LOGNAME", user->name);
	if (!err && user->home)
		err = environment_set(own, "HOME", user->home);
	if (!err && user->shell)
		err = environment_set(own, "SHELL", user->shell);
	/* sudo's MAIL names root's mailbox. */
	if (!err && !environment_get(invoker, "MAIL"))
		environment_unset(own, "MAIL");
	return err;
}

static int check_command(const char *path)
{
	struct stat info;

	if (stat(path, &info) < 0)
		return errno == ENOTDIR ? ENOENT : errno;
	if (!S_ISREG(info.st_mode) || access(path, X_OK) < 0)
		return EACCES;
	return 0;
}

char *environment_find_command(const char *command, const char *path)
{
	int result = ENOENT, one;
	char *candidate;

	if (strchr(command, '/')) {
		result = check_command(command);
		candidate = result ? NULL : strdup(command);
		errno = result ? result : errno;
		return candidate;
	}
	if (!path)
		path = DEFAULT_PATH;
	while (*command) {
		size_t length = strcspn(path, ":");

		/* An empty part is the current directory. */
		if (asprintf(&candidate, "%.*s%s%s", (int)length, path, length ? "/" : "./", command) < 0) {
			errno = ENOMEM;
			return NULL;
		}
		one = check_command(candidate);
		if (!one)
			return candidate;
		free(candidate);
		if (one == EACCES)
			result = EACCES;
		if (!path[length])
			break;
		path += length + 1;
	}
	errno = result;
	return NULL;
}

static bool is_plain(const char *argument)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

	return *argument && !argument[strspn(argument, plain)];
}

static void put_quoted(FILE *stream, const char *argument)
{
	fputc('\'', stream);
	for (; *argument; argument++) {
		if (*argument == '\'')
			fputs("'\\''", stream);
		else
			fputc(*argument, stream);
	}
	fputc('\'', stream);
}

char *environment_command_line(char *const *argv)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	bool failed;

	if (!stream)
		return NULL;
	for (size_t i = 0; argv[i]; i++) {
		if (i)
			fputc(' ', stream);
		if (is_plain(argv[i]))
			fputs(argv[i], stream);
		else
			put_quoted(stream, argv[i]);
	}
	failed = ferror(stream);
	if (fclose(stream) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
