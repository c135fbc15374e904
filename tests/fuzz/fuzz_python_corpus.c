// SPDX-License-Identifier: GPL-2.0-only
/* Writes the inputs from which fuzz_python starts into a directory: fuzz_python_corpus DIRECTORY */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "collect/pure_python_layout.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_python.h"

#define CODE_BYTES 512
#define TEXT_BYTES 128

static void put(uint8_t *memory, size_t at, uint64_t value)
{
	memcpy(memory + at, &value, sizeof(value));
}

/* A text of characters of `kind` bytes at `at`. */
static void put_text(uint8_t *memory, size_t at, const struct python_code_layout *layout, const char *text,
                     uint32_t kind)
{
	uint32_t state = (kind | 8 | (kind == 1 ? 16 : 0)) << layout->text_state_shift;
	size_t start = at + (kind == 1 ? layout->text_header : layout->wide_text_header);

	put(memory, at + 16, strlen(text));
	put(memory, at + 32, state);
	for (size_t i = 0; text[i]; i++)
		memory[start + i * kind] = (uint8_t)text[i];
}

/* A code object, its file, its name and its lines, one behind the other. */
static void put_code(uint8_t *memory, size_t at, const struct python_code_layout *layout, uint32_t kind)
{
	static const uint8_t tables[][6] = {
	    {2, 1, 4, 0xfe, 6, 3}, {2, 1, 4, 0x80, 6, 3}, {0xd8, 8, 9, 0xe9, 3, 0x41}};
	size_t file = at + CODE_BYTES, name = file + TEXT_BYTES, table = name + TEXT_BYTES;

	put(memory, at + layout->first_line, 7);
	put(memory, at + layout->filename, FUZZ_PYTHON_BASE + file);
	put(memory, at + layout->name, FUZZ_PYTHON_BASE + name);
	put(memory, at + layout->table, FUZZ_PYTHON_BASE + table);
	put_text(memory, file, layout, "/lib/threading.py", kind);
	put_text(memory, name, layout, "_bootstrap", 1);
	put(memory, table + 16, sizeof(tables[0]));
	memcpy(memory + table + 32, tables[layout->lines], sizeof(tables[0]));
}

/* A thread with one frame of that code, whose first variable is an object with one attribute. */
static void put_thread(uint8_t *memory, size_t code, const struct python_process *python)
{
	const struct wire_python *frames = &python->frames;
	size_t state = FUZZ_PYTHON_THREAD, cframe = state + 96, frame = cframe + 16, object = frame + 416;
	size_t type = object + 64, name = type + 64, keys = name + 64, text = keys + 96, dict = text + 64;
	bool old = python->objects.attributes == PYTHON_ATTRIBUTES_DICT;
	size_t index = old ? keys + 40 + 8 : keys + 32 + 8;

	put(memory, state + frames->thread_frame,
	    FUZZ_PYTHON_BASE + (frames->flags & WIRE_PYTHON_CFRAME ? cframe : frame));
	put(memory, cframe + frames->cframe_current, FUZZ_PYTHON_BASE + frame);
	put(memory, frame + python->objects.locals, FUZZ_PYTHON_BASE + object);
	put(memory, frame + frames->frame_code, FUZZ_PYTHON_BASE + code);
	put(memory, frame + frames->frame_previous, 0);
	put(memory, object + 8, FUZZ_PYTHON_BASE + type);
	put(memory, object + 16, FUZZ_PYTHON_BASE + dict);
	put(memory, object - 24, FUZZ_PYTHON_BASE + dict);
	put(memory, dict + 32, FUZZ_PYTHON_BASE + keys);
	put(memory, keys + 8, old ? 8 : 3 | 3 << 8);
	put(memory, keys + (old ? 32 : 24), 1);
	put(memory, index + 8, FUZZ_PYTHON_BASE + name);
	put(memory, index + 16, FUZZ_PYTHON_BASE + text);
	put_text(memory, name, &python->code, "_name", 1);
	put_text(memory, text, &python->code, "loader", 1);
	/* Last: what is of the type lies over other things that are not looked at. */
	put(memory, type + 168, 1u << 4);
	put(memory, type + 288, 16);
}

/* The head of the table of 3.13, as the release has it up to its last part that is read. */
static const uint64_t words[] = {0,      3ull << 24 | 13 << 16 | 0xf0,
                                 0,      300000,
                                 1000,   632,
                                 248832, 7216,
                                 7208,   7256,
                                 7496,   7856,
                                 7800,   7808,
                                 16,     7752,
                                 0,      7768,
                                 7760,   280,
                                 0,      8,
                                 16,     72,
                                 152,    160,
                                 264,    36,
                                 80,     8,
                                 0,      56,
                                 72,     70,
                                 216,    112,
                                 120,    128,
                                 136,    68,
                                 52,     96,
                                 104,    208,
                                 16,     8,
                                 416,    24,
                                 88,     168,
                                 32,     24,
                                 16,     40,
                                 24,     16,
                                 48,     32,
                                 40,     24,
                                 16,     32,
                                 16,     24,
                                 40,     16,
                                 32,     64,
                                 32,     16,
                                 40,     248,
                                 104};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	for (uint8_t kind = 0; kind < FUZZ_PYTHON_KINDS * 2; kind++) {
		uint8_t memory[4000] = {0};
		uint64_t table[PYTHON_TABLE_WORDS] = {0};
		bool by_table = kind % FUZZ_PYTHON_KINDS == FUZZ_PYTHON_KINDS - 1;
		struct python_process python;
		char name[32];

		memcpy(table, words, sizeof(words));
		memcpy(table, "xdebugpy", 8);
		if (by_table ? !python_layout_from_table(table, &python)
		             : !python_layout_of_version(0x309 + kind % FUZZ_PYTHON_KINDS, &python)) {
			fprintf(stderr, "no layout of kind %u\n", kind);
			return 1;
		}
		if (by_table)
			memcpy(memory, table, sizeof(table));
		put_code(memory, by_table ? sizeof(table) : 0, &python.code,
		         kind < FUZZ_PYTHON_KINDS ? 1 : 2);
		put_thread(memory, by_table ? sizeof(table) : 0, &python);
		snprintf(name, sizeof(name), "code-%u", kind);
		if (corpus_save(argv[1], name, &kind, 1, memory, sizeof(memory)))
			return 1;
	}
	return 0;
}
