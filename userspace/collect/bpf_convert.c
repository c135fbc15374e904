/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_convert.h"

#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "bpf/events.h"
#include "collect/bpf_tasks.h"

#define MIN_NAMED_NS 100000

static const uint16_t wire_sizes[] = {
    [WIRE_OFFCPU] = sizeof(struct wire_offcpu), [WIRE_SAMPLE] = sizeof(struct wire_sample),
    [WIRE_TASK] = sizeof(struct wire_task),     [WIRE_FORK] = sizeof(struct wire_fork),
    [WIRE_EXEC] = sizeof(struct wire_exec),     [WIRE_EXIT] = sizeof(struct wire_exit),
    [WIRE_CALL] = sizeof(struct wire_call),     [WIRE_STACK] = sizeof(struct wire_stack),
    [WIRE_FILE] = sizeof(struct wire_file),     [WIRE_CALLER] = sizeof(struct wire_caller),
    [WIRE_STEAL] = sizeof(struct wire_steal),   [WIRE_NCCL] = sizeof(struct wire_nccl),
};

static uint32_t string_id(struct bpf_converter *converter, const char *text, size_t room)
{
	return session_writer_string(converter->writer, text, strnlen(text, room));
}

static uint32_t convert_flags(uint32_t flags)
{
	return (flags & WIRE_OFFCPU_PREEMPTED ? RECORD_OFFCPU_PREEMPTED : 0) |
	       (flags & WIRE_OFFCPU_IOWAIT ? RECORD_OFFCPU_IOWAIT : 0) |
	       (flags & WIRE_OFFCPU_OPEN ? RECORD_OFFCPU_OPEN : 0) |
	       (flags & WIRE_OFFCPU_WOKEN ? RECORD_OFFCPU_WOKEN : 0) |
	       (flags & WIRE_OFFCPU_THROTTLED ? RECORD_OFFCPU_THROTTLED : 0) |
	       (flags & WIRE_OFFCPU_BOUND ? RECORD_OFFCPU_BOUND : 0);
}

static enum record_lock_kind lock_kind(uint32_t kind)
{
	static const uint8_t kinds[] = {
	    [WIRE_LOCK_CONDITION] = RECORD_LOCK_CONDITION, [WIRE_LOCK_SEMAPHORE] = RECORD_LOCK_SEMAPHORE,
	    [WIRE_LOCK_JOIN] = RECORD_LOCK_JOIN,           [WIRE_LOCK_READ] = RECORD_LOCK_READ,
	    [WIRE_LOCK_WRITE] = RECORD_LOCK_WRITE,         [WIRE_LOCK_MUTEX] = RECORD_LOCK_MUTEX,
	};

	return kind < sizeof(kinds) ? kinds[kind] : 0;
}

/* What a wait is about: for what of several became ready, the file, or where the futex lies. */
static uint32_t object_name(struct bpf_converter *converter, const struct wire_offcpu *wire)
{
	uint32_t name = bpf_files_name(&converter->files, wire->ready);

	if (!name)
		name = bpf_files_name(&converter->files, wire->file);
	/* A short wait is not worth a look at where things lie. */
	if (!name && wire->syscall == SYS_futex && wire->in_ns - wire->out_ns >= MIN_NAMED_NS)
		name = user_stacks_data_name(converter->user_stacks, wire->tgid, wire->args[0],
		                             !(wire->args[1] & FUTEX_PRIVATE_FLAG));
	return name;
}

static int convert_offcpu(struct bpf_converter *converter, const struct wire_offcpu *wire,
                          struct error *error)
{
	struct record_offcpu record = {
	    .header = {.type = RECORD_OFFCPU, .size = sizeof(record)},
	    .out_ns = wire->out_ns,
	    .wake_ns = wire->wake_ns,
	    .in_ns = wire->in_ns,
	    .pid = wire->tgid,
	    .tid = wire->tid,
	    .waker_pid = wire->waker_tgid,
	    .waker_tid = wire->waker_tid,
	    .next_tid = wire->next_tid,
	    .prev_tid = wire->prev_tid,
	    .syscall = wire->syscall,
	    .waker_syscall = wire->waker_syscall,
	    .object = wire->object,
	    .waker_object = wire->waker_object,
	    .state = wire->state,
	    .flags = convert_flags(wire->flags),
	    .seq = wire->seq,
	    .faults = wire->faults,
	    .out_cpu = wire->out_cpu,
	    .in_cpu = wire->in_cpu,
	    .cpus_allowed = wire->cpus_allowed,
	    .path = object_name(converter, wire),
	    .device = bpf_files_device(&converter->files, wire->file),
	    .lock_kind = lock_kind(wire->lock_kind),
	    .lock = wire->lock,
	    .lock_holder = wire->lock_holder,
	};
	int err;

	_Static_assert(sizeof(record.args) == sizeof(wire->args), "args");
	memcpy(record.args, wire->args, sizeof(record.args));
	memcpy(record.waker_args, wire->waker_args, sizeof(record.waker_args));
	err = bpf_stacks_kernel(converter->stacks, wire->kstack, &record.kstack, error);
	if (!err)
		err = bpf_stacks_kernel(converter->stacks, wire->waker_kstack, &record.waker_kstack, error);
	if (wire->has_stack)
		record.ustack = user_stacks_take(converter->user_stacks, wire->tid, wire->out_ns);
	return err ? err : session_writer_put(converter->writer, &record, error);
}

static int convert_sample(struct bpf_converter *converter, const struct wire_sample *wire,
                          struct error *error)
{
	struct record_sample record = {
	    .header = {.type = RECORD_SAMPLE, .size = sizeof(record)},
	    .time_ns = wire->time_ns,
	    .pid = wire->tgid,
	    .tid = wire->tid,
	    .syscall = wire->syscall,
	    .flags = (wire->flags & WIRE_SAMPLE_USER ? RECORD_SAMPLE_USER : 0) |
	             (wire->flags & WIRE_SAMPLE_FAULT ? RECORD_SAMPLE_FAULT : 0),
	    .faults = wire->faults,
	    .cpu = wire->header.cpu,
	    .ip = wire->ip,
	};
	int err = bpf_stacks_kernel(converter->stacks, wire->kstack, &record.kstack, error);

	if (wire->has_stack)
		record.ustack = user_stacks_take(converter->user_stacks, wire->tid, wire->time_ns);
	return err ? err : session_writer_put(converter->writer, &record, error);
}

static int convert_steal(struct bpf_converter *converter, const struct wire_steal *wire, struct error *error)
{
	struct record_steal record = {
	    .header = {.type = RECORD_STEAL, .size = sizeof(record)},
	    .start_ns = wire->start_ns,
	    .end_ns = wire->end_ns,
	    .pid = wire->tgid,
	    .tid = wire->tid,
	    .cpu = wire->header.cpu,
	};

	return session_writer_put(converter->writer, &record, error);
}

static int convert_nccl(struct bpf_converter *converter, const struct wire_nccl *wire, struct error *error)
{
	static const uint8_t functions[] = {
	    [WIRE_NCCL_ALL_REDUCE] = RECORD_NCCL_ALL_REDUCE,
	    [WIRE_NCCL_REDUCE] = RECORD_NCCL_REDUCE,
	    [WIRE_NCCL_BROADCAST] = RECORD_NCCL_BROADCAST,
	    [WIRE_NCCL_ALL_GATHER] = RECORD_NCCL_ALL_GATHER,
	    [WIRE_NCCL_REDUCE_SCATTER] = RECORD_NCCL_REDUCE_SCATTER,
	    [WIRE_NCCL_ALL_TO_ALL] = RECORD_NCCL_ALL_TO_ALL,
	    [WIRE_NCCL_GATHER] = RECORD_NCCL_GATHER,
	    [WIRE_NCCL_SCATTER] = RECORD_NCCL_SCATTER,
	    [WIRE_NCCL_SEND] = RECORD_NCCL_SEND,
	    [WIRE_NCCL_RECV] = RECORD_NCCL_RECV,
	    [WIRE_NCCL_BCAST] = RECORD_NCCL_BROADCAST,
	    [WIRE_NCCL_GROUP_END] = RECORD_NCCL_GROUP_END,
	    [WIRE_NCCL_INIT] = RECORD_NCCL_CREATE,
	    [WIRE_NCCL_INIT_SCALABLE] = RECORD_NCCL_CREATE,
	    [WIRE_NCCL_SPLIT] = RECORD_NCCL_CREATE,
	    [WIRE_NCCL_DESTROY] = RECORD_NCCL_DESTROY,
	};
	struct record_nccl record = {
	    .header = {.type = RECORD_NCCL, .size = sizeof(record)},
	    .time_ns = wire->time_ns,
	    .pid = wire->tgid,
	    .tid = wire->tid,
	    .type = wire->type,
	    .comm = wire->comm,
	    .id = wire->id,
	    .number = wire->number,
	    .count = wire->count,
	    .stream = wire->stream,
	    .peer = wire->peer,
	    .size = wire->size,
	    .rank = wire->rank,
	    .group = wire->group,
	};

	if (wire->function >= sizeof(functions) || !functions[wire->function]) {
		converter->invalid++;
		return 0;
	}
	record.function = functions[wire->function];
	return session_writer_put(converter->writer, &record, error);
}

static int convert_task(struct bpf_converter *converter, const struct wire_task *wire, struct error *error)
{
	struct record_task record = {
	    .header = {.type = RECORD_TASK, .size = sizeof(record)},
	    .time_ns = wire->time_ns,
	    .pid = wire->tgid,
	    .tid = wire->tid,
	    .comm = string_id(converter, wire->comm, sizeof(wire->comm)),
	};

	return session_writer_put(converter->writer, &record, error);
}

static int convert_fork(struct bpf_converter *converter, const struct wire_fork *wire, struct error *error)
{
	struct record_fork record = {
	    .header = {.type = RECORD_FORK, .size = sizeof(record)},
	    .time_ns = wire->time_ns,
	    .parent_pid = wire->parent_tgid,
	    .parent_tid = wire->parent_tid,
	    .child_pid = wire->child_tgid,
	    .child_tid = wire->child_tid,
	    .comm = string_id(converter, wire->comm, sizeof(wire->comm)),
	    .namespace_tid = wire->namespace_tid == wire->child_tid ? 0 : wire->namespace_tid,
	};

	user_stacks_fork(converter->user_stacks, wire->parent_tgid, wire->child_tgid);
	return session_writer_put(converter->writer, &record, error);
}

/*
 * The arguments at the exec. Where there are more than the record holds, the process is asked for all, which
 * may have gone since, or have executed something else.
 */
static void exec_cmdline(const struct wire_exec *wire, char text[TASKS_CMDLINE])
{
	size_t length = wire->cmdline_bytes < WIRE_CMDLINE_LEN ? wire->cmdline_bytes : WIRE_CMDLINE_LEN;
	char start[WIRE_CMDLINE_LEN + 1];

	memcpy(start, wire->cmdline, length);
	start[length] = '\0';
	bpf_tasks_join(start, length);
	if (length && length < WIRE_CMDLINE_LEN) {
		snprintf(text, TASKS_CMDLINE, "%s", start);
		return;
	}
	bpf_tasks_cmdline(wire->tgid, text);
	if (strncmp(text, start, strlen(start)) != 0)
		snprintf(text, TASKS_CMDLINE, "%s…", start);
}

static int convert_exec(struct bpf_converter *converter, const struct wire_exec *wire, struct error *error)
{
	char cmdline[TASKS_CMDLINE];
	struct record_exec record = {
	    .header = {.type = RECORD_EXEC, .size = sizeof(record)},
	    .time_ns = wire->time_ns,
	    .pid = wire->tgid,
	    .tid = wire->tid,
	    .comm = string_id(converter, wire->comm, sizeof(wire->comm)),
	    .filename = string_id(converter, wire->filename, sizeof(wire->filename)),
	};

	user_stacks_exec(converter->user_stacks, wire->tgid);
	exec_cmdline(wire, cmdline);
	record.cmdline = session_writer_cstring(converter->writer, cmdline);
	bpf_tasks_place(&record, converter->writer);
	return session_writer_put(converter->writer, &record, error);
}

static int convert_exit(struct bpf_converter *converter, const struct wire_exit *wire, struct error *error)
{
	struct record_exit record = {
	    .header = {.type = RECORD_EXIT, .size = sizeof(record)},
	    .time_ns = wire->time_ns,
	    .pid = wire->tgid,
	    .tid = wire->tid,
	    .exit_code = wire->exit_code,
	    .seq = wire->seq,
	    .faults = wire->faults,
	};

	if (wire->tid == wire->tgid)
		user_stacks_exit(converter->user_stacks, wire->tgid);
	return session_writer_put(converter->writer, &record, error);
}

static int convert_call(struct bpf_converter *converter, const struct wire_call *wire, struct error *error)
{
	struct record_call record = {
	    .header = {.type = RECORD_CALL, .size = sizeof(record)},
	    .enter_ns = wire->enter_ns,
	    .exit_ns = wire->exit_ns,
	    .pid = wire->tgid,
	    .tid = wire->tid,
	    .source = RECORD_CALL_UPROBE,
	    .stream = wire->stream,
	    .object = wire->object,
	    .known = (wire->known & WIRE_CALL_STREAM ? RECORD_CALL_STREAM : 0) |
	             (wire->known & WIRE_CALL_OBJECT ? RECORD_CALL_OBJECT : 0) |
	             (wire->known & WIRE_CALL_WORK ? RECORD_CALL_WORK : 0) |
	             (wire->known & WIRE_CALL_RESULT ? RECORD_CALL_RESULT : 0),
	    .work = wire->work,
	    .threads = wire->threads,
	    .result = wire->result,
	};

	if (wire->function >= converter->function_count) {
		converter->invalid++;
		return 0;
	}
	record.function = session_writer_cstring(converter->writer, converter->functions[wire->function]);
	return session_writer_put(converter->writer, &record, error);
}

/* It may have gone by the time its /proc is read: so its one known thread first. */
static int convert_caller(struct bpf_converter *converter, const struct wire_caller *wire,
                          struct error *error)
{
	struct record_fork record = {
	    .header = {.type = RECORD_FORK, .size = sizeof(record)},
	    .time_ns = wire->time_ns,
	    .child_pid = wire->tgid,
	    .child_tid = wire->tid,
	    .comm = string_id(converter, wire->comm, sizeof(wire->comm)),
	};
	int err = 0;

	if (wire->tid != wire->tgid)
		record.parent_pid = wire->tgid;
	if (wire->tracked)
		err = session_writer_put(converter->writer, &record, error);
	if (converter->callers && converter->callers->called)
		converter->callers->called(converter->callers->context, wire->tgid);
	return err;
}

int bpf_convert(struct bpf_converter *converter, const void *data, size_t size, struct error *error)
{
	const struct wire_header *header = data;

	if (size < sizeof(*header) || header->type >= sizeof(wire_sizes) / sizeof(wire_sizes[0]) ||
	    !wire_sizes[header->type] || size < header->size ||
	    (header->type == WIRE_STACK ? header->size < wire_sizes[header->type]
	                                : header->size != wire_sizes[header->type])) {
		converter->invalid++;
		return 0;
	}
	switch (header->type) {
	case WIRE_OFFCPU:
		return convert_offcpu(converter, data, error);
	case WIRE_SAMPLE:
		return convert_sample(converter, data, error);
	case WIRE_TASK:
		return convert_task(converter, data, error);
	case WIRE_FORK:
		return convert_fork(converter, data, error);
	case WIRE_EXEC:
		return convert_exec(converter, data, error);
	case WIRE_STACK:
		return user_stacks_add(converter->user_stacks, data, header->size, error);
	case WIRE_FILE:
		return bpf_files_add(&converter->files, data, converter->writer, error);
	case WIRE_EXIT:
		return convert_exit(converter, data, error);
	case WIRE_CALLER:
		return convert_caller(converter, data, error);
	case WIRE_STEAL:
		return convert_steal(converter, data, error);
	case WIRE_NCCL:
		return convert_nccl(converter, data, error);
	default:
		return convert_call(converter, data, error);
	}
}
