// SPDX-License-Identifier: GPL-2.0-only
#include "collect/pure_python_layout.h"

#include <string.h>

#define MOST_CODE 4096 /* bytes of a code object in front of its code */

/*
 * Offsets of release builds on 64-bit machines, from the headers of 3.9.18, 3.10.13, 3.11.7 and 3.12.1, with
 * offsetof. They have been the same in all releases of a minor version.
 */
static const struct python_process versions[] = {
    {
        .version = 0x309,
        .objects = {PYTHON_ATTRIBUTES_DICT, 360, 864},
        .frames = {.interpreters_head = 32,
                   .threads_head = 8,
                   .thread_next = 8,
                   .thread_id = 176,
                   .thread_frame = 24,
                   .frame_previous = 24,
                   .frame_code = 32,
                   .frame_position = 104,
                   .thread_interpreter = 16,
                   .collecting = 816,
                   .holder = 360,
                   .flags = WIRE_PYTHON_OBJECTS | WIRE_PYTHON_INDEX | WIRE_PYTHON_RUNTIME_LOCK},
        .code = {.filename = 104,
                 .name = 112,
                 .first_line = 40,
                 .table = 120,
                 .position_unit = 1,
                 .lines = PYTHON_LINES_LNOTAB,
                 .text_header = 48,
                 .wide_text_header = 72,
                 .text_state_shift = 2},
    },
    {
        .version = 0x30a,
        .objects = {PYTHON_ATTRIBUTES_DICT, 352, 872},
        .frames = {.interpreters_head = 32,
                   .threads_head = 8,
                   .thread_next = 8,
                   .thread_id = 176,
                   .thread_frame = 24,
                   .frame_previous = 24,
                   .frame_code = 32,
                   .frame_position = 96,
                   .thread_interpreter = 16,
                   .collecting = 816,
                   .holder = 360,
                   .flags = WIRE_PYTHON_OBJECTS | WIRE_PYTHON_INDEX | WIRE_PYTHON_RUNTIME_LOCK},
        .code = {.filename = 104,
                 .name = 112,
                 .first_line = 40,
                 .table = 120,
                 .position_unit = 2,
                 .lines = PYTHON_LINES_RANGES,
                 .text_header = 48,
                 .wide_text_header = 72,
                 .text_state_shift = 2},
    },
    {
        .version = 0x30b,
        .objects = {PYTHON_ATTRIBUTES_BEFORE, 72, 872},
        .frames = {.interpreters_head = 40,
                   .threads_head = 16,
                   .thread_next = 8,
                   .thread_id = 152,
                   .thread_frame = 56,
                   .cframe_current = 8,
                   .frame_previous = 48,
                   .frame_code = 32,
                   .frame_position = 56,
                   .frame_mark = 68,
                   .thread_interpreter = 16,
                   .collecting = 848,
                   .holder = 368,
                   .flags = WIRE_PYTHON_CFRAME | WIRE_PYTHON_ENTRY | WIRE_PYTHON_RUNTIME_LOCK},
        .code = {.filename = 112,
                 .name = 128,
                 .first_line = 72,
                 .table = 136,
                 .instructions = 184,
                 .lines = PYTHON_LINES_LOCATIONS,
                 .text_header = 48,
                 .wide_text_header = 72,
                 .text_state_shift = 2},
    },
    {
        .version = 0x30c,
        .objects = {PYTHON_ATTRIBUTES_TAGGED, 72, 880},
        .frames = {.interpreters_head = 40,
                   .threads_head = 72,
                   .thread_next = 8,
                   .thread_id = 136,
                   .thread_frame = 56,
                   .cframe_current = 0,
                   .frame_previous = 8,
                   .frame_code = 0,
                   .frame_position = 56,
                   .frame_mark = 70,
                   .thread_interpreter = 16,
                   .collecting = 312,
                   .holder = 1048,
                   .flags = WIRE_PYTHON_CFRAME | WIRE_PYTHON_OWNER},
        .code = {.filename = 112,
                 .name = 128,
                 .first_line = 68,
                 .table = 136,
                 .instructions = 192,
                 .lines = PYTHON_LINES_LOCATIONS,
                 .text_header = 40,
                 .wide_text_header = 56,
                 .text_state_shift = 2},
    },
};

/* Bytes of an object that hold all these fields, each taken as one of 8 bytes. */
static uint32_t fields_end(const uint32_t fields[4])
{
	uint32_t last = 0;

	for (size_t i = 0; i < 4; i++)
		last = fields[i] > last ? fields[i] : last;
	return last + 8;
}

static void set_sizes(struct python_process *python)
{
	const struct python_code_layout *code = &python->code;
	struct wire_python *frames = &python->frames;
	const uint32_t code_fields[] = {code->filename, code->name, code->first_line, code->table};
	const uint32_t frame_fields[] = {frames->frame_previous, frames->frame_code, frames->frame_position,
	                                 frames->frame_mark};

	python->code.size = fields_end(code_fields);
	frames->frame_bytes = fields_end(frame_fields);
}

bool python_layout_of_version(uint32_t version, struct python_process *python)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		if (versions[i].version == version) {
			*python = versions[i];
			set_sizes(python);
			return true;
		}
	}
	return false;
}

/* ---- from 3.13 on: the interpreter's own table ---- */

#define TABLE_COOKIE   "xdebugpy"
#define MOST_SIZE      (1u << 24)
#define RELEASE_STABLE 0xc /* of PY_VERSION_HEX: release candidates and releases; before, layouts change */

/*
 * The table is a run of 64-bit words: cookie, version, whether it is free-threaded, then one part for each
 * struct, which begins with the struct's size. How long the parts are that differ (_Py_DebugOffsets in
 * Include/internal/pycore_runtime.h of 3.13.0, pycore_debug_offsets.h of 3.14).
 */
struct table_shape {
	uint32_t minor;
	uint32_t interpreter_words, frame_words, code_words;
	uint32_t object_words; /* from the part about PyObject up to that about the collection */
	uint32_t gc, holder;   /* words in the part about interpreters */
	uint32_t text_state_shift;
	struct python_object_layout objects; /* not in the table: from the headers of the version */
};

/* Threads of 3.14 need no name from here: it gives it to the kernel. */
static const struct table_shape shapes[] = {
    {13, 13, 6, 10, 27, 4, 12, 2, {PYTHON_ATTRIBUTES_INLINE, 72, 880}},
    {14, 16, 8, 11, 31, 5, 13, 2, {PYTHON_ATTRIBUTES_UNKNOWN, 0, 0}},
};

#define HEAD_WORDS    3
#define RUNTIME_WORDS 3
#define THREAD_WORDS  9

struct table {
	const uint64_t *words;
	bool wrong;
};

/* Word `index` of the part that begins at word `part`; it must lie within that struct. */
static uint32_t table_offset(struct table *table, size_t part, size_t index)
{
	uint64_t size = table->words[part], offset = table->words[part + index];

	if (size > MOST_SIZE || offset >= size)
		table->wrong = true;
	return (uint32_t)offset;
}

static const struct table_shape *table_shape(const uint64_t *words)
{
	uint64_t version = words[1];

	/* Objects of builds without the interpreter lock are laid out differently. */
	if (memcmp(words, TABLE_COOKIE, 8) || version >> 24 != 3 || words[2] ||
	    (version >> 4 & 0xf) < RELEASE_STABLE)
		return NULL;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (shapes[i].minor == (version >> 16 & 0xff))
			return &shapes[i];
	}
	return NULL;
}

bool python_layout_from_table(const uint64_t words[PYTHON_TABLE_WORDS], struct python_process *python)
{
	const struct table_shape *shape = table_shape(words);
	struct table table = {.words = words};
	size_t interpreter = HEAD_WORDS + RUNTIME_WORDS, thread, frame, code, object, gc;

	if (!shape)
		return false;
	thread = interpreter + shape->interpreter_words;
	frame = thread + THREAD_WORDS;
	code = frame + shape->frame_words;
	object = code + shape->code_words;
	gc = object + shape->object_words;
	/* Of all builds with the lock the same: if it is not there, the parts before it are not as thought.
	 */
	if (words[object] != 16 || words[object + 1] != 8)
		return false;
	*python = (struct python_process){.version = 3 << 8 | shape->minor, .objects = shape->objects};
	python->frames = (struct wire_python){
	    .interpreters_head = table_offset(&table, HEAD_WORDS, 2),
	    .threads_head = table_offset(&table, interpreter, 3),
	    .thread_next = table_offset(&table, thread, 2),
	    .thread_interpreter = table_offset(&table, thread, 3),
	    .thread_previous = table_offset(&table, thread, 1),
	    .thread_frame = table_offset(&table, thread, 4),
	    .thread_id = table_offset(&table, thread, 5),
	    .frame_previous = table_offset(&table, frame, 1),
	    .frame_code = table_offset(&table, frame, 2),
	    .frame_position = table_offset(&table, frame, 3),
	    .frame_mark = table_offset(&table, frame, 5),
	    .collecting = table_offset(&table, interpreter, shape->gc) + table_offset(&table, gc, 1),
	    .holder = table_offset(&table, interpreter, shape->holder),
	    .flags = WIRE_PYTHON_OWNER,
	};
	python->code = (struct python_code_layout){
	    .filename = table_offset(&table, code, 1),
	    .name = table_offset(&table, code, 3),
	    .table = table_offset(&table, code, 4),
	    .first_line = table_offset(&table, code, 5),
	    .lines = PYTHON_LINES_LOCATIONS,
	    .text_header = 40,
	    .wide_text_header = 56,
	    .text_state_shift = shape->text_state_shift,
	};
	/* The code itself comes last, at or just behind the end of the struct. */
	python->code.instructions = (uint32_t)words[code + 9];
	set_sizes(python);
	return !table.wrong && words[code + 9] <= MOST_CODE;
}
