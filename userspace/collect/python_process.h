/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPython in other processes: finds the interpreter and knows where each version keeps what is read of it.
 * 3.9 to 3.12 by tables, from 3.13 on by the table that the interpreter itself has for tools. Release builds.
 */
#ifndef WHYIDLE_COLLECT_PYTHON_PROCESS_H
#define WHYIDLE_COLLECT_PYTHON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "collect/process_code.h"
#include "collect/pure_python_lines.h"

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

struct python_process {
	uint32_t version; /* major << 8 | minor, 0 none */
	struct wire_python frames;
	struct python_code_layout code;
};

/*
 * Looks for an interpreter in a process whose mappings were read. Returns true and fills in `python` if there
 * is one of a version that is known.
 */
bool python_process_find(struct processes_code *all, struct process_code *process,
                         struct python_process *python);

/* Reads `size` bytes of a process's memory; false unless all of them could be read. */
bool process_memory_read(uint32_t pid, uint64_t address, void *buffer, size_t size);

#endif
