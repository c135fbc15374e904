/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fuzzes the reader of session files. Checksums would keep nearly every mutation out, so the first byte of an
 * input says how much of a file the rest is (enum fuzz_form); what is missing is made around it, sealed.
 *
 * Build and run: make fuzz [FUZZ_SECONDS=60]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_session.h"
#include "tests/fuzz/require.h"
#include "trace/chunk.h"
#include "trace/layout.h"
#include "trace/session.h"

#define MAX_INPUT (1u << 20)

struct seen {
	uint64_t records, made_up;
	uint64_t sum;
};

/* Everything that session.h promises of a record is looked at. */
static int visit(void *context, const struct record_header *record)
{
	const struct record_layout *layout = record_layout_find(record->type);
	const uint8_t *bytes = (const uint8_t *)record;
	struct seen *seen = context;
	size_t length = RECORD_MAX_STRUCT;

	REQUIRE(layout && (uintptr_t)record % 8 == 0 && record->size >= sizeof(*record));
	for (size_t i = record->size; i < layout->size; i++)
		REQUIRE(bytes[i] == 0);
	if (record->type == RECORD_STRING) {
		const struct record_string *string = (const void *)record;
		const char *text = (const char *)(string + 1);

		REQUIRE(string->length <= record->size && text[string->length] == 0);
		length = sizeof(*string) + string->length;
	} else if (record->type == RECORD_STACK) {
		const struct record_stack *stack = (const void *)record;

		REQUIRE((uint64_t)stack->count * 8 <= record->size);
		length = sizeof(*stack) + (size_t)stack->count * 8;
	}
	for (size_t i = 0; i < length; i++)
		seen->sum += bytes[i];
	seen->records++;
	return 0;
}

static uint8_t *put_chunk(uint8_t *end, struct chunk_header header, const uint8_t *payload)
{
	struct chunk_header *chunk = malloc(sizeof(*chunk) + header.stored_length);
	size_t size = sizeof(*chunk) + header.stored_length;

	REQUIRE(chunk);
	*chunk = header;
	if (header.stored_length)
		memcpy(chunk + 1, payload, header.stored_length);
	chunk_seal(chunk);
	memcpy(end, chunk, size);
	free(chunk);
	return end + size;
}

/* A payload between a file header and an end mark; its first four bytes are the raw length and the count. */
static size_t wrap_payload(uint8_t *file, const uint8_t *data, size_t size, enum chunk_coding coding)
{
	struct session_header header;
	struct chunk_header chunk = {
	    .type = CHUNK_RECORDS, .coding = (uint16_t)coding, .start_ns = 1, .end_ns = 9};
	uint16_t numbers[2] = {0};
	uint8_t *end = file + sizeof(header);

	if (size < sizeof(numbers))
		return 0;
	memcpy(numbers, data, sizeof(numbers));
	chunk.stored_length = (uint32_t)(size - sizeof(numbers));
	chunk.raw_length = coding == CHUNK_STORED ? chunk.stored_length : numbers[0];
	chunk.records = numbers[1];
	session_header_fill(&header);
	memcpy(file, &header, sizeof(header));
	end = put_chunk(end, chunk, data + sizeof(numbers));
	end = put_chunk(
	    end, (struct chunk_header){.type = CHUNK_END, .sequence = 1, .first_record = numbers[1]}, NULL);
	return (size_t)(end - file);
}

/* Makes the checksums of everything that looks like a header right. */
static void seal_all(uint8_t *file, size_t size)
{
	struct session_header header;

	if (size < sizeof(header))
		return;
	memcpy(&header, file, sizeof(header));
	header.crc = chunk_crc(&header, offsetof(struct session_header, crc));
	memcpy(file, &header, sizeof(header));
	for (size_t at = sizeof(header); size - at >= sizeof(struct chunk_header);) {
		struct chunk_header chunk;
		uint64_t length;

		memcpy(&chunk, file + at, sizeof(chunk));
		if (memcmp(chunk.magic, CHUNK_MAGIC, MAGIC_SIZE)) {
			at++;
			continue;
		}
		length = (uint64_t)chunk.size - sizeof(chunk) + chunk.stored_length;
		if (chunk.size >= sizeof(chunk) && length <= size - at - sizeof(chunk))
			chunk.payload_crc = chunk_crc(file + at + sizeof(chunk), (size_t)length);
		chunk.header_crc = chunk_crc(&chunk, offsetof(struct chunk_header, header_crc));
		memcpy(file + at, &chunk, sizeof(chunk));
		at += sizeof(chunk);
	}
}

static void read_file(int fd, const uint8_t *file, size_t size)
{
	struct session_summary summary;
	struct error error = {0};
	struct seen seen = {0};
	char path[64];
	int rc;

	REQUIRE(ftruncate(fd, 0) == 0);
	REQUIRE(pwrite(fd, file, size, 0) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = session_read(path, visit, &seen, &summary, &error);
	REQUIRE(rc <= 0 && (rc == 0) == (error.code == 0) && summary.lost_bytes <= size);
	REQUIRE(seen.records >= summary.records);
	REQUIRE(rc || summary.chunks > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[MAX_INPUT + 4096];
	static int fd = -1;
	size_t length = 0;

	if (fd < 0) {
		fd = memfd_create("session", MFD_CLOEXEC);
		REQUIRE(fd >= 0);
	}
	if (size < 1 || size > MAX_INPUT)
		return 0;
	switch (data[0] % FUZZ_FORM_COUNT) {
	case FUZZ_FILE:
	case FUZZ_FILE_TO_SEAL:
		length = size - 1;
		memcpy(file, data + 1, length);
		if (data[0] % FUZZ_FORM_COUNT == FUZZ_FILE_TO_SEAL)
			seal_all(file, length);
		break;
	case FUZZ_RECORDS:
		length = wrap_payload(file, data + 1, size - 1, CHUNK_STORED);
		break;
	case FUZZ_COMPRESSED:
		length = wrap_payload(file, data + 1, size - 1, CHUNK_ZSTD);
		break;
	}
	read_file(fd, file, length);
	return 0;
}
