// SPDX-License-Identifier: GPL-2.0-only
#include "export/byte_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "export/target_file.h"

#define BUFFER_SIZE 262144
#define DIGITS_MAX  20  /* of the longest number */
#define LEVEL       "3" /* of gzip: half the time of the default for a tenth more bytes */

int byte_out_open(struct byte_out *stream, int fd, bool compressed)
{
	*stream = (struct byte_out){.fd = fd};
	stream->buffer = malloc(BUFFER_SIZE);
	if (stream->buffer && compressed)
		stream->compressor = gzdopen(fd, "wb" LEVEL);
	if (!stream->buffer || (compressed && !stream->compressor)) {
		free(stream->buffer);
		close(fd);
		*stream = (struct byte_out){.fd = -1};
		return -ENOMEM;
	}
	return 0;
}

static void flush_plain(struct byte_out *stream)
{
	const char *from = stream->buffer;

	while (stream->used && !stream->failure) {
		ssize_t written = write(stream->fd, from, stream->used);

		if (written > 0) {
			from += written;
			stream->used -= (size_t)written;
		} else if (written == 0) {
			stream->failure = -EIO;
		} else if (errno != EINTR) {
			stream->failure = -errno;
		}
	}
	stream->used = 0;
}

static int compressor_failure(gzFile compressor)
{
	int code;

	gzerror(compressor, &code);
	return code == Z_MEM_ERROR ? -ENOMEM : code == Z_ERRNO && errno ? -errno : -EIO;
}

static void flush(struct byte_out *stream)
{
	if (!stream->compressor) {
		flush_plain(stream);
		return;
	}
	if (stream->used && !stream->failure &&
	    gzwrite(stream->compressor, stream->buffer, (unsigned)stream->used) != (int)stream->used)
		stream->failure = compressor_failure(stream->compressor);
	stream->used = 0;
}

int byte_out_close(struct byte_out *stream)
{
	int failure;

	if (stream->fd < 0)
		return 0;
	flush(stream);
	failure = stream->failure;
	if (stream->compressor) {
		int code = gzclose(stream->compressor);

		if (code != Z_OK && !failure)
			failure = code == Z_ERRNO && errno ? -errno : code == Z_MEM_ERROR ? -ENOMEM : -EIO;
	} else if (close(stream->fd) && !failure) {
		failure = -errno;
	}
	free(stream->buffer);
	*stream = (struct byte_out){.fd = -1};
	return failure;
}

static inline char *reserve(struct byte_out *stream, size_t size)
{
	if (stream->used + size > BUFFER_SIZE)
		flush(stream);
	return stream->buffer + stream->used;
}

void byte_out_put(struct byte_out *stream, const void *bytes, size_t length)
{
	const char *from = bytes;

	while (length) {
		size_t part = length < BUFFER_SIZE ? length : BUFFER_SIZE;

		memcpy(reserve(stream, part), from, part);
		stream->used += part;
		from += part;
		length -= part;
	}
}

void byte_out_number(struct byte_out *stream, uint64_t number)
{
	char text[DIGITS_MAX], *end = text + sizeof(text), *start = end;

	do {
		*--start = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	byte_out_put(stream, start, (size_t)(end - start));
}

bool byte_out_is_compressed(const char *path)
{
	size_t length = strlen(path);

	return length >= 3 && !strcmp(path + length - 3, ".gz");
}

int byte_out_file(const char *path, bool compressed, int (*write)(struct byte_out *stream, void *context),
                  void *context, struct error *error)
{
	struct byte_out stream = {.fd = -1};
	struct target_file file;
	int rc = target_file_create(&file, path, error), closed;

	if (rc) {
		target_file_discard(&file);
		return rc;
	}
	rc = byte_out_open(&stream, file.fd, compressed);
	file.fd = -1;
	if (!rc)
		rc = write(&stream, context);
	closed = byte_out_close(&stream);
	if (!rc)
		rc = closed;
	if (rc) {
		error_set(error, rc, "cannot write %s: %s", path, strerror(-rc));
		target_file_discard(&file);
		return rc;
	}
	return target_file_commit(&file, error);
}
