/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads one chunk at a time. The file may be cut off, damaged, or made to do harm: a length is checked before
 * it is used, and after damage the next chunk is found by its magic.
 */
#include "trace/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "trace/chunk.h"
#include "trace/layout.h"

#define SCAN_BLOCK      65536
#define SMALLEST_BUFFER 4096
/*
 * Bytes of damaged chunks that are searched for other chunks, in all. Without a bound a file made of nested
 * chunk headers would cost the square of its size.
 */
#define SEARCH_BUDGET (256ull << 20)

/* Grows to what the largest chunk so far needed, at most CHUNK_MAX_HEADER + CHUNK_MAX_RAW. */
struct buffer {
	uint8_t *bytes;
	size_t capacity;
};

struct reader {
	int fd;
	const char *path;
	struct error *error;
	uint64_t size; /* of the file when it was opened */
	uint64_t search_budget;
	ZSTD_DCtx *decompressor;

	struct buffer stored; /* payload of a chunk as the file has it */
	struct buffer raw;    /* its records */
	struct buffer view;   /* the record shown to `visit` */
	uint8_t *scan;        /* SCAN_BLOCK bytes */

	session_visit visit;
	void *context;
	struct session_summary *summary;

	uint64_t good_end;       /* where the last good chunk ends */
	uint32_t next_sequence;  /* of the chunk that should follow it */
	uint64_t next_record;    /* number of the record that should follow */
	struct record_span last; /* of the last good chunk that has events */
	/* Chunks since the last good one whose headers are intact. */
	uint32_t hole_chunks;
	struct record_span hole;
};

/* Up to `length` bytes at `offset`; *got is less at the end of the file. */
static int read_at(struct reader *reader, void *bytes, size_t length, uint64_t offset, size_t *got)
{
	*got = 0;
	while (*got < length) {
		ssize_t count =
		    pread(reader->fd, (char *)bytes + *got, length - *got, (off_t)(offset + *got));

		if (count == 0)
			break;
		if (count < 0 && errno != EINTR)
			return error_set(reader->error, -errno, "cannot read %s: %s", reader->path,
			                 strerror(errno));
		if (count > 0)
			*got += (size_t)count;
	}
	return 0;
}

/*
 * Offset of the first intact chunk header that begins in [*offset, end), or `end` if there is none. It may
 * reach beyond `end`: where bytes are missing, the next chunk begins within what the damaged one claims.
 */
static int find_chunk(struct reader *reader, uint64_t *offset, uint64_t end)
{
	while (*offset < end) {
		uint64_t left = end - *offset + (MAGIC_SIZE - 1);
		size_t wanted = left < SCAN_BLOCK ? (size_t)left : SCAN_BLOCK;
		struct chunk_header header;
		const uint8_t *found;
		size_t got;
		int rc = read_at(reader, reader->scan, wanted, *offset, &got);

		if (rc)
			return rc;
		if (got < MAGIC_SIZE)
			break;
		found = memmem(reader->scan, got, CHUNK_MAGIC, MAGIC_SIZE);
		if (!found) {
			*offset += got - (MAGIC_SIZE - 1);
			continue;
		}
		*offset += (uint64_t)(found - reader->scan);
		rc = read_at(reader, &header, sizeof(header), *offset, &got);
		if (rc)
			return rc;
		if (got == sizeof(header) && chunk_header_intact(&header))
			return 0;
		*offset += 1;
	}
	*offset = end;
	return 0;
}

/* Makes the buffer hold at least `size` bytes; what was in it is gone. */
static int reserve(struct reader *reader, struct buffer *buffer, size_t size)
{
	if (buffer->bytes && size <= buffer->capacity)
		return 0;
	if (size < SMALLEST_BUFFER)
		size = SMALLEST_BUFFER;
	free(buffer->bytes);
	buffer->bytes = malloc(size);
	buffer->capacity = buffer->bytes ? size : 0;
	return buffer->bytes ? 0 : error_no_memory(reader->error);
}

/* A record's length fields agree with its size; *tail: bytes that follow the struct. */
static bool record_sound(const struct record_header *record, const struct record_layout *layout, size_t *tail)
{
	uint64_t length;
	size_t head;

	*tail = 0;
	if (!layout || !layout->tail_count)
		return true;
	head = layout->tail_count + sizeof(uint32_t);
	if (record->size < head)
		return false;
	length = (record_layout_items(layout, record) + 7) & ~7ULL;
	*tail = (size_t)length;
	return length <= record->size - head;
}

/*
 * Shows a record as the struct that this version knows. In the file the struct may be shorter or longer; what
 * follows it is therefore found from the record's end.
 */
static int show_record(struct reader *reader, const struct record_header *record,
                       const struct record_layout *layout, size_t tail)
{
	size_t fixed = record->size - tail, shown, padding = 0;
	uint8_t *view;
	int rc;

	if (layout->tail_count)
		padding = tail - record_layout_items(layout, record);
	/* Fields that a newer version added would only be in the way of the tail. */
	if (fixed > layout->size && (layout->tail_count || fixed > RECORD_MAX_STRUCT))
		fixed = layout->size;
	shown = layout->tail_count ? layout->size + tail - padding : fixed;
	rc = reserve(reader, &reader->view, (shown > RECORD_MAX_STRUCT ? shown : RECORD_MAX_STRUCT) + 8);
	if (rc)
		return rc;
	view = reader->view.bytes;
	memcpy(view, record, fixed);
	if (layout->tail_count) {
		memset(view + fixed, 0, layout->size - fixed);
		memcpy(view + layout->size, (const uint8_t *)record + record->size - tail, tail - padding);
	}
	memset(view + shown, 0, shown < RECORD_MAX_STRUCT ? RECORD_MAX_STRUCT + 8 - shown : 8);
	reader->summary->records++;
	return reader->visit(reader->context, (const struct record_header *)view);
}

/* Shows the records of the chunk in `raw`, up to one that is malformed. */
static int show_records(struct reader *reader, const struct chunk_header *chunk)
{
	uint32_t count = 0, at = 0;

	while (chunk->raw_length - at >= sizeof(struct record_header)) {
		const struct record_header *record = (const void *)(reader->raw.bytes + at);
		const struct record_layout *layout = record_layout_find(record->type);
		size_t tail;
		int rc = 0;

		if (record->size < sizeof(*record) || record->size % 8 ||
		    record->size > chunk->raw_length - at || !record_sound(record, layout, &tail))
			break;
		if (layout)
			rc = show_record(reader, record, layout, tail);
		else
			reader->summary->unknown_records++;
		if (rc)
			return rc;
		at += record->size;
		count++;
	}
	reader->next_record = chunk->first_record + count;
	if (at != chunk->raw_length || count != chunk->records) {
		reader->summary->bad_chunks++;
		record_span_join(&reader->hole, &(struct record_span){chunk->start_ns, chunk->end_ns});
	}
	return 0;
}

/* Reads and decompresses the payload of the chunk at `offset`. *good: it is what was written. */
static int load_chunk(struct reader *reader, const struct chunk_header *chunk, uint64_t offset, bool *good)
{
	size_t more_header = chunk->size - sizeof(*chunk), length = more_header + chunk->stored_length, got;
	const uint8_t *payload;
	int rc = reserve(reader, &reader->stored, length);

	*good = false;
	if (!rc)
		rc = reserve(reader, &reader->raw, chunk->raw_length);
	if (!rc)
		rc = read_at(reader, reader->stored.bytes, length, offset + sizeof(*chunk), &got);
	if (rc)
		return rc;
	payload = reader->stored.bytes + more_header;
	if (got != length || chunk_crc(reader->stored.bytes, length) != chunk->payload_crc)
		return 0;
	if (chunk->type != CHUNK_RECORDS) {
		*good = true; /* nothing in it is for us */
	} else if (chunk->coding == CHUNK_STORED) {
		*good = chunk->stored_length == chunk->raw_length;
		if (*good && chunk->raw_length)
			memcpy(reader->raw.bytes, payload, chunk->raw_length);
	} else if (chunk->coding == CHUNK_ZSTD) {
		*good = ZSTD_decompressDCtx(reader->decompressor, reader->raw.bytes, chunk->raw_length,
		                            payload, chunk->stored_length) == chunk->raw_length;
	}
	return 0;
}

/* Tells of the records between the last good chunk and `chunk`, if there were any. */
static int show_hole(struct reader *reader, const struct chunk_header *chunk)
{
	struct record_loss *loss;
	struct record_span span = reader->hole;
	bool span_known = reader->hole_chunks == chunk->sequence - reader->next_sequence;
	uint64_t missing = chunk->first_record - reader->next_record;
	int rc;

	reader->hole = (struct record_span){0};
	reader->hole_chunks = 0;
	if (chunk->first_record <= reader->next_record)
		return 0;
	if (!span_known) {
		span = reader->last;
		record_span_join(&span, &(struct record_span){chunk->start_ns, chunk->end_ns});
	}
	reader->summary->lost_records += missing;
	rc = reserve(reader, &reader->view, RECORD_MAX_STRUCT + 8);
	if (rc)
		return rc;
	memset(reader->view.bytes, 0, RECORD_MAX_STRUCT + 8);
	loss = (struct record_loss *)reader->view.bytes;
	loss->header = (struct record_header){.type = RECORD_LOSS, .size = sizeof(*loss)};
	loss->start_ns = span.start_ns;
	loss->end_ns = span.end_ns;
	loss->count = missing;
	loss->cause = RECORD_LOSS_FILE;
	return reader->visit(reader->context, &loss->header);
}

static int accept_chunk(struct reader *reader, const struct chunk_header *chunk, uint64_t offset)
{
	int rc = show_hole(reader, chunk);

	if (rc)
		return rc;
	reader->summary->chunks++;
	reader->summary->lost_bytes += offset - reader->good_end;
	reader->good_end = offset + chunk->size + chunk->stored_length;
	reader->next_sequence = chunk->sequence + 1;
	reader->next_record = chunk->first_record;
	if (chunk->start_ns || chunk->end_ns)
		reader->last = (struct record_span){chunk->start_ns, chunk->end_ns};
	if (chunk->type == CHUNK_RECORDS)
		return show_records(reader, chunk);
	reader->summary->complete = chunk->type == CHUNK_END;
	return 0;
}

/*
 * Where to go on after a chunk whose payload is damaged: behind it if a chunk begins there, else (bytes are
 * missing or were put in) at the first chunk inside.
 */
static int skip_chunk(struct reader *reader, const struct chunk_header *chunk, uint64_t *offset)
{
	uint64_t end = *offset + chunk->size + chunk->stored_length;
	struct chunk_header next;
	size_t got;
	int rc;

	if (end < reader->size) {
		rc = read_at(reader, &next, sizeof(next), end, &got);
		if (rc)
			return rc;
		if (got == sizeof(next) && chunk_header_intact(&next)) {
			*offset = end;
			return 0;
		}
	}
	if (end - *offset > reader->search_budget) {
		*offset = end;
		return 0;
	}
	reader->search_budget -= end - *offset;
	*offset += sizeof(*chunk);
	return find_chunk(reader, offset, end < reader->size ? end : reader->size);
}

/* Takes the chunk whose intact header lies at *offset, and moves on. */
static int read_chunk(struct reader *reader, const struct chunk_header *chunk, uint64_t *offset)
{
	uint64_t end = *offset + chunk->size + chunk->stored_length;
	bool good = false;
	int rc = 0;

	if (end <= reader->size)
		rc = load_chunk(reader, chunk, *offset, &good);
	if (rc)
		return rc;
	/* A chunk that comes too late is a left-over: its place in the order was taken. */
	if (good && chunk->sequence >= reader->next_sequence) {
		rc = accept_chunk(reader, chunk, *offset);
		*offset = end;
		return rc;
	}
	if (!good) {
		reader->hole_chunks++;
		record_span_join(&reader->hole, &(struct record_span){chunk->start_ns, chunk->end_ns});
	}
	rc = skip_chunk(reader, chunk, offset);
	/* The last one may just be unfinished. */
	if (end <= reader->size || *offset < reader->size)
		reader->summary->bad_chunks++;
	return rc;
}

static int read_chunks(struct reader *reader, uint64_t offset)
{
	struct session_summary *summary = reader->summary;

	while (offset < reader->size && !summary->complete) {
		struct chunk_header chunk;
		size_t got;
		int rc = read_at(reader, &chunk, sizeof(chunk), offset, &got);

		if (rc)
			return rc;
		if (got < sizeof(chunk))
			break;
		if (chunk_header_intact(&chunk)) {
			rc = read_chunk(reader, &chunk, &offset);
		} else {
			summary->bad_chunks++;
			offset++;
			rc = find_chunk(reader, &offset, reader->size);
		}
		if (rc)
			return rc;
	}
	summary->lost_bytes += reader->size - reader->good_end;
	if (!summary->chunks)
		return error_set(
		    reader->error, -ENODATA,
		    "%s holds nothing that can be read: the recording was cut off before its first chunk, "
		    "or the file is damaged",
		    reader->path);
	return 0;
}

/* Checks the file header. *offset: where the first chunk should be. */
static int read_header(struct reader *reader, uint64_t *offset)
{
	struct session_header header;
	size_t got;
	int rc = read_at(reader, &header, sizeof(header), 0, &got);

	if (rc)
		return rc;
	if (got == 0)
		return error_set(reader->error, -ENODATA, "%s is empty: nothing was recorded", reader->path);
	if (memcmp(header.magic, SESSION_MAGIC, got < MAGIC_SIZE ? got : MAGIC_SIZE))
		return error_set(reader->error, -EINVAL, "%s is not a whyidle session file", reader->path);
	if (got < sizeof(header))
		return error_set(reader->error, -ENODATA,
		                 "%s ends in its header: the recording was cut off at its very start",
		                 reader->path);
	if (!session_header_intact(&header)) {
		/* The chunks may still be good: look for the first one. */
		reader->summary->version = SESSION_VERSION;
		reader->summary->bad_chunks++;
		*offset = MAGIC_SIZE;
		return find_chunk(reader, offset, reader->size);
	}
	reader->summary->version = header.version;
	if (header.version > SESSION_VERSION)
		return error_set(reader->error, -ENOTSUP,
		                 "%s was written by a newer whyidle (format %u): update whyidle to read it",
		                 reader->path, header.version);
	if (header.flags)
		return error_set(
		    reader->error, -ENOTSUP,
		    "%s was written by a newer whyidle (features %#x): update whyidle to read it",
		    reader->path, header.flags);
	*offset = header.size < sizeof(header) ? sizeof(header) : header.size;
	reader->good_end = *offset < reader->size ? *offset : reader->size;
	return 0;
}

/* Opens a regular file; never waits for the other end of a pipe. */
static int open_file(const char *path, uint64_t *size, struct error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0)
		return error_set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, &status) < 0) {
		int rc = error_set(error, -errno, "cannot examine %s: %s", path, strerror(errno));

		close(fd);
		return rc;
	}
	if (!S_ISREG(status.st_mode)) {
		close(fd);
		if (S_ISDIR(status.st_mode))
			return error_set(error, -EISDIR, "%s is a directory, not a session file", path);
		return error_set(error, -EINVAL, "%s is not a regular file, so not a session file", path);
	}
	*size = (uint64_t)status.st_size;
	return fd;
}

static void reader_free(struct reader *reader)
{
	if (reader->fd >= 0)
		close(reader->fd);
	ZSTD_freeDCtx(reader->decompressor);
	free(reader->stored.bytes);
	free(reader->raw.bytes);
	free(reader->view.bytes);
	free(reader->scan);
}

int session_read(const char *path, session_visit visit, void *context, struct session_summary *summary,
                 struct error *error)
{
	struct session_summary unwanted;
	struct reader reader = {
	    .path = path,
	    .error = error,
	    .visit = visit,
	    .context = context,
	    .summary = summary ? summary : &unwanted,
	    .search_budget = SEARCH_BUDGET,
	};
	uint64_t offset = 0;
	int rc;

	memset(reader.summary, 0, sizeof(*reader.summary));
	reader.fd = open_file(path, &reader.size, error);
	if (reader.fd < 0)
		return reader.fd;
	reader.decompressor = ZSTD_createDCtx();
	reader.scan = malloc(SCAN_BLOCK);
	if (!reader.decompressor || !reader.scan) {
		rc = error_no_memory(error);
	} else {
		rc = read_header(&reader, &offset);
		if (!rc)
			rc = read_chunks(&reader, offset);
	}
	reader_free(&reader);
	return rc;
}

bool session_recognise(const char *path)
{
	uint8_t magic[MAGIC_SIZE];
	uint64_t size;
	int fd = open_file(path, &size, NULL);
	bool recognised;

	if (fd < 0)
		return false;
	recognised = pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	             !memcmp(magic, SESSION_MAGIC, sizeof(magic));
	close(fd);
	return recognised;
}
