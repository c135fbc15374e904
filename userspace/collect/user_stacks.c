// SPDX-License-Identifier: GPL-2.0-only
#include "collect/user_stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "collect/bpf_tasks.h"
#include "collect/data_names.h"
#include "collect/python_thread.h"
#include "symbols/unwind.h"

/* How often a process without an interpreter is looked at: it may still be about to load one. */
#define FIRST_LOOK_NS 20000000ULL
#define MAX_LOOKS     12

/* How long the name of a Python thread is taken to be the same. */
#define THREAD_NAME_S 5

/* Functions in which the interpreter runs Python functions: each call of one runs those up to an "entry". */
static const char interpreter_function[] = "_PyEval_EvalFrameDefault";

/* ---- interpreters ---- */

static struct python_state *python_get(struct user_stacks *stacks, uint32_t pid)
{
	struct python_state *state, **slot;
	uint32_t at;

	if (index_map_get(&stacks->python_by_pid, pid, &at))
		return stacks->pythons.items[at];
	state = calloc(1, sizeof(*state));
	slot = state ? array_add(&stacks->pythons) : NULL;
	if (!slot || index_map_put(&stacks->python_by_pid, pid, stacks->pythons.count - 1)) {
		if (slot)
			stacks->pythons.count--;
		free(state);
		return NULL;
	}
	state->pid = pid;
	*slot = state;
	return state;
}

static void python_reset(struct python_state *state, uint64_t next_ns)
{
	python_codes_free(&state->codes);
	index_map_free(&state->thread_read);
	index_map_free(&state->thread_name);
	state->found = false;
	state->looks = 0;
	state->next_ns = next_ns;
}

/* Looks for an interpreter and tells the BPF programs where it is. */
static void python_look(struct user_stacks *stacks, struct python_state *state, uint64_t now_ns)
{
	struct process_code *process = process_code_get(&stacks->code, state->pid);

	if (state->found || now_ns < state->next_ns || !process)
		return;
	process_code_refresh(process, now_ns);
	state->looks++;
	state->next_ns = state->looks >= MAX_LOOKS
	                     ? UINT64_MAX
	                     : now_ns + (FIRST_LOOK_NS << (state->looks > 7 ? 7 : state->looks));
	if (!process->read || !python_process_find(&stacks->code, process, &state->process))
		return;
	state->found = true;
	bpf_map_update_elem(stacks->python_fd, &state->pid, &state->process.frames, BPF_ANY);
}

void user_stacks_poll(struct user_stacks *stacks, uint64_t now_ns)
{
	struct python_state **state;

	array_for_each (state, &stacks->pythons) {
		if (!(*state)->found && now_ns >= (*state)->next_ns)
			python_look(stacks, *state, now_ns);
	}
}

void user_stacks_fork(struct user_stacks *stacks, uint32_t parent, uint32_t child)
{
	struct python_state *to, *from;
	uint32_t at;

	if (parent == child)
		return;
	process_code_fork(&stacks->code, parent, child);
	to = python_get(stacks, child);
	if (!to)
		return;
	python_reset(to, 0);
	if (!index_map_get(&stacks->python_by_pid, parent, &at))
		return;
	from = stacks->pythons.items[at];
	/* The BPF programs know already. */
	to->found = from->found;
	to->process = from->process;
	to->next_ns = from->next_ns;
}

void user_stacks_exec(struct user_stacks *stacks, uint32_t pid)
{
	struct python_state *state = python_get(stacks, pid);

	process_code_forget(&stacks->code, pid);
	if (state)
		python_reset(state, 0);
}

void user_stacks_exit(struct user_stacks *stacks, uint32_t pid)
{
	uint32_t at;

	process_code_forget(&stacks->code, pid);
	if (index_map_get(&stacks->python_by_pid, pid, &at))
		python_reset(stacks->pythons.items[at], UINT64_MAX);
}

/* ---- names ---- */

/* Names of the frames of one stack, as far as they are being made. */
struct builder {
	struct user_stacks *stacks;
	struct process_code *process;
	const struct python_state *python; /* NULL: none */
	const struct wire_python_frame *python_frames;
	uint32_t pid, space, python_count, python_used;
	uint64_t now_ns;
	uint64_t frames[USER_STACK_FRAMES];
	uint32_t count;
	struct error *error;
};

static bool rule_at(void *context, uint64_t address, struct unwind_rule *rule)
{
	struct builder *builder = context;
	struct code_place place;

	return process_code_find(&builder->stacks->code, builder->process, address, builder->now_ns,
	                         &place) &&
	       place.binary && binary_rule(place.binary, place.address, rule);
}

static bool code_at(void *context, uint64_t address)
{
	struct builder *builder = context;
	struct code_place place;

	return process_code_find(&builder->stacks->code, builder->process, address, builder->now_ns, &place);
}

/* Name of the function at an address, and where it is from; NULL if not known. */
static const char *function_at(struct builder *builder, uint64_t address, struct code_place *place)
{
	if (!process_code_find(&builder->stacks->code, builder->process, address, builder->now_ns, place))
		return NULL;
	if (place->binary)
		return binary_function(place->binary, place->address);
	return place->mapping->inode ? NULL : process_code_jit(builder->process, address, builder->now_ns);
}

static uint32_t place_string(struct user_stacks *stacks, const char *text)
{
	return text ? session_writer_cstring(stacks->writer, text) : 0;
}

/*
 * Writes the functions that were inlined at a place, the innermost first, which is places[0]; `serial`
 * becomes that of the outermost of them, 0 if there is none.
 */
static int write_inlined(struct builder *builder, const struct source_place *places, size_t count,
                         uint32_t module, uint32_t *serial)
{
	struct user_stacks *stacks = builder->stacks;
	int err = 0;

	*serial = 0;
	for (size_t i = 0; i < count && !err; i++) {
		struct record_symbol record = {
		    .header = {.type = RECORD_SYMBOL, .size = sizeof(record)},
		    .name = place_string(stacks, places[i].function),
		    .module = module,
		    .file = place_string(stacks, places[i].file),
		    .line = places[i].line > 0 ? places[i].line : 0,
		    .inner = *serial,
		};
		const uint32_t parts[] = {record.name, module, record.file, record.line, record.inner};
		uint64_t key = hash_bytes(parts, sizeof(parts));

		if (index_map_get(&stacks->inlined, key, serial))
			continue;
		*serial = ++stacks->inlined_count;
		if (index_map_put(&stacks->inlined, key, *serial))
			return error_no_memory(builder->error);
		record.address = RECORD_FRAME_INLINED | *serial;
		err = session_writer_put(stacks->writer, &record, builder->error);
	}
	return err;
}

/* Fills in what the debug information says of a frame. */
static int describe_source(struct builder *builder, const struct code_place *place,
                           struct record_symbol *record)
{
	struct source_place places[SOURCE_PLACES_MAX];
	size_t count = binary_places(place->binary, place->address, places);
	const struct source_place *own;

	if (!count)
		return 0;
	own = &places[count - 1];
	if (!record->name)
		record->name = place_string(builder->stacks, own->function);
	record->file = place_string(builder->stacks, own->file);
	record->line = own->line > 0 ? own->line : 0;
	return write_inlined(builder, places, count - 1, record->module, &record->inner);
}

#define SYMBOL_WITHOUT_NAME 1
#define SYMBOL_NAMED        2

/*
 * Writes the name of a native frame, unless that was done. `looked_up` is within the call. `interpreter`: it
 * is known to be of the interpreter's function, whatever names its file has.
 */
static int write_native_symbol(struct builder *builder, uint64_t address, uint64_t looked_up,
                               bool interpreter)
{
	struct user_stacks *stacks = builder->stacks;
	struct record_symbol record = {.header = {.type = RECORD_SYMBOL, .size = sizeof(record)}};
	uint64_t key = hash_mix(builder->space) ^ address;
	struct code_place place = {0};
	const char *name;
	uint32_t seen;
	int err = 0;

	if (!index_map_get(&stacks->symbols, key, &seen))
		stacks->frames++;
	else if (seen == SYMBOL_NAMED || !interpreter)
		return 0;
	else
		stacks->unnamed--;
	name = function_at(builder, looked_up, &place);
	if (!name && interpreter)
		name = interpreter_function;
	if (index_map_put(&stacks->symbols, key, name ? SYMBOL_NAMED : SYMBOL_WITHOUT_NAME))
		return error_no_memory(builder->error);
	record.address = address;
	record.pid = builder->space;
	/* The version that a symbol table may append to a name is no part of it. */
	record.name = name ? session_writer_string(stacks->writer, name, strcspn(name, "@")) : 0;
	if (place.mapping && *place.mapping->path)
		record.module = session_writer_cstring(stacks->writer, place.mapping->path);
	if (place.binary) {
		record.module_address = place.address;
		record.build_id = session_writer_cstring(stacks->writer, binary_build_id(place.binary));
		err = describe_source(builder, &place, &record);
	}
	stacks->unnamed += !record.name;
	return err ? err : session_writer_put(stacks->writer, &record, builder->error);
}

/* Serial number of a Python function and line, written when it is new; 0 if it cannot be named. */
static int python_serial(struct builder *builder, const struct wire_python_frame *frame, uint32_t *serial)
{
	struct user_stacks *stacks = builder->stacks;
	struct python_state *state = (struct python_state *)builder->python;
	const struct python_code_layout *layout = &state->process.code;
	uint64_t address = frame->code & ~WIRE_PYTHON_CODE_ENTRY, key, parts[3];
	struct record_symbol record = {.header = {.type = RECORD_SYMBOL, .size = sizeof(record)}};
	const struct python_code *code =
	    python_code_get(&state->codes, builder->pid, layout, address, builder->now_ns);

	*serial = 0;
	if (!code)
		return 0;
	record.name = session_writer_cstring(stacks->writer, code->name);
	record.file = session_writer_cstring(stacks->writer, code->file);
	record.line = python_code_line(code, layout, address, frame->position);
	parts[0] = record.name;
	parts[1] = record.file;
	parts[2] = record.line;
	key = hash_bytes(parts, sizeof(parts));
	if (index_map_get(&stacks->lines, key, serial))
		return 0;
	*serial = ++stacks->line_count;
	if (index_map_put(&stacks->lines, key, *serial))
		return error_no_memory(builder->error);
	record.address = RECORD_FRAME_INTERPRETED | *serial;
	return session_writer_put(stacks->writer, &record, builder->error);
}

uint32_t user_stacks_data_name(struct user_stacks *stacks, uint32_t pid, uint64_t address, bool shared)
{
	struct process_code *process = process_code_get(&stacks->code, pid);

	return process ? data_name(&stacks->code, process, address, shared, stacks->writer) : 0;
}

/* Writes what Python calls the thread, unless that was done. Main threads have the name of the process. */
static int write_thread_name(struct user_stacks *stacks, struct python_state *python,
                             const struct wire_stack *wire, uint64_t now_ns, struct error *error)
{
	struct record_task record = {.header = {.type = RECORD_TASK, .size = sizeof(record)},
	                             .time_ns = wire->time_ns,
	                             .pid = wire->tgid,
	                             .tid = wire->tid,
	                             .flags = RECORD_TASK_PYTHON};
	uint32_t second = (uint32_t)(now_ns / 1000000000), known;
	char *name;

	if (!wire->python_thread || wire->tid == wire->tgid ||
	    (index_map_get(&python->thread_read, wire->tid, &known) && second - known < THREAD_NAME_S))
		return 0;
	if (index_map_put(&python->thread_read, wire->tid, second))
		return error_no_memory(error);
	name = python_thread_name(wire->tgid, &python->process, wire->python_thread);
	if (!name)
		return 0;
	record.comm = session_writer_cstring(stacks->writer, name);
	free(name);
	if (index_map_get(&python->thread_name, wire->tid, &known) && known == record.comm)
		return 0;
	if (index_map_put(&python->thread_name, wire->tid, record.comm))
		return error_no_memory(error);
	return session_writer_put(stacks->writer, &record, error);
}

/* ---- stacks ---- */

static void add_frame(struct builder *builder, uint64_t frame)
{
	if (builder->count < USER_STACK_FRAMES)
		builder->frames[builder->count++] = frame;
}

/* Adds Python frames: those of one call of the interpreter, or all that are left. */
static int add_python(struct builder *builder, bool all)
{
	bool entered = false;

	while (builder->python_used < builder->python_count) {
		const struct wire_python_frame *frame = &builder->python_frames[builder->python_used];
		uint32_t serial;
		int err;

		if (frame->code == WIRE_PYTHON_CODE_NATIVE) {
			builder->python_used++;
			entered = true;
			continue;
		}
		if (entered && !all)
			return 0;
		builder->python_used++;
		err = python_serial(builder, frame, &serial);
		if (err)
			return err;
		if (serial)
			add_frame(builder, RECORD_FRAME_INTERPRETED | serial);
		entered = frame->code & WIRE_PYTHON_CODE_ENTRY;
	}
	return 0;
}

/* Where the next Python frames that are left were entered from native code, by their own word; 0: not known.
 */
static uint64_t next_entry(const struct builder *builder)
{
	for (uint32_t i = builder->python_used; i < builder->python_count; i++) {
		if (builder->python_frames[i].code == WIRE_PYTHON_CODE_NATIVE)
			return builder->python_frames[i].position;
	}
	return 0;
}

/*
 * Whether native frame `index` is the interpreter's: it has the entry of the next Python frames in it, or its
 * function has that name. (Of a file without symbols most parts of that function have none: compilers split
 * it.)
 */
static bool is_interpreter(struct builder *builder, const uint64_t *pointers, size_t index, size_t count,
                           uint64_t looked_up)
{
	struct code_place place;
	const char *name;
	uint64_t entry;

	if (!builder->python || builder->python_used >= builder->python_count)
		return false;
	entry = next_entry(builder);
	if (index + 1 < count && entry >= pointers[index] && entry < pointers[index + 1])
		return true;
	name = function_at(builder, looked_up, &place);
	return name && !strncmp(name, interpreter_function, sizeof(interpreter_function) - 1);
}

/* Puts the native frames and, in the place of the interpreter's, the Python frames in order. */
static int build(struct builder *builder, const uint64_t *native, const uint64_t *pointers, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		uint64_t looked_up = native[i] - (i > 0);

		bool interpreter = is_interpreter(builder, pointers, i, count, looked_up);

		if (interpreter)
			err = add_python(builder, false);
		err = err ?: write_native_symbol(builder, native[i], looked_up, interpreter);
		add_frame(builder, native[i]);
	}
	/* What could not be placed, because the native stack ends early, is further out. */
	return err ?: add_python(builder, true);
}

static int write_stack(struct builder *builder, uint32_t flags, uint32_t *id)
{
	struct user_stacks *stacks = builder->stacks;
	size_t bytes = builder->count * sizeof(builder->frames[0]);
	struct record_stack record = {
	    .header = {.type = RECORD_STACK, .size = sizeof(record) + bytes},
	    .kind = RECORD_STACK_USER,
	    .pid = builder->space,
	    .count = builder->count,
	    .flags = flags,
	};
	uint64_t key = hash_bytes(builder->frames, bytes) ^ hash_mix(builder->space) ^ flags;

	if (index_map_get(&stacks->ids, key, id))
		return 0;
	*id = ++*stacks->count;
	if (index_map_put(&stacks->ids, key, *id))
		return error_no_memory(builder->error);
	record.id = *id;
	return session_writer_put_tail(stacks->writer, &record, sizeof(record), builder->frames, bytes,
	                               builder->error);
}

static uint32_t stack_flags(const struct wire_stack *wire, bool complete)
{
	uint32_t flags = complete && !(wire->flags & WIRE_STACK_PYTHON_CUT) ? 0 : RECORD_STACK_CUT;

	return wire->flags & WIRE_STACK_COLLECTING ? flags | RECORD_STACK_COLLECTING : flags;
}

static int keep_pending(struct user_stacks *stacks, uint32_t tid, uint64_t time_ns, uint32_t id,
                        struct error *error)
{
	uint32_t at;

	if (!index_map_get(&stacks->pending, tid, &at)) {
		if (!array_add(&stacks->waiting))
			return error_no_memory(error);
		at = stacks->waiting.count - 1;
		if (index_map_put(&stacks->pending, tid, at))
			return error_no_memory(error);
	}
	stacks->waiting.items[at] = (struct pending_stack){time_ns, id};
	return 0;
}

uint32_t user_stacks_take(struct user_stacks *stacks, uint32_t tid, uint64_t time_ns)
{
	uint32_t at, id = 0;

	if (index_map_get(&stacks->pending, tid, &at) && stacks->waiting.items[at].time_ns == time_ns) {
		id = stacks->waiting.items[at].id;
		stacks->waiting.items[at].id = 0;
	}
	return id;
}

int user_stacks_add(struct user_stacks *stacks, const struct wire_stack *wire, size_t size,
                    struct error *error)
{
	struct builder builder = {.stacks = stacks, .pid = wire->tgid, .error = error};
	const uint8_t *data = (const uint8_t *)(wire + 1);
	size_t python_bytes = wire->python_count * sizeof(struct wire_python_frame), count;
	struct unwind_input input = {.ip = wire->ip,
	                             .sp = wire->sp,
	                             .bp = wire->bp,
	                             .link = wire->link,
	                             .rule = rule_at,
	                             .code = code_at,
	                             .context = &builder};
	uint64_t native[USER_STACK_FRAMES], pointers[USER_STACK_FRAMES];
	struct python_state *python;
	bool complete;
	uint32_t id;
	int err;

	if (wire->python_count > WIRE_PYTHON_DEPTH || wire->stack_bytes > WIRE_STACK_BYTES ||
	    sizeof(*wire) + python_bytes + wire->stack_bytes > size)
		return 0;
	builder.now_ns = clock_ns(CLOCK_MONOTONIC);
	builder.process = process_code_get(&stacks->code, wire->tgid);
	python = python_get(stacks, wire->tgid);
	if (!builder.process || !python)
		return error_no_memory(error);
	if (python->found) {
		builder.python = python;
		builder.python_frames = (const struct wire_python_frame *)data;
		builder.python_count = wire->python_count;
		err = write_thread_name(stacks, python, wire, builder.now_ns, error);
		if (err)
			return err;
	}
	input.stack = data + python_bytes;
	input.stack_bytes = wire->stack_bytes;
	count = unwind(&input, native, pointers, USER_STACK_FRAMES, &complete);
	stacks->unwound++;
	stacks->incomplete += !complete;
	builder.space = process_code_space(&stacks->code, builder.process);
	err = build(&builder, native, pointers, count);
	if (!err)
		err = write_stack(&builder, stack_flags(wire, complete), &id);
	return err ? err : keep_pending(stacks, wire->tid, wire->time_ns, id, error);
}

void user_stacks_free(struct user_stacks *stacks)
{
	struct python_state **state;

	processes_code_free(&stacks->code);
	array_for_each (state, &stacks->pythons) {
		python_reset(*state, 0);
		free(*state);
	}
	array_free(&stacks->pythons);
	index_map_free(&stacks->python_by_pid);
	index_map_free(&stacks->ids);
	index_map_free(&stacks->symbols);
	index_map_free(&stacks->lines);
	index_map_free(&stacks->inlined);
	index_map_free(&stacks->pending);
	array_free(&stacks->waiting);
}
