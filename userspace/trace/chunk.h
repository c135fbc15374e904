/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Session files on disk: the file header and the chunks (docs/session-format.md). Internal to trace/ and its
 * tests; everyone else uses session.h.
 *
 * The first sizeof(struct session_header) bytes of a file and the first sizeof(struct chunk_header) bytes of
 * a chunk keep their meaning in every version; `size` lets later versions append to either.
 */
#ifndef WHYIDLE_TRACE_CHUNK_H
#define WHYIDLE_TRACE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SESSION_MAGIC "\x89whyidl\n"
#define CHUNK_MAGIC                                                                                          \
	"\xf5\x1c"                                                                                           \
	"chunk\n"
#define MAGIC_SIZE       8
#define CHUNK_TARGET_RAW (1u << 20) /* bytes of records that a writer puts into one chunk */
#define CHUNK_MAX_RAW    (4u << 20) /* a reader refuses chunks that claim more, before it allocates */
#define CHUNK_MAX_HEADER 4096u

struct session_header {
	uint8_t magic[MAGIC_SIZE];
	uint32_t version; /* SESSION_VERSION; a reader refuses a larger one */
	uint32_t size;    /* bytes of the header; the first chunk follows */
	uint32_t flags;   /* none defined; a reader refuses bits it does not know */
	uint32_t reserved[2];
	uint32_t crc; /* of the bytes before it */
};

enum chunk_type {
	CHUNK_RECORDS = 1,
	CHUNK_END = 2, /* the writer finished: nothing follows */
};

enum chunk_coding {
	CHUNK_STORED = 0, /* as it is */
	CHUNK_ZSTD = 1,
};

struct chunk_header {
	uint8_t magic[MAGIC_SIZE];
	uint16_t type;          /* enum chunk_type; unknown ones are skipped */
	uint16_t coding;        /* enum chunk_coding */
	uint32_t size;          /* bytes of the header; the payload follows */
	uint32_t raw_length;    /* bytes of the records, at most CHUNK_MAX_RAW */
	uint32_t stored_length; /* bytes of the payload in the file, at most CHUNK_MAX_RAW */
	uint32_t records;       /* records in this chunk */
	uint32_t sequence;      /* 0, 1, 2 … */
	uint64_t first_record;  /* records in all chunks before this one */
	uint64_t start_ns; /* span of the events in it (of the whole file for CHUNK_END), 0 if it has none */
	uint64_t end_ns;
	uint32_t payload_crc; /* of everything after these 64 bytes */
	uint32_t header_crc;  /* of the bytes before it */
};

_Static_assert(sizeof(struct session_header) == 32, "session_header");
_Static_assert(sizeof(struct chunk_header) == 64, "chunk_header");

/* A file header of this version, checksum included. */
void session_header_fill(struct session_header *header);
bool session_header_intact(const struct session_header *header);

/*
 * Completes a chunk in one piece: `header` is followed in memory by stored_length bytes. Sets magic, size and
 * checksums.
 */
void chunk_seal(struct chunk_header *header);

/* True if magic and checksum are right and every length is within its bound. */
bool chunk_header_intact(const struct chunk_header *header);

/* CRC-32 as zlib has it, for lengths beyond an unsigned int too. */
uint32_t chunk_crc(const void *bytes, size_t length);

#endif
