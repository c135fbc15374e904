/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fuzzes the collector's side of a bridge: an input is the write position (8 bytes) and then the contents of
 * a ring, as a hostile target could leave them. Whatever it is, the reader must stay inside, come to an end,
 * and let nothing through to the session that breaks its rules.
 *
 * Build and run: make fuzz [FUZZ_SECONDS=60]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/pure_bridge_convert.h"
#include "collect/pure_ring_reader.h"
#include "tests/fuzz/require.h"
#include "trace/session.h"

#define CAPACITY  65536
#define EARLIEST  1000
#define LATEST    1000000
#define MAX_BATCH (CAPACITY / 8 + 1)

static uint32_t known_devices;

static int check_record(void *context, const struct record_header *record)
{
	const struct record_gpu_op *op = (const void *)record;
	const struct record_call *call = (const void *)record;
	const struct record_device *device = (const void *)record;
	const struct record_loss *loss = (const void *)record;

	(void)context;
	switch (record->type) {
	case RECORD_DEVICE:
		REQUIRE(device->device == known_devices);
		known_devices++;
		break;
	case RECORD_GPU_OP:
		REQUIRE(op->device < known_devices);
		REQUIRE(op->start_ns >= EARLIEST && op->start_ns <= op->end_ns && op->end_ns <= LATEST);
		REQUIRE(op->pid == 1234);
		break;
	case RECORD_CALL:
		REQUIRE(call->enter_ns >= EARLIEST && call->enter_ns <= call->exit_ns &&
		        call->exit_ns <= LATEST);
		REQUIRE(call->tid != 0);
		break;
	case RECORD_LOSS:
		REQUIRE(loss->start_ns >= EARLIEST && loss->start_ns <= loss->end_ns &&
		        loss->end_ns <= LATEST);
		break;
	}
	return 0;
}

static void drain(struct ring_reader *reader, struct bridge_convert *convert, struct session_writer *writer)
{
	const struct ring_record *record;
	size_t count = 0;

	if (!ring_reader_begin(reader))
		return;
	while ((record = ring_reader_next(reader))) {
		REQUIRE(record->size >= 8 && record->size % 8 == 0 && record->size <= RING_MAX_RECORD);
		REQUIRE(++count < MAX_BATCH);
		REQUIRE(bridge_convert_record(convert, record, writer, NULL) == 0);
	}
	ring_reader_end(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static uint64_t memory[(RING_CONTROL_SIZE + CAPACITY) / 8];
	static struct ring_reader reader;
	struct ring_control *control = (struct ring_control *)memory;
	struct bridge_tables tables = {0};
	struct bridge_convert convert;
	struct session_writer *writer;
	struct session_summary summary;
	char path[64];
	int fd;

	if (size < 8 || size > 8 + CAPACITY)
		return -1;
	memset(memory, 0, sizeof(memory));
	ring_reader_format(control, CAPACITY);
	memcpy(&control->head, bytes, 8);
	memcpy((uint8_t *)memory + RING_CONTROL_SIZE, bytes + 8, size - 8);
	ring_reader_init(&reader, memory, CAPACITY);
	bridge_convert_init(&convert, &tables, 1234);
	convert.earliest_ns = EARLIEST;
	convert.latest_ns = LATEST;

	fd = memfd_create("fuzz_ring", MFD_CLOEXEC);
	REQUIRE(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	REQUIRE(session_writer_open(&writer, path, NULL) == 0);
	drain(&reader, &convert, writer);
	control->head += 64; /* the target goes on, whatever it did before */
	drain(&reader, &convert, writer);
	REQUIRE(convert.names.count <= BRIDGE_MAX_NAMES && tables.devices.count <= BRIDGE_MAX_DEVICES);
	REQUIRE(session_writer_close(writer, NULL) == 0);

	known_devices = 0;
	REQUIRE(session_read(path, check_record, NULL, &summary, NULL) == 0);
	REQUIRE(summary.complete && known_devices == tables.devices.count);
	fclose(fdopen(fd, "r"));
	bridge_convert_free(&convert);
	bridge_tables_free(&tables);
	return 0;
}
