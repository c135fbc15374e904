/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What Python calls a thread, read from memory that is laid out as each version lays it out: the outermost
 * frame is Thread._bootstrap, its first variable the thread's object, and that has an attribute "_name".
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "collect/python_thread.h"

#define BASE   0x10000ULL
#define SPACE  (64 << 10)
#define STATE  (BASE + 0x1000)
#define CFRAME (BASE + 0x2000)
#define FRAMES (BASE + 0x3000)
#define CODE   (BASE + 0x6000)
#define OBJECT (BASE + 0x7000)
#define TYPE   (BASE + 0x8000)
#define DICT   (BASE + 0x9000)
#define KEYS   (BASE + 0xa000)
#define VALUES (BASE + 0xb000)
#define TEXTS  (BASE + 0xc000)

#define FRAME_STEP  0x200
#define TEXT_STEP   0x100
#define FLAG_INLINE (1u << 2)
#define FLAG_DICT   (1u << 4)

static uint8_t memory[SPACE];
static struct python_process python;
static uint64_t next_text;

/* Stands in for that of python_process.c: the process is this array. */
bool process_memory_read(uint32_t pid, uint64_t address, void *buffer, size_t size)
{
	cr_assert_eq(pid, 7);
	if (address < BASE || address - BASE > SPACE || size > SPACE - (address - BASE))
		return false;
	memcpy(buffer, memory + (address - BASE), size);
	return true;
}

static void put(uint64_t address, uint64_t value)
{
	cr_assert(address >= BASE && address + 8 <= BASE + SPACE);
	memcpy(memory + (address - BASE), &value, sizeof(value));
}

/* A text of ASCII characters; returns its address. */
static uint64_t put_text(const char *text)
{
	uint64_t at = next_text;

	next_text += TEXT_STEP;
	put(at + 16, strlen(text));
	put(at + 32, (uint64_t)(1 | 8 | 16) << python.code.text_state_shift);
	memcpy(memory + (at + python.code.text_header - BASE), text, strlen(text));
	return at;
}

/* `count` frames, of which the one at place `first` from the outer end is that every thread begins with. */
static void put_frames(int count, int first, const char *function, const char *file)
{
	const struct wire_python *frames = &python.frames;
	uint64_t other = CODE + 0x400;

	put(STATE + frames->thread_frame, frames->flags & WIRE_PYTHON_CFRAME ? CFRAME : FRAMES);
	put(CFRAME + frames->cframe_current, FRAMES);
	put(CODE + python.code.name, put_text(function));
	put(CODE + python.code.filename, put_text(file));
	put(other + python.code.name, put_text("work"));
	put(other + python.code.filename, put_text("/srv/train.py"));
	for (int i = 0; i < count; i++) {
		uint64_t frame = FRAMES + (uint64_t)i * FRAME_STEP;

		put(frame + frames->frame_code, i == count - 1 - first ? CODE : other);
		put(frame + frames->frame_previous, i < count - 1 ? frame + FRAME_STEP : 0);
		put(frame + python.objects.locals, i == count - 1 - first ? OBJECT : VALUES);
	}
}

/* The names of two attributes, with values beside them or NULL in `values`. */
static void put_keys(const char *name, bool beside)
{
	bool old = python.objects.attributes == PYTHON_ATTRIBUTES_DICT;
	uint64_t entries = old ? KEYS + 40 + 8 : KEYS + 32 + 8, size = old || beside ? 24 : 16;

	/* An index of 8 bytes; names that are all texts have no hash beside them from 3.11 on. */
	put(KEYS + 8, old ? 8 : 3 | 3 << 8 | (size == 16 ? 1 : 0) << 16);
	put(KEYS + (old ? 32 : 24), 2);
	put(entries + size - 16, put_text("_target"));
	put(entries + 2 * size - 16, put_text("_name"));
	if (!beside)
		return;
	put(entries + size - 8, put_text("not this"));
	put(entries + 2 * size - 8, put_text(name));
}

static void put_values(uint64_t at, const char *name)
{
	put(at, put_text("not this"));
	put(at + 8, put_text(name));
	put(TYPE + python.objects.keys, KEYS);
}

/* A thread object whose attributes are in a dictionary (`plain`), or where the version prefers them. */
static void put_object(const char *name, bool plain)
{
	put(OBJECT + 8, TYPE);
	put(TYPE + 168, FLAG_DICT | (plain ? 0 : FLAG_INLINE));
	put(TYPE + 32, 16);
	put(DICT + 32, KEYS);
	put_keys(name, plain);
	switch (python.objects.attributes) {
	case PYTHON_ATTRIBUTES_DICT:
		put(TYPE + 288, 48);
		put(OBJECT + 48, DICT);
		break;
	case PYTHON_ATTRIBUTES_BEFORE:
		put(OBJECT - 24, plain ? DICT : 0);
		put(OBJECT - 32, plain ? 0 : VALUES);
		break;
	case PYTHON_ATTRIBUTES_TAGGED:
		put(OBJECT - 24, plain ? DICT : VALUES - 1);
		break;
	default:
		put(OBJECT - 24, DICT);
		put(OBJECT + 16, 1 << 24);
		break;
	}
	if (!plain)
		put_values(python.objects.attributes == PYTHON_ATTRIBUTES_INLINE ? OBJECT + 24 : VALUES,
		           name);
}

/* As of 3.13.0, by its table: only what is read of threads. */
static void take_3_13(void)
{
	python.version = 0x30d;
	python.frames =
	    (struct wire_python){.thread_frame = 72, .frame_previous = 8, .flags = WIRE_PYTHON_OWNER};
	python.code = (struct python_code_layout){
	    .filename = 112, .name = 128, .text_header = 40, .wide_text_header = 56, .text_state_shift = 2};
	python.objects = (struct python_object_layout){PYTHON_ATTRIBUTES_INLINE, 72, 880};
}

static void begin(uint32_t version)
{
	memset(memory, 0, sizeof(memory));
	next_text = TEXTS;
	if (version == 0x30d)
		take_3_13();
	else
		cr_assert(python_layout_of_version(version, &python));
}

static void assert_name(const char *wanted)
{
	char *name = python_thread_name(7, &python, STATE);

	if (wanted)
		cr_assert(name && !strcmp(name, wanted), "%x: %s, not %s", python.version, name, wanted);
	else
		cr_assert_null(name, "%x: %s", python.version, name);
	free(name);
}

#define EACH_VERSION(version) for (uint32_t version = 0x309; version <= 0x30d; version++)

Test(python_thread, name_in_a_dictionary)
{
	EACH_VERSION(version)
	{
		begin(version);
		put_frames(5, 0, version < 0x30b ? "_bootstrap" : "Thread._bootstrap",
		           "/usr/lib/threading.py");
		put_object("prefetcher 7", true);
		assert_name("prefetcher 7");
	}
}

Test(python_thread, name_among_the_values_of_the_object)
{
	for (uint32_t version = 0x30b; version <= 0x30d; version++) {
		begin(version);
		put_frames(5, 0, "Thread._bootstrap", "/usr/lib/threading.py");
		put_object("prefetcher 7", false);
		assert_name("prefetcher 7");
	}
}

/* What calls the bootstrap function may be seen as frames as well, but not many. */
Test(python_thread, the_frame_is_looked_for_near_the_outer_end_only)
{
	EACH_VERSION(version)
	{
		for (int first = 0; first < 5; first++) {
			begin(version);
			put_frames(6, first, "_bootstrap", "/usr/lib/threading.py");
			put_object("prefetcher 7", true);
			assert_name(first < 3 ? "prefetcher 7" : NULL);
		}
	}
}

Test(python_thread, a_function_of_that_name_elsewhere_is_none)
{
	EACH_VERSION(version)
	{
		begin(version);
		put_frames(2, 0, "_bootstrap", "/srv/my_threading.py");
		put_object("prefetcher 7", true);
		assert_name(NULL);
		begin(version);
		put_frames(2, 0, "bootstrap", "/usr/lib/threading.py");
		put_object("prefetcher 7", true);
		assert_name(NULL);
	}
}

/* Frames that go round in a circle, tables that say more than there can be, classes that keep no dictionary.
 */
Test(python_thread, what_makes_no_sense_has_no_name)
{
	EACH_VERSION(version)
	{
		bool old = version < 0x30b;

		begin(version);
		put_frames(3, 0, "_bootstrap", "/usr/lib/threading.py");
		put_object("prefetcher 7", true);
		put(FRAMES + 2 * FRAME_STEP + python.frames.frame_previous, FRAMES);
		assert_name(NULL);
		put(FRAMES + 2 * FRAME_STEP + python.frames.frame_previous, 0);
		assert_name("prefetcher 7");
		put(KEYS + (old ? 32 : 24), 65);
		assert_name(NULL);
		put(KEYS + (old ? 32 : 24), 2);
		put(KEYS + 8, old ? 8192 : 3 | 13 << 8);
		assert_name(NULL);
		put(KEYS + 8, old ? 8 : 3 | 3 << 8);
		put(old ? TYPE + 288 : TYPE + 168, 0);
		assert_name(NULL);
	}
}

/* The name of a thread that ends while it is read. */
Test(python_thread, memory_that_is_gone_has_no_name)
{
	EACH_VERSION(version)
	{
		begin(version);
		put_frames(3, 0, "_bootstrap", "/usr/lib/threading.py");
		put_object("prefetcher 7", true);
		put(OBJECT + 8, 0x10);
		assert_name(NULL);
		cr_assert_null(python_thread_name(7, &python, 0));
	}
}
