/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Session files: a stream of records in checksummed, compressed chunks (docs/session-format.md).
 *
 * A file is readable up to its last finished chunk, whatever ended its writer (kill -9, full disk, power).
 */
#ifndef WHYIDLE_TRACE_SESSION_H
#define WHYIDLE_TRACE_SESSION_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/record.h"

#define SESSION_VERSION    1
#define SESSION_MAX_STRING 65536 /* bytes of a string that are kept */

struct session_writer;

/*
 * Creates (or truncates) `path`, which must be or become a regular file; only its owner may read it, for
 * command lines may hold secrets. Another writer of the same file is refused (-EBUSY). On success *writer is
 * owned by the caller until session_writer_close. Returns 0 or a negative errno with `error` filled in. A
 * writer is used by one thread at a time.
 */
int session_writer_open(struct session_writer **writer, const char *path, struct error *error);

/*
 * Appends a record; header.type and header.size must be set, header.size includes what follows the struct and
 * is a multiple of 8. The record is copied. A failed write (full disk) is returned once, with `error` filled
 * in; from then on records are counted as lost (session_writer_lost) and 0 is returned, so that the caller
 * can go on watching the target. When there is room again, the writer goes on by itself: it writes a
 * RECORD_LOSS with the count and the time range of the events that are missing, then the definitions
 * (strings, stacks, tasks …) that were put meanwhile. The next outage is again returned once.
 *
 * -EINVAL: the sizes are wrong; the record was not taken.
 */
int session_writer_put(struct session_writer *writer, const void *record, struct error *error);

/* As session_writer_put, for a record whose tail (stack frames) lies elsewhere. tail_size is a multiple of 8.
 */
int session_writer_put_tail(struct session_writer *writer, const void *record, size_t record_size,
                            const void *tail, size_t tail_size, struct error *error);

/*
 * Id of a string, writing its definition on first use; 0 for NULL or an empty string, or if memory ran out.
 * What is longer than SESSION_MAX_STRING is cut. A failed write is returned by the next put or flush.
 */
uint32_t session_writer_string(struct session_writer *writer, const char *text, size_t length);
uint32_t session_writer_cstring(struct session_writer *writer, const char *text);

/* Writes an RECORD_INFO pair. */
int session_writer_info(struct session_writer *writer, const char *key, const char *value,
                        struct error *error);

/* Ends the current chunk and hands it to the kernel, so that a later kill loses nothing before this point. */
int session_writer_flush(struct session_writer *writer, struct error *error);

/* Records that could not be written, or not yet. */
uint64_t session_writer_lost(const struct session_writer *writer);

/* Bytes handed to the file so far. */
uint64_t session_writer_bytes(const struct session_writer *writer);

/* Descriptor of the file, for fchown; still owned by the writer. */
int session_writer_descriptor(const struct session_writer *writer);

/*
 * Writes the end mark, closes the file and frees the writer, also on failure. NULL is allowed. Returns an
 * error if the end mark could not be written, also if an outage was already returned.
 */
int session_writer_close(struct session_writer *writer, struct error *error);

/* What a read found out about the file as a whole. */
struct session_summary {
	uint32_t version;
	uint64_t records;         /* visited, those that the reader made up (see session_visit) not counted */
	uint64_t unknown_records; /* skipped: of a type that a newer version added */
	uint64_t lost_records;    /* in damaged chunks that have a good one after them */
	uint64_t chunks;          /* good ones, the end mark included */
	uint64_t bad_chunks;      /* damaged chunks or headers, skipped */
	bool complete;            /* the end mark was there */
	uint64_t lost_bytes;      /* bytes of an unfinished last chunk or of skipped ones */
};

#define RECORD_MAX_STRUCT 256

/*
 * Called for each record in file order. `record` is zero-extended to RECORD_MAX_STRUCT bytes, 8-byte aligned
 * and valid during the call only; header.size is the size in the file. What follows a struct lies right
 * behind the struct as record.h has it, whatever version wrote it; its length (string length, frame count)
 * has been checked, and a string is followed by a zero byte. Values are as the file has them: ids and times
 * may be anything.
 *
 * Where damaged chunks were skipped, a RECORD_LOSS with cause RECORD_LOSS_FILE stands in for them, which is
 * not in the file: how many records they held and the range of time that these could have been about.
 *
 * A non-zero return ends the read and is returned by session_read.
 */
typedef int (*session_visit)(void *context, const struct record_header *record);

/*
 * Reads `path`. Returns 0 also for an incomplete file (see `summary`, which may be NULL), a negative errno
 * with `error` filled in if it is not a session file (-EINVAL), of a newer incompatible version (-ENOTSUP),
 * or holds no readable chunk (-ENODATA). Uses a few MiB whatever the size of the file.
 */
int session_read(const char *path, session_visit visit, void *context, struct session_summary *summary,
                 struct error *error);

/* True if the first bytes of `path` are those of a session file. */
bool session_recognise(const char *path);

#endif
