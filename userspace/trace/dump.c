/* SPDX-License-Identifier: GPL-2.0-only */
#include "trace/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "trace/layout.h"
#include "trace/session.h"

enum field_format {
	NUMBER,
	SIGNED,
	HEX,
	STRING, /* id of one */
	BYTES,
};

struct field {
	const char *name; /* NULL ends a list */
	uint16_t offset;
	uint8_t size; /* of one element */
	uint8_t count;
	enum field_format format;
};

#define LIST(record, field, elements, how)                                                                   \
	{                                                                                                    \
#field, offsetof(struct record_##record, field),                                             \
		    sizeof(((struct record_##record *)0)->field) / (elements), elements, how                 \
	}
#define FIELD(record, field, how) LIST(record, field, 1, how)
#define MAX_FIELDS                32

static const struct field fields[][MAX_FIELDS] = {
    [RECORD_STRING] = {FIELD(string, id, NUMBER)},
    [RECORD_INFO] = {FIELD(info, key, STRING), FIELD(info, value, STRING)},
    [RECORD_TASK] = {FIELD(task, time_ns, NUMBER), FIELD(task, pid, NUMBER), FIELD(task, tid, NUMBER),
                     FIELD(task, comm, STRING)},
    [RECORD_FORK] = {FIELD(fork, time_ns, NUMBER), FIELD(fork, parent_pid, NUMBER),
                     FIELD(fork, parent_tid, NUMBER), FIELD(fork, child_pid, NUMBER),
                     FIELD(fork, child_tid, NUMBER), FIELD(fork, comm, STRING),
                     FIELD(fork, namespace_tid, NUMBER)},
    [RECORD_EXEC] = {FIELD(exec, time_ns, NUMBER), FIELD(exec, pid, NUMBER), FIELD(exec, tid, NUMBER),
                     FIELD(exec, comm, STRING), FIELD(exec, filename, STRING), FIELD(exec, cmdline, STRING),
                     FIELD(exec, container, STRING), FIELD(exec, pod, STRING),
                     FIELD(exec, namespace_pid, NUMBER)},
    [RECORD_EXIT] = {FIELD(exit, time_ns, NUMBER), FIELD(exit, pid, NUMBER), FIELD(exit, tid, NUMBER),
                     FIELD(exit, exit_code, SIGNED), FIELD(exit, seq, NUMBER), FIELD(exit, faults, NUMBER)},
    [RECORD_OFFCPU] = {FIELD(offcpu, out_ns, NUMBER),
                       FIELD(offcpu, wake_ns, NUMBER),
                       FIELD(offcpu, in_ns, NUMBER),
                       FIELD(offcpu, pid, NUMBER),
                       FIELD(offcpu, tid, NUMBER),
                       FIELD(offcpu, waker_pid, NUMBER),
                       FIELD(offcpu, waker_tid, NUMBER),
                       FIELD(offcpu, next_tid, NUMBER),
                       FIELD(offcpu, prev_tid, NUMBER),
                       FIELD(offcpu, syscall, SIGNED),
                       FIELD(offcpu, waker_syscall, SIGNED),
                       LIST(offcpu, args, 4, HEX),
                       LIST(offcpu, waker_args, 2, HEX),
                       FIELD(offcpu, object, HEX),
                       FIELD(offcpu, waker_object, HEX),
                       FIELD(offcpu, kstack, NUMBER),
                       FIELD(offcpu, waker_kstack, NUMBER),
                       FIELD(offcpu, ustack, NUMBER),
                       FIELD(offcpu, state, HEX),
                       FIELD(offcpu, flags, HEX),
                       FIELD(offcpu, seq, NUMBER),
                       FIELD(offcpu, faults, NUMBER),
                       FIELD(offcpu, out_cpu, NUMBER),
                       FIELD(offcpu, in_cpu, NUMBER),
                       FIELD(offcpu, cpus_allowed, NUMBER),
                       FIELD(offcpu, path, STRING),
                       FIELD(offcpu, device, STRING),
                       FIELD(offcpu, lock_kind, NUMBER),
                       FIELD(offcpu, lock, HEX),
                       FIELD(offcpu, lock_holder, NUMBER)},
    [RECORD_SAMPLE] = {FIELD(sample, time_ns, NUMBER), FIELD(sample, pid, NUMBER), FIELD(sample, tid, NUMBER),
                       FIELD(sample, syscall, SIGNED), FIELD(sample, kstack, NUMBER),
                       FIELD(sample, ustack, NUMBER), FIELD(sample, flags, HEX),
                       FIELD(sample, faults, NUMBER), FIELD(sample, cpu, NUMBER), FIELD(sample, ip, HEX)},
    [RECORD_STACK] = {FIELD(stack, id, NUMBER), FIELD(stack, kind, NUMBER), FIELD(stack, pid, NUMBER),
                      FIELD(stack, flags, HEX)},
    [RECORD_SYMBOL] = {FIELD(symbol, address, HEX), FIELD(symbol, pid, NUMBER), FIELD(symbol, name, STRING),
                       FIELD(symbol, module, STRING), FIELD(symbol, file, STRING),
                       FIELD(symbol, line, NUMBER), FIELD(symbol, build_id, STRING),
                       FIELD(symbol, module_address, HEX), FIELD(symbol, inner, NUMBER)},
    [RECORD_MAPPING] = {FIELD(mapping, time_ns, NUMBER), FIELD(mapping, start, HEX), FIELD(mapping, end, HEX),
                        FIELD(mapping, offset, HEX), FIELD(mapping, inode, NUMBER),
                        FIELD(mapping, device_major, NUMBER), FIELD(mapping, device_minor, NUMBER),
                        FIELD(mapping, pid, NUMBER), FIELD(mapping, path, STRING),
                        FIELD(mapping, build_id, STRING)},
    [RECORD_DEVICE] = {FIELD(device, device, NUMBER), FIELD(device, name, STRING),
                       LIST(device, uuid, 16, BYTES), FIELD(device, sm_count, NUMBER),
                       FIELD(device, compute_major, NUMBER), FIELD(device, compute_minor, NUMBER),
                       FIELD(device, simulated, NUMBER), FIELD(device, memory_bytes, NUMBER)},
    [RECORD_GPU_OP] = {FIELD(gpu_op, start_ns, NUMBER), FIELD(gpu_op, end_ns, NUMBER),
                       FIELD(gpu_op, device, NUMBER), FIELD(gpu_op, pid, NUMBER),
                       FIELD(gpu_op, context, NUMBER), FIELD(gpu_op, stream, NUMBER),
                       FIELD(gpu_op, correlation, NUMBER), FIELD(gpu_op, kind, NUMBER),
                       FIELD(gpu_op, name, STRING), FIELD(gpu_op, graph, NUMBER),
                       FIELD(gpu_op, graph_node, NUMBER), FIELD(gpu_op, bytes, NUMBER),
                       FIELD(gpu_op, copy_kind, NUMBER), FIELD(gpu_op, source_kind, NUMBER),
                       FIELD(gpu_op, target_kind, NUMBER), FIELD(gpu_op, flags, HEX),
                       LIST(gpu_op, grid, 3, NUMBER), LIST(gpu_op, block, 3, NUMBER)},
    [RECORD_CALL] = {FIELD(call, enter_ns, NUMBER), FIELD(call, exit_ns, NUMBER), FIELD(call, pid, NUMBER),
                     FIELD(call, tid, NUMBER), FIELD(call, correlation, NUMBER),
                     FIELD(call, function, STRING), FIELD(call, source, NUMBER), FIELD(call, result, SIGNED),
                     FIELD(call, stream, HEX), FIELD(call, object, HEX), FIELD(call, known, HEX),
                     FIELD(call, work, HEX)},
    [RECORD_SYNC] = {FIELD(sync, start_ns, NUMBER), FIELD(sync, end_ns, NUMBER), FIELD(sync, pid, NUMBER),
                     FIELD(sync, type, NUMBER), FIELD(sync, context, NUMBER), FIELD(sync, stream, NUMBER),
                     FIELD(sync, correlation, NUMBER), FIELD(sync, event, NUMBER)},
    [RECORD_OVERHEAD] = {FIELD(overhead, start_ns, NUMBER), FIELD(overhead, end_ns, NUMBER),
                         FIELD(overhead, pid, NUMBER), FIELD(overhead, tid, NUMBER),
                         FIELD(overhead, kind, NUMBER)},
    [RECORD_LOSS] = {FIELD(loss, start_ns, NUMBER), FIELD(loss, end_ns, NUMBER), FIELD(loss, count, NUMBER),
                     FIELD(loss, cause, NUMBER), FIELD(loss, pid, NUMBER)},
    [RECORD_RANGE] = {FIELD(range, start_ns, NUMBER), FIELD(range, end_ns, NUMBER), FIELD(range, pid, NUMBER),
                      FIELD(range, tid, NUMBER), FIELD(range, name, STRING), FIELD(range, domain, STRING),
                      FIELD(range, kind, NUMBER)},
    [RECORD_STEAL] = {FIELD(steal, start_ns, NUMBER), FIELD(steal, end_ns, NUMBER), FIELD(steal, pid, NUMBER),
                      FIELD(steal, tid, NUMBER), FIELD(steal, cpu, NUMBER)},
    [RECORD_NCCL] = {FIELD(nccl, time_ns, NUMBER), FIELD(nccl, pid, NUMBER), FIELD(nccl, tid, NUMBER),
                     FIELD(nccl, function, NUMBER), FIELD(nccl, type, NUMBER), FIELD(nccl, comm, HEX),
                     FIELD(nccl, id, HEX), FIELD(nccl, number, NUMBER), FIELD(nccl, count, NUMBER),
                     FIELD(nccl, stream, HEX), FIELD(nccl, peer, NUMBER), FIELD(nccl, size, NUMBER),
                     FIELD(nccl, rank, NUMBER), FIELD(nccl, group, NUMBER)},
    [RECORD_BRIDGE] = {FIELD(bridge, time_ns, NUMBER), FIELD(bridge, pid, NUMBER),
                       FIELD(bridge, phase, NUMBER), FIELD(bridge, error, SIGNED),
                       FIELD(bridge, text, STRING), FIELD(bridge, cupti_version, NUMBER),
                       FIELD(bridge, cupti_path, STRING), FIELD(bridge, driver_version, NUMBER),
                       FIELD(bridge, simulated, NUMBER), FIELD(bridge, clock_error_ns, NUMBER),
                       FIELD(bridge, bridge_ns, NUMBER)},
    [RECORD_RANK] = {FIELD(rank, pid, NUMBER), FIELD(rank, rank, NUMBER), FIELD(rank, world_size, NUMBER)},
};

struct dump {
	FILE *out;
	struct index_map strings; /* id → index */
	struct {
		ARRAY(struct dump_string {
			char *bytes;
			uint32_t length;
		})
	} texts;
};

static void print_text(FILE *out, const char *text, uint32_t length)
{
	putc('"', out);
	for (uint32_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			fprintf(out, "\\x%02x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

static void print_string(const struct dump *dump, uint32_t id)
{
	uint32_t index;

	if (id && index_map_get(&dump->strings, id, &index))
		print_text(dump->out, dump->texts.items[index].bytes, dump->texts.items[index].length);
	else
		fprintf(dump->out, id ? "?%u" : "-", id);
}

static uint64_t element_value(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, bytes, size); /* little endian, as the file is */
	return value;
}

static void print_field(const struct dump *dump, const struct field *field, const uint8_t *record)
{
	fprintf(dump->out, " %s=", field->name);
	for (int i = 0; i < field->count; i++) {
		uint64_t value = element_value(record + field->offset + (size_t)i * field->size, field->size);

		if (i && field->format != BYTES)
			putc(',', dump->out);
		switch (field->format) {
		case NUMBER:
			fprintf(dump->out, "%" PRIu64, value);
			break;
		case SIGNED:
			fprintf(dump->out, "%d", (int32_t)value);
			break;
		case HEX:
			fprintf(dump->out, "%#" PRIx64, value);
			break;
		case STRING:
			print_string(dump, (uint32_t)value);
			break;
		case BYTES:
			fprintf(dump->out, "%02x", (unsigned int)value);
			break;
		}
	}
}

static int add_string(struct dump *dump, const struct record_string *string)
{
	struct dump_string *text = array_add(&dump->texts);

	if (!text)
		return -ENOMEM;
	text->bytes = malloc((size_t)string->length + 1);
	if (!text->bytes)
		return -ENOMEM;
	memcpy(text->bytes, string + 1, string->length);
	text->length = string->length;
	return index_map_put(&dump->strings, string->id, (uint32_t)(dump->texts.count - 1));
}

static int dump_record(void *context, const struct record_header *record)
{
	const uint8_t *bytes = (const uint8_t *)record;
	struct dump *dump = context;
	int rc = 0;

	fputs(record_layout_find(record->type)->name, dump->out);
	for (const struct field *field = fields[record->type]; field->name; field++) {
		if (field->offset + (uint32_t)field->size * field->count <= record->size)
			print_field(dump, field, bytes);
	}
	if (record->type == RECORD_STRING) {
		const struct record_string *string = (const void *)record;

		fputs(" text=", dump->out);
		print_text(dump->out, (const char *)(string + 1), string->length);
		rc = add_string(dump, string);
	} else if (record->type == RECORD_STACK) {
		const struct record_stack *stack = (const void *)record;
		const uint64_t *frames = (const uint64_t *)(stack + 1);

		fputs(" frames=", dump->out);
		for (uint32_t i = 0; i < stack->count; i++)
			fprintf(dump->out, "%s%#" PRIx64, i ? "," : "", frames[i]);
	}
	putc('\n', dump->out);
	if (!rc && ferror(dump->out))
		rc = -EIO;
	return rc;
}

static void dump_summary(FILE *out, const struct session_summary *summary)
{
	fprintf(out,
	        "# format %u, %" PRIu64 " records, %" PRIu64 " of unknown types, %" PRIu64 " lost; %" PRIu64
	        " chunks, %" PRIu64 " damaged, %" PRIu64 " bytes of no use; %s\n",
	        summary->version, summary->records, summary->unknown_records, summary->lost_records,
	        summary->chunks, summary->bad_chunks, summary->lost_bytes,
	        summary->complete ? "complete" : "no end mark");
}

int session_dump(const char *path, FILE *out, struct error *error)
{
	struct session_summary summary;
	struct dump dump = {.out = out};
	struct dump_string *text;
	int rc;

	if (error)
		error->code = 0;
	rc = session_read(path, dump_record, &dump, &summary, error);
	if (!rc)
		dump_summary(out, &summary);
	if (!rc && (fflush(out) || ferror(out)))
		rc = -EIO;
	/* What the visitor returned has no words yet. */
	if (rc == -ENOMEM)
		error_no_memory(error);
	else if (rc && error && !error->code)
		error_set(error, rc, "cannot write the text of %s", path);
	array_for_each (text, &dump.texts)
		free(text->bytes);
	array_free(&dump.texts);
	index_map_free(&dump.strings);
	return rc;
}
