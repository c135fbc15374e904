/* SPDX-License-Identifier: GPL-2.0-only */
#include "trace/chunk.h"

#include <string.h>
#include <zlib.h>

#include "trace/session.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "session files are little endian");

uint32_t chunk_crc(const void *bytes, size_t length)
{
	return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, length);
}

void session_header_fill(struct session_header *header)
{
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, SESSION_MAGIC, MAGIC_SIZE);
	header->version = SESSION_VERSION;
	header->size = sizeof(*header);
	header->crc = chunk_crc(header, offsetof(struct session_header, crc));
}

bool session_header_intact(const struct session_header *header)
{
	return header->crc == chunk_crc(header, offsetof(struct session_header, crc));
}

void chunk_seal(struct chunk_header *header)
{
	memcpy(header->magic, CHUNK_MAGIC, MAGIC_SIZE);
	header->size = sizeof(*header);
	header->payload_crc = chunk_crc(header + 1, header->stored_length);
	header->header_crc = chunk_crc(header, offsetof(struct chunk_header, header_crc));
}

bool chunk_header_intact(const struct chunk_header *header)
{
	return !memcmp(header->magic, CHUNK_MAGIC, MAGIC_SIZE) &&
	       header->header_crc == chunk_crc(header, offsetof(struct chunk_header, header_crc)) &&
	       header->size >= sizeof(*header) && header->size <= CHUNK_MAX_HEADER &&
	       header->raw_length <= CHUNK_MAX_RAW && header->stored_length <= CHUNK_MAX_RAW;
}
