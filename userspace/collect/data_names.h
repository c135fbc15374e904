/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of what lies at an address of a process and is no code: the variable or the library that a lock is
 * in, the file that is mapped there.
 */
#ifndef WHYIDLE_COLLECT_DATA_NAMES_H
#define WHYIDLE_COLLECT_DATA_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/process_code.h"
#include "trace/session.h"

/*
 * String id of "log_lock (train)", "in libfoo.so" or "/dev/shm/queue"; 0 for memory without a file (heap,
 * stacks) and where the mappings of the process have not been read. `shared`: other processes use it too, so
 * that it must lie in something that is mapped.
 */
uint32_t data_name(struct processes_code *all, struct process_code *process, uint64_t address, bool shared,
                   struct session_writer *writer);

#endif
