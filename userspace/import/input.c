/* SPDX-License-Identifier: GPL-2.0-only */
#include "import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define RAW_SIZE    (128 << 10)
#define BLOCK_SIZE  (192 << 10)
#define BLOCK_COUNT 3

struct block {
	size_t size, used;
	unsigned char bytes[BLOCK_SIZE];
};

struct input {
	int fd;
	bool packed;
	uint64_t total;
	_Atomic uint64_t done;
	char problem[160];

	/* Unpacking. */
	z_stream stream;
	bool stream_open, stream_ended, file_ended;
	unsigned char *raw;

	/* The thread that works ahead: blocks[(first + i) % BLOCK_COUNT], i < full, hold bytes. */
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct block *blocks;
	unsigned first, full;
	bool finished; /* no block will follow */
	bool stop;     /* nobody wants more */
};

/* Reads from the file itself; 0 at the end or after an error, which is noted. */
static size_t read_raw(struct input *input, void *buffer, size_t size)
{
	ssize_t got;

	do {
		got = read(input->fd, buffer, size);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		snprintf(input->problem, sizeof(input->problem), "reading it failed: %s", strerror(errno));
		return 0;
	}
	input->done += (uint64_t)got;
	return (size_t)got;
}

static bool fill_raw(struct input *input)
{
	if (input->stream.avail_in || input->file_ended)
		return input->stream.avail_in;
	input->stream.next_in = input->raw;
	input->stream.avail_in = (unsigned)read_raw(input, input->raw, RAW_SIZE);
	input->file_ended = !input->stream.avail_in;
	return !input->file_ended;
}

/* At the end of a gzip member: true if another one follows. Anything else behind it is ignored, as gzip does.
 */
static bool next_member(struct input *input)
{
	if (!fill_raw(input) || input->stream.next_in[0] != 0x1f)
		return false;
	return inflateReset(&input->stream) == Z_OK;
}

static size_t unpack(struct input *input, unsigned char *buffer, size_t size)
{
	z_stream *stream = &input->stream;

	stream->next_out = buffer;
	stream->avail_out = (unsigned)size;
	while (stream->avail_out && !input->stream_ended) {
		int rc;

		if (!fill_raw(input)) {
			if (!*input->problem)
				snprintf(input->problem, sizeof(input->problem), "its gzip data is cut off");
			input->stream_ended = true;
			break;
		}
		rc = inflate(stream, Z_NO_FLUSH);
		if (rc == Z_STREAM_END) {
			input->stream_ended = !next_member(input);
		} else if (rc != Z_OK && rc != Z_BUF_ERROR) {
			snprintf(input->problem, sizeof(input->problem), "its gzip data is damaged (%s)",
			         stream->msg ? stream->msg : "unusable");
			input->stream_ended = true;
		}
	}
	return size - stream->avail_out;
}

static size_t read_whole(struct input *input, unsigned char *buffer, size_t size)
{
	size_t length = 0, got;

	while (length < size && (got = read_raw(input, buffer + length, size - length)))
		length += got;
	return length;
}

static void *work_ahead(void *context)
{
	struct input *input = context;
	bool more = true;

	pthread_mutex_lock(&input->lock);
	while (more) {
		struct block *block;

		while (input->full == BLOCK_COUNT && !input->stop)
			pthread_cond_wait(&input->changed, &input->lock);
		if (input->stop)
			break;
		block = &input->blocks[(input->first + input->full) % BLOCK_COUNT];
		pthread_mutex_unlock(&input->lock);
		block->used = 0;
		block->size = input->packed ? unpack(input, block->bytes, BLOCK_SIZE)
		                            : read_whole(input, block->bytes, BLOCK_SIZE);
		more = block->size == BLOCK_SIZE;
		pthread_mutex_lock(&input->lock);
		if (block->size)
			input->full++;
		input->finished = !more;
		pthread_cond_signal(&input->changed);
	}
	pthread_mutex_unlock(&input->lock);
	return NULL;
}

static size_t read_block(struct input *input, void *buffer, size_t size)
{
	struct block *block;

	pthread_mutex_lock(&input->lock);
	while (!input->full && !input->finished)
		pthread_cond_wait(&input->changed, &input->lock);
	block = input->full ? &input->blocks[input->first] : NULL;
	pthread_mutex_unlock(&input->lock);
	if (!block)
		return 0;
	if (size > block->size - block->used)
		size = block->size - block->used;
	memcpy(buffer, block->bytes + block->used, size);
	block->used += size;
	if (block->used < block->size)
		return size;
	pthread_mutex_lock(&input->lock);
	input->first = (input->first + 1) % BLOCK_COUNT;
	input->full--;
	pthread_cond_signal(&input->changed);
	pthread_mutex_unlock(&input->lock);
	return size;
}

size_t input_read(struct input *input, void *buffer, size_t size)
{
	if (!size)
		return 0;
	if (input->threaded)
		return read_block(input, buffer, size);
	if (input->packed)
		return unpack(input, buffer, size > BLOCK_SIZE ? BLOCK_SIZE : size);
	return read_raw(input, buffer, size);
}

static int open_stream(struct input *input, struct error *error)
{
	/* 16: a gzip header and trailer, whose checksum inflate checks. */
	input->raw = malloc(RAW_SIZE);
	if (!input->raw || inflateInit2(&input->stream, 15 + 16) != Z_OK)
		return error_no_memory(error);
	input->stream_open = true;
	return 0;
}

static int start_thread(struct input *input, struct error *error)
{
	input->blocks = malloc(BLOCK_COUNT * sizeof(*input->blocks));
	if (!input->blocks)
		return error_no_memory(error);
	pthread_mutex_init(&input->lock, NULL);
	pthread_cond_init(&input->changed, NULL);
	/* Without a thread the work is done as it is asked for. */
	input->threaded = !pthread_create(&input->thread, NULL, work_ahead, input);
	return 0;
}

static int open_file(struct input *input, const char *path, struct error *error)
{
	unsigned char magic[2];
	struct stat status;

	input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (input->fd < 0 || fstat(input->fd, &status))
		return error_set(error, -errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return error_set(error, -EISDIR, "%s is a directory, not a trace file", path);
	if (!S_ISREG(status.st_mode))
		return error_set(error, -EINVAL, "%s is not a regular file", path);
	input->total = (uint64_t)status.st_size;
	input->packed = pread(input->fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
	(void)posix_fadvise(input->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

int input_open(struct input **input, const char *path, bool ahead, struct error *error)
{
	struct input *opened = calloc(1, sizeof(*opened));
	int rc;

	*input = NULL;
	if (!opened)
		return error_no_memory(error);
	rc = open_file(opened, path, error);
	if (!rc && opened->packed)
		rc = open_stream(opened, error);
	if (!rc && ahead && opened->total > BLOCK_SIZE)
		rc = start_thread(opened, error);
	if (rc) {
		input_close(opened);
		return rc;
	}
	*input = opened;
	return 0;
}

void input_close(struct input *input)
{
	if (!input)
		return;
	if (input->threaded) {
		pthread_mutex_lock(&input->lock);
		input->stop = true;
		pthread_cond_signal(&input->changed);
		pthread_mutex_unlock(&input->lock);
		pthread_join(input->thread, NULL);
	}
	if (input->blocks) {
		pthread_mutex_destroy(&input->lock);
		pthread_cond_destroy(&input->changed);
	}
	if (input->stream_open)
		inflateEnd(&input->stream);
	if (input->fd >= 0)
		close(input->fd);
	free(input->blocks);
	free(input->raw);
	free(input);
}

const char *input_problem(const struct input *input)
{
	return *input->problem ? input->problem : NULL;
}

bool input_is_packed(const struct input *input)
{
	return input->packed;
}

uint64_t input_done(const struct input *input)
{
	return input->done;
}

uint64_t input_total(const struct input *input)
{
	return input->total;
}
