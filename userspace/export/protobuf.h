/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages of Protocol Buffers in their wire format, written field by field into memory that grows. Nothing
 * checks that fields are those of a schema: the callers name them.
 *
 *	size_t mark = protobuf_begin(&message, FIELD);    a message inside
 *	protobuf_number(&message, OTHER_FIELD, 5);
 *	protobuf_end(&message, mark);
 */
#ifndef WHYIDLE_EXPORT_PROTOBUF_H
#define WHYIDLE_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct protobuf {
	unsigned char *bytes;
	size_t size, capacity;
	bool failed; /* memory ran out: what follows is dropped */
};

void protobuf_free(struct protobuf *message);
/* Empties it, keeps its memory. */
void protobuf_clear(struct protobuf *message);

/* Of the types uint64, uint32, bool, enum; and of int64 and int32 if cast. */
void protobuf_number(struct protobuf *message, uint32_t field, uint64_t value);
void protobuf_fixed64(struct protobuf *message, uint32_t field, uint64_t value);
void protobuf_bytes(struct protobuf *message, uint32_t field, const void *bytes, size_t size);
/* The caller sees to it that it is UTF-8. */
void protobuf_string(struct protobuf *message, uint32_t field, const char *text);

/* What is written in between is the message in that field. */
size_t protobuf_begin(struct protobuf *message, uint32_t field);
void protobuf_end(struct protobuf *message, size_t mark);

/* A number of a packed repeated field, between protobuf_begin and protobuf_end. */
void protobuf_packed(struct protobuf *message, uint64_t value);

#endif
