/* SPDX-License-Identifier: GPL-2.0-only */
#include "trace/layout.h"

#include <string.h>

#define LAYOUT(type_name) .name = #type_name, .size = sizeof(struct record_##type_name)
#define TIMES(type_name, first, last)                                                                        \
	.start = offsetof(struct record_##type_name, first), .end = offsetof(struct record_##type_name, last)

static const struct record_layout layouts[] = {
    [RECORD_STRING] = {LAYOUT(string), .tail_count = offsetof(struct record_string, length), .tail_unit = 1},
    [RECORD_INFO] = {LAYOUT(info)},
    [RECORD_TASK] = {LAYOUT(task), TIMES(task, time_ns, time_ns)},
    [RECORD_FORK] = {LAYOUT(fork), TIMES(fork, time_ns, time_ns)},
    [RECORD_EXEC] = {LAYOUT(exec), TIMES(exec, time_ns, time_ns)},
    [RECORD_EXIT] = {LAYOUT(exit), TIMES(exit, time_ns, time_ns)},
    [RECORD_OFFCPU] = {LAYOUT(offcpu), TIMES(offcpu, out_ns, in_ns), .event = true},
    [RECORD_SAMPLE] = {LAYOUT(sample), TIMES(sample, time_ns, time_ns), .event = true},
    [RECORD_STACK] = {LAYOUT(stack), .tail_count = offsetof(struct record_stack, count), .tail_unit = 8},
    [RECORD_SYMBOL] = {LAYOUT(symbol)},
    [RECORD_MAPPING] = {LAYOUT(mapping), TIMES(mapping, time_ns, time_ns)},
    [RECORD_DEVICE] = {LAYOUT(device)},
    [RECORD_GPU_OP] = {LAYOUT(gpu_op), TIMES(gpu_op, start_ns, end_ns), .event = true},
    [RECORD_CALL] = {LAYOUT(call), TIMES(call, enter_ns, exit_ns), .event = true},
    [RECORD_SYNC] = {LAYOUT(sync), TIMES(sync, start_ns, end_ns), .event = true},
    [RECORD_OVERHEAD] = {LAYOUT(overhead), TIMES(overhead, start_ns, end_ns), .event = true},
    [RECORD_LOSS] = {LAYOUT(loss), TIMES(loss, start_ns, end_ns)},
    [RECORD_RANGE] = {LAYOUT(range), TIMES(range, start_ns, end_ns), .event = true},
    [RECORD_STEAL] = {LAYOUT(steal), TIMES(steal, start_ns, end_ns), .event = true},
    [RECORD_NCCL] = {LAYOUT(nccl), TIMES(nccl, time_ns, time_ns), .event = true},
    [RECORD_BRIDGE] = {LAYOUT(bridge), TIMES(bridge, time_ns, time_ns)},
    [RECORD_RANK] = {LAYOUT(rank)},
};

const struct record_layout *record_layout_find(uint16_t type)
{
	if (type >= sizeof(layouts) / sizeof(layouts[0]) || !layouts[type].name)
		return NULL;
	return &layouts[type];
}

uint64_t record_layout_items(const struct record_layout *layout, const void *record)
{
	uint32_t count;

	memcpy(&count, (const char *)record + layout->tail_count, sizeof(count));
	return (uint64_t)count * layout->tail_unit;
}

/* A record of an older writer may end before the field. */
static uint64_t field_u64(const struct record_header *record, size_t offset)
{
	uint64_t value = 0;

	if (offset + sizeof(value) <= record->size)
		memcpy(&value, (const char *)record + offset, sizeof(value));
	return value;
}

void record_span_join(struct record_span *span, const struct record_span *other)
{
	if (other->start_ns && (!span->start_ns || other->start_ns < span->start_ns))
		span->start_ns = other->start_ns;
	if (other->end_ns > span->end_ns)
		span->end_ns = other->end_ns;
}

void record_span_add(struct record_span *span, const struct record_header *record)
{
	const struct record_layout *layout = record_layout_find(record->type);
	struct record_span times;

	if (!layout || !layout->event)
		return;
	times.start_ns = field_u64(record, layout->start);
	times.end_ns = field_u64(record, layout->end);
	if (times.end_ns < times.start_ns)
		times.end_ns = times.start_ns; /* end not known */
	record_span_join(span, &times);
}
