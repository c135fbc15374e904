// SPDX-License-Identifier: GPL-2.0-only
#include "collect/python_thread.h"

#include <stdlib.h>
#include <string.h>

#include "collect/python_code.h"

#define MAX_FRAMES  1000
#define MAX_ENTRIES 64 /* attributes of an object */
#define OUTER       3  /* frames among which the one is that every thread begins with */

/* The same in all versions that are known. */
#define OBJECT_TYPE     8
#define OBJECT_BYTES    16
#define TYPE_BASIC_SIZE 32
#define TYPE_FLAGS      168
#define TYPE_DICT       288 /* where instances have their dictionary */
#define DICT_KEYS       32
#define DICT_VALUES     40 /* 0: the values lie beside the keys */

#define FLAG_INLINE_VALUES (1u << 2)
#define FLAG_MANAGED_DICT  (1u << 4)

struct reader {
	uint32_t pid;
	const struct python_process *python;
};

static uint64_t word(const struct reader *reader, uint64_t address)
{
	uint64_t value;

	return process_memory_read(reader->pid, address, &value, sizeof(value)) ? value : 0;
}

static bool text_is(const struct reader *reader, uint64_t address, const char *first, const char *second)
{
	char *text = python_text_read(reader->pid, &reader->python->code, address);
	bool same = text && (!strcmp(text, first) || !strcmp(text, second));

	free(text);
	return same;
}

/* ---- the frame that a thread begins with: Thread._bootstrap(self) ---- */

static bool is_bootstrap(const struct reader *reader, uint64_t frame)
{
	const struct python_code_layout *layout = &reader->python->code;
	uint64_t code = word(reader, frame + reader->python->frames.frame_code);
	const char *name;
	char *file;
	bool is;

	/* The name with the class, in versions that have it. */
	if (!code || !text_is(reader, word(reader, code + layout->name), "_bootstrap", "Thread._bootstrap"))
		return false;
	file = python_text_read(reader->pid, layout, word(reader, code + layout->filename));
	name = file ? strrchr(file, '/') : NULL;
	is = name && !strcmp(name, "/threading.py");
	free(file);
	return is;
}

/* The object of the threading module; 0 if the thread was started in another way. */
static uint64_t thread_object(const struct reader *reader, uint64_t state)
{
	const struct wire_python *frames = &reader->python->frames;
	uint64_t at = word(reader, state + frames->thread_frame), outer[OUTER] = {0};

	if (frames->flags & WIRE_PYTHON_CFRAME && at)
		at = word(reader, at + frames->cframe_current);
	for (int i = 0; at && i < MAX_FRAMES; i++) {
		memmove(outer + 1, outer, sizeof(outer) - sizeof(*outer));
		outer[0] = at;
		at = word(reader, at + frames->frame_previous);
	}
	for (int i = 0; !at && i < OUTER && outer[i]; i++) {
		if (is_bootstrap(reader, outer[i]))
			return word(reader, outer[i] + reader->python->objects.locals);
	}
	return 0;
}

/* ---- its attribute ---- */

/* Where the names of an object's attributes are and where their values; `values` 0: beside the names. */
struct attributes {
	uint64_t keys, values;
};

static void of_dict(const struct reader *reader, uint64_t dict, struct attributes *attributes)
{
	attributes->keys = dict ? word(reader, dict + DICT_KEYS) : 0;
	attributes->values = dict ? word(reader, dict + DICT_VALUES) : 0;
	if (attributes->values && reader->python->objects.attributes == PYTHON_ATTRIBUTES_INLINE)
		attributes->values += 8;
}

static bool find_attributes(const struct reader *reader, uint64_t object, struct attributes *attributes)
{
	uint64_t type = word(reader, object + OBJECT_TYPE), flags, at;

	*attributes = (struct attributes){0};
	if (!type)
		return false;
	flags = word(reader, type + TYPE_FLAGS);
	if (reader->python->objects.attributes != PYTHON_ATTRIBUTES_DICT && !(flags & FLAG_MANAGED_DICT))
		return false;
	switch (reader->python->objects.attributes) {
	case PYTHON_ATTRIBUTES_DICT:
		at = word(reader, type + TYPE_DICT);
		if (at < OBJECT_BYTES || at > 4096)
			return false;
		of_dict(reader, word(reader, object + at), attributes);
		break;
	case PYTHON_ATTRIBUTES_BEFORE:
		attributes->values = word(reader, object - 32);
		if (!attributes->values)
			of_dict(reader, word(reader, object - 24), attributes);
		break;
	case PYTHON_ATTRIBUTES_TAGGED:
		at = word(reader, object - 24);
		if (at & 1)
			attributes->values = at + 1;
		else
			of_dict(reader, at, attributes);
		break;
	case PYTHON_ATTRIBUTES_INLINE:
		at = object + OBJECT_BYTES;
		/* The fourth byte tells whether they hold. */
		if (flags & FLAG_INLINE_VALUES && word(reader, type + TYPE_BASIC_SIZE) == OBJECT_BYTES &&
		    word(reader, at) >> 24 & 1)
			attributes->values = at + 8;
		else
			of_dict(reader, word(reader, object - 24), attributes);
		break;
	default:
		return false;
	}
	if (!attributes->keys && attributes->values)
		attributes->keys = word(reader, type + reader->python->objects.keys);
	return attributes->keys;
}

/* Where the entries of a table of names are, and how long each is. */
static bool find_entries(const struct reader *reader, uint64_t keys, uint64_t *entries, uint64_t *count,
                         unsigned *size)
{
	uint64_t head[5];

	if (!process_memory_read(reader->pid, keys, head, sizeof(head)))
		return false;
	if (reader->python->objects.attributes == PYTHON_ATTRIBUTES_DICT) {
		/* References, size, a function, how many more fit, how many there are; then the index. */
		if (head[1] > 4096)
			return false;
		*entries = keys + 40 + head[1] * (head[1] <= 255 ? 1 : 2);
		*count = head[4];
		*size = 24; /* hash, name, value */
	} else {
		/* References; size, bytes of the index (both as powers of 2), kind; how many more fit, there
		 * are. */
		unsigned index = head[1] >> 8 & 0xff, kind = head[1] >> 16 & 0xff;

		if (index > 12 || kind > 2)
			return false;
		*entries = keys + 32 + (1ULL << index);
		*count = head[3];
		*size = kind ? 16 : 24;
	}
	return *count <= MAX_ENTRIES;
}

char *python_thread_name(uint32_t pid, const struct python_process *python, uint64_t state)
{
	const struct reader reader = {pid, python};
	uint64_t object, entries, count;
	struct attributes attributes;
	unsigned size;

	if (!python->objects.attributes || !state)
		return NULL;
	object = thread_object(&reader, state);
	if (!object || !find_attributes(&reader, object, &attributes) ||
	    !find_entries(&reader, attributes.keys, &entries, &count, &size))
		return NULL;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t entry = entries + i * size + (size - 16);

		if (text_is(&reader, word(&reader, entry), "_name", "_name"))
			return python_text_read(pid, &python->code,
			                        attributes.values ? word(&reader, attributes.values + i * 8)
			                                          : word(&reader, entry + 8));
	}
	return NULL;
}
