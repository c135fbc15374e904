// SPDX-License-Identifier: GPL-2.0-only
#include "collect/pure_bridge_convert.h"

#include <stdlib.h>
#include <string.h>

/* Counts come from the target: none is believed beyond this, so that sums cannot overflow. */
#define MAX_LOSS_COUNT 1000000000000ULL
/* Bytes that a string takes in memory besides its own. */
#define STRING_COST 64

#define RECORD_HEADER(type_, struct_)                                                                        \
	{                                                                                                    \
		.type = (type_), .size = sizeof(struct_)                                                     \
	}

void bridge_tables_free(struct bridge_tables *tables)
{
	array_free(&tables->devices);
}

void bridge_convert_init(struct bridge_convert *convert, struct bridge_tables *tables, uint32_t pid)
{
	memset(convert, 0, sizeof(*convert));
	convert->tables = tables;
	convert->pid = pid;
	convert->latest_ns = UINT64_MAX;
	convert->phase = RING_PHASE_CONNECTED;
}

void bridge_convert_free(struct bridge_convert *convert)
{
	array_free(&convert->names);
}

/* Session string of a name id; 0 (no name) for one that was never defined: the time of an operation still
 * counts. */
static uint32_t name_string(const struct bridge_convert *convert, uint32_t id)
{
	return id >= 1 && id <= convert->names.count ? convert->names.items[id - 1] : 0;
}

static bool span_is_sane(const struct bridge_convert *convert, uint64_t start_ns, uint64_t end_ns)
{
	return start_ns <= end_ns && start_ns >= convert->earliest_ns && end_ns <= convert->latest_ns;
}

static bool device_index(const struct bridge_convert *convert, uint32_t ordinal, uint32_t *index)
{
	if (ordinal >= BRIDGE_MAX_ORDINAL || !convert->devices[ordinal])
		return false;
	*index = convert->devices[ordinal] - 1;
	return true;
}

static uint32_t host_tid(const struct bridge_convert *convert, uint32_t tid)
{
	return tid && convert->translate_tid ? convert->translate_tid(convert->translate_context, tid) : tid;
}

static int drop(struct bridge_convert *convert)
{
	convert->invalid++;
	return 0;
}

/*
 * Takes a string out of the session's budget (its bytes and what keeping it costs besides): false if it is
 * used up. Without it a target could make the collector keep as many strings as it likes.
 */
static bool take_string(struct bridge_convert *convert, size_t length)
{
	if (convert->tables->string_bytes + length + STRING_COST > BRIDGE_STRING_BYTES)
		return false;
	convert->tables->string_bytes += length + STRING_COST;
	return true;
}

static int convert_hello(struct bridge_convert *convert, const struct ring_hello *hello,
                         struct session_writer *writer, struct error *error)
{
	size_t length = hello->path_length;

	if (length > hello->record.size - sizeof(*hello) || convert->hello || !take_string(convert, length))
		return drop(convert);
	convert->hello = true;
	convert->hello_pid = hello->pid;
	convert->cupti_version = hello->cupti_version;
	convert->driver_version = hello->driver_version;
	convert->simulated = hello->simulated == 1;
	convert->clock_error_ns = hello->clock == RING_CLOCK_MONOTONIC ? 0 : hello->clock_error_ns;
	if (length > RING_MAX_NAME)
		length = RING_MAX_NAME;
	convert->cupti_path = session_writer_string(writer, hello->path, length);
	return bridge_convert_state(convert, 0, convert->phase, 0, NULL, writer, error);
}

static int convert_status(struct bridge_convert *convert, const struct ring_status *status,
                          struct session_writer *writer, struct error *error)
{
	size_t length = status->text_length;

	if (length > status->record.size - sizeof(*status) || status->phase < RING_PHASE_CONNECTED ||
	    status->phase > RING_PHASE_STOPPED || !take_string(convert, length))
		return drop(convert);
	if (length >= sizeof(convert->text))
		length = sizeof(convert->text) - 1;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = status->text[i];

		convert->text[i] = c < 0x20 || c == 0x7f ? ' ' : c;
	}
	convert->text[length] = '\0';
	convert->phase = status->phase;
	convert->status_error = status->error;
	return bridge_convert_state(convert, status->time_ns, status->phase, 0, convert->text, writer, error);
}

static int convert_name(struct bridge_convert *convert, const struct ring_name *name,
                        struct session_writer *writer, struct error *error)
{
	uint32_t length = name->length, *slot;

	if (length > name->record.size - sizeof(*name) || length > RING_MAX_NAME || name->id == 0 ||
	    name->id > BRIDGE_MAX_NAMES)
		return drop(convert);
	/* Ids are dense, but definitions may have been lost to a full ring: leave holes for them. */
	while (convert->names.count < name->id) {
		if (!array_add(&convert->names))
			return error_no_memory(error);
	}
	slot = &convert->names.items[name->id - 1];
	if (*slot || !take_string(convert, length)) /* a name is defined once */
		return drop(convert);
	*slot = session_writer_string(writer, name->name, length);
	return 0;
}

/* Finds or adds a GPU; returns its dense index or -1 if there are too many or memory ran out. */
static int find_device(struct bridge_tables *tables, const uint8_t uuid[16], uint32_t ordinal, bool *added)
{
	static const uint8_t unknown[16];
	struct bridge_device *device;

	*added = false;
	if (memcmp(uuid, unknown, sizeof(unknown)))
		ordinal = 0;
	for (size_t i = 0; i < tables->devices.count; i++) {
		device = &tables->devices.items[i];
		if (!memcmp(device->uuid, uuid, 16) && device->ordinal == ordinal)
			return i;
	}
	if (tables->devices.count == BRIDGE_MAX_DEVICES)
		return -1;
	device = array_add(&tables->devices);
	if (!device)
		return -1;
	memcpy(device->uuid, uuid, 16);
	device->ordinal = ordinal;
	*added = true;
	return tables->devices.count - 1;
}

static int convert_device(struct bridge_convert *convert, const struct ring_device *device,
                          struct session_writer *writer, struct error *error)
{
	struct record_device out = {
	    .header = RECORD_HEADER(RECORD_DEVICE, out),
	    .name = name_string(convert, device->name),
	    .sm_count = device->sm_count,
	    .compute_major = device->compute_major,
	    .compute_minor = device->compute_minor,
	    .simulated = convert->simulated,
	    .memory_bytes = device->memory_bytes,
	};
	bool added;
	int index;

	if (device->device >= BRIDGE_MAX_ORDINAL)
		return drop(convert);
	/* A bridge that came late tells the devices by itself, and CUPTI may tell the same again. */
	if (convert->devices[device->device])
		return memcmp(convert->tables->devices.items[convert->devices[device->device] - 1].uuid,
		              device->uuid, sizeof(device->uuid))
		           ? drop(convert)
		           : 0;
	index = find_device(convert->tables, device->uuid, device->device, &added);
	if (index < 0)
		return drop(convert);
	convert->devices[device->device] = index + 1;
	if (!added)
		return 0;
	out.device = index;
	memcpy(out.uuid, device->uuid, sizeof(out.uuid));
	return session_writer_put(writer, &out, error);
}

static int put_operation(struct bridge_convert *convert, struct record_gpu_op *op, uint32_t ordinal,
                         struct session_writer *writer, struct error *error)
{
	op->header.type = RECORD_GPU_OP;
	op->header.size = sizeof(*op);
	op->pid = convert->pid;
	if (!span_is_sane(convert, op->start_ns, op->end_ns) || !device_index(convert, ordinal, &op->device))
		return drop(convert);
	convert->operations++;
	return session_writer_put(writer, op, error);
}

static int convert_kernel(struct bridge_convert *convert, const struct ring_kernel *kernel,
                          struct session_writer *writer, struct error *error)
{
	struct record_gpu_op op = {
	    .start_ns = kernel->start_ns,
	    .end_ns = kernel->end_ns,
	    .context = kernel->context,
	    .stream = kernel->stream,
	    .correlation = kernel->correlation,
	    .kind = RECORD_OP_KERNEL,
	    .name = name_string(convert, kernel->name),
	    .graph = kernel->graph,
	    .graph_node = kernel->graph_node,
	};

	memcpy(op.grid, kernel->grid, sizeof(op.grid));
	memcpy(op.block, kernel->block, sizeof(op.block));
	return put_operation(convert, &op, kernel->device, writer, error);
}

static int convert_memcpy(struct bridge_convert *convert, const struct ring_memcpy *copy,
                          struct session_writer *writer, struct error *error)
{
	struct record_gpu_op op = {
	    .start_ns = copy->start_ns,
	    .end_ns = copy->end_ns,
	    .context = copy->context,
	    .stream = copy->stream,
	    .correlation = copy->correlation,
	    .kind = RECORD_OP_MEMCPY,
	    .graph = copy->graph,
	    .bytes = copy->bytes,
	    .copy_kind = copy->copy_kind,
	    .source_kind = copy->source_kind,
	    .target_kind = copy->target_kind,
	    .flags = copy->flags & 1 ? RECORD_OP_ASYNC : 0,
	};

	return put_operation(convert, &op, copy->device, writer, error);
}

static int convert_memset(struct bridge_convert *convert, const struct ring_memset *set,
                          struct session_writer *writer, struct error *error)
{
	struct record_gpu_op op = {
	    .start_ns = set->start_ns,
	    .end_ns = set->end_ns,
	    .context = set->context,
	    .stream = set->stream,
	    .correlation = set->correlation,
	    .kind = RECORD_OP_MEMSET,
	    .graph = set->graph,
	    .bytes = set->bytes,
	    .target_kind = set->memory_kind <= UINT8_MAX ? set->memory_kind : 0,
	};

	return put_operation(convert, &op, set->device, writer, error);
}

static int convert_api(struct bridge_convert *convert, const struct ring_api *api,
                       struct session_writer *writer, struct error *error)
{
	struct record_call call = {
	    .header = RECORD_HEADER(RECORD_CALL, call),
	    .enter_ns = api->start_ns,
	    .exit_ns = api->end_ns,
	    .pid = convert->pid,
	    .tid = host_tid(convert, api->tid),
	    .correlation = api->correlation,
	    .function = name_string(convert, api->function),
	    .source = RECORD_CALL_CUPTI,
	    .result = api->result,
	};

	if (!span_is_sane(convert, call.enter_ns, call.exit_ns) || !call.tid)
		return drop(convert);
	return session_writer_put(writer, &call, error);
}

static int convert_sync(struct bridge_convert *convert, const struct ring_sync *sync,
                        struct session_writer *writer, struct error *error)
{
	struct record_sync out = {
	    .header = RECORD_HEADER(RECORD_SYNC, out),
	    .start_ns = sync->start_ns,
	    .end_ns = sync->end_ns,
	    .pid = convert->pid,
	    .type = sync->type,
	    .context = sync->context,
	    .stream = sync->stream,
	    .correlation = sync->correlation,
	    .event = sync->event,
	};

	if (!span_is_sane(convert, out.start_ns, out.end_ns))
		return drop(convert);
	return session_writer_put(writer, &out, error);
}

static int convert_overhead(struct bridge_convert *convert, const struct ring_overhead *overhead,
                            struct session_writer *writer, struct error *error)
{
	struct record_overhead out = {
	    .header = RECORD_HEADER(RECORD_OVERHEAD, out),
	    .start_ns = overhead->start_ns,
	    .end_ns = overhead->end_ns,
	    .pid = convert->pid,
	    .tid = host_tid(convert, overhead->tid),
	    .kind = overhead->kind,
	};

	if (!span_is_sane(convert, out.start_ns, out.end_ns))
		return drop(convert);
	return session_writer_put(writer, &out, error);
}

static int convert_range(struct bridge_convert *convert, const struct ring_range *range,
                         struct session_writer *writer, struct error *error)
{
	struct record_range out = {
	    .header = RECORD_HEADER(RECORD_RANGE, out),
	    .start_ns = range->start_ns,
	    .end_ns = range->end_ns,
	    .pid = convert->pid,
	    .tid = host_tid(convert, range->tid),
	    .name = name_string(convert, range->name),
	    .domain = name_string(convert, range->domain),
	    .kind = range->kind == RING_RANGE_START_END ? RECORD_RANGE_START_END : RECORD_RANGE_PUSH_POP,
	};

	if (!span_is_sane(convert, out.start_ns, out.end_ns) || !out.tid)
		return drop(convert);
	return session_writer_put(writer, &out, error);
}

static int convert_loss(struct bridge_convert *convert, const struct ring_loss *loss,
                        struct session_writer *writer, struct error *error)
{
	uint64_t count = loss->count < MAX_LOSS_COUNT ? loss->count : MAX_LOSS_COUNT;
	uint64_t start = loss->start_ns, end = loss->end_ns, kept;

	if (start < convert->earliest_ns)
		start = convert->earliest_ns;
	if (end > convert->latest_ns)
		end = convert->latest_ns;
	if (start > end)
		return drop(convert);
	kept = end >= convert->from_ns ? count : 0;
	switch (loss->cause) {
	case RING_LOSS_RING:
		convert->lost_ring += count;
		return bridge_convert_loss(convert, RECORD_LOSS_BRIDGE_RING, start, end, kept, writer, error);
	case RING_LOSS_CUPTI:
		convert->lost_cupti += count;
		return bridge_convert_loss(convert, RECORD_LOSS_CUPTI, start, end, kept, writer, error);
	default:
		return drop(convert);
	}
}

/* Least size of each type; a newer bridge may append fields. */
static uint32_t least_size(uint16_t type)
{
	static const uint32_t sizes[] = {
	    [RING_HELLO] = sizeof(struct ring_hello),   [RING_STATUS] = sizeof(struct ring_status),
	    [RING_NAME] = sizeof(struct ring_name),     [RING_DEVICE] = sizeof(struct ring_device),
	    [RING_KERNEL] = sizeof(struct ring_kernel), [RING_MEMCPY] = sizeof(struct ring_memcpy),
	    [RING_MEMSET] = sizeof(struct ring_memset), [RING_API] = sizeof(struct ring_api),
	    [RING_SYNC] = sizeof(struct ring_sync),     [RING_OVERHEAD] = sizeof(struct ring_overhead),
	    [RING_LOSS] = sizeof(struct ring_loss),     [RING_RANGE] = sizeof(struct ring_range),
	};

	return type < sizeof(sizes) / sizeof(sizes[0]) ? sizes[type] : 0;
}

/* Every record of an operation, a call or a range begins alike. Losses are counted whenever they were. */
static bool ended_before(const struct ring_record *record, uint64_t from_ns)
{
	_Static_assert(offsetof(struct ring_memcpy, end_ns) == offsetof(struct ring_kernel, end_ns) &&
	                   offsetof(struct ring_memset, end_ns) == offsetof(struct ring_kernel, end_ns) &&
	                   offsetof(struct ring_api, end_ns) == offsetof(struct ring_kernel, end_ns) &&
	                   offsetof(struct ring_sync, end_ns) == offsetof(struct ring_kernel, end_ns) &&
	                   offsetof(struct ring_overhead, end_ns) == offsetof(struct ring_kernel, end_ns) &&
	                   offsetof(struct ring_range, end_ns) == offsetof(struct ring_kernel, end_ns),
	               "end_ns");
	switch (record->type) {
	case RING_KERNEL:
	case RING_MEMCPY:
	case RING_MEMSET:
	case RING_API:
	case RING_SYNC:
	case RING_OVERHEAD:
	case RING_RANGE:
		return ((const struct ring_kernel *)(const void *)record)->end_ns < from_ns;
	default:
		return false;
	}
}

int bridge_convert_record(struct bridge_convert *convert, const struct ring_record *record,
                          struct session_writer *writer, struct error *error)
{
	uint32_t least = least_size(record->type);
	const void *body = record;

	if (!least || record->size < least)
		return drop(convert);
	if (ended_before(record, convert->from_ns)) {
		convert->left_out++;
		return 0;
	}
	convert->records++;
	switch (record->type) {
	case RING_HELLO:
		return convert_hello(convert, body, writer, error);
	case RING_STATUS:
		return convert_status(convert, body, writer, error);
	case RING_NAME:
		return convert_name(convert, body, writer, error);
	case RING_DEVICE:
		return convert_device(convert, body, writer, error);
	case RING_KERNEL:
		return convert_kernel(convert, body, writer, error);
	case RING_MEMCPY:
		return convert_memcpy(convert, body, writer, error);
	case RING_MEMSET:
		return convert_memset(convert, body, writer, error);
	case RING_API:
		return convert_api(convert, body, writer, error);
	case RING_SYNC:
		return convert_sync(convert, body, writer, error);
	case RING_OVERHEAD:
		return convert_overhead(convert, body, writer, error);
	case RING_LOSS:
		return convert_loss(convert, body, writer, error);
	case RING_RANGE:
		return convert_range(convert, body, writer, error);
	default:
		return drop(convert);
	}
}

/* The ring's phases are those of the file, by number: neither may change one. */
_Static_assert((int)RECORD_BRIDGE_CONNECTED == (int)RING_PHASE_CONNECTED &&
                   (int)RECORD_BRIDGE_RUNNING == (int)RING_PHASE_RUNNING &&
                   (int)RECORD_BRIDGE_FAILED == (int)RING_PHASE_FAILED &&
                   (int)RECORD_BRIDGE_STOPPED == (int)RING_PHASE_STOPPED,
               "phases");

int bridge_convert_state(const struct bridge_convert *convert, uint64_t time_ns, uint32_t phase,
                         uint64_t bridge_ns, const char *text, struct session_writer *writer,
                         struct error *error)
{
	struct record_bridge out = {
	    .header = RECORD_HEADER(RECORD_BRIDGE, out),
	    .time_ns = time_ns,
	    .pid = convert->pid,
	    .phase = phase,
	    .error = convert->status_error,
	    .text = session_writer_cstring(writer, text),
	    .cupti_version = convert->cupti_version,
	    .cupti_path = convert->cupti_path,
	    .driver_version = convert->driver_version,
	    .simulated = convert->simulated,
	    .clock_error_ns = convert->clock_error_ns,
	    .bridge_ns = bridge_ns,
	};

	return session_writer_put(writer, &out, error);
}

int bridge_convert_loss(const struct bridge_convert *convert, uint32_t cause, uint64_t start_ns,
                        uint64_t end_ns, uint64_t count, struct session_writer *writer, struct error *error)
{
	struct record_loss out = {
	    .header = RECORD_HEADER(RECORD_LOSS, out),
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .count = count < MAX_LOSS_COUNT ? count : MAX_LOSS_COUNT,
	    .cause = cause,
	    .pid = convert->pid,
	};

	return count ? session_writer_put(writer, &out, error) : 0;
}
