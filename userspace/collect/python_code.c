// SPDX-License-Identifier: GPL-2.0-only
#include "collect/python_code.h"

#include <stdlib.h>
#include <string.h>

#define VALID_NS      1000000000ULL /* for so long an object is taken to be the same */
#define MAX_CODES     65536         /* of one process */
#define MAX_TABLE     (256u << 10)
#define MAX_CODE_SIZE 512

/* Of objects with a length: behind the reference count and the type. */
#define OBJECT_LENGTH 16
#define BYTES_CONTENT 32

/* Appends a character in UTF-8; false if there is no room. */
static bool add_character(char *text, size_t *length, uint32_t character)
{
	char *at = text + *length;
	size_t room = PYTHON_TEXT_MAX - 1 - *length;

	if (character < 0x80) {
		if (room < 1)
			return false;
		at[0] = (char)character;
		*length += 1;
	} else if (character < 0x800) {
		if (room < 2)
			return false;
		at[0] = (char)(0xc0 | character >> 6);
		at[1] = (char)(0x80 | (character & 63));
		*length += 2;
	} else if (character < 0x10000) {
		if (room < 3)
			return false;
		at[0] = (char)(0xe0 | character >> 12);
		at[1] = (char)(0x80 | (character >> 6 & 63));
		at[2] = (char)(0x80 | (character & 63));
		*length += 3;
	} else {
		if (room < 4)
			return false;
		at[0] = (char)(0xf0 | (character >> 18 & 7));
		at[1] = (char)(0x80 | (character >> 12 & 63));
		at[2] = (char)(0x80 | (character >> 6 & 63));
		at[3] = (char)(0x80 | (character & 63));
		*length += 4;
	}
	return true;
}

/* Characters take 1, 2 or 4 bytes there. */
char *python_text_read(uint32_t pid, const struct python_code_layout *layout, uint64_t address)
{
	uint8_t raw[PYTHON_TEXT_MAX * 4];
	uint64_t head[5], count;
	char text[PYTHON_TEXT_MAX];
	size_t length = 0;
	uint32_t state, kind, start;

	if (!address || !process_memory_read(pid, address, head, sizeof(head)))
		return NULL;
	count = head[OBJECT_LENGTH / 8];
	state = (uint32_t)head[4] >> layout->text_state_shift;
	kind = state & 7;
	if ((kind != 1 && kind != 2 && kind != 4) || !(state & 8) || !count || count > 1 << 20)
		return NULL;
	start = state & 16 ? layout->text_header : layout->wide_text_header;
	if (count > PYTHON_TEXT_MAX - 1)
		count = PYTHON_TEXT_MAX - 1;
	if (!process_memory_read(pid, address + start, raw, count * kind))
		return NULL;
	for (uint64_t i = 0; i < count; i++) {
		uint32_t character = 0;

		memcpy(&character, raw + i * kind, kind);
		/* No name of a file or function has one. */
		if (!character)
			return NULL;
		if (!add_character(text, &length, character))
			break;
	}
	text[length] = '\0';
	return strdup(text);
}

static uint64_t field(const uint8_t *object, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, object + offset, sizeof(value));
	return value;
}

static void read_table(struct python_code *code, uint32_t pid, uint64_t address)
{
	uint64_t length;

	if (!address || !process_memory_read(pid, address + OBJECT_LENGTH, &length, sizeof(length)) ||
	    !length || length > MAX_TABLE)
		return;
	code->table = malloc(length);
	if (!code->table)
		return;
	if (process_memory_read(pid, address + BYTES_CONTENT, code->table, length)) {
		code->table_length = length;
	} else {
		free(code->table);
		code->table = NULL;
	}
}

static void code_free(struct python_code *code)
{
	free(code->name);
	free(code->file);
	free(code->table);
	*code = (struct python_code){0};
}

/* Reads the object, or sees that it is what it was. False if it cannot be read. */
static bool code_read(struct python_code *code, uint32_t pid, const struct python_code_layout *layout,
                      uint64_t address)
{
	uint8_t object[MAX_CODE_SIZE];
	uint64_t parts[4], identity;

	if (layout->size > sizeof(object) || !process_memory_read(pid, address, object, layout->size))
		return false;
	parts[0] = field(object, layout->filename);
	parts[1] = field(object, layout->name);
	parts[2] = field(object, layout->table);
	parts[3] = (uint32_t)field(object, layout->first_line);
	identity = hash_bytes(parts, sizeof(parts));
	if (code->name && code->identity == identity)
		return true;
	code_free(code);
	code->identity = identity;
	code->first_line = (uint32_t)parts[3];
	code->file = python_text_read(pid, layout, parts[0]);
	code->name = code->file ? python_text_read(pid, layout, parts[1]) : NULL;
	if (code->name)
		read_table(code, pid, parts[2]);
	return true;
}

const struct python_code *python_code_get(struct python_codes *codes, uint32_t pid,
                                          const struct python_code_layout *layout, uint64_t address,
                                          uint64_t now_ns)
{
	struct python_code *code;
	uint32_t at;

	if (!index_map_get(&codes->by_address, address, &at)) {
		code = codes->codes.count < MAX_CODES ? array_add(&codes->codes) : NULL;
		if (!code)
			return NULL;
		at = codes->codes.count - 1;
		if (index_map_put(&codes->by_address, address, at)) {
			codes->codes.count--;
			return NULL;
		}
	}
	code = &codes->codes.items[at];
	if (!code->read_ns || now_ns - code->read_ns > VALID_NS) {
		/* If it cannot be read any more (the process has ended), what was read before still holds. */
		code_read(code, pid, layout, address);
		code->read_ns = now_ns;
	}
	return code->name && code->file ? code : NULL;
}

uint32_t python_code_line(const struct python_code *code, const struct python_code_layout *layout,
                          uint64_t address, uint64_t position)
{
	uint64_t offset;

	if (layout->instructions)
		offset = position - address - layout->instructions;
	else
		offset = position * layout->position_unit;
	/* Before its first instruction a function stands on the line of its definition. */
	if ((int64_t)offset < 0 || (!layout->instructions && (int32_t)position < 0))
		return code->first_line;
	if (!code->table)
		return 0;
	return python_line(layout->lines, code->table, code->table_length, code->first_line, offset);
}

void python_codes_free(struct python_codes *codes)
{
	struct python_code *code;

	array_for_each (code, &codes->codes) {
		code_free(code);
	}
	array_free(&codes->codes);
	index_map_free(&codes->by_address);
}
