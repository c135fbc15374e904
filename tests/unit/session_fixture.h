/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the tests of session files: files in a directory of their own, what a read showed, made-up files.
 */
#ifndef WHYIDLE_TESTS_SESSION_FIXTURE_H
#define WHYIDLE_TESTS_SESSION_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "trace/chunk.h"
#include "trace/session.h"

/* A path of this name in a fresh directory, which is removed when the test process ends. Static storage. */
const char *fixture_path(const char *name);

/* A run of bytes that grows. */
struct image {
	uint8_t *bytes;
	size_t size;
};

void image_add(struct image *image, const void *bytes, size_t size);
void image_add_header(struct image *image);
/* A chunk of records as they are, not compressed. */
void image_add_chunk(struct image *image, const struct image *records, uint32_t count, uint32_t sequence,
                     uint64_t first_record);
void image_add_end(struct image *image, uint32_t sequence, uint64_t first_record);
void image_save(const struct image *image, const char *path);
struct image image_load(const char *path);
void image_free(struct image *image);

/* The records that a read showed, with what follows them. */
struct shown {
	struct {
		ARRAY(struct shown_record {
			struct record_header header;
			uint8_t
			    *bytes; /* RECORD_MAX_STRUCT, or the struct and what follows it if that is more */
		})
	} records;
	int stop_after; /* stop with 77 after this many, 0 never */
};

/* Reads a file into `shown`, which may be NULL. */
int shown_read(struct shown *shown, const char *path, struct session_summary *summary, struct error *error);
const void *shown_at(const struct shown *shown, size_t index, uint16_t type);
size_t shown_count(const struct shown *shown, uint16_t type);
void shown_free(struct shown *shown);

/* Deterministic pseudo-random numbers (splitmix64). */
uint64_t fixture_random(uint64_t *state);
void fixture_fill(uint64_t *state, void *bytes, size_t size);

/* An off-CPU record that starts at start_ns and takes a microsecond; every other byte is random. */
struct record_offcpu fixture_offcpu(uint64_t *state, uint64_t start_ns);

#endif
