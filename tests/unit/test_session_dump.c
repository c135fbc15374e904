/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session_fixture.h"
#include "trace/dump.h"
#include "trace/layout.h"

Test(session_dump, shows_every_field_and_resolves_strings)
{
	const char *path = fixture_path("session");
	struct session_writer *writer;
	struct record_call call = {
	    .header = {.type = RECORD_CALL, .size = sizeof(call)}, .enter_ns = 7, .result = -1};
	struct record_stack stack = {
	    .header = {.type = RECORD_STACK, .size = sizeof(stack) + 16}, .id = 1, .count = 2};
	struct record_device device = {.header = {.type = RECORD_DEVICE, .size = sizeof(device)}, .name = 99};
	const uint64_t frames[2] = {0x10, 0x20};
	struct error error = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	memset(device.uuid, 0xab, sizeof(device.uuid));
	cr_assert_not_null(out);
	cr_assert_eq(session_writer_open(&writer, path, NULL), 0);
	call.function = session_writer_cstring(writer, "cuda\"Launch\x1b\n");
	session_writer_put(writer, &call, NULL);
	session_writer_put_tail(writer, &stack, sizeof(stack), frames, sizeof(frames), NULL);
	session_writer_put(writer, &device, NULL);
	cr_assert_eq(session_writer_close(writer, NULL), 0);
	cr_assert_eq(session_dump(path, out, &error), 0, "%s", error.text);
	fclose(out);
	cr_assert_str_eq(
	    text,
	    "string id=1 text=\"cuda\\x22Launch\\x1b\\x0a\"\n"
	    "call enter_ns=7 exit_ns=0 pid=0 tid=0 correlation=0 "
	    "function=\"cuda\\x22Launch\\x1b\\x0a\" source=0 result=-1 stream=0 object=0 known=0 work=0\n"
	    "stack id=1 kind=0 pid=0 flags=0 frames=0x10,0x20\n"
	    "device device=0 name=?99 uuid=abababababababababababababababab sm_count=0 "
	    "compute_major=0 compute_minor=0 simulated=0 memory_bytes=0\n"
	    "# format 1, 4 records, 0 of unknown types, 0 lost; 2 chunks, 0 damaged, 0 bytes of no "
	    "use; complete\n");
	free(text);
}

/* Every type has fields to show, and each record is one line. */
Test(session_dump, shows_every_type)
{
	const char *path = fixture_path("session");
	struct session_writer *writer;
	uint8_t record[RECORD_MAX_STRUCT] __attribute__((aligned(8))) = {0};
	char *text = NULL, *line;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	cr_assert_eq(session_writer_open(&writer, path, NULL), 0);
	for (uint16_t type = 1; type <= RECORD_RANGE; type++) {
		struct record_header header = {.type = type, .size = record_layout_find(type)->size};

		memcpy(record, &header, sizeof(header));
		cr_assert_eq(session_writer_put(writer, record, NULL), 0);
	}
	cr_assert_eq(session_writer_close(writer, NULL), 0);
	cr_assert_eq(session_dump(path, out, NULL), 0);
	fclose(out);
	line = strtok(text, "\n");
	for (uint16_t type = 1; type <= RECORD_RANGE; type++, line = strtok(NULL, "\n")) {
		const char *name = record_layout_find(type)->name;

		cr_assert_not_null(line);
		cr_assert_eq(strncmp(line, name, strlen(name)), 0, "%s", line);
		cr_assert_eq(line[strlen(name)], ' ');
		cr_assert_not_null(strchr(line, '='), "%s has no fields", name);
	}
	cr_assert_eq(line[0], '#');
	free(text);
}

Test(session_dump, failures_are_told)
{
	struct session_writer *writer;
	struct error error = {0};
	FILE *out = fopen("/dev/full", "w");

	cr_assert_not_null(out);
	cr_assert_eq(session_dump(fixture_path("missing"), out, &error), -ENOENT);
	cr_assert_eq(session_writer_open(&writer, fixture_path("session"), NULL), 0);
	cr_assert_eq(session_writer_info(writer, "tier", "T2", NULL), 0);
	cr_assert_eq(session_writer_close(writer, NULL), 0);
	cr_assert_eq(session_dump(fixture_path("session"), out, &error), -EIO);
	cr_assert_eq(strncmp(error.text, "cannot write the text of", 24), 0, "%s", error.text);
	fclose(out);
}
