// SPDX-License-Identifier: GPL-2.0-only
/* Ring records to session records, with what a hostile target may send. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "collect/pure_bridge_convert.h"
#include "session_fixture.h"

#define PID 4242

static struct bridge_tables tables;
static struct bridge_convert convert;
static struct session_writer *writer;
static struct shown shown;
static struct error error;

static void set_up(void)
{
	memset(&tables, 0, sizeof(tables));
	memset(&shown, 0, sizeof(shown));
	cr_assert_eq(session_writer_open(&writer, fixture_path("ring_convert"), &error), 0);
	bridge_convert_init(&convert, &tables, PID);
	convert.earliest_ns = 1000;
	convert.latest_ns = 1000000;
}

static void tear_down(void)
{
	if (writer)
		session_writer_close(writer, NULL);
	bridge_convert_free(&convert);
	bridge_tables_free(&tables);
	shown_free(&shown);
}

TestSuite(ring_convert, .init = set_up, .fini = tear_down);

static void put(const void *record)
{
	cr_assert_eq(bridge_convert_record(&convert, record, writer, &error), 0, "%s", error.text);
}

/* Ends the writing and reads what came out. */
static void read_back(void)
{
	struct session_summary summary;

	cr_assert_eq(session_writer_close(writer, &error), 0);
	writer = NULL;
	cr_assert_eq(shown_read(&shown, fixture_path("ring_convert"), &summary, &error), 0, "%s", error.text);
}

/* The n-th record of a type. */
static const void *shown_of(uint16_t type, size_t n)
{
	struct shown_record *record;

	array_for_each (record, &shown.records) {
		if (record->header.type == type && n-- == 0)
			return record->bytes;
	}
	cr_assert(false, "no record %zu of type %u", n, type);
	return NULL;
}

static const char *string_of(uint32_t id)
{
	struct shown_record *record;

	array_for_each (record, &shown.records) {
		const struct record_string *string = (const void *)record->bytes;

		if (record->header.type == RECORD_STRING && string->id == id)
			return (const char *)(string + 1);
	}
	return NULL;
}

/* Puts a record that a text of `length` bytes follows; the text's own length field is the caller's to lie in.
 */
static void put_with_text(const void *head, size_t size, const char *text, size_t length)
{
	uint64_t buffer[256] = {0};
	struct ring_record *record = (struct ring_record *)buffer;

	cr_assert_leq(size + length, sizeof(buffer));
	memcpy(buffer, head, size);
	memcpy((char *)buffer + size, text, length);
	record->size = (size + length + 7) / 8 * 8;
	put(buffer);
}

/* In 64 bytes of room for the name. */
static void put_name(uint32_t id, const char *text, uint32_t claimed_length)
{
	struct ring_name name = {.record.type = RING_NAME, .id = id, .length = claimed_length};
	char room[64] = "";

	memcpy(room, text, strlen(text));
	put_with_text(&name, sizeof(name), room, sizeof(room));
}

static struct ring_device device(uint32_t ordinal, uint8_t uuid)
{
	struct ring_device record = {
	    .record = {.size = sizeof(record), .type = RING_DEVICE},
	    .device = ordinal,
	    .sm_count = 132,
	    .name = 1,
	};

	memset(record.uuid, uuid, sizeof(record.uuid));
	return record;
}

static void put_device(uint32_t ordinal, uint8_t uuid)
{
	struct ring_device record = device(ordinal, uuid);

	put(&record);
}

static struct ring_kernel kernel(uint64_t start_ns, uint64_t end_ns)
{
	return (struct ring_kernel){
	    .record = {.size = sizeof(struct ring_kernel), .type = RING_KERNEL},
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .name = 1,
	    .stream = 7,
	    .correlation = 99,
	    .grid = {1, 2, 3},
	    .block = {4, 5, 6},
	};
}

static void put_kernel(uint32_t ordinal, uint64_t start_ns, uint64_t end_ns)
{
	struct ring_kernel record = kernel(start_ns, end_ns);

	record.device = ordinal;
	put(&record);
}

Test(ring_convert, kernel_keeps_every_field)
{
	const struct record_gpu_op *op;

	put_name(1, "saxpy", 5);
	put_device(0, 0xab);
	put_kernel(0, 2000, 3000);
	cr_assert_eq(convert.invalid, 0);
	read_back();
	op = shown_of(RECORD_GPU_OP, 0);
	cr_assert_eq(op->start_ns, 2000);
	cr_assert_eq(op->end_ns, 3000);
	cr_assert_eq(op->pid, PID);
	cr_assert_eq(op->kind, RECORD_OP_KERNEL);
	cr_assert_eq(op->stream, 7);
	cr_assert_eq(op->correlation, 99);
	cr_assert_eq(op->grid[2], 3);
	cr_assert_eq(op->block[0], 4);
	cr_assert_str_eq(string_of(op->name), "saxpy");
}

Test(ring_convert, one_gpu_seen_by_two_processes_is_one_device)
{
	const struct record_gpu_op *op;
	struct bridge_convert other;

	put_device(0, 0x01);
	put_device(1, 0x02);
	bridge_convert_init(&other, &tables, PID + 1);
	bridge_convert_free(&convert);
	convert = other; /* another process: CUDA_VISIBLE_DEVICES turned the order round */
	put_device(0, 0x02);
	put_kernel(0, 2000, 3000);
	read_back();
	cr_assert_eq(shown_count(&shown, RECORD_DEVICE), 2);
	op = shown_of(RECORD_GPU_OP, 0);
	cr_assert_eq(op->device, 1);
}

Test(ring_convert, unknown_uuids_are_told_apart_by_ordinal)
{
	put_device(0, 0);
	put_device(1, 0);
	read_back();
	cr_assert_eq(shown_count(&shown, RECORD_DEVICE), 2);
}

Test(ring_convert, operation_on_an_unknown_device_is_dropped_and_counted)
{
	put_kernel(0, 2000, 3000);
	put_kernel(UINT32_MAX, 2000, 3000);
	put_device(UINT32_MAX, 1);
	cr_assert_eq(convert.invalid, 3);
	read_back();
	cr_assert_eq(shown_count(&shown, RECORD_GPU_OP), 0);
}

Test(ring_convert, operation_with_a_lost_name_still_counts)
{
	const struct record_gpu_op *op;

	put_device(0, 1);
	put_kernel(0, 2000, 3000); /* name 1 was never defined */
	cr_assert_eq(convert.invalid, 0);
	read_back();
	op = shown_of(RECORD_GPU_OP, 0);
	cr_assert_eq(op->name, 0);
}

static void put_range(uint64_t start_ns, uint64_t end_ns, uint32_t tid, uint32_t kind)
{
	struct ring_range range = {
	    .record = {.size = sizeof(range), .type = RING_RANGE},
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .tid = tid,
	    .name = 1,
	    .domain = 2,
	    .kind = kind,
	};

	put(&range);
}

Test(ring_convert, ranges)
{
	const struct record_range *range;

	put_name(1, "step", 4);
	put_range(2000, 3000, 7, RING_RANGE_START_END);
	put_name(2, "loader", 6);
	put_range(2500, 2500, 7, 99); /* a kind that there is not */
	put_range(3000, 2999, 7, RING_RANGE_PUSH_POP);
	put_range(10, 3000, 7, RING_RANGE_PUSH_POP);         /* from before the recording */
	put_range(2000, UINT64_MAX, 7, RING_RANGE_PUSH_POP); /* until after it */
	cr_assert_eq(convert.invalid, 3);
	read_back();
	cr_assert_eq(shown_count(&shown, RECORD_RANGE), 2);
	range = shown_of(RECORD_RANGE, 0);
	cr_assert_eq(range->start_ns, 2000);
	cr_assert_eq(range->end_ns, 3000);
	cr_assert_eq(range->pid, PID);
	cr_assert_eq(range->tid, 7);
	cr_assert_eq(range->kind, RECORD_RANGE_START_END);
	cr_assert_neq(range->name, 0);
	cr_assert_eq(range->domain, 0); /* its name was never defined, or not yet */
	range = shown_of(RECORD_RANGE, 1);
	cr_assert_eq(range->kind, RECORD_RANGE_PUSH_POP);
	cr_assert_neq(range->domain, 0);
	cr_assert_neq(range->domain, range->name);
}

Test(ring_convert, times_that_make_no_sense_are_dropped)
{
	struct ring_api api = {.record = {.size = sizeof(api), .type = RING_API}, .tid = 5};
	struct ring_sync sync = {.record = {.size = sizeof(sync), .type = RING_SYNC}};
	struct ring_overhead overhead = {.record = {.size = sizeof(overhead), .type = RING_OVERHEAD}};

	put_device(0, 1);
	put_kernel(0, 3000, 2999);       /* backwards */
	put_kernel(0, 0, 3000);          /* before the recording */
	put_kernel(0, 2000, UINT64_MAX); /* after it */
	api.start_ns = 10, api.end_ns = 9;
	put(&api);
	sync.start_ns = 2000, sync.end_ns = 2000000;
	put(&sync);
	overhead.start_ns = 0, overhead.end_ns = 1;
	put(&overhead);
	cr_assert_eq(convert.invalid, 6);
	put_kernel(0, 2000, 2000); /* empty, but in order */
	cr_assert_eq(convert.invalid, 6);
	read_back();
	cr_assert_eq(shown_count(&shown, RECORD_GPU_OP), 1);
	cr_assert_eq(shown_count(&shown, RECORD_CALL), 0);
	cr_assert_eq(shown_count(&shown, RECORD_SYNC), 0);
	cr_assert_eq(shown_count(&shown, RECORD_OVERHEAD), 0);
}

Test(ring_convert, names_longer_than_their_record_are_dropped)
{
	put_name(1, "short", 65);
	put_name(2, "short", UINT32_MAX);
	cr_assert_eq(convert.invalid, 2);
	put_name(3, "short", 64);
	cr_assert_eq(convert.invalid, 2);
}

Test(ring_convert, name_ids_are_bounded_and_defined_once)
{
	put_name(0, "zero", 4);
	put_name(UINT32_MAX, "huge", 4);
	put_name(BRIDGE_MAX_NAMES + 1, "huge", 4);
	cr_assert_eq(convert.invalid, 3);
	put_name(1, "first", 5);
	put_name(1, "again", 5);
	cr_assert_eq(convert.invalid, 4);
	put_name(9, "gap", 3); /* definitions in between were lost */
	cr_assert_eq(convert.invalid, 4);
	cr_assert_eq(convert.names.count, 9);
}

Test(ring_convert, strings_stop_at_the_budget)
{
	tables.string_bytes = BRIDGE_STRING_BYTES - 100;
	put_name(1, "fits", 4);
	put_name(2, "does not fit any more", 21);
	cr_assert_eq(convert.invalid, 1);
	cr_assert_leq(tables.string_bytes, BRIDGE_STRING_BYTES);
}

Test(ring_convert, records_shorter_than_their_type_and_unknown_types_are_dropped)
{
	for (uint16_t type = 0; type < 64; type++) {
		struct ring_record record = {.size = sizeof(record), .type = type};

		put(&record);
	}
	cr_assert_eq(convert.invalid, 64);
	cr_assert_eq(convert.records, 0);
}

Test(ring_convert, status_text_is_made_printable_and_cut)
{
	struct ring_status status = {.record.type = RING_STATUS,
	                             .time_ns = 2000,
	                             .phase = RING_PHASE_FAILED,
	                             .error = 39,
	                             .text_length = 1024};
	const struct record_bridge *bridge;
	char text[1024];

	memset(text, 'x', sizeof(text));
	memcpy(text, "CUPTI\n\033[31m", 11);
	put_with_text(&status, sizeof(status), text, sizeof(text));
	cr_assert_eq(convert.phase, RING_PHASE_FAILED);
	cr_assert_eq(strlen(convert.text), BRIDGE_TEXT - 1);
	cr_assert_eq(strncmp(convert.text, "CUPTI  [31mx", 12), 0, "%s", convert.text);
	status.text_length = UINT32_MAX;
	put_with_text(&status, sizeof(status), text, sizeof(text));
	status.text_length = 0;
	status.phase = 77;
	put_with_text(&status, sizeof(status), text, 0);
	cr_assert_eq(convert.invalid, 2);
	read_back();
	bridge = shown_of(RECORD_BRIDGE, 0);
	cr_assert_eq(bridge->error, 39);
	cr_assert_eq(bridge->pid, PID);
}

Test(ring_convert, hello_fills_the_state_and_counts_once)
{
	struct ring_hello hello = {.record.type = RING_HELLO,
	                           .pid = 17,
	                           .cupti_version = 130000,
	                           .driver_version = 13000,
	                           .clock = RING_CLOCK_OFFSET,
	                           .clock_error_ns = 500,
	                           .simulated = 1,
	                           .path_length = 10};
	const struct record_bridge *bridge;

	put_with_text(&hello, sizeof(hello), "/libcupti.so", 12);
	put_with_text(&hello, sizeof(hello), "/libcupti.so", 12);
	cr_assert_eq(convert.invalid, 1);
	cr_assert_eq(convert.hello_pid, 17);
	read_back();
	bridge = shown_of(RECORD_BRIDGE, 0);
	cr_assert_eq(bridge->simulated, 1);
	cr_assert_eq(bridge->clock_error_ns, 500);
	cr_assert_eq(bridge->cupti_version, 130000);
	cr_assert_str_eq(string_of(bridge->cupti_path), "/libcupti.");
}

static uint32_t double_tid(void *context, uint32_t tid)
{
	(void)context;
	return tid == 666 ? 0 : tid * 2;
}

Test(ring_convert, thread_ids_are_translated)
{
	struct ring_api api = {.record = {.size = sizeof(api), .type = RING_API},
	                       .start_ns = 2000,
	                       .end_ns = 3000,
	                       .tid = 21,
	                       .result = -1};
	const struct record_call *call;

	convert.translate_tid = double_tid;
	put(&api);
	api.tid = 666; /* a thread that nobody knows */
	put(&api);
	cr_assert_eq(convert.invalid, 1);
	read_back();
	cr_assert_eq(shown_count(&shown, RECORD_CALL), 1);
	call = shown_of(RECORD_CALL, 0);
	cr_assert_eq(call->tid, 42);
	cr_assert_eq(call->source, RECORD_CALL_CUPTI);
	cr_assert_eq(call->result, -1);
}

Test(ring_convert, losses_are_clipped_and_counted)
{
	struct ring_loss loss = {.record = {.size = sizeof(loss), .type = RING_LOSS},
	                         .start_ns = 0,
	                         .end_ns = UINT64_MAX,
	                         .count = UINT64_MAX,
	                         .cause = RING_LOSS_RING};
	const struct record_loss *out;

	put(&loss);
	loss.cause = 9;
	put(&loss);
	loss.cause = RING_LOSS_CUPTI;
	loss.start_ns = 3000, loss.end_ns = 2000, loss.count = 1;
	put(&loss);
	cr_assert_eq(convert.invalid, 2);
	read_back();
	out = shown_of(RECORD_LOSS, 0);
	cr_assert_eq(out->start_ns, 1000);
	cr_assert_eq(out->end_ns, 1000000);
	cr_assert_eq(out->cause, RECORD_LOSS_BRIDGE_RING);
	cr_assert_lt(out->count, 1ULL << 50);
}

Test(ring_convert, what_ended_before_the_recording_began_is_left_out)
{
	struct ring_overhead early = {.record = {.size = sizeof(early), .type = RING_OVERHEAD},
	                              .start_ns = 2000,
	                              .end_ns = 2999,
	                              .kind = 1};
	struct ring_overhead across = early, late = early;
	struct ring_loss loss = {.record = {.size = sizeof(loss), .type = RING_LOSS},
	                         .start_ns = 2000,
	                         .end_ns = 2500,
	                         .count = 7,
	                         .cause = RING_LOSS_RING};
	const struct record_overhead *out;

	across.start_ns = 2500, across.end_ns = 3000;
	late.start_ns = 4000, late.end_ns = 5000;
	convert.from_ns = 3000;
	put(&early);
	put(&across);
	put(&late);
	put(&loss);
	cr_assert_eq(convert.left_out, 1);
	cr_assert_eq(convert.records, 3);
	cr_assert_eq(convert.invalid, 0);
	cr_assert_eq(convert.lost_ring, 7, "known, so that it is not found out a second time");
	read_back();
	out = shown_of(RECORD_OVERHEAD, 0);
	cr_assert_eq(out->start_ns, 2500);
	out = shown_of(RECORD_OVERHEAD, 1);
	cr_assert_eq(out->start_ns, 4000);
	for (size_t i = 0; i < shown.records.count; i++)
		cr_assert_neq(shown.records.items[i].header.type, RECORD_LOSS);
}

Test(ring_convert, copies_and_memsets)
{
	struct ring_memcpy copy = {.record = {.size = sizeof(copy), .type = RING_MEMCPY},
	                           .start_ns = 2000,
	                           .end_ns = 3000,
	                           .bytes = 1 << 20,
	                           .copy_kind = 1,
	                           .source_kind = 2,
	                           .target_kind = 3,
	                           .flags = 0xff};
	struct ring_memset set = {.record = {.size = sizeof(set), .type = RING_MEMSET},
	                          .start_ns = 4000,
	                          .end_ns = 5000,
	                          .bytes = 64,
	                          .memory_kind = 3};
	const struct record_gpu_op *op;

	put_device(0, 1);
	put(&copy);
	put(&set);
	read_back();
	op = shown_of(RECORD_GPU_OP, 0);
	cr_assert_eq(op->kind, RECORD_OP_MEMCPY);
	cr_assert_eq(op->flags, RECORD_OP_ASYNC);
	cr_assert_eq(op->source_kind, 2);
	op = shown_of(RECORD_GPU_OP, 1);
	cr_assert_eq(op->kind, RECORD_OP_MEMSET);
	cr_assert_eq(op->target_kind, 3);
	cr_assert_eq(op->bytes, 64);
}

Test(ring_convert, random_records_are_survived)
{
	uint64_t state = 7;

	for (int round = 0; round < 20000; round++) {
		uint64_t bytes[32];
		struct ring_record *record = (struct ring_record *)bytes;

		fixture_fill(&state, bytes, sizeof(bytes));
		record->size = 8 * (1 + fixture_random(&state) % 32);
		record->type = fixture_random(&state) % 14;
		put(bytes);
	}
	cr_assert_gt(convert.invalid, 0);
	cr_assert_leq(tables.devices.count, BRIDGE_MAX_DEVICES);
	cr_assert_leq(convert.names.count, BRIDGE_MAX_NAMES);
	read_back();
}
