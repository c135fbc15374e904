/* SPDX-License-Identifier: GPL-2.0-only */
/* Session files that are sound: what is written is read again, also across versions. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session_fixture.h"
#include "trace/layout.h"
#include "trace/string_table.h"

static struct session_writer *open_writer(const char *path)
{
	struct session_writer *writer;
	struct error error = {0};

	cr_assert_eq(session_writer_open(&writer, path, &error), 0, "%s", error.text);
	return writer;
}

static void close_writer(struct session_writer *writer)
{
	struct error error = {0};

	cr_assert_eq(session_writer_close(writer, &error), 0, "%s", error.text);
}

static void read_complete(struct shown *shown, const char *path, struct session_summary *summary)
{
	struct error error = {0};

	cr_assert_eq(shown_read(shown, path, summary, &error), 0, "%s", error.text);
	cr_assert(summary->complete);
	cr_assert_eq(summary->bad_chunks, 0);
	cr_assert_eq(summary->lost_bytes, 0);
	cr_assert_eq(summary->lost_records, 0);
	cr_assert_eq(summary->version, SESSION_VERSION);
}

Test(session, every_type_comes_back)
{
	const char *path = fixture_path("session");
	struct session_writer *writer = open_writer(path);
	struct session_summary summary;
	struct shown shown = {0};
	uint8_t records[RECORD_RANK + 1][RECORD_MAX_STRUCT] __attribute__((aligned(8)));
	uint64_t frames[5], state = 1;
	size_t index = 0;

	fixture_fill(&state, records, sizeof(records));
	fixture_fill(&state, frames, sizeof(frames));
	for (uint16_t type = 1; type <= RECORD_RANK; type++) {
		const struct record_layout *layout = record_layout_find(type);
		struct record_header *record = (void *)records[type];

		cr_assert_not_null(layout);
		*record = (struct record_header){.type = type, .size = layout->size};
		if (type == RECORD_STRING) {
			cr_assert_eq(session_writer_cstring(writer, "python3.12"), 1);
		} else if (type == RECORD_STACK) {
			record->size += sizeof(frames);
			((struct record_stack *)record)->count = 5;
			cr_assert_eq(session_writer_put_tail(writer, record, layout->size, frames,
			                                     sizeof(frames), NULL),
			             0);
		} else {
			cr_assert_eq(session_writer_put(writer, record, NULL), 0);
		}
	}
	close_writer(writer);
	read_complete(&shown, path, &summary);
	cr_assert_eq(summary.records, RECORD_RANK);
	cr_assert_eq(summary.unknown_records, 0);
	cr_assert_eq(shown.records.count, RECORD_RANK);
	for (uint16_t type = 1; type <= RECORD_RANK; type++, index++) {
		const struct record_layout *layout = record_layout_find(type);
		const uint8_t *bytes = shown_at(&shown, index, type);
		static const uint8_t zeros[RECORD_MAX_STRUCT];

		if (type == RECORD_STRING) {
			cr_assert_eq(((const struct record_string *)bytes)->id, 1);
			cr_assert_eq(((const struct record_string *)bytes)->length, 10);
			cr_assert_str_eq((const char *)bytes + sizeof(struct record_string), "python3.12");
			continue;
		}
		cr_assert_eq(memcmp(bytes, records[type], layout->size), 0, "%s differs", layout->name);
		if (type == RECORD_STACK)
			cr_assert_eq(memcmp(bytes + layout->size, frames, sizeof(frames)), 0);
		else
			cr_assert_eq(memcmp(bytes + layout->size, zeros, RECORD_MAX_STRUCT - layout->size),
			             0);
	}
	shown_free(&shown);
}

Test(session, strings_are_defined_once_and_before_use)
{
	const char *path = fixture_path("session");
	struct session_writer *writer = open_writer(path);
	char *longest = malloc(SESSION_MAX_STRING + 1);
	const struct record_string *string;
	const struct record_info *info;
	struct session_summary summary;
	struct shown shown = {0};

	memset(longest, 'x', SESSION_MAX_STRING + 1);
	cr_assert_eq(session_writer_cstring(writer, NULL), 0);
	cr_assert_eq(session_writer_cstring(writer, ""), 0);
	cr_assert_eq(session_writer_info(writer, "tier", "T2", NULL), 0);
	cr_assert_eq(session_writer_info(writer, "tier", "T2", NULL), 0);
	cr_assert_eq(session_writer_string(writer, "a\0b", 3), 3, "bytes of any value");
	cr_assert_eq(session_writer_string(writer, "a\0c", 3), 4);
	cr_assert_eq(session_writer_string(writer, "a", 1), 5);
	cr_assert_eq(session_writer_string(writer, longest, SESSION_MAX_STRING + 1), 6, "cut");
	cr_assert_eq(session_writer_string(writer, longest, SESSION_MAX_STRING), 6);
	close_writer(writer);
	read_complete(&shown, path, &summary);
	cr_assert_eq(shown_count(&shown, RECORD_STRING), 6);
	cr_assert_eq(shown_count(&shown, RECORD_INFO), 2);
	info = shown_at(&shown, 2, RECORD_INFO);
	cr_assert_eq(info->key, 1);
	cr_assert_eq(info->value, 2);
	string = shown_at(&shown, 4, RECORD_STRING);
	cr_assert_eq(string->id, 3);
	cr_assert_eq(string->length, 3);
	cr_assert_eq(memcmp(string + 1, "a\0b", 4), 0);
	string = shown_at(&shown, 7, RECORD_STRING);
	cr_assert_eq(string->length, SESSION_MAX_STRING);
	cr_assert_eq(memcmp(string + 1, longest, SESSION_MAX_STRING), 0);
	shown_free(&shown);
	free(longest);
}

Test(session, many_records_make_many_chunks)
{
	const char *path = fixture_path("session");
	struct session_writer *writer = open_writer(path);
	const uint64_t count = 40000;
	uint64_t state = 2, again = 2;
	struct session_summary summary;
	struct shown shown = {0};

	for (uint64_t i = 0; i < count; i++) {
		struct record_offcpu record = fixture_offcpu(&state, 1000 * (i + 1));

		cr_assert_eq(session_writer_put(writer, &record, NULL), 0);
	}
	cr_assert_eq(session_writer_lost(writer), 0);
	close_writer(writer);
	read_complete(&shown, path, &summary);
	cr_assert_eq(summary.records, count);
	cr_assert_eq(summary.chunks, count * sizeof(struct record_offcpu) / CHUNK_TARGET_RAW + 2);
	for (uint64_t i = 0; i < count; i++) {
		struct record_offcpu record = fixture_offcpu(&again, 1000 * (i + 1));

		cr_assert_eq(memcmp(shown_at(&shown, i, RECORD_OFFCPU), &record, sizeof(record)), 0);
	}
	shown_free(&shown);
}

Test(session, flushed_records_can_be_read_while_writing_goes_on)
{
	const char *path = fixture_path("session");
	struct session_writer *writer = open_writer(path);
	struct session_summary summary;
	uint64_t bytes;

	cr_assert_eq(session_writer_info(writer, "tier", "T2", NULL), 0);
	cr_assert_eq(session_writer_flush(writer, NULL), 0);
	bytes = session_writer_bytes(writer);
	cr_assert_eq(session_writer_flush(writer, NULL), 0);
	cr_assert_eq(session_writer_bytes(writer), bytes, "nothing to flush, nothing written");
	cr_assert_eq(session_writer_info(writer, "cpus", "2", NULL), 0);
	cr_assert_eq(shown_read(NULL, path, &summary, NULL), 0);
	cr_assert_eq(summary.records, 3);
	cr_assert_not(summary.complete);
	cr_assert_eq(summary.lost_bytes, 0);
	close_writer(writer);
	read_complete(NULL, path, &summary);
	cr_assert_eq(summary.records, 6);
}

Test(session, without_records_is_complete)
{
	const char *path = fixture_path("session");
	struct session_summary summary;

	close_writer(open_writer(path));
	read_complete(NULL, path, &summary);
	cr_assert_eq(summary.records, 0);
	cr_assert_eq(summary.chunks, 1);
	cr_assert_eq(session_writer_close(NULL, NULL), 0);
}

Test(session, visitor_can_stop)
{
	const char *path = fixture_path("session");
	struct session_writer *writer = open_writer(path);
	struct shown shown = {.stop_after = 2};

	cr_assert_eq(session_writer_info(writer, "tier", "T2", NULL), 0);
	close_writer(writer);
	cr_assert_eq(shown_read(&shown, path, NULL, NULL), 77);
	cr_assert_eq(shown.records.count, 2);
	shown_free(&shown);
}

Test(session, wrong_sizes_are_refused)
{
	struct session_writer *writer = open_writer(fixture_path("session"));
	struct record_info info = {.header = {.type = RECORD_INFO, .size = sizeof(info)}};
	struct error error = {0};
	static const uint32_t sizes[] = {0, 4, 7, 12, CHUNK_TARGET_RAW + 8, UINT32_MAX, UINT32_MAX - 7};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		info.header.size = sizes[i];
		cr_assert_eq(session_writer_put(writer, &info, &error), -EINVAL, "size %u", sizes[i]);
	}
	info.header.size = sizeof(info);
	cr_assert_eq(session_writer_put_tail(writer, &info, sizeof(info), &info, 8, &error), -EINVAL);
	cr_assert_eq(session_writer_put_tail(writer, &info, sizeof(info), &info, SIZE_MAX - 7, &error),
	             -EINVAL);
	cr_assert_eq(session_writer_lost(writer), 0);
	close_writer(writer);
}

/* A record of `type` whose struct has `struct_size` bytes in the file, all 0x11, and a tail. */
static void add_record(struct image *image, uint16_t type, uint32_t struct_size, uint32_t count,
                       const void *tail, uint32_t tail_size)
{
	struct record_header header = {.type = type, .size = struct_size + tail_size};
	const struct record_layout *layout = record_layout_find(type);
	size_t start = image->size;
	uint8_t ones[512];

	memset(ones, 0x11, sizeof(ones));
	image_add(image, ones, struct_size);
	memcpy(image->bytes + start, &header, sizeof(header));
	if (layout && layout->tail_count)
		memcpy(image->bytes + start + layout->tail_count, &count, sizeof(count));
	image_add(image, tail, tail_size);
}

Test(session, records_of_other_versions)
{
	const char *path = fixture_path("session");
	const uint64_t frames[2] = {0x1234, 0x5678};
	const struct record_offcpu *offcpu;
	const struct record_string *string;
	const struct record_stack *stack;
	struct image file = {0}, records = {0};
	struct session_summary summary;
	struct shown shown = {0};
	uint8_t ones[RECORD_MAX_STRUCT];
	uint8_t zeros[RECORD_MAX_STRUCT] = {0};

	memset(ones, 0x11, sizeof(ones));
	add_record(&records, RECORD_OFFCPU, 104, 0, "", 0);
	add_record(&records, RECORD_OFFCPU, 200, 0, "", 0);
	add_record(&records, RECORD_OFFCPU, 512, 0, "", 0);
	add_record(&records, 999, 64, 0, "", 0);
	add_record(&records, RECORD_STRING, 16, 5, "older\0\0\0", 8);
	add_record(&records, RECORD_STRING, 40, 5, "newer\xff\xff\xff", 8);
	add_record(&records, RECORD_STACK, 48, 2, frames, sizeof(frames));
	add_record(&records, RECORD_STACK, 24, 0, "", 0);
	add_record(&records, RECORD_TASK, 8, 0, "", 0);
	image_add_header(&file);
	image_add_chunk(&file, &records, 9, 0, 0);
	image_add_end(&file, 1, 9);
	image_save(&file, path);
	read_complete(&shown, path, &summary);
	cr_assert_eq(summary.records, 8);
	cr_assert_eq(summary.unknown_records, 1);

	offcpu = shown_at(&shown, 0, RECORD_OFFCPU);
	cr_assert_eq(offcpu->header.size, 104, "the size in the file");
	cr_assert_eq(memcmp((const char *)offcpu + 8, ones, 104 - 8), 0);
	cr_assert_eq(memcmp((const char *)offcpu + 104, zeros, RECORD_MAX_STRUCT - 104), 0);
	offcpu = shown_at(&shown, 1, RECORD_OFFCPU);
	cr_assert_eq(memcmp((const char *)offcpu + 8, ones, sizeof(*offcpu) - 8), 0);
	offcpu = shown_at(&shown, 2, RECORD_OFFCPU);
	cr_assert_eq(memcmp((const char *)offcpu + 8, ones, sizeof(*offcpu) - 8), 0);
	string = shown_at(&shown, 3, RECORD_STRING);
	cr_assert_str_eq((const char *)(string + 1), "older");
	string = shown_at(&shown, 4, RECORD_STRING);
	cr_assert_eq(string->length, 5);
	cr_assert_eq(memcmp(string + 1, "newer", 6), 0, "a zero byte follows, whatever the padding holds");
	stack = shown_at(&shown, 5, RECORD_STACK);
	cr_assert_eq(memcmp(stack + 1, frames, sizeof(frames)), 0);
	stack = shown_at(&shown, 6, RECORD_STACK);
	cr_assert_eq(stack->count, 0);
	cr_assert_eq(memcmp((const char *)shown_at(&shown, 7, RECORD_TASK) + 8, zeros, sizeof(zeros) - 8), 0);
	shown_free(&shown);
	image_free(&records);
	image_free(&file);
}

/* Later versions may append to the headers and add chunk types. */
Test(session, longer_headers_and_unknown_chunks_are_skipped)
{
	const char *path = fixture_path("session");
	struct image file = {0}, records = {0};
	struct session_header header;
	struct session_summary summary;
	struct {
		struct chunk_header header;
		uint8_t more[16];
		uint8_t payload[24];
	} chunk = {.header = {.type = CHUNK_RECORDS, .raw_length = 24, .stored_length = 24, .records = 1}};

	session_header_fill(&header);
	header.size = 48;
	header.crc = chunk_crc(&header, offsetof(struct session_header, crc));
	image_add(&file, &header, sizeof(header));
	image_add(&file, chunk.more, sizeof(chunk.more));

	add_record(&records, RECORD_STRING, 16, 3, "abc\0\0\0\0\0", 8);
	memcpy(chunk.payload, records.bytes, sizeof(chunk.payload));
	memcpy(chunk.header.magic, CHUNK_MAGIC, MAGIC_SIZE);
	chunk.header.size = sizeof(chunk.header) + sizeof(chunk.more);
	chunk.header.payload_crc = chunk_crc(chunk.more, sizeof(chunk.more) + sizeof(chunk.payload));
	chunk.header.header_crc = chunk_crc(&chunk.header, offsetof(struct chunk_header, header_crc));
	image_add(&file, &chunk, sizeof(chunk.header) + sizeof(chunk.more) + sizeof(chunk.payload));

	chunk.header = (struct chunk_header){.type = 17, .coding = 9, .stored_length = 40, .sequence = 1};
	chunk.header.first_record = 1;
	chunk_seal(&chunk.header);
	image_add(&file, &chunk, sizeof(chunk.header) + 40);
	image_add_end(&file, 2, 1);
	image_save(&file, path);
	read_complete(NULL, path, &summary);
	cr_assert_eq(summary.records, 1);
	cr_assert_eq(summary.chunks, 3);
	image_free(&records);
	image_free(&file);
}

/* What a reader says about a damaged chunk rests on the spans in the headers. */
Test(session, headers_tell_the_span_of_events)
{
	const char *path = fixture_path("session");
	struct session_writer *writer = open_writer(path);
	struct record_call call = {.header = {.type = RECORD_CALL, .size = sizeof(call)}, .enter_ns = 9000};
	struct record_offcpu offcpu = fixture_offcpu(&(uint64_t){1}, 5000);
	struct record_task task = {.header = {.type = RECORD_TASK, .size = sizeof(task)}, .time_ns = 10};
	struct chunk_header first, end;
	struct image file;

	cr_assert_eq(session_writer_put(writer, &task, NULL), 0);
	cr_assert_eq(session_writer_put(writer, &call, NULL), 0);
	cr_assert_eq(session_writer_put(writer, &offcpu, NULL), 0);
	cr_assert_eq(session_writer_flush(writer, NULL), 0);
	offcpu = fixture_offcpu(&(uint64_t){1}, 4000);
	cr_assert_eq(session_writer_put(writer, &offcpu, NULL), 0);
	close_writer(writer);
	file = image_load(path);
	memcpy(&first, file.bytes + sizeof(struct session_header), sizeof(first));
	cr_assert_eq(first.start_ns, 5000);
	cr_assert_eq(first.end_ns, 9000, "the end of the call is not known");
	memcpy(&end, file.bytes + file.size - sizeof(end), sizeof(end));
	cr_assert_eq(end.type, CHUNK_END);
	cr_assert_eq(end.start_ns, 4000);
	cr_assert_eq(end.end_ns, 9000);
	cr_assert_eq(end.sequence, 2);
	cr_assert_eq(end.first_record, 4);
	image_free(&file);
}

static uint64_t same_hash(const void *bytes, size_t length)
{
	(void)bytes, (void)length;
	return 42;
}

Test(session, strings_whose_hashes_collide_stay_apart)
{
	struct string_table table = {.hash = same_hash};
	char text[16];

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 1; i <= 300; i++) {
			uint32_t length = (uint32_t)snprintf(text, sizeof(text), "%u", i), kept;

			cr_assert_eq(string_table_add(&table, text, length), i);
			cr_assert_eq(memcmp(string_table_text(&table, i, &kept), text, length), 0);
			cr_assert_eq(kept, length);
		}
	}
	string_table_free(&table);
}

static void expect_write_error(const char *path, int code, const char *text)
{
	struct session_writer *writer = (void *)1;
	struct error error = {0};

	cr_assert_eq(session_writer_open(&writer, path, &error), code, "%s: %s", path, error.text);
	cr_assert_not_null(strstr(error.text, text), "\"%s\" lacks \"%s\"", error.text, text);
	cr_assert_null(writer);
}

Test(session, only_regular_files_are_written)
{
	const char *fifo = fixture_path("fifo"), *path = fixture_path("session");
	struct session_writer *writer;
	struct stat status;

	cr_assert_eq(mkfifo(fifo, 0600), 0);
	expect_write_error("-", -EINVAL, "standard output");
	expect_write_error(fifo, -EINVAL, "not a regular file");
	expect_write_error("/dev/null", -EINVAL, "not a regular file");
	expect_write_error(fixture_path(""), -EISDIR, "is a directory");
	expect_write_error(fixture_path("missing/session"), -ENOENT, "cannot create");
	writer = open_writer(path);
	expect_write_error(path, -EBUSY, "another recording");
	cr_assert_eq(fstat(session_writer_descriptor(writer), &status), 0);
	cr_assert_eq(status.st_mode & 0077, 0, "for its owner only");
	close_writer(writer);
	close_writer(open_writer(path));
}
