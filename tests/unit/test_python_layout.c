/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where versions of CPython keep things. The block of 3.13 is that of the 3.13.0 release for x86-64; that
 * of 3.14 is Debian's 3.14.10.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "collect/pure_python_layout.h"

#define FINAL(minor)   (3ull << 24 | (uint64_t)(minor) << 16 | 0xf0)
#define FREE_THREADED  2 /* words of the block */
#define VERSION        1
#define HOLDER_3_14    19
#define OBJECT_3_13    44
#define COLLECTING_313 72

/* Fills the block with the parts that are given, one after the other; returns the number of words. */
static size_t put(uint64_t *words, size_t at, size_t count, const uint64_t *part)
{
	memcpy(words + at, part, count * sizeof(*part));
	return at + count;
}

#define PUT(...)                                                                                             \
	at = put(words, at, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

static void block(uint64_t words[PYTHON_TABLE_WORDS], unsigned minor)
{
	bool later = minor == 14;
	size_t at = 1;

	memset(words, 0xee, PYTHON_TABLE_WORDS * sizeof(*words));
	memcpy(words, "xdebugpy", 8);
	PUT(FINAL(minor), 0);
	if (later) {
		PUT(316616, 784, 808); /* runtime */
		PUT(225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784, 0, 7800, 7792, 7992, 0);
		PUT(832, 0, 8, 16, 72, 152, 160, 232, 32);             /* thread */
		PUT(88, 8, 0, 56, 80, 74, 64, 0);                      /* frame */
		PUT(216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0); /* code */
		PUT(16, 8, 416, 24, 88, 168, 40, 32, 16, 40, 24, 16);  /* object, type, tuple, list */
		PUT(200, 24, 40, 32, 48, 32, 40, 24, 16, 32, 16, 24);  /* set, dict, float, long */
		PUT(40, 16, 32, 64, 32, 16, 40);                       /* bytes, text */
		PUT(264, 192);                                         /* collection */
	} else {
		PUT(300000, 1000, 632);
		PUT(248832, 7216, 7208, 7256, 7496, 7856, 7800, 7808, 16, 7752, 0, 7768, 7760);
		PUT(280, 0, 8, 16, 72, 152, 160, 264, 36);
		PUT(80, 8, 0, 56, 72, 70);
		PUT(216, 112, 120, 128, 136, 68, 52, 96, 104, 208);
		PUT(16, 8, 416, 24, 88, 168, 32, 24, 16, 40, 24, 16);
		PUT(48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40);
		PUT(248, 104);
	}
	cr_assert_eq(at, later ? 83 : 73);
}

Test(python_layout, of_3_13)
{
	uint64_t words[PYTHON_TABLE_WORDS];
	struct python_process python;

	block(words, 13);
	cr_assert_eq(words[OBJECT_3_13], 16);
	cr_assert_eq(words[COLLECTING_313], 104);
	cr_assert(python_layout_from_table(words, &python));
	cr_assert_eq(python.version, 0x30d);
	cr_assert_eq(python.frames.interpreters_head, 632);
	cr_assert_eq(python.frames.threads_head, 7256);
	cr_assert_eq(python.frames.thread_next, 8);
	cr_assert_eq(python.frames.thread_interpreter, 16);
	cr_assert_eq(python.frames.thread_previous, 0);
	cr_assert_eq(python.frames.thread_id, 152);
	cr_assert_eq(python.frames.thread_frame, 72);
	cr_assert_eq(python.frames.collecting, 7600);
	cr_assert_eq(python.frames.holder, 7760);
	cr_assert_eq(python.frames.frame_mark, 70);
	cr_assert_eq(python.frames.frame_bytes, 78);
	cr_assert_not(python.frames.flags & (WIRE_PYTHON_RUNTIME_LOCK | WIRE_PYTHON_CFRAME));
	cr_assert_eq(python.code.filename, 112);
	cr_assert_eq(python.code.name, 128, "with its class");
	cr_assert_eq(python.code.first_line, 68);
	cr_assert_eq(python.code.instructions, 208);
	cr_assert_eq(python.code.text_state_shift, 2);
}

Test(python_layout, of_3_14)
{
	uint64_t words[PYTHON_TABLE_WORDS];
	struct python_process python;

	block(words, 14);
	cr_assert(python_layout_from_table(words, &python));
	cr_assert_eq(python.version, 0x30e);
	cr_assert_eq(python.frames.threads_head, 7344);
	cr_assert_eq(python.frames.collecting, 7600);
	cr_assert_eq(words[HOLDER_3_14], 7792);
	cr_assert_eq(python.frames.holder, 7792);
	cr_assert_eq(python.frames.frame_position, 56);
	cr_assert_eq(python.frames.frame_mark, 74);
	cr_assert_eq(python.code.table, 136);
	cr_assert_eq(python.code.instructions, 208);
	cr_assert_eq(python.code.text_state_shift, 2);
}

/* What is not as known is refused: names that are wrong are worse than none. */
Test(python_layout, unknown_ones_are_refused)
{
	static const struct {
		size_t word;
		uint64_t value;
		const char *why;
	} cases[] = {
	    {0, 0, "no cookie"},
	    {VERSION, FINAL(12), "has no such table"},
	    {VERSION, FINAL(14), "the table of another version"},
	    {VERSION, FINAL(15), "a later version"},
	    {VERSION, FINAL(13) + (1 << 24), "Python 4"},
	    {VERSION, (FINAL(13) & ~0xffull) | 0xa6, "an alpha"},
	    {VERSION, (FINAL(13) & ~0xffull) | 0xb1, "a beta"},
	    {FREE_THREADED, 1, "built without the lock"},
	    {OBJECT_3_13, 32, "objects of another size"},
	    {OBJECT_3_13 + 1, 24, "objects of another layout"},
	    {COLLECTING_313, 1 << 20, "outside the struct"},
	    {COLLECTING_313 - 1, 1ull << 40, "a struct of such a size"},
	    {5, 300000, "outside the runtime"},
	    {9, UINT64_MAX, "outside the interpreter"},
	    {43, 1 << 20, "the code far behind the object"},
	};
	uint64_t words[PYTHON_TABLE_WORDS];
	struct python_process python;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		block(words, 13);
		cr_assert(python_layout_from_table(words, &python));
		words[cases[i].word] = cases[i].value;
		cr_assert_not(python_layout_from_table(words, &python), "%s", cases[i].why);
	}
	block(words, 14);
	words[FREE_THREADED] = 1;
	cr_assert_not(python_layout_from_table(words, &python));
	block(words, 13);
	words[VERSION] = (FINAL(13) & ~0xffull) | 0xc2;
	cr_assert(python_layout_from_table(words, &python), "release candidates are laid out as releases");
}

Test(python_layout, of_versions_without_a_table)
{
	static const struct {
		uint32_t version, collecting, holder, flags;
	} cases[] = {{0x309, 816, 360, WIRE_PYTHON_RUNTIME_LOCK},
	             {0x30a, 816, 360, WIRE_PYTHON_RUNTIME_LOCK},
	             {0x30b, 848, 368, WIRE_PYTHON_RUNTIME_LOCK},
	             {0x30c, 312, 1048, 0}};
	struct python_process python;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert(python_layout_of_version(cases[i].version, &python));
		cr_assert_eq(python.version, cases[i].version);
		cr_assert_eq(python.frames.collecting, cases[i].collecting);
		cr_assert_eq(python.frames.holder, cases[i].holder);
		cr_assert_eq(python.frames.flags & WIRE_PYTHON_RUNTIME_LOCK, cases[i].flags);
		cr_assert(python.frames.frame_bytes > 8 &&
		          python.frames.frame_bytes <= WIRE_PYTHON_FRAME_BYTES);
		cr_assert(python.code.size > 8);
	}
	cr_assert_not(python_layout_of_version(0, &python));
	cr_assert_not(python_layout_of_version(0x308, &python));
	cr_assert_not(python_layout_of_version(0x30d, &python), "that has a table");
}
