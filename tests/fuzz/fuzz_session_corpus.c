/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the inputs from which fuzz_session starts into a directory: fuzz_session_corpus DIRECTORY */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "fuzz_session.h"
#include "tests/fuzz/corpus.h"
#include "trace/layout.h"
#include "trace/session.h"

static int save(const char *directory, const char *name, uint8_t form, const uint8_t *bytes, size_t size)
{
	return corpus_save(directory, name, &form, sizeof(form), bytes, size);
}

/* One record of each type, also those with a tail, behind the two numbers; returns the size. */
static size_t make_records(uint8_t *bytes)
{
	uint8_t *end = bytes + 4;
	uint16_t count = 0;

	for (uint16_t type = 1; type <= RECORD_RANK; type++) {
		const struct record_layout *layout = record_layout_find(type);
		struct record_header header = {.type = type};
		uint32_t items = layout->tail_count ? 16 / layout->tail_unit : 0;

		header.size = layout->size + (layout->tail_count ? 16 : 0);
		memset(end, (int)type, header.size);
		memcpy(end, &header, sizeof(header));
		if (layout->tail_count)
			memcpy(end + layout->tail_count, &items, sizeof(items));
		end += header.size;
		count++;
	}
	memset(bytes, 0, 4);
	memcpy(bytes + 2, &count, sizeof(count));
	return (size_t)(end - bytes);
}

static int save_payloads(const char *directory)
{
	uint8_t records[8192], frame[8192];
	size_t size = make_records(records), frame_size;
	uint16_t raw = (uint16_t)(size - 4);

	if (save(directory, "records", FUZZ_RECORDS, records, size))
		return 1;
	memcpy(frame, records, 4);
	memcpy(frame, &raw, sizeof(raw));
	frame_size = ZSTD_compress(frame + 4, sizeof(frame) - 4, records + 4, size - 4, 1);
	if (ZSTD_isError(frame_size))
		return 1;
	return save(directory, "compressed", FUZZ_COMPRESSED, frame, frame_size + 4);
}

/* A file of three chunks, as the writer makes it. */
static int save_files(const char *directory)
{
	struct record_offcpu offcpu = {.header = {.type = RECORD_OFFCPU, .size = sizeof(offcpu)},
	                               .out_ns = 1000};
	struct session_writer *writer;
	struct error error;
	uint8_t bytes[65536];
	char path[4096];
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/file", directory);
	if (session_writer_open(&writer, path, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	for (int chunk = 0; chunk < 3; chunk++) {
		session_writer_info(writer, "tier", chunk ? "T2" : "T1", &error);
		for (int i = 0; i < 8; i++, offcpu.out_ns += 1000) {
			offcpu.in_ns = offcpu.out_ns + 500;
			session_writer_put(writer, &offcpu, &error);
		}
		session_writer_flush(writer, &error);
	}
	if (session_writer_close(writer, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	file = fopen(path, "r");
	if (!file)
		return 1;
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	return save(directory, "file", FUZZ_FILE, bytes, size) ||
	       save(directory, "file_to_seal", FUZZ_FILE_TO_SEAL, bytes, size) ||
	       save(directory, "cut_file", FUZZ_FILE_TO_SEAL, bytes, size / 2);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	return save_payloads(argv[1]) || save_files(argv[1]);
}
