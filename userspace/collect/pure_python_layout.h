/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where versions of CPython keep what is read of them: 3.9 to 3.12 by tables, from 3.13 on by the table that
 * the interpreter itself has for tools (_Py_DebugOffsets). Release builds for 64-bit machines. What is not
 * known is refused: alphas and betas, later versions, builds without the interpreter lock.
 */
#ifndef WHYIDLE_COLLECT_PURE_PYTHON_LAYOUT_H
#define WHYIDLE_COLLECT_PURE_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "collect/pure_python_lines.h"

#define PYTHON_TABLE_WORDS 96 /* read of the interpreter's table */

/* What is read of code objects: offsets in them and in the objects they refer to. */
struct python_code_layout {
	uint32_t size; /* bytes of a code object that hold all fields */
	uint32_t filename, name, first_line, table;
	uint32_t instructions;  /* the code itself; positions are addresses in it. 0: they are indices */
	uint32_t position_unit; /* bytes of code that an index stands for */
	enum python_lines lines;
	uint32_t text_header, wide_text_header; /* size of the head of a text: ASCII only; any other */
	uint32_t text_state_shift;              /* of the bits that tell its kind */
};

/* How instances of a class keep their attributes. */
enum python_attributes {
	PYTHON_ATTRIBUTES_UNKNOWN = 0,
	PYTHON_ATTRIBUTES_DICT,   /* until 3.10: in a dictionary */
	PYTHON_ATTRIBUTES_BEFORE, /* 3.11: in front of the object, dictionary or values */
	PYTHON_ATTRIBUTES_TAGGED, /* 3.12: the same in one word, whose lowest bit tells values */
	PYTHON_ATTRIBUTES_INLINE, /* 3.13: behind the object, or a dictionary */
};

/* What is read of objects. */
struct python_object_layout {
	enum python_attributes attributes;
	uint32_t locals; /* of a frame */
	uint32_t keys;   /* of a class: names of its instances' attributes */
};

struct python_process {
	uint32_t version; /* major << 8 | minor, 0 none */
	struct wire_python frames;
	struct python_code_layout code;
	struct python_object_layout objects;
};

/* Fills in all but the address of the runtime, for a version with a layout of its own. False: none is known.
 */
bool python_layout_of_version(uint32_t version, struct python_process *python);

/* The same by the interpreter's table. False: that is none, or of a layout that is not known. */
bool python_layout_from_table(const uint64_t words[PYTHON_TABLE_WORDS], struct python_process *python);

#endif
