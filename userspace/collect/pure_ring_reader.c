// SPDX-License-Identifier: GPL-2.0-only
#include "collect/pure_ring_reader.h"

#include <string.h>

/* Room is given back in steps of this many bytes, so that a long batch does not keep the writer out. */
#define PUBLISH_STEP ((uint64_t)256 * 1024)

void ring_reader_format(struct ring_control *control, uint64_t capacity)
{
	control->version = RING_VERSION;
	control->capacity = capacity;
	__atomic_store_n(&control->magic, RING_MAGIC, __ATOMIC_RELEASE);
}

void ring_reader_init(struct ring_reader *reader, void *memory, uint64_t capacity)
{
	reader->control = memory;
	reader->data = (const uint8_t *)memory + RING_CONTROL_SIZE;
	reader->capacity = capacity;
	reader->tail = reader->published = reader->limit = 0;
	reader->broken = NULL;
}

static void publish(struct ring_reader *reader)
{
	__atomic_store_n(&reader->control->tail, reader->tail, __ATOMIC_RELEASE);
	reader->published = reader->tail;
}

bool ring_reader_begin(struct ring_reader *reader)
{
	uint64_t head;

	if (reader->broken)
		return false;
	head = __atomic_load_n(&reader->control->head, __ATOMIC_ACQUIRE);
	if (head == reader->tail)
		return false;
	/* Unsigned: a head that went backwards is caught as well. */
	if (head - reader->tail > reader->capacity || head % 8) {
		reader->broken = "its write position makes no sense";
		return false;
	}
	reader->limit = head;
	return true;
}

const struct ring_record *ring_reader_next(struct ring_reader *reader)
{
	while (!reader->broken && reader->tail != reader->limit) {
		uint64_t offset = reader->tail & (reader->capacity - 1);
		uint64_t room = reader->capacity - offset;
		struct ring_record header, *record = (struct ring_record *)reader->copy;

		if (room > reader->limit - reader->tail)
			room = reader->limit - reader->tail;
		/* The one look at the shared header: what is checked is what is used. */
		__atomic_load((const uint64_t *)(reader->data + offset), reader->copy, __ATOMIC_RELAXED);
		header = *record;
		if (header.size < sizeof(header) || header.size % 8 || header.size > room) {
			reader->broken = "a record has an impossible size";
			return NULL;
		}
		if (reader->tail - reader->published >= PUBLISH_STEP)
			publish(reader);
		reader->tail += header.size;
		if (header.type == RING_PAD)
			continue;
		if (header.size > RING_MAX_RECORD) {
			reader->broken = "a record is longer than allowed";
			return NULL;
		}
		memcpy(reader->copy + 1, reader->data + offset + sizeof(header),
		       header.size - sizeof(header));
		return record;
	}
	return NULL;
}

void ring_reader_end(struct ring_reader *reader)
{
	if (reader->tail != reader->published)
		publish(reader);
}

void ring_reader_shut(struct ring_reader *reader)
{
	__atomic_store_n(&reader->control->closed, 1, __ATOMIC_RELEASE);
}
