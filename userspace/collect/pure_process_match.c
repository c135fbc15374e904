/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/pure_process_match.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GROUPS_ROOT    "/sys/fs/cgroup"
#define ID_DIGITS      64
#define ID_LEAST       6 /* fewer digits would match by chance */
#define POD_UID        36
#define STATIC_POD_UID 32 /* of what a node runs from files of its own */
#define DELETED_MARK   " (deleted)"

static bool may_be_same(uint64_t a, uint64_t b)
{
	return !a || !b || a == b;
}

bool process_identity_same(const struct process_identity *a, const struct process_identity *b)
{
	return a->pid == b->pid && may_be_same(a->start_ticks, b->start_ticks) &&
	       may_be_same(a->image, b->image);
}

bool process_stat_parse(const char *text, struct process_stat *stat)
{
	const char *name_end = strrchr(text, ')'); /* the name may hold anything, also ") R 1" */

	/* Fields 3, 4, 22 and 23 of proc(5). */
	return name_end && sscanf(name_end + 1,
	                          " %*c %" SCNu32 " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
	                          "%*s %*s %*s %*s %" SCNu64 " %" SCNu64,
	                          &stat->parent, &stat->start_ticks, &stat->memory_bytes) == 3;
}

/* ---- control groups ---- */

/* A line "number:controllers:path" of /proc/PID/cgroup. */
struct group_line {
	const char *controllers, *path;
	size_t controllers_length, path_length;
};

static bool next_line(const char **text, struct group_line *line)
{
	const char *end, *first, *second;

	while (**text) {
		end = strchrnul(*text, '\n');
		first = memchr(*text, ':', end - *text);
		second = first ? memchr(first + 1, ':', end - first - 1) : NULL;
		*text = *end ? end + 1 : end;
		if (!second)
			continue;
		line->controllers = first + 1;
		line->controllers_length = second - first - 1;
		line->path = second + 1;
		line->path_length = end - second - 1;
		return true;
	}
	return false;
}

static bool is_at_or_below(const struct group_line *line, const char *path, size_t length)
{
	while (length && path[length - 1] == '/')
		length--;
	return line->path_length >= length && !memcmp(line->path, path, length) &&
	       (line->path_length == length || line->path[length] == '/');
}

bool cgroup_is_below(const char *text, const char *path)
{
	struct group_line line;

	if (!strncmp(path, GROUPS_ROOT "/", strlen(GROUPS_ROOT) + 1))
		path += strlen(GROUPS_ROOT);
	while (next_line(&text, &line)) {
		size_t length = line.controllers_length;

		if (is_at_or_below(&line, path, strlen(path)))
			return true;
		/* "/memory/docker/…": below the folder where that hierarchy is mounted. */
		if (length && path[0] == '/' && !strncmp(path + 1, line.controllers, length) &&
		    path[length + 1] == '/' &&
		    is_at_or_below(&line, path + length + 1, strlen(path) - length - 1))
			return true;
	}
	return false;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c);
}

bool cgroup_in_container(const char *text, const char *id)
{
	size_t length = strlen(id);
	struct group_line line;

	if (length < ID_LEAST)
		return false;
	while (next_line(&text, &line)) {
		for (size_t i = 1; i + length <= line.path_length; i++) {
			if (!is_word(line.path[i - 1]) && !memcmp(line.path + i, id, length))
				return true;
		}
	}
	return false;
}

bool cgroup_container(const char *text, char id[65])
{
	struct group_line line;
	bool found = false;

	while (!found && next_line(&text, &line)) {
		size_t digits = 0;

		for (size_t i = line.path_length; i-- > 0 && !found;) {
			digits = isxdigit((unsigned char)line.path[i]) ? digits + 1 : 0;
			if (digits != ID_DIGITS || !i || is_word(line.path[i - 1]) ||
			    (i + ID_DIGITS < line.path_length && is_word(line.path[i + ID_DIGITS])))
				continue;
			memcpy(id, line.path + i, ID_DIGITS);
			id[ID_DIGITS] = '\0';
			found = true;
		}
	}
	return found;
}

/* "0d3c1f4e-1234-…" or, as systemd wants it in names, "0d3c1f4e_1234_…"; 0: it is none. Its length. */
static size_t pod_uid(const char *text, size_t length, char uid[37])
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t dashed = 0, plain = 0;

	while (dashed < length && form[dashed] &&
	       (form[dashed] == '-' ? text[dashed] == '-' || text[dashed] == '_'
	                            : isxdigit((unsigned char)text[dashed]) != 0)) {
		uid[dashed] = (char)(text[dashed] == '_' ? '-' : text[dashed]);
		dashed++;
	}
	while (dashed < POD_UID && plain < length && plain < STATIC_POD_UID &&
	       isxdigit((unsigned char)text[plain])) {
		uid[plain] = text[plain];
		plain++;
	}
	if (dashed < POD_UID && plain < STATIC_POD_UID)
		return 0;
	length = dashed == POD_UID ? dashed : plain;
	uid[length] = '\0';
	return length;
}

bool cgroup_pod(const char *text, char uid[37])
{
	static const char mark[] = "pod", above[] = "kubepods";
	struct group_line line;

	while (next_line(&text, &line)) {
		const char *end = line.path + line.path_length;
		const char *at = memmem(line.path, line.path_length, above, sizeof(above) - 1);

		if (!at || at == line.path || at[-1] != '/')
			continue;
		for (at += sizeof(above) - 1; at < end; at++) {
			size_t left = (size_t)(end - at) - 1, length;

			if (is_word(*at) || left < sizeof(mark) - 1 || memcmp(at + 1, mark, sizeof(mark) - 1))
				continue;
			length = pod_uid(at + sizeof(mark), left - (sizeof(mark) - 1), uid);
			if (length &&
			    (length == left - (sizeof(mark) - 1) || !is_word(at[sizeof(mark) + length])))
				return true;
		}
	}
	return false;
}

/* ---- mapped files ---- */

bool mapped_path_deleted(const char *path, size_t *length)
{
	size_t mark = strlen(DELETED_MARK);

	*length = strlen(path);
	if (*length <= mark || strcmp(path + *length - mark, DELETED_MARK))
		return false;
	*length -= mark;
	return true;
}

/* What follows the name of a library: ".so…" or "-hash.so…". */
static bool is_library_end(const char *rest)
{
	return !strncmp(rest, ".so", 3) || (rest[0] == '-' && strstr(rest, ".so"));
}

bool is_cuda_driver(const char *name)
{
	return !strncmp(name, "libcuda", 7) && is_library_end(name + 7);
}

bool is_cuda_library(const char *name)
{
	return is_cuda_driver(name) || (!strncmp(name, "libcudart", 9) && is_library_end(name + 9));
}

bool is_c_library(const char *name)
{
	return !strcmp(name, "libc.so.6") || !strcmp(name, "libpthread.so.0") ||
	       !strncmp(name, "libc-2.", 7) || !strncmp(name, "libpthread-2.", 13);
}

bool is_nccl_library(const char *name)
{
	return (!strncmp(name, "libnccl", 7) && is_library_end(name + 7)) ||
	       (!strncmp(name, "libtorch_cuda", 13) && is_library_end(name + 13));
}
