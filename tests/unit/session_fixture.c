/* SPDX-License-Identifier: GPL-2.0-only */
#include "session_fixture.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/layout.h"

static char directory[64];

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status, (void)type, (void)place;
	return remove(path);
}

static void remove_directory(void)
{
	nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fixture_path(const char *name)
{
	static char paths[8][128];
	static unsigned int next;
	char *path = paths[next++ % 8];

	if (!directory[0]) {
		snprintf(directory, sizeof(directory), "/tmp/whyidle-test-XXXXXX");
		cr_assert_not_null(mkdtemp(directory));
		atexit(remove_directory);
	}
	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

void image_add(struct image *image, const void *bytes, size_t size)
{
	image->bytes = realloc(image->bytes, image->size + size);
	cr_assert_not_null(image->bytes);
	memcpy(image->bytes + image->size, bytes, size);
	image->size += size;
}

void image_add_header(struct image *image)
{
	struct session_header header;

	session_header_fill(&header);
	image_add(image, &header, sizeof(header));
}

static void add_chunk(struct image *image, struct chunk_header header, const void *payload)
{
	struct chunk_header *chunk = malloc(sizeof(header) + header.stored_length);

	cr_assert_not_null(chunk);
	*chunk = header;
	memcpy(chunk + 1, payload, header.stored_length);
	chunk_seal(chunk);
	image_add(image, chunk, sizeof(header) + header.stored_length);
	free(chunk);
}

void image_add_chunk(struct image *image, const struct image *records, uint32_t count, uint32_t sequence,
                     uint64_t first_record)
{
	add_chunk(image,
	          (struct chunk_header){.type = CHUNK_RECORDS,
	                                .raw_length = (uint32_t)records->size,
	                                .stored_length = (uint32_t)records->size,
	                                .records = count,
	                                .sequence = sequence,
	                                .first_record = first_record,
	                                .start_ns = 1000 * (sequence + 1),
	                                .end_ns = 1000 * (sequence + 1) + 500},
	          records->bytes);
}

void image_add_end(struct image *image, uint32_t sequence, uint64_t first_record)
{
	add_chunk(
	    image,
	    (struct chunk_header){.type = CHUNK_END, .sequence = sequence, .first_record = first_record}, "");
}

void image_save(const struct image *image, const char *path)
{
	FILE *file = fopen(path, "w");

	cr_assert_not_null(file);
	if (image->size)
		cr_assert_eq(fwrite(image->bytes, 1, image->size, file), image->size);
	cr_assert_eq(fclose(file), 0);
}

struct image image_load(const char *path)
{
	FILE *file = fopen(path, "r");
	struct image image = {0};
	uint8_t block[4096];
	size_t got;

	cr_assert_not_null(file);
	while ((got = fread(block, 1, sizeof(block), file)))
		image_add(&image, block, got);
	fclose(file);
	return image;
}

void image_free(struct image *image)
{
	free(image->bytes);
	*image = (struct image){0};
}

static int keep(void *context, const struct record_header *record)
{
	const struct record_layout *layout = record_layout_find(record->type);
	struct shown *shown = context;
	struct shown_record *kept;
	size_t size;

	cr_assert_not_null(layout);
	cr_assert_eq((uintptr_t)record % 8, 0);
	if (!shown)
		return 0;
	size = layout->size + (layout->tail_count ? record_layout_items(layout, record) + 1 : 0);
	if (size < RECORD_MAX_STRUCT)
		size = RECORD_MAX_STRUCT;
	kept = array_add(&shown->records);
	cr_assert_not_null(kept);
	kept->header = *record;
	kept->bytes = malloc(size);
	cr_assert_not_null(kept->bytes);
	memcpy(kept->bytes, record, size);
	return shown->stop_after && shown->records.count == (size_t)shown->stop_after ? 77 : 0;
}

int shown_read(struct shown *shown, const char *path, struct session_summary *summary, struct error *error)
{
	return session_read(path, keep, shown, summary, error);
}

const void *shown_at(const struct shown *shown, size_t index, uint16_t type)
{
	cr_assert_lt(index, shown->records.count);
	cr_assert_eq(shown->records.items[index].header.type, type, "record %zu has type %u, not %u", index,
	             shown->records.items[index].header.type, type);
	return shown->records.items[index].bytes;
}

size_t shown_count(const struct shown *shown, uint16_t type)
{
	const struct shown_record *record;
	size_t count = 0;

	array_for_each (record, &shown->records)
		count += record->header.type == type;
	return count;
}

void shown_free(struct shown *shown)
{
	struct shown_record *record;

	array_for_each (record, &shown->records)
		free(record->bytes);
	array_free(&shown->records);
}

uint64_t fixture_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

void fixture_fill(uint64_t *state, void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)bytes)[i] = (uint8_t)fixture_random(state);
}

struct record_offcpu fixture_offcpu(uint64_t *state, uint64_t start_ns)
{
	struct record_offcpu record;

	fixture_fill(state, &record, sizeof(record));
	record.header = (struct record_header){.type = RECORD_OFFCPU, .size = sizeof(record)};
	record.out_ns = start_ns;
	record.wake_ns = start_ns + 500;
	record.in_ns = start_ns + 1000;
	return record;
}
