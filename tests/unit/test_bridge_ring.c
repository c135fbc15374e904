/* SPDX-License-Identifier: GPL-2.0-only */
/* The bridge's end of the ring: wrapping, full rings, losses told, concurrent writers, a hostile other end.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_bridge/ring_writer.h"

#define CAPACITY 4096u

struct fixture {
	struct ring_writer writer;
	struct ring_control *control;
	uint8_t *data;
	uint64_t tail;
};

static void fixture_open(struct fixture *fixture, uint64_t capacity)
{
	uint8_t *memory = aligned_alloc(4096, RING_CONTROL_SIZE + capacity);

	cr_assert_not_null(memory);
	memset(memory, 0, RING_CONTROL_SIZE + capacity);
	memset(fixture, 0, sizeof(*fixture));
	fixture->control = (struct ring_control *)memory;
	fixture->data = memory + RING_CONTROL_SIZE;
	ring_writer_init(&fixture->writer, memory, capacity);
}

static void fixture_close(struct fixture *fixture)
{
	free(fixture->control);
}

/* Next record that is no padding, given back at once; NULL if the ring is empty. */
static const struct ring_record *fixture_read(struct fixture *fixture)
{
	while (fixture->tail < __atomic_load_n(&fixture->control->head, __ATOMIC_ACQUIRE)) {
		uint64_t offset = fixture->tail & (fixture->writer.capacity - 1);
		const struct ring_record *record = (const struct ring_record *)(fixture->data + offset);

		cr_assert(record->size >= sizeof(*record) && record->size % 8 == 0);
		cr_assert(offset + record->size <= fixture->writer.capacity, "a record wraps");
		fixture->tail += record->size;
		if (record->type != RING_PAD)
			return record;
	}
	return NULL;
}

/* Tells the writer that all that was read may be overwritten. */
static void fixture_release(struct fixture *fixture)
{
	__atomic_store_n(&fixture->control->tail, fixture->tail, __ATOMIC_RELEASE);
}

static struct ring_sync sync_record(uint64_t start_ns, uint32_t correlation)
{
	return (struct ring_sync){
	    .record = {.size = sizeof(struct ring_sync), .type = RING_SYNC},
	    .start_ns = start_ns,
	    .end_ns = start_ns + 10,
	    .correlation = correlation,
	};
}

static bool put(struct fixture *fixture, uint64_t start_ns, uint32_t correlation)
{
	struct ring_sync record = sync_record(start_ns, correlation);

	return ring_writer_put(&fixture->writer, &record.record, start_ns, start_ns + 10);
}

Test(bridge_ring, wraps_without_splitting)
{
	struct fixture fixture;
	uint32_t pads = 0;

	/* 48 bytes do not divide the capacity, so that each round ends in padding of another size. */
	fixture_open(&fixture, CAPACITY);
	for (uint32_t i = 1; i <= 5000; i++) {
		const struct ring_sync *record;
		uint64_t before = fixture.tail;

		cr_assert(put(&fixture, i, i));
		record = (const struct ring_sync *)fixture_read(&fixture);
		cr_assert_not_null(record);
		cr_assert_eq(record->record.type, RING_SYNC);
		cr_assert_eq(record->correlation, i);
		pads += fixture.tail - before != sizeof(*record);
		fixture_release(&fixture);
	}
	cr_assert_gt(pads, 10);
	cr_assert_eq(fixture.control->lost_records, 0);
	fixture_close(&fixture);
}

Test(bridge_ring, full_ring_loses_and_tells)
{
	struct fixture fixture;
	const struct ring_record *record;
	uint32_t written = 0, lost = 0, read = 0;

	fixture_open(&fixture, CAPACITY);
	for (uint32_t i = 0; i < 1000; i++)
		put(&fixture, 1000 + 100 * i, i) ? written++ : lost++;
	cr_assert_gt(written, 0);
	cr_assert_gt(lost, 0);
	cr_assert_eq(fixture.control->lost_records, lost);
	/* The records that fit are the first ones, whole and in order. */
	while ((record = fixture_read(&fixture))) {
		cr_assert_eq(record->type, RING_SYNC);
		cr_assert_eq(((const struct ring_sync *)record)->correlation, read);
		read++;
	}
	cr_assert_eq(read, written);
	fixture_release(&fixture);

	cr_assert(put(&fixture, 500000, 5000));
	record = fixture_read(&fixture);
	cr_assert_not_null(record);
	cr_assert_eq(record->type, RING_LOSS, "the loss comes before what follows it");
	cr_assert_eq(((const struct ring_loss *)record)->cause, RING_LOSS_RING);
	cr_assert_eq(((const struct ring_loss *)record)->count, lost);
	cr_assert_eq(((const struct ring_loss *)record)->start_ns, 1000 + 100 * written);
	cr_assert_eq(((const struct ring_loss *)record)->end_ns, 1000 + 100 * 999 + 10);
	record = fixture_read(&fixture);
	cr_assert_not_null(record);
	cr_assert_eq(((const struct ring_sync *)record)->correlation, 5000);
	cr_assert_null(fixture_read(&fixture));
	fixture_close(&fixture);
}

Test(bridge_ring, no_flood_of_losses_from_a_slow_reader)
{
	struct fixture fixture;
	uint32_t losses = 0;

	fixture_open(&fixture, CAPACITY);
	for (uint32_t i = 0; i < 10000; i++) {
		const struct ring_record *record;

		put(&fixture, i, i);
		if (i % 3) /* the reader manages one record of three */
			continue;
		record = fixture_read(&fixture);
		losses += record && record->type == RING_LOSS;
		fixture_release(&fixture);
	}
	cr_assert_gt(losses, 0);
	cr_assert_lt(losses, 10000 / 3 / 4, "%u losses", losses);
	fixture_close(&fixture);
}

Test(bridge_ring, state_and_losses_fit_into_a_full_ring)
{
	struct fixture fixture;
	union {
		struct ring_status status;
		char space[sizeof(struct ring_status) + 48];
	} state = {
	    .status = {.record = {.size = sizeof(state), .type = RING_STATUS}, .phase = RING_PHASE_STOPPED}};
	const struct ring_record *record;
	bool loss_seen = false, state_seen = false;

	fixture_open(&fixture, CAPACITY);
	while (put(&fixture, 1, 1))
		;
	ring_writer_note_loss(&fixture.writer, RING_LOSS_CUPTI, 5, 9, 3);
	cr_assert_eq(fixture.control->cupti_lost, 3);
	cr_assert(ring_writer_put_state(&fixture.writer, &state.status.record, true));
	for (uint32_t cause = 0; (record = fixture_read(&fixture));) {
		if (record->type == RING_LOSS) {
			const struct ring_loss *loss = (const struct ring_loss *)record;

			cr_assert_eq(loss->cause, ++cause, "one record for each cause");
			cr_assert_eq(loss->count, cause == RING_LOSS_RING ? 1 : 3);
			loss_seen = true;
		}
		state_seen |= record->type == RING_STATUS;
	}
	cr_assert(loss_seen && state_seen);
	fixture_release(&fixture);
	cr_assert_not(put(&fixture, 9, 9), "nothing follows the last state");
	cr_assert_not(ring_writer_put_state(&fixture.writer, &state.status.record, false));
	cr_assert_null(fixture_read(&fixture));
	cr_assert_eq(fixture.control->lost_records, 1);
	fixture_close(&fixture);
}

Test(bridge_ring, writes_nothing_once_closed)
{
	struct fixture fixture;

	fixture_open(&fixture, CAPACITY);
	cr_assert(put(&fixture, 1, 1));
	fixture.control->closed = 1;
	cr_assert_not(put(&fixture, 2, 2));
	ring_writer_note_loss(&fixture.writer, RING_LOSS_CUPTI, 5, 9, 3);
	ring_writer_set_phase(&fixture.writer, RING_PHASE_STOPPED);
	ring_writer_add_cost(&fixture.writer, 7);
	cr_assert_eq(fixture.control->head, sizeof(struct ring_sync));
	cr_assert_eq(fixture.control->lost_records, 0);
	cr_assert_eq(fixture.control->cupti_lost, 0);
	cr_assert_eq(fixture.control->phase, 0);
	cr_assert_eq(fixture.control->bridge_ns, 0);
	fixture_close(&fixture);
}

Test(bridge_ring, senseless_tail_overwrites_nothing)
{
	static const uint64_t tails[] = {1u << 20, UINT64_MAX, (uint64_t)1 << 63};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct fixture fixture;
		uint64_t head;

		fixture_open(&fixture, CAPACITY);
		while (put(&fixture, 1, 1))
			;
		head = fixture.control->head;
		fixture.control->tail = tails[i];
		for (int n = 0; n < 100; n++)
			cr_assert_not(put(&fixture, 2, 2));
		cr_assert_eq(fixture.control->head, head);
		fixture_close(&fixture);
	}
}

Test(bridge_ring, record_larger_than_the_ring_is_lost)
{
	struct fixture fixture;
	union {
		struct ring_name name;
		char space[sizeof(struct ring_name) + CAPACITY];
	} record = {.name = {.record = {.size = sizeof(record), .type = RING_NAME}}};

	fixture_open(&fixture, CAPACITY);
	cr_assert_not(ring_writer_put(&fixture.writer, &record.name.record, 1, 2));
	cr_assert_eq(fixture.control->head, 0);
	cr_assert_eq(fixture.control->lost_records, 1);
	cr_assert(put(&fixture, 3, 3), "smaller ones still fit");
	fixture_close(&fixture);
}

#define WRITERS 4u
#define RECORDS 20000u

struct writer_thread {
	struct fixture *fixture;
	uint32_t number;
	uint32_t lost;
	pthread_t thread;
};

static void *write_many(void *argument)
{
	struct writer_thread *self = argument;

	for (uint32_t i = 0; i < RECORDS; i++)
		self->lost += !put(self->fixture, 1 + i, self->number * RECORDS + i);
	return NULL;
}

Test(bridge_ring, concurrent_writers_and_a_reader)
{
	struct fixture fixture;
	struct writer_thread writers[WRITERS];
	uint32_t next[WRITERS] = {0};
	uint64_t read = 0, told = 0, lost = 0;
	bool running = true;

	fixture_open(&fixture, 65536);
	for (uint32_t i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer_thread){.fixture = &fixture, .number = i};
		cr_assert_eq(pthread_create(&writers[i].thread, NULL, write_many, &writers[i]), 0);
	}
	while (running || fixture.tail < fixture.control->head) {
		const struct ring_record *record = fixture_read(&fixture);

		if (!record) {
			running = false;
			for (uint32_t i = 0; i < WRITERS; i++)
				cr_assert_eq(pthread_join(writers[i].thread, NULL), 0);
			continue;
		}
		if (record->type == RING_LOSS) {
			told += ((const struct ring_loss *)record)->count;
		} else {
			uint32_t correlation = ((const struct ring_sync *)record)->correlation;

			cr_assert_lt(correlation, WRITERS * RECORDS);
			cr_assert_geq(correlation % RECORDS, next[correlation / RECORDS], "out of order");
			next[correlation / RECORDS] = correlation % RECORDS + 1;
			read++;
		}
		fixture_release(&fixture);
	}
	for (uint32_t i = 0; i < WRITERS; i++)
		lost += writers[i].lost;
	cr_assert_eq(read + lost, WRITERS * RECORDS);
	cr_assert_eq(fixture.control->lost_records, lost);
	cr_assert_eq(told + fixture.writer.lost[RING_LOSS_RING].count, lost,
	             "each loss is told or still noted");
	fixture_close(&fixture);
}
