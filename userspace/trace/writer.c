/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records are gathered in `raw` and leave as one compressed chunk and one write. `end` is where the last
 * finished chunk ends; a chunk is always written there, so whatever a failed write left behind is overwritten
 * if it could not be cut off.
 *
 * A failed write begins an outage: events are dropped and counted, definitions go to the backlog, strings
 * stay in their table. A later flush, or enough dropped records, tries to end it: the loss is written first,
 * then the strings, then the backlog.
 */
#include "trace/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "trace/backlog.h"
#include "trace/chunk.h"
#include "trace/layout.h"
#include "trace/output.h"
#include "trace/string_table.h"

#define COMPRESSION_LEVEL 1
#define ROOM_TO_GO_ON     (2 * (uint64_t)CHUNK_TARGET_RAW) /* free bytes that end an outage */

struct session_writer {
	int fd;
	char *path;
	uint64_t end;
	uint64_t records_written;
	uint32_t sequence;
	struct record_span span_written;

	uint8_t *raw; /* CHUNK_TARGET_RAW bytes */
	size_t used;
	uint32_t records;
	struct record_span span;
	struct chunk_header *chunk; /* a chunk on its way out, its payload behind it */
	size_t payload_capacity;
	ZSTD_CCtx *compressor;

	struct string_table strings;
	uint32_t strings_buffered; /* ids up to this one are in the file or in `raw` */
	uint32_t strings_written;  /* ids up to this one are in the file */

	bool failed; /* the last write failed: nothing goes into `raw` */
	bool outage; /* from the first failed write until all that was kept is in the file */
	bool untold; /* `failure` was not yet returned to the caller */
	struct error failure;
	struct backlog backlog;
	uint64_t dropped; /* in outages that are over */
};

static void writer_free(struct session_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	ZSTD_freeCCtx(writer->compressor);
	string_table_free(&writer->strings);
	backlog_free(&writer->backlog);
	free(writer->chunk);
	free(writer->raw);
	free(writer->path);
	free(writer);
}

static int writer_start(struct session_writer *writer, const char *path, struct error *error)
{
	struct session_header header;
	int rc;

	writer->payload_capacity = ZSTD_compressBound(CHUNK_TARGET_RAW);
	writer->path = strdup(path);
	writer->raw = malloc(CHUNK_TARGET_RAW);
	writer->chunk = malloc(sizeof(*writer->chunk) + writer->payload_capacity);
	writer->compressor = ZSTD_createCCtx();
	if (!writer->path || !writer->raw || !writer->chunk || !writer->compressor)
		return error_no_memory(error);
	writer->fd = output_open(path, error);
	if (writer->fd < 0)
		return writer->fd;
	session_header_fill(&header);
	rc = output_write(writer->fd, &header, sizeof(header), 0);
	if (rc)
		return error_set(error, rc, "cannot write %s: %s", path, strerror(-rc));
	writer->end = sizeof(header);
	return 0;
}

int session_writer_open(struct session_writer **result, const char *path, struct error *error)
{
	struct session_writer *writer = calloc(1, sizeof(*writer));
	int rc;

	*result = NULL;
	if (!writer)
		return error_no_memory(error);
	writer->fd = -1;
	rc = writer_start(writer, path, error);
	if (rc) {
		writer_free(writer);
		return rc;
	}
	*result = writer;
	return 0;
}

/* Writes `raw` (nothing for CHUNK_END) as a chunk at `end`. On failure the file ends there again. */
static int write_chunk(struct session_writer *writer, enum chunk_type type)
{
	struct chunk_header *chunk = writer->chunk;
	size_t stored = 0;
	int rc;

	memset(chunk, 0, sizeof(*chunk));
	chunk->type = type;
	chunk->raw_length = (uint32_t)writer->used;
	chunk->records = writer->records;
	chunk->sequence = writer->sequence;
	chunk->first_record = writer->records_written;
	chunk->start_ns = type == CHUNK_END ? writer->span_written.start_ns : writer->span.start_ns;
	chunk->end_ns = type == CHUNK_END ? writer->span_written.end_ns : writer->span.end_ns;
	if (writer->used) {
		stored = ZSTD_compressCCtx(writer->compressor, chunk + 1, writer->payload_capacity,
		                           writer->raw, writer->used, COMPRESSION_LEVEL);
		chunk->coding = CHUNK_ZSTD;
	}
	if (writer->used && (ZSTD_isError(stored) || stored >= writer->used)) {
		memcpy(chunk + 1, writer->raw, writer->used);
		stored = writer->used;
		chunk->coding = CHUNK_STORED;
	}
	chunk->stored_length = (uint32_t)stored;
	chunk_seal(chunk);
	rc = output_write(writer->fd, chunk, sizeof(*chunk) + stored, writer->end);
	if (rc && ftruncate(writer->fd, (off_t)writer->end) < 0) {
		/* Nothing else can be done: readers skip the piece that is left. */
	}
	if (rc)
		return rc;
	writer->end += sizeof(*chunk) + stored;
	writer->sequence++;
	return 0;
}

static void begin_outage(struct session_writer *writer, int rc)
{
	writer->failed = true;
	for (size_t at = 0; at < writer->used;) {
		const struct record_header *record = (const void *)(writer->raw + at);

		if (record->type != RECORD_STRING)
			backlog_add(&writer->backlog, record, record->size, NULL, 0);
		at += record->size;
	}
	writer->strings_buffered = writer->strings_written;
	if (writer->outage)
		return;
	writer->outage = true;
	writer->untold = true;
	error_set(&writer->failure, rc, "cannot write %s: %s", writer->path, strerror(-rc));
}

/* Writes what is in `raw`; afterwards it is empty, and either in the file or in the backlog. */
static void commit(struct session_writer *writer)
{
	int rc;

	if (!writer->used)
		return;
	rc = write_chunk(writer, CHUNK_RECORDS);
	if (rc) {
		begin_outage(writer, rc);
	} else {
		writer->records_written += writer->records;
		writer->strings_written = writer->strings_buffered;
		record_span_join(&writer->span_written, &writer->span);
	}
	writer->used = 0;
	writer->records = 0;
	writer->span = (struct record_span){0};
}

/* Room for a record of `size` bytes in `raw`; NULL during an outage. */
static void *reserve(struct session_writer *writer, size_t size)
{
	void *place;

	if (!writer->failed && writer->used + size > CHUNK_TARGET_RAW)
		commit(writer);
	if (writer->failed)
		return NULL;
	place = writer->raw + writer->used;
	writer->used += size;
	writer->records++;
	return place;
}

static void append(struct session_writer *writer, const void *record, size_t record_size, const void *tail,
                   size_t tail_size)
{
	uint8_t *place = reserve(writer, record_size + tail_size);

	if (!place) {
		backlog_add(&writer->backlog, record, record_size, tail, tail_size);
		return;
	}
	memcpy(place, record, record_size);
	if (tail_size)
		memcpy(place + record_size, tail, tail_size);
	record_span_add(&writer->span, (const struct record_header *)place);
}

/* Appends the definition of the string; during an outage its place in the table is enough. */
static void append_string(struct session_writer *writer, uint32_t id)
{
	struct record_string *record;
	uint32_t length;
	const char *text = string_table_text(&writer->strings, id, &length);
	size_t padded = ((size_t)length + 7) & ~(size_t)7;

	record = reserve(writer, sizeof(*record) + padded);
	if (!record)
		return;
	record->header =
	    (struct record_header){.type = RECORD_STRING, .size = (uint32_t)(sizeof(*record) + padded)};
	record->id = id;
	record->length = length;
	memset((char *)(record + 1) + length, 0, padded - length);
	memcpy(record + 1, text, length);
	writer->strings_buffered = id;
}

static void append_loss(struct session_writer *writer, const struct backlog *backlog)
{
	struct record_loss loss = {
	    .header = {.type = RECORD_LOSS, .size = sizeof(loss)},
	    .start_ns = backlog->span.start_ns,
	    .end_ns = backlog->span.end_ns,
	    .count = backlog->dropped,
	    .cause = RECORD_LOSS_FILE,
	};

	append(writer, &loss, sizeof(loss), NULL, 0);
}

/* Tries to go on after a failed write. If that fails too, everything is again in the backlog. */
static void end_outage(struct session_writer *writer)
{
	struct backlog backlog = writer->backlog;

	writer->backlog = (struct backlog){0};
	writer->dropped += backlog.dropped;
	writer->failed = false;
	if (backlog.dropped)
		append_loss(writer, &backlog);
	for (size_t id = writer->strings_written + 1; id <= writer->strings.entries.count && !writer->failed;
	     id++)
		append_string(writer, (uint32_t)id);
	for (size_t at = 0; at < backlog.kept_bytes;) {
		const struct record_header *record = (const void *)(backlog.kept + at);

		append(writer, record, record->size, NULL, 0);
		at += record->size;
	}
	commit(writer);
	writer->outage = writer->failed;
	backlog_free(&backlog);
}

static void retry(struct session_writer *writer)
{
	writer->backlog.dropped_bytes = 0;
	if (output_has_room(writer->fd, writer->end, ROOM_TO_GO_ON))
		end_outage(writer);
}

/* A failure is returned by the first call after it that can. */
static int tell_failure(struct session_writer *writer, struct error *error)
{
	if (!writer->untold)
		return 0;
	writer->untold = false;
	return error_set(error, writer->failure.code, "%s", writer->failure.text);
}

int session_writer_put_tail(struct session_writer *writer, const void *record, size_t record_size,
                            const void *tail, size_t tail_size, struct error *error)
{
	const struct record_header *header = record;

	if (record_size < sizeof(*header) || record_size % 8 || tail_size % 8 ||
	    tail_size > CHUNK_TARGET_RAW || record_size > CHUNK_TARGET_RAW - tail_size ||
	    header->size != record_size + tail_size)
		return error_set(error, -EINVAL, "record of type %u has a bad size (%u bytes)", header->type,
		                 header->size);
	append(writer, record, record_size, tail, tail_size);
	if (writer->failed && writer->backlog.dropped_bytes >= CHUNK_TARGET_RAW)
		retry(writer);
	return tell_failure(writer, error);
}

int session_writer_put(struct session_writer *writer, const void *record, struct error *error)
{
	const struct record_header *header = record;

	return session_writer_put_tail(writer, record, header->size, NULL, 0, error);
}

uint32_t session_writer_string(struct session_writer *writer, const char *text, size_t length)
{
	size_t known = writer->strings.entries.count;
	uint32_t id;

	if (!text || !length)
		return 0;
	if (length > SESSION_MAX_STRING)
		length = SESSION_MAX_STRING;
	id = string_table_add(&writer->strings, text, (uint32_t)length);
	if (id > known)
		append_string(writer, id);
	return id;
}

uint32_t session_writer_cstring(struct session_writer *writer, const char *text)
{
	return session_writer_string(writer, text, text ? strlen(text) : 0);
}

int session_writer_info(struct session_writer *writer, const char *key, const char *value,
                        struct error *error)
{
	struct record_info info = {
	    .header = {.type = RECORD_INFO, .size = sizeof(info)},
	    .key = session_writer_cstring(writer, key),
	    .value = session_writer_cstring(writer, value),
	};

	return session_writer_put(writer, &info, error);
}

int session_writer_flush(struct session_writer *writer, struct error *error)
{
	if (writer->failed)
		retry(writer);
	commit(writer);
	return tell_failure(writer, error);
}

uint64_t session_writer_lost(const struct session_writer *writer)
{
	return writer->dropped + writer->backlog.dropped + writer->backlog.kept_records;
}

uint64_t session_writer_bytes(const struct session_writer *writer)
{
	return writer->end;
}

int session_writer_descriptor(const struct session_writer *writer)
{
	return writer->fd;
}

/* The end mark, after whatever can still be saved: the cut-off piece of a failed chunk left some room. */
static int finish(struct session_writer *writer, struct error *error)
{
	int rc;

	commit(writer);
	if (writer->failed)
		end_outage(writer);
	if (writer->failed)
		return error_set(error, writer->failure.code, "%s", writer->failure.text);
	rc = write_chunk(writer, CHUNK_END);
	if (rc)
		return error_set(error, rc, "cannot finish %s: %s", writer->path, strerror(-rc));
	return tell_failure(writer, error);
}

int session_writer_close(struct session_writer *writer, struct error *error)
{
	int rc;

	if (!writer)
		return 0;
	rc = finish(writer, error);
	if (close(writer->fd) < 0 && !rc)
		rc = error_set(error, -errno, "cannot finish %s: %s", writer->path, strerror(errno));
	writer->fd = -1;
	writer_free(writer);
	return rc;
}
