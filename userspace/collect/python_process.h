/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPython in other processes: finds the interpreter.
 */
#ifndef WHYIDLE_COLLECT_PYTHON_PROCESS_H
#define WHYIDLE_COLLECT_PYTHON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/process_code.h"
#include "collect/pure_python_layout.h"

/*
 * Looks for an interpreter in a process whose mappings were read. Returns true and fills in `python` if there
 * is one of a version that is known.
 */
bool python_process_find(struct processes_code *all, struct process_code *process,
                         struct python_process *python);

/* Reads `size` bytes of a process's memory; false unless all of them could be read. */
bool process_memory_read(uint32_t pid, uint64_t address, void *buffer, size_t size);

#endif
