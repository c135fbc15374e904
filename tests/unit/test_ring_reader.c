// SPDX-License-Identifier: GPL-2.0-only
/* The collector's end of a ring, against a writer that does what it likes. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "collect/pure_ring_reader.h"

#define CAPACITY 262144

static uint8_t *memory;
static struct ring_control *control;
static struct ring_reader *reader;

static void set_up(void)
{
	memory = aligned_alloc(4096, RING_CONTROL_SIZE + CAPACITY);
	cr_assert(memory);
	memset(memory, 0, RING_CONTROL_SIZE + CAPACITY);
	control = (struct ring_control *)memory;
	reader = calloc(1, sizeof(*reader));
	cr_assert(reader);
	ring_reader_format(control, CAPACITY);
	ring_reader_init(reader, memory, CAPACITY);
}

static void tear_down(void)
{
	free(reader);
	free(memory);
}

TestSuite(ring_reader, .init = set_up, .fini = tear_down);

/* Writes a record of `size` bytes at `position`, filled with `fill`. */
static void put(uint64_t position, uint32_t size, uint16_t type, uint8_t fill)
{
	struct ring_record record = {.size = size, .type = type};
	uint8_t *at = memory + RING_CONTROL_SIZE + (position & (CAPACITY - 1));

	if (size > sizeof(record) && (position & (CAPACITY - 1)) + size <= CAPACITY)
		memset(at + sizeof(record), fill, size - sizeof(record));
	memcpy(at, &record, sizeof(record));
}

Test(ring_reader, format_describes_the_ring)
{
	cr_assert_eq(control->magic, RING_MAGIC);
	cr_assert_eq(control->version, RING_VERSION);
	cr_assert_eq(control->capacity, CAPACITY);
}

Test(ring_reader, empty_ring_has_no_batch)
{
	cr_assert(!ring_reader_begin(reader));
	cr_assert_null(reader->broken);
}

Test(ring_reader, records_come_in_order_and_room_is_given_back)
{
	const struct ring_record *record;

	put(0, 16, RING_NAME, 0xaa);
	put(16, 80, RING_KERNEL, 0xbb);
	control->head = 96;
	cr_assert(ring_reader_begin(reader));
	record = ring_reader_next(reader);
	cr_assert(record);
	cr_assert_eq(record->type, RING_NAME);
	cr_assert_eq(((const uint8_t *)record)[15], 0xaa);
	record = ring_reader_next(reader);
	cr_assert(record);
	cr_assert_eq(record->size, 80);
	cr_assert_eq(((const uint8_t *)record)[79], 0xbb);
	cr_assert_null(ring_reader_next(reader));
	cr_assert_eq(control->tail, 0, "room is given back at the end of the batch");
	ring_reader_end(reader);
	cr_assert_eq(control->tail, 96);
}

Test(ring_reader, padding_is_skipped_also_when_longer_than_a_record_may_be)
{
	const struct ring_record *record;

	put(0, CAPACITY - 16, RING_PAD, 0);
	put(CAPACITY - 16, 16, RING_NAME, 1);
	control->head = CAPACITY;
	cr_assert(ring_reader_begin(reader));
	record = ring_reader_next(reader);
	cr_assert(record);
	cr_assert_eq(record->type, RING_NAME);
	cr_assert_null(ring_reader_next(reader));
	ring_reader_end(reader);
	put(CAPACITY, 24, RING_STATUS, 2);
	control->head = CAPACITY + 24;
	cr_assert(ring_reader_begin(reader));
	record = ring_reader_next(reader);
	cr_assert(record, "the ring goes on after its end");
	cr_assert_eq(record->type, RING_STATUS);
}

Test(ring_reader, record_is_a_copy_that_later_writes_do_not_change)
{
	const struct ring_record *record;

	put(0, 80, RING_KERNEL, 0x11);
	control->head = 80;
	cr_assert(ring_reader_begin(reader));
	record = ring_reader_next(reader);
	put(0, 4096, RING_API, 0x22);
	cr_assert_eq(record->size, 80);
	cr_assert_eq(record->type, RING_KERNEL);
	cr_assert_eq(((const uint8_t *)record)[40], 0x11);
}

Test(ring_reader, impossible_heads_break_the_ring)
{
	static const uint64_t heads[] = {CAPACITY + 8, 12, UINT64_MAX, 1ULL << 63, UINT64_MAX - 7};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		ring_reader_init(reader, memory, CAPACITY);
		control->head = heads[i];
		cr_assert(!ring_reader_begin(reader), "head %zu", i);
		cr_assert(reader->broken);
		control->head = 16;
		cr_assert(!ring_reader_begin(reader), "a broken ring stays broken");
	}
}

Test(ring_reader, head_that_goes_back_breaks_the_ring)
{
	put(0, 80, RING_KERNEL, 0);
	control->head = 80;
	cr_assert(ring_reader_begin(reader));
	cr_assert(ring_reader_next(reader));
	ring_reader_end(reader);
	control->head = 40;
	cr_assert(!ring_reader_begin(reader));
	cr_assert(reader->broken);
}

Test(ring_reader, impossible_sizes_break_the_ring)
{
	static const uint32_t sizes[] = {
	    0, 4, 7, 9, 20, 104, UINT32_MAX, UINT32_MAX - 7, RING_MAX_RECORD + 8};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ring_reader_init(reader, memory, CAPACITY);
		put(0, sizes[i], RING_KERNEL, 0);
		control->head = i == 8 ? RING_MAX_RECORD + 8 : 96;
		cr_assert(ring_reader_begin(reader));
		cr_assert_null(ring_reader_next(reader), "size %u", sizes[i]);
		cr_assert(reader->broken, "size %u", sizes[i]);
	}
}

Test(ring_reader, record_that_would_wrap_breaks_the_ring)
{
	put(0, CAPACITY - 16, RING_PAD, 0);
	put(CAPACITY - 16, 32, RING_NAME, 0);
	control->head = CAPACITY;
	cr_assert(ring_reader_begin(reader));
	cr_assert_null(ring_reader_next(reader));
	cr_assert(reader->broken);
}

Test(ring_reader, batch_ends_however_fast_the_other_side_writes)
{
	uint64_t records = 0;

	for (uint64_t at = 0; at < CAPACITY; at += 16)
		put(at, 16, RING_NAME, 0);
	control->head = CAPACITY;
	cr_assert(ring_reader_begin(reader));
	while (ring_reader_next(reader)) {
		control->head += 16; /* as a writer would that ignores the tail */
		records++;
	}
	cr_assert_eq(records, CAPACITY / 16);
}

Test(ring_reader, random_memory_never_reads_outside)
{
	uint64_t state = 1;

	for (int round = 0; round < 2000; round++) {
		uint64_t *words = (uint64_t *)(memory + RING_CONTROL_SIZE);

		for (size_t i = 0; i < 4096 / 8; i++) {
			state = state * 6364136223846793005ULL + 1442695040888963407ULL;
			/* Small sizes are likely, so that runs of records form. */
			words[i] =
			    (state >> 33) & 7 ? (state >> 40 & 0x78) | (state >> 20 & 15) << 32 : state;
		}
		ring_reader_init(reader, memory, CAPACITY);
		control->head = (state >> 30) & 0xff8;
		if (!ring_reader_begin(reader))
			continue;
		while (ring_reader_next(reader))
			;
		ring_reader_end(reader);
		cr_assert_leq(reader->tail, control->head + RING_MAX_RECORD);
	}
}

Test(ring_reader, shut_tells_the_writer)
{
	ring_reader_shut(reader);
	cr_assert_eq(control->closed, 1);
}
