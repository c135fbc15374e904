// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets of a Perfetto trace. All are of one sequence, so texts that occur again are written once (interned)
 * and the clock is named once. The numbers below are those of the fields in Perfetto's public schema.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/perfetto.h"
#include "base/utf8.h"

enum {
	TRACE_PACKET = 1,

	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,

	DEFAULTS_CLOCK = 58,
	SNAPSHOT_CLOCKS = 1,
	SNAPSHOT_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,

	EVENT_CATEGORY_NUMBER = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_NUMBER = 10,
	EVENT_TRACK = 11,
	EVENT_COUNTER_VALUE = 30,
	EVENT_FLOW = 47,
	EVENT_FLOW_END = 48,

	ANNOTATION_NAME_NUMBER = 1,
	ANNOTATION_UNSIGNED = 3,
	ANNOTATION_TEXT = 6,
	ANNOTATION_TEXT_NUMBER = 17,

	INTERNED_CATEGORY = 1,
	INTERNED_NAME = 2,
	INTERNED_KEY = 3,
	INTERNED_VALUE = 29,
	INTERNED_NUMBER = 1,
	INTERNED_TEXT = 2,

	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	TRACK_CHILD_ORDER = 11,
	TRACK_RANK = 12,
	PROCESS_PID = 1,
	PROCESS_COMMAND = 2,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	COUNTER_UNIT = 3,
};

#define SEQUENCE                1
#define SEQUENCE_STARTS         1 /* flags */
#define SEQUENCE_NEEDS_INTERNED 2
#define CLOCK_MONOTONIC_ID      3 /* of the built-in clocks */
#define CHILDREN_BY_RANK        3
#define UNIT_COUNT              2

enum event_type {
	EVENT_SLICE_BEGIN = 1,
	EVENT_SLICE_END = 2,
	EVENT_INSTANT = 3,
	EVENT_COUNTER = 4,
};

/* ---- packets ---- */

static size_t begin_packet(struct perfetto *perfetto)
{
	size_t mark = protobuf_begin(&perfetto->packet, TRACE_PACKET);

	protobuf_number(&perfetto->packet, PACKET_SEQUENCE, SEQUENCE);
	return mark;
}

static void end_packet(struct perfetto *perfetto, size_t mark)
{
	protobuf_end(&perfetto->packet, mark);
	byte_out_put(perfetto->out, perfetto->packet.bytes, perfetto->packet.size);
	perfetto->failed |= perfetto->packet.failed || perfetto->event.failed || perfetto->interned.failed;
	protobuf_clear(&perfetto->packet);
}

void perfetto_head(struct perfetto *perfetto)
{
	struct protobuf *packet = &perfetto->packet;
	size_t mark = begin_packet(perfetto), inner, clock;

	protobuf_number(packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_STARTS);
	inner = protobuf_begin(packet, PACKET_DEFAULTS);
	protobuf_number(packet, DEFAULTS_CLOCK, CLOCK_MONOTONIC_ID);
	protobuf_end(packet, inner);
	end_packet(perfetto, mark);

	mark = begin_packet(perfetto);
	inner = protobuf_begin(packet, PACKET_CLOCK_SNAPSHOT);
	clock = protobuf_begin(packet, SNAPSHOT_CLOCKS);
	protobuf_number(packet, CLOCK_ID, CLOCK_MONOTONIC_ID);
	protobuf_number(packet, CLOCK_TIMESTAMP, perfetto->model->start_ns);
	protobuf_end(packet, clock);
	protobuf_number(packet, SNAPSHOT_PRIMARY, CLOCK_MONOTONIC_ID);
	protobuf_end(packet, inner);
	end_packet(perfetto, mark);
}

/* ---- texts ---- */

/* Bytes that are no UTF-8 are replaced. */
static void put_text(struct perfetto *perfetto, struct protobuf *message, uint32_t field, const char *text)
{
	char *copy = NULL;

	if (!utf8_is_valid(text)) {
		copy = utf8_copy(text);
		perfetto->failed |= !copy;
		text = copy ? copy : "";
	}
	protobuf_string(message, field, text);
	free(copy);
}

static uint64_t define(struct perfetto *perfetto, enum perfetto_table table, const char *text,
                       uint32_t number)
{
	static const uint32_t fields[] = {[PERFETTO_CATEGORIES] = INTERNED_CATEGORY,
	                                  [PERFETTO_NAMES] = INTERNED_NAME,
	                                  [PERFETTO_KEYS] = INTERNED_KEY,
	                                  [PERFETTO_VALUES] = INTERNED_VALUE};
	size_t mark = protobuf_begin(&perfetto->interned, fields[table]);

	protobuf_number(&perfetto->interned, INTERNED_NUMBER, number);
	put_text(perfetto, &perfetto->interned, INTERNED_TEXT, text);
	protobuf_end(&perfetto->interned, mark);
	return number;
}

/* For texts of this program's own and few others: 64 bits of hash tell them apart. */
static uint64_t number_of(struct perfetto *perfetto, enum perfetto_table table, const char *text)
{
	struct index_map *map = &perfetto->numbers[table];
	uint64_t key = hash_bytes(text, strlen(text));
	uint32_t number;

	if (index_map_get(map, key, &number))
		return number;
	number = (uint32_t)map->count + 1;
	perfetto->failed |= index_map_put(map, key, number) != 0;
	return define(perfetto, table, text, number);
}

uint64_t perfetto_name(struct perfetto *perfetto, const char *text)
{
	return number_of(perfetto, PERFETTO_NAMES, text);
}

/* Strings of the model are looked up by their id: they can be long. */
uint64_t perfetto_string_name(struct perfetto *perfetto, uint32_t string)
{
	uint32_t *slot;

	if (string >= perfetto->model->strings.count)
		return perfetto_name(perfetto, "");
	slot = &perfetto->name_of_string[string];
	if (!*slot)
		*slot = (uint32_t)perfetto_name(perfetto, model_string(perfetto->model, string));
	return *slot;
}

/* ---- events ---- */

static void begin_event(struct perfetto *perfetto, enum event_type type, uint64_t track, uint64_t time_ns)
{
	protobuf_clear(&perfetto->event);
	protobuf_number(&perfetto->event, EVENT_TYPE, type);
	protobuf_number(&perfetto->event, EVENT_TRACK, track);
	perfetto->event_ns = time_ns;
}

void perfetto_commit(struct perfetto *perfetto)
{
	struct protobuf *packet = &perfetto->packet;
	size_t mark = begin_packet(perfetto);

	protobuf_number(packet, PACKET_TIMESTAMP, perfetto->event_ns);
	protobuf_number(packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_INTERNED);
	if (perfetto->interned.size)
		protobuf_bytes(packet, PACKET_INTERNED_DATA, perfetto->interned.bytes,
		               perfetto->interned.size);
	protobuf_bytes(packet, PACKET_TRACK_EVENT, perfetto->event.bytes, perfetto->event.size);
	end_packet(perfetto, mark);
	protobuf_clear(&perfetto->interned);
}

static void begin_named(struct perfetto *perfetto, enum event_type type, uint64_t track, uint64_t time_ns,
                        const char *category, uint64_t name)
{
	begin_event(perfetto, type, track, time_ns);
	protobuf_number(&perfetto->event, EVENT_CATEGORY_NUMBER,
	                number_of(perfetto, PERFETTO_CATEGORIES, category));
	protobuf_number(&perfetto->event, EVENT_NAME_NUMBER, name);
}

void perfetto_slice(struct perfetto *perfetto, uint64_t track, uint64_t start_ns, const char *category,
                    uint64_t name)
{
	begin_named(perfetto, EVENT_SLICE_BEGIN, track, start_ns, category, name);
}

void perfetto_slice_end(struct perfetto *perfetto, uint64_t track, uint64_t end_ns)
{
	begin_event(perfetto, EVENT_SLICE_END, track, end_ns);
	perfetto_commit(perfetto);
}

void perfetto_instant(struct perfetto *perfetto, uint64_t track, uint64_t time_ns, const char *category,
                      uint64_t name)
{
	begin_named(perfetto, EVENT_INSTANT, track, time_ns, category, name);
}

void perfetto_counter(struct perfetto *perfetto, uint64_t track, uint64_t time_ns, uint64_t value)
{
	begin_event(perfetto, EVENT_COUNTER, track, time_ns);
	protobuf_number(&perfetto->event, EVENT_COUNTER_VALUE, value);
	perfetto_commit(perfetto);
}

static size_t begin_annotation(struct perfetto *perfetto, const char *key)
{
	size_t mark = protobuf_begin(&perfetto->event, EVENT_ANNOTATION);

	protobuf_number(&perfetto->event, ANNOTATION_NAME_NUMBER, number_of(perfetto, PERFETTO_KEYS, key));
	return mark;
}

void perfetto_number(struct perfetto *perfetto, const char *key, uint64_t value)
{
	size_t mark = begin_annotation(perfetto, key);

	protobuf_number(&perfetto->event, ANNOTATION_UNSIGNED, value);
	protobuf_end(&perfetto->event, mark);
}

void perfetto_word(struct perfetto *perfetto, const char *key, const char *value)
{
	size_t mark;

	if (!value || !*value)
		return;
	mark = begin_annotation(perfetto, key);
	protobuf_number(&perfetto->event, ANNOTATION_TEXT_NUMBER,
	                number_of(perfetto, PERFETTO_VALUES, value));
	protobuf_end(&perfetto->event, mark);
}

void perfetto_text(struct perfetto *perfetto, const char *key, const char *value)
{
	size_t mark;

	if (!value || !*value)
		return;
	mark = begin_annotation(perfetto, key);
	put_text(perfetto, &perfetto->event, ANNOTATION_TEXT, value);
	protobuf_end(&perfetto->event, mark);
}

void perfetto_thread(struct perfetto *perfetto, const char *key, const char *comm, uint32_t tid)
{
	char text[128];

	snprintf(text, sizeof(text), "%s (%u)", comm, tid);
	perfetto_text(perfetto, key, text);
}

void perfetto_flow(struct perfetto *perfetto, uint64_t flow, bool ends)
{
	protobuf_fixed64(&perfetto->event, ends ? EVENT_FLOW_END : EVENT_FLOW, flow);
}

/* ---- tracks ---- */

/* Number 0 stands for no track. */
uint64_t perfetto_process_track(const struct perfetto *perfetto, uint32_t process)
{
	(void)perfetto;
	return 1 + (uint64_t)process;
}

uint64_t perfetto_thread_track(const struct perfetto *perfetto, uint32_t thread, uint32_t which)
{
	return 1 + perfetto->model->processes.count + (uint64_t)thread * THREAD_TRACKS + which;
}

uint64_t perfetto_gpu_track(const struct perfetto *perfetto, uint32_t device, uint32_t which)
{
	return perfetto_thread_track(perfetto, (uint32_t)perfetto->model->threads.count, 0) +
	       (uint64_t)device * GPU_TRACKS + which;
}

size_t perfetto_track(struct perfetto *perfetto, uint64_t track, uint64_t parent, const char *name)
{
	protobuf_clear(&perfetto->event);
	protobuf_number(&perfetto->event, TRACK_UUID, track);
	if (parent)
		protobuf_number(&perfetto->event, TRACK_PARENT, parent);
	put_text(perfetto, &perfetto->event, TRACK_NAME, name);
	return begin_packet(perfetto);
}

void perfetto_track_end(struct perfetto *perfetto, size_t mark)
{
	protobuf_bytes(&perfetto->packet, PACKET_TRACK_DESCRIPTOR, perfetto->event.bytes,
	               perfetto->event.size);
	end_packet(perfetto, mark);
}

void perfetto_track_order(struct perfetto *perfetto, uint64_t rank)
{
	protobuf_number(&perfetto->event, TRACK_RANK, rank);
}

void perfetto_track_orders_children(struct perfetto *perfetto)
{
	protobuf_number(&perfetto->event, TRACK_CHILD_ORDER, CHILDREN_BY_RANK);
}

/* Numbers of the schema are signed, with 32 bits. */
static uint64_t id_of(uint32_t id)
{
	return (uint64_t)(int64_t)(int32_t)id;
}

void perfetto_track_process(struct perfetto *perfetto, const struct process *process)
{
	size_t mark = protobuf_begin(&perfetto->event, TRACK_PROCESS);

	protobuf_number(&perfetto->event, PROCESS_PID, id_of(process->pid));
	if (process->cmdline)
		put_text(perfetto, &perfetto->event, PROCESS_COMMAND,
		         model_string(perfetto->model, process->cmdline));
	put_text(perfetto, &perfetto->event, PROCESS_NAME, model_string(perfetto->model, process->comm));
	protobuf_end(&perfetto->event, mark);
}

void perfetto_track_thread(struct perfetto *perfetto, const struct thread *thread)
{
	size_t mark = protobuf_begin(&perfetto->event, TRACK_THREAD);

	protobuf_number(&perfetto->event, THREAD_PID, id_of(thread->pid));
	protobuf_number(&perfetto->event, THREAD_TID, id_of(thread->tid));
	put_text(perfetto, &perfetto->event, THREAD_NAME, model_string(perfetto->model, thread->comm));
	protobuf_end(&perfetto->event, mark);
}

void perfetto_track_counts(struct perfetto *perfetto)
{
	size_t mark = protobuf_begin(&perfetto->event, TRACK_COUNTER);

	protobuf_number(&perfetto->event, COUNTER_UNIT, UNIT_COUNT);
	protobuf_end(&perfetto->event, mark);
}
