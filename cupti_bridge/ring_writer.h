/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bridge's end of the ring (ring.h). Any number of threads may write; they serialise on a mutex that is
 * held only while one record is copied. Nothing waits for the collector: what does not fit is counted, and
 * once there is room again one RING_LOSS record says how much was lost and when.
 */
#ifndef WHYIDLE_CUPTI_RING_WRITER_H
#define WHYIDLE_CUPTI_RING_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/ring.h"

/* Records lost since the last RING_LOSS record of a cause; count 0: none. */
struct ring_writer_loss {
	uint64_t start_ns, end_ns;
	uint64_t count;
};

struct ring_writer {
	struct ring_control *control; /* shared; not owned */
	uint8_t *data;                /* shared: `capacity` bytes */
	uint64_t capacity;
	uint64_t reserve; /* bytes that only losses and states may use, so that the end is always told */
	pthread_mutex_t lock;
	bool ended;    /* the last state was written */
	uint64_t head; /* bytes written so far; the shared copy is only ever written */
	uint64_t tail; /* as last read from the collector */
	struct ring_writer_loss lost[RING_LOSS_CUPTI + 1]; /* by enum ring_loss_cause */
};

/*
 * `memory` holds RING_CONTROL_SIZE + capacity bytes and outlives the writer; the collector has filled in the
 * control page. capacity is a power of two, at least a page.
 */
void ring_writer_init(struct ring_writer *writer, void *memory, uint64_t capacity);

/*
 * Copies a record; record->size is a multiple of 8. [start_ns, end_ns] is what a RING_LOSS record will say of
 * it if it is lost. Returns false if it was lost, or if nobody reads any more.
 */
bool ring_writer_put(struct ring_writer *writer, const struct ring_record *record, uint64_t start_ns,
                     uint64_t end_ns);

/*
 * The same for a record that must be seen even if the ring is full of others (states): may use the reserve.
 * Losses known so far are written before it. If it is the last one, whatever comes later is dropped without a
 * word.
 */
bool ring_writer_put_state(struct ring_writer *writer, const struct ring_record *record, bool last);

/* Notes that `count` records within [start_ns, end_ns] never reached the bridge. */
void ring_writer_note_loss(struct ring_writer *writer, enum ring_loss_cause cause, uint64_t start_ns,
                           uint64_t end_ns, uint64_t count);

/* Publishes the phase, and adds to the CPU time that the bridge has used. */
void ring_writer_set_phase(struct ring_writer *writer, enum ring_phase phase);
void ring_writer_add_cost(struct ring_writer *writer, uint64_t cpu_ns);

/* True once the collector has said that it reads no more. */
bool ring_writer_closed(const struct ring_writer *writer);

#endif
