/* SPDX-License-Identifier: GPL-2.0-only */
/* Session files that are cut off, damaged, or never were session files. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "session_fixture.h"

#define CHUNKS      8
#define PER_CHUNK   20
#define MAX_OFFSETS (CHUNKS + 2)

/* A sound file of CHUNKS chunks with PER_CHUNK records each, and where its parts begin. */
struct sample {
	struct image file;
	const char *path;
	uint64_t offsets[MAX_OFFSETS]; /* of each chunk, the end mark, and the end of the file */
};

static struct sample make_sample(void)
{
	struct sample sample = {.path = fixture_path("sample")};
	struct session_writer *writer;
	uint64_t state = 3, time = 1000;
	size_t at = 0;

	cr_assert_eq(session_writer_open(&writer, sample.path, NULL), 0);
	for (int chunk = 0; chunk < CHUNKS; chunk++) {
		sample.offsets[at++] = session_writer_bytes(writer);
		for (int i = 0; i < PER_CHUNK; i++, time += 1000) {
			struct record_offcpu record = fixture_offcpu(&state, time);

			cr_assert_eq(session_writer_put(writer, &record, NULL), 0);
		}
		cr_assert_eq(session_writer_flush(writer, NULL), 0);
	}
	sample.offsets[at++] = session_writer_bytes(writer);
	cr_assert_eq(session_writer_close(writer, NULL), 0);
	sample.file = image_load(sample.path);
	sample.offsets[at] = sample.file.size;
	return sample;
}

/* Every off-CPU record that is shown must be one of those written, in order; those of `missing` must not. */
static void check_shown(const struct shown *shown, int first_missing, int end_missing, const char *what,
                        uint64_t where)
{
	uint64_t state = 3, time = 1000;
	size_t at = 0;

	for (int i = 0; i < CHUNKS * PER_CHUNK; i++, time += 1000) {
		struct record_offcpu record = fixture_offcpu(&state, time);

		if (i >= first_missing && i < end_missing)
			continue;
		while (at < shown->records.count && shown->records.items[at].header.type == RECORD_LOSS)
			at++;
		cr_assert_lt(at, shown->records.count, "%s at %lu: record %d is missing", what, where, i);
		cr_assert_eq(memcmp(shown->records.items[at].bytes, &record, sizeof(record)), 0,
		             "%s at %lu: record %d differs", what, where, i);
		at++;
	}
	while (at < shown->records.count && shown->records.items[at].header.type == RECORD_LOSS)
		at++;
	cr_assert_eq(at, shown->records.count, "%s at %lu: too many records", what, where);
}

/* What a kill leaves behind: any prefix. */
static void check_prefix(const struct sample *sample, uint64_t size)
{
	struct image prefix = {.bytes = sample->file.bytes, .size = size};
	struct session_summary summary;
	struct shown shown = {0};
	struct error error = {0};
	int chunks = 0;
	int rc;

	while (chunks < CHUNKS && sample->offsets[chunks + 1] <= size)
		chunks++;
	image_save(&prefix, sample->path);
	rc = shown_read(&shown, sample->path, &summary, &error);
	if (!chunks) {
		cr_assert_eq(rc, -ENODATA, "%lu bytes: %s", size, error.text);
	} else {
		cr_assert_eq(rc, 0, "%lu bytes: %s", size, error.text);
		cr_assert_eq(summary.complete, size == sample->file.size);
		cr_assert_eq(summary.chunks, (uint64_t)chunks + summary.complete);
		cr_assert_eq(summary.bad_chunks, 0);
		cr_assert_eq(summary.lost_records, 0);
		cr_assert_eq(summary.lost_bytes, summary.complete ? 0 : size - sample->offsets[chunks],
		             "%lu bytes", size);
		cr_assert_eq(shown_count(&shown, RECORD_LOSS), 0);
	}
	check_shown(&shown, chunks * PER_CHUNK, CHUNKS * PER_CHUNK, "prefix", size);
	shown_free(&shown);
}

Test(session_damage, any_prefix_is_read_up_to_the_break)
{
	struct sample sample = make_sample();
	uint64_t state = 4;

	for (size_t i = 0; i < MAX_OFFSETS; i++) {
		for (int64_t near = -1; near <= 1; near++) {
			if (sample.offsets[i] + (uint64_t)near <= sample.file.size)
				check_prefix(&sample, sample.offsets[i] + (uint64_t)near);
		}
		check_prefix(&sample, sample.offsets[i] - (i ? sizeof(struct chunk_header) / 2 : 0));
	}
	for (uint64_t size = 0; size <= 40; size++)
		check_prefix(&sample, size);
	for (int i = 0; i < 150; i++)
		check_prefix(&sample, fixture_random(&state) % sample.file.size);
	image_free(&sample.file);
}

/* Index of the chunk that holds the byte; CHUNKS for the end mark, -1 for the file header. */
static int chunk_of(const struct sample *sample, uint64_t byte)
{
	int chunk = -1;

	while (chunk < CHUNKS && byte >= sample->offsets[chunk + 1])
		chunk++;
	return chunk;
}

static void check_flip(const struct sample *sample, uint64_t byte, int bit)
{
	int chunk = chunk_of(sample, byte);
	struct session_summary summary;
	struct shown shown = {0};
	struct error error = {0};
	int rc;

	sample->file.bytes[byte] ^= (uint8_t)(1 << bit);
	image_save(&sample->file, sample->path);
	sample->file.bytes[byte] ^= (uint8_t)(1 << bit);
	rc = shown_read(&shown, sample->path, &summary, &error);
	if (byte < MAGIC_SIZE) {
		cr_assert_eq(rc, -EINVAL);
		shown_free(&shown);
		return;
	}
	cr_assert_eq(rc, 0, "byte %lu: %s", byte, error.text);
	if (chunk == CHUNKS)
		cr_assert_not(summary.complete, "byte %lu", byte);
	else
		cr_assert_gt(summary.bad_chunks, 0, "byte %lu", byte);
	cr_assert_gt(summary.lost_bytes, 0, "byte %lu", byte);
	if (chunk < 0 || chunk == CHUNKS) {
		check_shown(&shown, 0, 0, "flip", byte);
		cr_assert_eq(shown_count(&shown, RECORD_LOSS), 0);
	} else {
		const struct record_loss *loss = shown_at(&shown, (size_t)chunk * PER_CHUNK, RECORD_LOSS);
		uint64_t start = 1000 * ((uint64_t)chunk * PER_CHUNK + 1);

		check_shown(&shown, chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK, "flip", byte);
		cr_assert_eq(summary.lost_records, PER_CHUNK);
		cr_assert_eq(loss->cause, RECORD_LOSS_FILE);
		cr_assert_eq(loss->count, PER_CHUNK);
		/* Where nothing comes before the hole, its start is not known better than what follows. */
		if (chunk > 0 || byte >= sample->offsets[0] + sizeof(struct chunk_header))
			cr_assert_leq(loss->start_ns, start, "byte %lu", byte);
		cr_assert_geq(loss->end_ns, start + 1000 * PER_CHUNK);
		if (byte >= sample->offsets[chunk] + sizeof(struct chunk_header)) {
			cr_assert_eq(loss->start_ns, start, "exact, for the header is intact");
			cr_assert_eq(loss->end_ns, start + 1000 * PER_CHUNK);
		}
	}
	shown_free(&shown);
}

Test(session_damage, a_flipped_bit_costs_one_chunk)
{
	struct sample sample = make_sample();
	uint64_t state = 5;

	for (uint64_t byte = 0; byte < sizeof(struct session_header); byte++)
		check_flip(&sample, byte, (int)byte % 8);
	for (int chunk = 0; chunk <= CHUNKS; chunk += 4) {
		for (uint64_t byte = 0; byte < sizeof(struct chunk_header); byte++)
			check_flip(&sample, sample.offsets[chunk] + byte, (int)byte % 8);
	}
	for (int i = 0; i < 400; i++) {
		uint64_t at = fixture_random(&state);

		check_flip(&sample, at % sample.file.size, (int)(at >> 60) & 7);
	}
	image_free(&sample.file);
}

/* Bytes taken out, put in or zeroed somewhere: nothing but the chunks concerned is lost. */
static void check_edit(const struct sample *sample, uint64_t at, uint64_t removed, uint64_t added)
{
	int first = chunk_of(sample, at), last = chunk_of(sample, at + (removed ? removed - 1 : 0));
	struct image edited = {0};
	struct session_summary summary;
	struct shown shown = {0};
	struct error error = {0};
	uint8_t junk[5000] = {0};

	image_add(&edited, sample->file.bytes, at);
	image_add(&edited, junk, added);
	image_add(&edited, sample->file.bytes + at + removed, sample->file.size - at - removed);
	image_save(&edited, sample->path);
	cr_assert_eq(shown_read(&shown, sample->path, &summary, &error), 0, "%s", error.text);
	cr_assert(summary.complete);
	cr_assert_gt(summary.bad_chunks, 0, "%lu: -%lu +%lu", at, removed, added);
	cr_assert_eq(summary.lost_records, (uint64_t)(last - first + 1) * PER_CHUNK, "%lu: -%lu +%lu", at,
	             removed, added);
	check_shown(&shown, first * PER_CHUNK, (last + 1) * PER_CHUNK, "edit", at);
	shown_free(&shown);
	image_free(&edited);
}

Test(session_damage, missing_added_and_zeroed_bytes)
{
	struct sample sample = make_sample();
	uint64_t state = 6;

	for (int i = 0; i < 100; i++) {
		int chunk = (int)(fixture_random(&state) % (CHUNKS - 1));
		uint64_t size = sample.offsets[chunk + 1] - sample.offsets[chunk];
		uint64_t at = sample.offsets[chunk] + 1 + fixture_random(&state) % (size - 1);
		uint64_t removed = 1 + fixture_random(&state) % (sample.offsets[CHUNKS] - 1 - at);
		uint64_t added = 1 + fixture_random(&state) % 5000;

		check_edit(&sample, at, removed, 0);
		check_edit(&sample, at, 0, added);
		check_edit(&sample, at, removed, removed < 5000 ? removed : 5000);
	}
	image_free(&sample.file);
}

Test(session_damage, the_next_chunk_may_begin_in_the_last_bytes_of_a_damaged_one)
{
	struct sample sample = make_sample();

	for (uint64_t removed = 1; removed < 80; removed++)
		check_edit(&sample, sample.offsets[2] + 100, removed, 0);
	image_free(&sample.file);
}

Test(session_damage, a_chunk_that_was_cut_out_is_noticed)
{
	struct sample sample = make_sample();
	struct session_summary summary;
	struct shown shown = {0};
	struct image edited = {0};

	image_add(&edited, sample.file.bytes, sample.offsets[3]);
	image_add(&edited, sample.file.bytes + sample.offsets[5], sample.file.size - sample.offsets[5]);
	image_save(&edited, sample.path);
	cr_assert_eq(shown_read(&shown, sample.path, &summary, NULL), 0);
	cr_assert(summary.complete);
	cr_assert_eq(summary.lost_records, 2 * PER_CHUNK);
	cr_assert_eq(((const struct record_loss *)shown_at(&shown, 3 * PER_CHUNK, RECORD_LOSS))->count,
	             2 * PER_CHUNK);
	check_shown(&shown, 3 * PER_CHUNK, 5 * PER_CHUNK, "cut", 0);
	shown_free(&shown);
	image_free(&edited);
	image_free(&sample.file);
}

Test(session_damage, a_chunk_that_comes_twice_is_shown_once)
{
	struct sample sample = make_sample();
	struct session_summary summary;
	struct shown shown = {0};
	struct image edited = {0};

	image_add(&edited, sample.file.bytes, sample.offsets[3]);
	image_add(&edited, sample.file.bytes + sample.offsets[1], sample.file.size - sample.offsets[1]);
	image_save(&edited, sample.path);
	cr_assert_eq(shown_read(&shown, sample.path, &summary, NULL), 0);
	cr_assert_eq(summary.bad_chunks, 2);
	cr_assert_eq(summary.lost_records, 0);
	check_shown(&shown, 0, 0, "twice", 0);
	shown_free(&shown);
	image_free(&edited);
	image_free(&sample.file);
}

static void expect_read_error(const char *path, int code, const char *text)
{
	struct session_summary summary;
	struct error error = {0};

	cr_assert_eq(shown_read(NULL, path, &summary, &error), code, "%s: %s", path, error.text);
	cr_assert_not_null(strstr(error.text, text), "\"%s\" lacks \"%s\"", error.text, text);
	cr_assert_eq(error.code, code);
}

Test(session_damage, what_is_no_session_is_refused)
{
	const char *path = fixture_path("other"), *fifo = fixture_path("fifo");
	struct image file = {0};
	struct session_header header;

	expect_read_error(fixture_path("missing"), -ENOENT, "cannot open");
	expect_read_error(fixture_path(""), -EISDIR, "is a directory");
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	expect_read_error(fifo, -EINVAL, "not a regular file");
	expect_read_error("/dev/zero", -EINVAL, "not a regular file");
	image_save(&file, path);
	expect_read_error(path, -ENODATA, "is empty");
	cr_assert_not(session_recognise(path));
	image_add(&file, "{\"traceEvents\": []}, and more text than a header has bytes", 58);
	image_save(&file, path);
	expect_read_error(path, -EINVAL, "is not a whyidle session file");
	cr_assert_not(session_recognise(path));
	cr_assert_not(session_recognise(fifo));
	cr_assert_not(session_recognise(fixture_path("missing")));
	image_free(&file);

	session_header_fill(&header);
	image_add(&file, &header, sizeof(header));
	image_save(&file, path);
	cr_assert(session_recognise(path));
	expect_read_error(path, -ENODATA, "holds nothing that can be read");
	header.version = 2;
	header.crc = chunk_crc(&header, offsetof(struct session_header, crc));
	memcpy(file.bytes, &header, sizeof(header));
	image_save(&file, path);
	cr_assert(session_recognise(path));
	expect_read_error(path, -ENOTSUP,
	                  "was written by a newer whyidle (format 2): update whyidle to read it");
	header.version = SESSION_VERSION;
	header.flags = 4;
	header.crc = chunk_crc(&header, offsetof(struct session_header, crc));
	memcpy(file.bytes, &header, sizeof(header));
	image_save(&file, path);
	expect_read_error(path, -ENOTSUP, "update whyidle");
	image_free(&file);
}

Test(session_damage, unreadable_file)
{
	const char *path = fixture_path("sample");
	struct sample sample = make_sample();

	cr_assert_eq(chmod(fixture_path(""), 0755), 0);
	cr_assert_eq(chmod(path, 0), 0);
	if (geteuid() == 0)
		cr_assert_eq(seteuid(65534), 0);
	expect_read_error(path, -EACCES, "cannot open");
	cr_assert_not(session_recognise(path));
	if (getuid() == 0)
		cr_assert_eq(seteuid(0), 0);
	image_free(&sample.file);
}

/* A file whose one chunk, of type CHUNK_RECORDS, has this header and payload, correctly sealed. */
static void save_chunk(const char *path, struct chunk_header header, const void *payload, size_t size)
{
	struct image file = {0};
	struct {
		struct chunk_header header;
		uint8_t payload[256];
	} chunk = {.header = header};

	memcpy(chunk.payload, payload, size);
	chunk.header.type = CHUNK_RECORDS;
	memcpy(chunk.header.magic, CHUNK_MAGIC, MAGIC_SIZE);
	chunk.header.size = header.size ? header.size : sizeof(header);
	chunk.header.payload_crc = chunk_crc(chunk.payload, size);
	chunk.header.header_crc = chunk_crc(&chunk.header, offsetof(struct chunk_header, header_crc));
	image_add_header(&file);
	image_add(&file, &chunk, sizeof(header) + size);
	image_add_end(&file, 1, header.records);
	image_save(&file, path);
	image_free(&file);
}

static void expect_bad_chunk(const char *path, uint32_t records, const char *what)
{
	struct session_summary summary;
	struct error error = {0};

	cr_assert_eq(shown_read(NULL, path, &summary, &error), 0, "%s: %s", what, error.text);
	cr_assert(summary.complete, "%s", what);
	cr_assert_eq(summary.bad_chunks, 1, "%s: %lu", what, summary.bad_chunks);
	cr_assert_eq(summary.lost_records, records, "%s: %lu", what, summary.lost_records);
}

/* The checksums are right, yet the lengths are not: made to do harm. */
Test(session_damage, lengths_are_not_believed)
{
	const char *path = fixture_path("bomb");
	struct chunk_header header = {.raw_length = 8, .stored_length = 8, .records = 1};
	uint8_t zeros[4096] = {0}, small[256];
	size_t size;

	header.raw_length = UINT32_MAX;
	save_chunk(path, header, zeros, 8);
	expect_bad_chunk(path, 1, "raw length");
	header.raw_length = header.stored_length = 0;
	save_chunk(path, header, zeros, 0);
	expect_bad_chunk(path, 1, "no bytes for a record");
	header.stored_length = 8;
	header.raw_length = CHUNK_MAX_RAW + 1;
	save_chunk(path, header, zeros, 8);
	expect_bad_chunk(path, 1, "raw length just too large");
	header.raw_length = 8;
	header.stored_length = UINT32_MAX;
	save_chunk(path, header, zeros, 8);
	expect_bad_chunk(path, 1, "stored length");
	header.stored_length = CHUNK_MAX_RAW;
	save_chunk(path, header, zeros, 8);
	expect_bad_chunk(path, 1, "stored length beyond the end");
	header.stored_length = 8;
	header.size = UINT32_MAX;
	save_chunk(path, header, zeros, 8);
	expect_bad_chunk(path, 1, "header size");
	header.size = 8;
	save_chunk(path, header, zeros, 8);
	expect_bad_chunk(path, 1, "header size too small");
	header.size = 0;
	header.raw_length = 16;
	save_chunk(path, header, zeros, 8);
	expect_bad_chunk(path, 1, "stored is not raw");

	size = ZSTD_compress(small, sizeof(small), zeros, sizeof(zeros), 1);
	cr_assert_not(ZSTD_isError(size));
	header.coding = CHUNK_ZSTD;
	header.stored_length = (uint32_t)size;
	for (uint32_t raw = 0; raw <= 2 * sizeof(zeros); raw += 1024) {
		if (raw == sizeof(zeros))
			continue;
		header.raw_length = raw;
		save_chunk(path, header, small, size);
		expect_bad_chunk(path, 1, "raw length differs from what zstd yields");
	}
	header.coding = 7;
	save_chunk(path, header, small, size);
	expect_bad_chunk(path, 1, "unknown coding");
}

/* The bounds that keep an allocation small. */
Test(session_damage, lengths_have_bounds)
{
	struct chunk_header chunk = {.type = CHUNK_RECORDS, .raw_length = CHUNK_MAX_RAW};

	chunk_seal(&chunk);
	cr_assert(chunk_header_intact(&chunk));
	chunk.raw_length++;
	chunk_seal(&chunk);
	cr_assert_not(chunk_header_intact(&chunk));
	chunk.raw_length = 0;
	chunk.stored_length = CHUNK_MAX_RAW + 1;
	chunk.header_crc = chunk_crc(&chunk, offsetof(struct chunk_header, header_crc));
	cr_assert_not(chunk_header_intact(&chunk));
}

/* A chunk of one good record and one that is not; `count` is where a tail's count goes. */
static void check_malformed(uint16_t type, uint32_t size, uint32_t bytes, uint32_t count, uint32_t lost,
                            const char *what)
{
	const char *path = fixture_path("malformed");
	struct record_info info = {.header = {.type = RECORD_INFO, .size = sizeof(info)}};
	struct record_header header = {.type = type, .size = size};
	uint8_t payload[128] = {0};

	memcpy(payload, &info, sizeof(info));
	memcpy(payload + sizeof(info), &header, sizeof(header));
	if (type == RECORD_STRING)
		memcpy(payload + sizeof(info) + offsetof(struct record_string, length), &count, 4);
	if (type == RECORD_STACK)
		memcpy(payload + sizeof(info) + offsetof(struct record_stack, count), &count, 4);
	bytes += sizeof(info);
	save_chunk(path, (struct chunk_header){.raw_length = bytes, .stored_length = bytes, .records = 2},
	           payload, bytes);
	expect_bad_chunk(path, lost, what);
}

Test(session_damage, malformed_records_end_their_chunk)
{
	check_malformed(RECORD_INFO, 0, 16, 0, 1, "size 0");
	check_malformed(RECORD_INFO, 4, 16, 0, 1, "size below the header");
	check_malformed(RECORD_INFO, 20, 24, 0, 1, "size not a multiple of 8");
	check_malformed(RECORD_INFO, 24, 16, 0, 1, "size beyond the chunk");
	check_malformed(RECORD_INFO, UINT32_MAX - 7, 16, 0, 1, "huge size");
	check_malformed(999, UINT32_MAX - 7, 16, 0, 1, "huge size of an unknown type");
	check_malformed(RECORD_STRING, 24, 24, 9, 1, "string longer than its record");
	check_malformed(RECORD_STRING, 24, 24, UINT32_MAX, 1, "huge string");
	check_malformed(RECORD_STRING, 8, 8, 0, 1, "string without a length");
	check_malformed(RECORD_STACK, 32, 32, 2, 1, "more frames than there are");
	check_malformed(RECORD_STACK, 32, 32, 0x20000001, 1, "frames whose size wraps in 32 bits");
	check_malformed(RECORD_STACK, 16, 16, 0, 1, "stack without a count");
	check_malformed(RECORD_INFO, 16, 20, 0, 0, "bytes left over");
}
