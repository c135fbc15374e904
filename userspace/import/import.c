/* SPDX-License-Identifier: GPL-2.0-only */
#include "import/import.h"

#include <errno.h>
#include <string.h>

#include "import/input.h"

#define HEAD_SIZE 4096

/* Formats that people may have at hand and that have to be turned into one that can be read. */
static const struct {
	const char *magic;
	size_t length;
	const char *advice;
} others[] = {
    {"\x28\xb5\x2f\xfd", 4, "is compressed by zstd: unpack it first (zstd -d)"},
    {"\xfd"
     "7zXZ",
     5, "is compressed by xz: unpack it first (xz -d)"},
    {"BZh", 3, "is compressed by bzip2: unpack it first (bzip2 -d)"},
    {"PK\x03\x04", 4, "is a zip archive: unpack it first"},
    {"NVIDIA Tegra Profiler", 21, "is an nsys report: export it first (nsys export --type sqlite FILE)"},
};

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), n = strlen(end);

	return length >= n && !strcmp(text + length - n, end);
}

static int refuse(const char *path, const char *head, size_t length, struct error *error)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (length >= others[i].length && !memcmp(head, others[i].magic, others[i].length))
			return error_set(error, -EINVAL, "%s %s", path, others[i].advice);
	}
	if (ends_with(path, ".nsys-rep") || ends_with(path, ".qdrep"))
		return error_set(error, -EINVAL,
		                 "%s is an nsys report: export it first (nsys export --type sqlite %s)", path,
		                 path);
	return error_set(
	    error, -EINVAL,
	    "%s is not a session file, not a trace of the PyTorch profiler (JSON) and not an SQLite "
	    "export of nsys",
	    path);
}

static bool looks_like_json(const char *head, size_t length)
{
	size_t at = length >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;

	while (at < length && strchr(" \t\r\n", head[at]) && head[at])
		at++;
	return at < length && (head[at] == '{' || head[at] == '[');
}

static enum import_format recognise_head(struct input *input, const char *path, struct error *error)
{
	char head[HEAD_SIZE];
	size_t length = 0, got;

	while (length < sizeof(head) && (got = input_read(input, head + length, sizeof(head) - length)))
		length += got;
	if (!input_total(input)) {
		error_set(error, -ENODATA, "%s is empty", path);
		return IMPORT_UNKNOWN;
	}
	if (length >= 16 && !memcmp(head, "SQLite format 3", 16)) {
		if (!input_is_packed(input))
			return IMPORT_NSYS;
		error_set(error, -EINVAL, "%s is a compressed SQLite file: unpack it first (gzip -d)", path);
		return IMPORT_UNKNOWN;
	}
	if (looks_like_json(head, length))
		return IMPORT_KINETO;
	if (!length)
		error_set(error, -EINVAL, "%s cannot be read: %s", path,
		          input_problem(input) ? input_problem(input) : "it is empty once unpacked");
	else
		refuse(path, head, length, error);
	return IMPORT_UNKNOWN;
}

enum import_format import_recognise(const char *path, struct error *error)
{
	enum import_format format;
	struct input *input;

	if (session_recognise(path))
		return IMPORT_SESSION;
	if (input_open(&input, path, false, error))
		return IMPORT_UNKNOWN;
	format = recognise_head(input, path, error);
	input_close(input);
	return format;
}

int import_load(struct model *model, const char *path, const struct import_progress *progress,
                struct error *error)
{
	struct error reason = {0};

	*model = (struct model){0};
	switch (import_recognise(path, &reason)) {
	case IMPORT_SESSION:
		return model_load_session(model, path, error);
	case IMPORT_KINETO:
		return import_kineto(model, path, progress, error);
	case IMPORT_NSYS:
		return import_nsys(model, path, progress, error);
	default:
		return error_set(error, reason.code ? reason.code : -EINVAL, "%s", reason.text);
	}
}
