/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_stacks.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "bpf/events.h"

int bpf_stacks_init(struct bpf_stacks *stacks)
{
	return kernel_symbols_load(&stacks->symbols);
}

void bpf_stacks_free(struct bpf_stacks *stacks)
{
	kernel_symbols_free(&stacks->symbols);
	index_map_free(&stacks->kernel_ids);
	index_map_free(&stacks->user_ids);
	index_map_free(&stacks->addresses);
}

static int write_symbol(struct bpf_stacks *stacks, uint64_t address, struct error *error)
{
	struct record_symbol record = {.header = {.type = RECORD_SYMBOL, .size = sizeof(record)}};
	const char *name, *module;
	uint32_t seen;

	if (index_map_get(&stacks->addresses, address, &seen))
		return 0;
	if (index_map_put(&stacks->addresses, address, 1))
		return error_no_memory(error);
	name = kernel_symbols_find(&stacks->symbols, address, &module);
	if (!name)
		return 0;
	record.address = address;
	record.name = session_writer_cstring(stacks->writer, name);
	record.module = session_writer_cstring(stacks->writer, module);
	return session_writer_put(stacks->writer, &record, error);
}

/* Writes a new stack of `count` frames and gives its id. */
static int write_stack(struct bpf_stacks *stacks, uint32_t kind, uint32_t pid, const uint64_t *frames,
                       uint32_t count, uint32_t *id, struct error *error)
{
	struct record_stack record = {.header = {.type = RECORD_STACK}};
	int err = 0;

	for (uint32_t i = 0; i < count && !err && kind == RECORD_STACK_KERNEL; i++)
		err = write_symbol(stacks, frames[i], error);
	if (err)
		return err;
	*id = ++stacks->count;
	record.header.size = sizeof(record) + count * sizeof(*frames);
	record.id = *id;
	record.kind = kind;
	record.pid = pid;
	record.count = count;
	return session_writer_put_tail(stacks->writer, &record, sizeof(record), frames,
	                               count * sizeof(*frames), error);
}

/* Frames of a stack in the map of a kind; 0 if it is not there. `frames` holds the depth of that kind. */
static uint32_t read_stack(const int fds[2], int32_t id, uint64_t *frames, uint32_t depth)
{
	uint32_t key = id & ~WIRE_STACK_SECOND, count = 0;

	memset(frames, 0, depth * sizeof(*frames));
	if (bpf_map_lookup_elem(fds[!!(id & WIRE_STACK_SECOND)], &key, frames))
		return 0;
	while (count < depth && frames[count])
		count++;
	return count;
}

/* The map's ids are stable (nothing is ever replaced), so each is read once. */
static int resolve(struct bpf_stacks *stacks, struct index_map *ids, uint64_t key, uint32_t kind,
                   uint32_t pid, int32_t id, uint32_t *record, struct error *error)
{
	bool user = kind == RECORD_STACK_USER;
	uint32_t depth = user ? WIRE_USTACK_DEPTH : WIRE_STACK_DEPTH, count;
	uint64_t frames[WIRE_USTACK_DEPTH];
	int err = 0;

	*record = 0;
	if (id < 0 || index_map_get(ids, key, record))
		return 0;
	count = read_stack(user ? stacks->user_fds : stacks->kernel_fds, id, frames, depth);
	if (count)
		err = write_stack(stacks, kind, pid, frames, count, record, error);
	if (index_map_put(ids, key, *record) && !err)
		err = error_no_memory(error);
	return err;
}

int bpf_stacks_kernel(struct bpf_stacks *stacks, int32_t id, uint32_t *record, struct error *error)
{
	return resolve(stacks, &stacks->kernel_ids, (uint32_t)id, RECORD_STACK_KERNEL, 0, id, record, error);
}

int bpf_stacks_user(struct bpf_stacks *stacks, uint32_t pid, int32_t id, uint32_t *record,
                    struct error *error)
{
	uint64_t key = (uint64_t)pid << 32 | (uint32_t)id;

	return resolve(stacks, &stacks->user_ids, key, RECORD_STACK_USER, pid, id, record, error);
}
