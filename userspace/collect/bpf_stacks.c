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
static int write_stack(struct bpf_stacks *stacks, const uint64_t *frames, uint32_t count, uint32_t *id,
                       struct error *error)
{
	struct record_stack record = {.header = {.type = RECORD_STACK}, .kind = RECORD_STACK_KERNEL};
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++)
		err = write_symbol(stacks, frames[i], error);
	if (err)
		return err;
	*id = ++stacks->count;
	record.header.size = sizeof(record) + count * sizeof(*frames);
	record.id = *id;
	record.count = count;
	return session_writer_put_tail(stacks->writer, &record, sizeof(record), frames,
	                               count * sizeof(*frames), error);
}

/* Frames of a stack in the maps; 0 if it is not there. */
static uint32_t read_stack(const int fds[2], int32_t id, uint64_t frames[WIRE_STACK_DEPTH])
{
	uint32_t key = id & ~WIRE_STACK_SECOND, count = 0;

	memset(frames, 0, WIRE_STACK_DEPTH * sizeof(*frames));
	if (bpf_map_lookup_elem(fds[!!(id & WIRE_STACK_SECOND)], &key, frames))
		return 0;
	while (count < WIRE_STACK_DEPTH && frames[count])
		count++;
	return count;
}

/* The map's ids are stable (nothing is ever replaced), so each is read once. */
int bpf_stacks_kernel(struct bpf_stacks *stacks, int32_t id, uint32_t *record, struct error *error)
{
	uint64_t frames[WIRE_STACK_DEPTH], key = (uint32_t)id;
	uint32_t count;
	int err = 0;

	*record = 0;
	if (id < 0 || index_map_get(&stacks->kernel_ids, key, record))
		return 0;
	count = read_stack(stacks->kernel_fds, id, frames);
	if (count)
		err = write_stack(stacks, frames, count, record, error);
	if (index_map_put(&stacks->kernel_ids, key, *record) && !err)
		err = error_no_memory(error);
	return err;
}
