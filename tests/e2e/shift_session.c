/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shift_session IN OUT OFFSET_NS DRIFT_PPM
 *
 * Copies a session file as if it had been recorded on a host with another clock: every time t becomes
 * t + OFFSET_NS + DRIFT_PPM / 1e6 x (t - start of the recording). A test of clock alignment: hosts of one
 * machine share theirs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/layout.h"
#include "trace/session.h"

#define NEW_STRINGS 0x70000000u /* ids that the recorder does not reach */

struct copy {
	struct session_writer *writer;
	int64_t offset_ns;
	double drift;
	uint64_t start_ns;
	uint32_t start_key, end_key; /* strings */
	uint32_t new_strings;
	struct {
		ARRAY(char *)
	} strings; /* by id, NULL: not seen */
	struct error error;
};

static uint64_t shift(const struct copy *copy, uint64_t ns)
{
	if (!ns)
		return 0;
	return ns +
	       (uint64_t)(copy->offset_ns + (int64_t)(copy->drift * (double)(int64_t)(ns - copy->start_ns)));
}

static void shift_field(const struct copy *copy, uint8_t *record, size_t offset)
{
	uint64_t value;

	memcpy(&value, record + offset, sizeof(value));
	value = shift(copy, value);
	memcpy(record + offset, &value, sizeof(value));
}

static int keep_string(struct copy *copy, const struct record_string *record)
{
	const char *text = (const char *)(record + 1);

	if (record->id >= NEW_STRINGS)
		return -ERANGE;
	while (copy->strings.count <= record->id)
		if (!array_add(&copy->strings))
			return -ENOMEM;
	copy->strings.items[record->id] = strndup(text, record->length);
	return 0;
}

/* A string with a number of its own. */
static uint32_t put_number(struct copy *copy, uint64_t number)
{
	struct {
		struct record_string head;
		char text[32];
	} string = {.head = {.header = {.type = RECORD_STRING, .size = sizeof(string)}}};

	string.head.id = NEW_STRINGS + copy->new_strings++;
	string.head.length =
	    (uint32_t)snprintf(string.text, sizeof(string.text), "%llu", (unsigned long long)number);
	return session_writer_put(copy->writer, &string, &copy->error) ? 0 : string.head.id;
}

static void shift_info(struct copy *copy, struct record_info *info)
{
	const char *key = info->key < copy->strings.count ? copy->strings.items[info->key] : NULL;
	const char *value = info->value < copy->strings.count ? copy->strings.items[info->value] : NULL;
	uint64_t number;

	if (!key || !value || (strcmp(key, "start_mono_ns") && strcmp(key, "end_mono_ns")))
		return;
	number = strtoull(value, NULL, 10);
	if (!strcmp(key, "start_mono_ns"))
		copy->start_ns = number;
	info->value = put_number(copy, shift(copy, number));
}

static int copy_record(void *context, const struct record_header *header)
{
	const struct record_layout *layout = record_layout_find(header->type);
	uint8_t record[RECORD_MAX_STRUCT] __attribute__((aligned(8)));
	struct copy *copy = context;
	size_t size, tail = 0;

	if (!layout)
		return -ENOTSUP;
	size = layout->size;
	memcpy(record, header, size);
	if (header->type == RECORD_STRING && keep_string(copy, (const struct record_string *)header))
		return -ENOMEM;
	if (header->type == RECORD_INFO)
		shift_info(copy, (struct record_info *)(void *)record);
	if (layout->tail_count)
		tail = (record_layout_items(layout, header) + 7) / 8 * 8;
	if (layout->start)
		shift_field(copy, record, layout->start);
	if (layout->end && layout->end != layout->start)
		shift_field(copy, record, layout->end);
	if (header->type == RECORD_OFFCPU)
		shift_field(copy, record, offsetof(struct record_offcpu, wake_ns));
	((struct record_header *)(void *)record)->size = (uint32_t)(size + tail);
	return session_writer_put_tail(copy->writer, record, size, (const uint8_t *)header + size, tail,
	                               &copy->error);
}

int main(int argc, char **argv)
{
	struct copy copy = {0};
	struct session_summary summary;
	int err;

	if (argc != 5) {
		fputs("usage: shift_session IN OUT OFFSET_NS DRIFT_PPM\n", stderr);
		return 2;
	}
	copy.offset_ns = strtoll(argv[3], NULL, 10);
	copy.drift = atof(argv[4]) / 1e6;
	err = session_writer_open(&copy.writer, argv[2], &copy.error);
	if (!err)
		err = session_read(argv[1], copy_record, &copy, &summary, &copy.error);
	if (!err && !summary.complete)
		err = error_set(&copy.error, -EINVAL, "%s is not complete", argv[1]);
	if (copy.writer && session_writer_close(copy.writer, err ? NULL : &copy.error))
		err = -EIO;
	/* What the drift was counted from. */
	if (!err)
		printf("%llu\n", (unsigned long long)copy.start_ns);
	if (err)
		fprintf(stderr, "shift_session: %s\n", copy.error.text);
	for (size_t i = 0; i < copy.strings.count; i++)
		free(copy.strings.items[i]);
	array_free(&copy.strings);
	return err ? 1 : 0;
}
