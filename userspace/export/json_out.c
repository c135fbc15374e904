// SPDX-License-Identifier: GPL-2.0-only
#include "export/json_out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "export/utf8.h"

#define BUFFER_SIZE 262144
#define NUMBER_SIZE 24  /* of the longest number, with its decimal point */
#define LEVEL       "3" /* of gzip: half the time of the default for a tenth more bytes */

int json_out_open(struct json_out *stream, int fd, bool compressed)
{
	*stream = (struct json_out){.fd = fd};
	stream->buffer = malloc(BUFFER_SIZE);
	if (stream->buffer && compressed)
		stream->compressor = gzdopen(fd, "wb" LEVEL);
	if (!stream->buffer || (compressed && !stream->compressor)) {
		free(stream->buffer);
		close(fd);
		*stream = (struct json_out){.fd = -1};
		return -ENOMEM;
	}
	return 0;
}

static void flush_plain(struct json_out *stream)
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

static void flush(struct json_out *stream)
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

int json_out_close(struct json_out *stream)
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
	*stream = (struct json_out){.fd = -1};
	return failure;
}

static inline char *reserve(struct json_out *stream, size_t size)
{
	if (stream->used + size > BUFFER_SIZE)
		flush(stream);
	return stream->buffer + stream->used;
}

void json_out_put(struct json_out *stream, const char *text, size_t length)
{
	while (length) {
		size_t part = length < BUFFER_SIZE ? length : BUFFER_SIZE;

		memcpy(reserve(stream, part), text, part);
		stream->used += part;
		text += part;
		length -= part;
	}
}

/* Bytes that stand for themselves within a string; all others need a look. */
static inline bool is_plain(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* One character that is not plain; returns how many bytes of the text it took. */
static unsigned put_special(struct json_out *stream, const char *text)
{
	static const char short_forms[32] = {
	    ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	unsigned char byte = (unsigned char)*text;
	unsigned length = utf8_length(text);

	if (!length) {
		json_out_literal(stream, UTF8_REPLACEMENT);
		return 1;
	}
	if (byte == '"' || byte == '\\') {
		json_out_put(stream, (char[]){'\\', (char)byte}, 2);
	} else if (byte < 0x20 && short_forms[byte]) {
		json_out_put(stream, (char[]){'\\', short_forms[byte]}, 2);
	} else if (byte < 0x20 || byte == 0x7f) {
		char escape[8];

		snprintf(escape, sizeof(escape), "\\u%04x", byte);
		json_out_put(stream, escape, 6);
	} else {
		json_out_put(stream, text, length);
	}
	return length;
}

void json_out_text(struct json_out *stream, const char *text)
{
	while (*text) {
		const char *end = text;

		while (is_plain((unsigned char)*end))
			end++;
		json_out_put(stream, text, (size_t)(end - text));
		text = end;
		if (*text)
			text += put_special(stream, text);
	}
}

void json_out_string(struct json_out *stream, const char *text)
{
	json_out_literal(stream, "\"");
	json_out_text(stream, text);
	json_out_literal(stream, "\"");
}

/* Digits of a number up to `end`; returns where they start. */
static char *digits_before(char *end, uint64_t number)
{
	do {
		*--end = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	return end;
}

void json_out_number(struct json_out *stream, uint64_t number)
{
	char text[NUMBER_SIZE], *end = text + sizeof(text);
	char *start = digits_before(end, number);

	json_out_put(stream, start, (size_t)(end - start));
}

void json_out_time(struct json_out *stream, uint64_t ns)
{
	char text[NUMBER_SIZE], *end = text + sizeof(text), *start;
	unsigned below = ns % 1000;

	end[-1] = (char)('0' + below % 10);
	end[-2] = (char)('0' + below / 10 % 10);
	end[-3] = (char)('0' + below / 100);
	end[-4] = '.';
	start = digits_before(end - 4, ns / 1000);
	json_out_put(stream, start, (size_t)(end - start));
}
