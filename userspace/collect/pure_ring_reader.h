/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The collector's end of a bridge ring (cupti_bridge/ring.h). The memory belongs to a process that is not
 * trusted: every value is read once, every record is copied out before anything in it is looked at, and
 * nothing that the other side writes can make a read leave the ring or go on for ever.
 */
#ifndef WHYIDLE_COLLECT_RING_READER_H
#define WHYIDLE_COLLECT_RING_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/ring.h"

struct ring_reader {
	struct ring_control *control; /* shared; not owned */
	const uint8_t *data;          /* shared: `capacity` bytes */
	uint64_t capacity;
	uint64_t tail;      /* bytes read so far; the shared copy is only ever written */
	uint64_t published; /* value last written to the shared tail */
	uint64_t limit;     /* head when the current batch began */
	const char *broken; /* why the ring can no longer be read, NULL while it can */
	uint64_t copy[RING_MAX_RECORD / sizeof(uint64_t)];
};

/* Fills in the control page of fresh, zeroed memory. `capacity` is a power of two. */
void ring_reader_format(struct ring_control *control, uint64_t capacity);

/* `memory` holds RING_CONTROL_SIZE + capacity bytes and outlives the reader. */
void ring_reader_init(struct ring_reader *reader, void *memory, uint64_t capacity);

/*
 * Starts a batch: what is in the ring now, at most `capacity` bytes, however fast the other side writes.
 * Returns false if there is nothing to read or the ring is broken.
 */
bool ring_reader_begin(struct ring_reader *reader);

/*
 * Next record of the batch, a private copy that is valid until the next call; NULL at the end of the batch or
 * when the ring turns out to be broken. size is checked (a multiple of 8, within RING_MAX_RECORD, not
 * wrapping); type and contents are not.
 */
const struct ring_record *ring_reader_next(struct ring_reader *reader);

/* Ends the batch and gives its room back to the writer. */
void ring_reader_end(struct ring_reader *reader);

/* Tells the bridge that nobody reads any more. */
void ring_reader_shut(struct ring_reader *reader);

#endif
