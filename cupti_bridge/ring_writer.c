/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/ring_writer.h"

#include <string.h>

#define RING_WRITER_RESERVE 2048 /* several losses and a final state with its text */

void ring_writer_init(struct ring_writer *writer, void *memory, uint64_t capacity)
{
	memset(writer, 0, sizeof(*writer));
	writer->control = memory;
	writer->data = (uint8_t *)memory + RING_CONTROL_SIZE;
	writer->capacity = capacity;
	writer->reserve = RING_WRITER_RESERVE < capacity / 4 ? RING_WRITER_RESERVE : capacity / 4;
	pthread_mutex_init(&writer->lock, NULL);
}

/* Bytes that may be written now. The collector's tail is read only if the last known one is not enough. */
static uint64_t free_bytes(struct ring_writer *writer, uint64_t wanted)
{
	uint64_t used = writer->head - writer->tail;

	if (writer->capacity - used < wanted) {
		writer->tail = __atomic_load_n(&writer->control->tail, __ATOMIC_ACQUIRE);
		used = writer->head - writer->tail;
		if (used > writer->capacity) { /* makes no sense: overwrite nothing */
			writer->tail = writer->head - writer->capacity;
			return 0;
		}
	}
	return writer->capacity - used;
}

/* Writes a record if it fits and leaves `keep` bytes free. */
static bool append(struct ring_writer *writer, const struct ring_record *record, uint64_t keep)
{
	uint64_t offset = writer->head & (writer->capacity - 1);
	uint64_t to_end = writer->capacity - offset;
	uint64_t pad = to_end < record->size ? to_end : 0;
	uint64_t needed = pad + record->size + keep;

	if (needed > writer->capacity || free_bytes(writer, needed) < needed)
		return false;
	if (pad) {
		struct ring_record filler = {.size = (uint32_t)pad, .type = RING_PAD};

		memcpy(writer->data + offset, &filler, sizeof(filler));
		offset = 0;
	}
	memcpy(writer->data + offset, record, record->size);
	writer->head += pad + record->size;
	__atomic_store_n(&writer->control->head, writer->head, __ATOMIC_RELEASE);
	return true;
}

static void add_loss(struct ring_writer_loss *lost, uint64_t start_ns, uint64_t end_ns, uint64_t count)
{
	if (!lost->count || start_ns < lost->start_ns)
		lost->start_ns = start_ns;
	if (end_ns > lost->end_ns)
		lost->end_ns = end_ns;
	lost->count += count;
}

/* Writes a RING_LOSS record for each cause. False if one did not fit: it stays noted. */
static bool tell_losses(struct ring_writer *writer, uint64_t keep)
{
	for (uint32_t cause = RING_LOSS_RING; cause <= RING_LOSS_CUPTI; cause++) {
		struct ring_writer_loss *lost = &writer->lost[cause];
		struct ring_loss record = {
		    .record = {.size = sizeof(record), .type = RING_LOSS},
		    .start_ns = lost->start_ns,
		    .end_ns = lost->end_ns,
		    .count = lost->count,
		    .cause = cause,
		};

		if (!lost->count)
			continue;
		if (!append(writer, &record.record, keep))
			return false;
		memset(lost, 0, sizeof(*lost));
	}
	return true;
}

/*
 * Once the ring has been full, nothing is written before an eighth of it is free: a reader that is a little
 * too slow then sees few long holes instead of a hole between every two records.
 */
static bool has_recovered(struct ring_writer *writer)
{
	uint64_t wanted = writer->capacity / 8 + writer->reserve;

	return !writer->lost[RING_LOSS_RING].count || free_bytes(writer, wanted) >= wanted;
}

bool ring_writer_put(struct ring_writer *writer, const struct ring_record *record, uint64_t start_ns,
                     uint64_t end_ns)
{
	bool written = false;

	if (ring_writer_closed(writer))
		return false;
	pthread_mutex_lock(&writer->lock);
	if (writer->ended)
		goto out;
	written = has_recovered(writer) && tell_losses(writer, writer->reserve) &&
	          append(writer, record, writer->reserve);
	if (!written) {
		add_loss(&writer->lost[RING_LOSS_RING], start_ns, end_ns, 1);
		__atomic_add_fetch(&writer->control->lost_records, 1, __ATOMIC_RELAXED);
	}
out:
	pthread_mutex_unlock(&writer->lock);
	return written;
}

bool ring_writer_put_state(struct ring_writer *writer, const struct ring_record *record, bool last)
{
	bool written;

	if (ring_writer_closed(writer))
		return false;
	pthread_mutex_lock(&writer->lock);
	written = !writer->ended && tell_losses(writer, 0) && append(writer, record, 0);
	writer->ended |= last;
	pthread_mutex_unlock(&writer->lock);
	return written;
}

void ring_writer_note_loss(struct ring_writer *writer, enum ring_loss_cause cause, uint64_t start_ns,
                           uint64_t end_ns, uint64_t count)
{
	if (ring_writer_closed(writer) || !count)
		return;
	pthread_mutex_lock(&writer->lock);
	add_loss(&writer->lost[cause], start_ns, end_ns, count);
	if (cause == RING_LOSS_CUPTI)
		__atomic_add_fetch(&writer->control->cupti_lost, count, __ATOMIC_RELAXED);
	else
		__atomic_add_fetch(&writer->control->lost_records, count, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&writer->lock);
}

void ring_writer_set_phase(struct ring_writer *writer, enum ring_phase phase)
{
	if (!ring_writer_closed(writer))
		__atomic_store_n(&writer->control->phase, phase, __ATOMIC_RELEASE);
}

void ring_writer_add_cost(struct ring_writer *writer, uint64_t cpu_ns)
{
	if (!ring_writer_closed(writer))
		__atomic_add_fetch(&writer->control->bridge_ns, cpu_ns, __ATOMIC_RELAXED);
}

bool ring_writer_closed(const struct ring_writer *writer)
{
	return __atomic_load_n(&writer->control->closed, __ATOMIC_ACQUIRE) != 0;
}
