/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads numbers and texts of a run of bytes that is not trusted, in its order. What does not fit is 0, sets
 * `wrong` and leaves nothing to be read: callers look at `wrong` where it matters, and loops end.
 * Little-endian.
 */
#ifndef WHYIDLE_SYMBOLS_BYTE_READER_H
#define WHYIDLE_SYMBOLS_BYTE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct byte_reader {
	const uint8_t *at, *end;
	bool wrong;
};

/* From `offset` of `size` bytes on. */
static inline struct byte_reader byte_reader_at(const uint8_t *bytes, size_t size, uint64_t offset)
{
	if (!bytes || offset > size)
		return (struct byte_reader){.wrong = true};
	return (struct byte_reader){bytes + offset, bytes + size, false};
}

static inline size_t byte_reader_left(const struct byte_reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

/* The next `size` bytes, which are passed; NULL if there are fewer. */
static inline const uint8_t *read_bytes(struct byte_reader *reader, uint64_t size)
{
	const uint8_t *bytes = reader->at;

	if (size > byte_reader_left(reader)) {
		*reader = (struct byte_reader){.wrong = true};
		return NULL;
	}
	if (size)
		reader->at += size;
	return bytes;
}

/* A number of 1 to 8 bytes. */
static inline uint64_t read_fixed(struct byte_reader *reader, unsigned size)
{
	const uint8_t *bytes = read_bytes(reader, size);
	uint64_t value = 0;

	if (bytes)
		memcpy(&value, bytes, size);
	return value;
}

#define LEB_MAX 16 /* bytes of a number, padded with such as say nothing */

/* LEB128: seven bits a byte, the lowest first, 128 set in all but the last. Bits beyond 64 are dropped. */
static inline uint64_t read_leb(struct byte_reader *reader, unsigned *bits)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < LEB_MAX; i++) {
		const uint8_t *byte = read_bytes(reader, 1);

		if (!byte)
			return 0;
		if (i * 7 < 64)
			value |= (uint64_t)(*byte & 127) << i * 7;
		*bits = (i + 1) * 7;
		if (!(*byte & 128))
			return value;
	}
	*reader = (struct byte_reader){.wrong = true};
	return 0;
}

static inline uint64_t read_unsigned(struct byte_reader *reader)
{
	unsigned bits;

	return read_leb(reader, &bits);
}

static inline int64_t read_signed(struct byte_reader *reader)
{
	unsigned bits = 64;
	uint64_t value = read_leb(reader, &bits);

	if (bits < 64 && value >> (bits - 1) & 1)
		value |= ~0ULL << bits;
	return (int64_t)value;
}

/* A text that ends with a NUL; NULL if there is none of at most `most` bytes. */
static inline const char *read_cstring(struct byte_reader *reader, size_t most)
{
	size_t left = byte_reader_left(reader);
	const uint8_t *start = reader->at, *end = left ? memchr(start, 0, left < most ? left : most) : NULL;

	if (!end) {
		*reader = (struct byte_reader){.wrong = true};
		return NULL;
	}
	reader->at = end + 1;
	return (const char *)start;
}

#endif
