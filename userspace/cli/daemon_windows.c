// SPDX-License-Identifier: GPL-2.0-only
#include "cli/daemon_windows.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "daemon/control.h"
#include "export/target_file.h"

#define SECOND_NS  1000000000ULL
#define PATIENCE   10000 /* ms for an answer */
#define COPY_BYTES 65536

static int copy(int from, int to)
{
	char buffer[COPY_BYTES];
	ssize_t got;

	while ((got = read(from, buffer, sizeof(buffer))) > 0) {
		for (ssize_t done = 0, part; done < got; done += part) {
			part = write(to, buffer + done, (size_t)(got - done));
			if (part < 0)
				return -errno;
		}
	}
	return got < 0 ? -errno : 0;
}

/* When it began, to the millisecond: two windows are never as close. */
static void name_file(char path[PATH_MAX], const char *folder, uint64_t start_ms)
{
	time_t seconds = (time_t)(start_ms / 1000);
	char stamp[32];
	struct tm local;

	localtime_r(&seconds, &local);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
	snprintf(path, PATH_MAX, "%s/whyidle-%s.%03u.whyidle", folder, stamp, (unsigned)(start_ms % 1000));
}

static int take(int file, const char *path, struct error *error)
{
	struct target_file target;
	int err = target_file_create(&target, path, error);

	if (!err) {
		err = copy(file, target.fd);
		if (err)
			error_set(error, err, "cannot write %s: %s", path, strerror(-err));
	}
	err = err ?: target_file_commit(&target, error);
	target_file_discard(&target);
	return err;
}

static int take_all(const json_t *answer, const int *files, size_t count, const char *folder,
                    void (*written)(const char *path), struct error *error)
{
	const char *refused = json_string_value(json_object_get(answer, "error"));
	const json_t *windows = json_object_get(answer, "windows");
	int err = 0;

	if (refused)
		return error_set(error, -ENODATA, "dump: %s", refused);
	if (json_array_size(windows) != count || !count)
		return error_set(error, -EPROTO, "dump: the daemon's answer makes no sense");
	for (size_t i = 0; i < count && !err; i++) {
		json_int_t start =
		    json_integer_value(json_object_get(json_array_get(windows, i), "start_ms"));
		char path[PATH_MAX];

		name_file(path, folder, start > 0 ? (uint64_t)start : 0);
		err = take(files[i], path, error);
		if (!err)
			written(path);
	}
	return err;
}

int daemon_windows_take(const char *control, uint64_t duration_ns, const char *folder,
                        void (*written)(const char *path), struct error *error)
{
	int files[CONTROL_FILES], err;
	size_t count = 0, length;
	char request[64], *text;
	json_error_t what;
	json_t *answer;

	snprintf(request, sizeof(request), "dump %llu", (duration_ns + SECOND_NS - 1) / SECOND_NS);
	err = control_ask(control, request, PATIENCE, &text, &length, files, &count, error);
	if (err)
		return err;
	answer = json_loadb(text, length, 0, &what);
	free(text);
	err = answer ? take_all(answer, files, count, folder, written, error)
	             : error_set(error, -EPROTO, "dump: the daemon's answer makes no sense: %s", what.text);
	json_decref(answer);
	for (size_t i = 0; i < count; i++)
		close(files[i]);
	return err;
}
