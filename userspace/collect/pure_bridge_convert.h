/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ring records of a bridge (cupti_bridge/ring.h) to session records (trace/record.h).
 *
 * Pure: no sockets, no clock. The records come from a process that is not trusted, so each field is checked
 * before it is used; a record that makes no sense is dropped and counted, and memory is bounded whatever
 * comes.
 */
#ifndef WHYIDLE_COLLECT_BRIDGE_CONVERT_H
#define WHYIDLE_COLLECT_BRIDGE_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "cupti_bridge/ring.h"
#include "trace/session.h"

#define BRIDGE_MAX_DEVICES 256        /* physical GPUs of a session */
#define BRIDGE_MAX_ORDINAL 256        /* CUDA ordinals of a process */
#define BRIDGE_MAX_NAMES   (1u << 20) /* name ids of a process */
#define BRIDGE_STRING_BYTES                                                                                  \
	(256u << 20)    /* memory for strings from all targets together; later ones are left out */
#define BRIDGE_TEXT 256 /* bytes kept of a status text */

struct bridge_device {
	uint8_t uuid[16];
	uint32_t ordinal; /* part of the identity only where the UUID is all zero (not known) */
};

/* Shared by all bridges of a session: GPUs by UUID, and the budget of strings. */
struct bridge_tables {
	struct {
		ARRAY(struct bridge_device)
	} devices;
	uint64_t string_bytes;
};

void bridge_tables_free(struct bridge_tables *tables);

/* One process. */
struct bridge_convert {
	struct bridge_tables *tables;
	uint32_t pid; /* of the initial pid namespace, as the kernel gives it */
	/* Sane times lie in [earliest_ns, latest_ns]; the caller moves latest_ns on. */
	uint64_t earliest_ns, latest_ns;
	uint64_t from_ns; /* what ended before is left out; the caller moves it on */
	/* Thread id of the target's pid namespace → initial one; NULL: they are the same. */
	uint32_t (*translate_tid)(void *context, uint32_t tid);
	void *translate_context;

	struct {
		ARRAY(uint32_t)
	} names;                              /* name id - 1 → session string */
	uint32_t devices[BRIDGE_MAX_ORDINAL]; /* ordinal → dense index + 1, 0 not known */

	bool hello;
	uint32_t hello_pid; /* as the target sees itself */
	uint32_t cupti_version, cupti_path, driver_version, simulated;
	uint64_t clock_error_ns;
	uint32_t phase; /* of the last status record */
	int32_t status_error;
	char text[BRIDGE_TEXT]; /* of the last status record: printable, may be empty */

	uint64_t records;               /* converted */
	uint64_t operations;            /* GPU operations among them */
	uint64_t left_out;              /* ended before from_ns */
	uint64_t invalid;               /* dropped because they made no sense */
	uint64_t lost_ring, lost_cupti; /* told by RING_LOSS records */
};

void bridge_convert_init(struct bridge_convert *convert, struct bridge_tables *tables, uint32_t pid);

/*
 * Converts one record (a private copy whose size has been checked against the bytes that are there) and
 * writes the result. Returns 0, also for a record that was dropped, or a negative errno of the writer or
 * -ENOMEM.
 */
int bridge_convert_record(struct bridge_convert *convert, const struct ring_record *record,
                          struct session_writer *writer, struct error *error);

/* Writes the RECORD_BRIDGE that describes the bridge as it is now. */
int bridge_convert_state(const struct bridge_convert *convert, uint64_t time_ns, uint32_t phase,
                         uint64_t bridge_ns, const char *text, struct session_writer *writer,
                         struct error *error);

/* Writes a RECORD_LOSS for this process. Does nothing if count is 0. */
int bridge_convert_loss(const struct bridge_convert *convert, uint32_t cause, uint64_t start_ns,
                        uint64_t end_ns, uint64_t count, struct session_writer *writer, struct error *error);

void bridge_convert_free(struct bridge_convert *convert);

#endif
