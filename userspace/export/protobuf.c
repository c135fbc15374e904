// SPDX-License-Identifier: GPL-2.0-only
#include "export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#define VARINT_MAX 10 /* bytes of a 64-bit number, seven bits in each */

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
};

void protobuf_free(struct protobuf *message)
{
	free(message->bytes);
	*message = (struct protobuf){0};
}

void protobuf_clear(struct protobuf *message)
{
	message->size = 0;
}

/* Room behind what is there, NULL if there is no memory. */
static unsigned char *reserve(struct protobuf *message, size_t size)
{
	if (message->capacity - message->size < size) {
		size_t wanted = message->capacity * 2 + size;
		unsigned char *grown = message->failed ? NULL : realloc(message->bytes, wanted);

		if (!grown) {
			message->failed = true;
			return NULL;
		}
		message->bytes = grown;
		message->capacity = wanted;
	}
	return message->bytes + message->size;
}

static size_t put_varint(unsigned char *to, uint64_t value)
{
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		to[size++] = (unsigned char)(value | 0x80);
	to[size++] = (unsigned char)value;
	return size;
}

void protobuf_packed(struct protobuf *message, uint64_t value)
{
	unsigned char *to = reserve(message, VARINT_MAX);

	if (to)
		message->size += put_varint(to, value);
}

static void put_tag(struct protobuf *message, uint32_t field, enum wire_type type)
{
	protobuf_packed(message, (uint64_t)field << 3 | type);
}

void protobuf_number(struct protobuf *message, uint32_t field, uint64_t value)
{
	put_tag(message, field, WIRE_VARINT);
	protobuf_packed(message, value);
}

void protobuf_fixed64(struct protobuf *message, uint32_t field, uint64_t value)
{
	unsigned char *to;

	put_tag(message, field, WIRE_FIXED64);
	to = reserve(message, 8);
	if (!to)
		return;
	for (int i = 0; i < 8; i++)
		to[i] = (unsigned char)(value >> 8 * i);
	message->size += 8;
}

void protobuf_bytes(struct protobuf *message, uint32_t field, const void *bytes, size_t size)
{
	unsigned char *to;

	put_tag(message, field, WIRE_BYTES);
	protobuf_packed(message, size);
	to = reserve(message, size);
	if (!to)
		return;
	memcpy(to, bytes, size);
	message->size += size;
}

void protobuf_string(struct protobuf *message, uint32_t field, const char *text)
{
	protobuf_bytes(message, field, text, strlen(text));
}

/* A byte is kept for the length, which most messages need. */
size_t protobuf_begin(struct protobuf *message, uint32_t field)
{
	put_tag(message, field, WIRE_BYTES);
	protobuf_packed(message, 0);
	return message->size;
}

void protobuf_end(struct protobuf *message, size_t mark)
{
	unsigned char length[VARINT_MAX];
	size_t size, more;

	if (message->failed)
		return;
	size = message->size - mark;
	more = put_varint(length, size) - 1;
	if (!reserve(message, more))
		return;
	memmove(message->bytes + mark + more, message->bytes + mark, size);
	memcpy(message->bytes + mark - 1, length, more + 1);
	message->size += more;
}
