/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which code lies where in the recorded processes, while they run.
 *
 * Files are opened through the processes' own mappings, so that it does not matter in which mount namespace a
 * process is or whether a file was deleted or replaced since; each is opened once for all processes.
 */
#ifndef WHYIDLE_COLLECT_PROCESS_CODE_H
#define WHYIDLE_COLLECT_PROCESS_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/hash.h"
#include "symbols/address_space.h"
#include "symbols/binary.h"
#include "symbols/perf_map.h"

struct process_code {
	uint32_t pid;
	bool hidden; /* /proc did not show us its mappings or files, now or before an exec */
	bool closed; /* nor does it show its files now */
	bool read;   /* `mappings` was read, perhaps from the parent */
	/*
	 * Tells what is at an address now from what was there before: an exec, another process with the same
	 * id and a library in the place of another begin a new one. The process id or, from the second one
	 * on, a number with RECORD_SPACE_LATER. 0: the next one has no number yet.
	 */
	uint32_t space;
	bool space_used;
	struct mapping_list mappings;
	uint64_t read_ns;            /* when that was tried last */
	struct index_map data_names; /* address → string id, as long as `mappings` holds (data_names.h) */
	struct perf_map jit;         /* names of generated code that the process itself writes down */
	uint64_t jit_read_ns;        /* when that was tried last, 0 never */
};

struct code_file {
	uint64_t device, inode;
	struct binary *binary; /* NULL: it could not be opened */
};

struct processes_code {
	struct {
		ARRAY(struct process_code *)
	} processes;
	struct index_map process_by_pid;
	struct {
		ARRAY(struct code_file)
	} files;
	struct index_map file_by_id; /* hash of device and inode */
	uint32_t later_spaces;
	struct binary *vdso;
};

/* A place in a file. */
struct code_place {
	const struct mapping *mapping;
	struct binary *binary; /* NULL: not known */
	uint64_t address;      /* within it */
};

/* What is known of a process, made if it is new; NULL if memory ran out. Stays valid until
 * processes_code_free. */
struct process_code *process_code_get(struct processes_code *all, uint32_t pid);

/* Number of its address space, to go with the addresses that are written down. */
uint32_t process_code_space(struct processes_code *all, struct process_code *process);

/* A process was forked: what is known of its parent holds for it. */
void process_code_fork(struct processes_code *all, uint32_t parent, uint32_t child);

/* It executes another program or has ended: nothing of what is known holds any longer. */
void process_code_forget(struct processes_code *all, uint32_t pid);

/* Reads the mappings anew, unless that was done a moment ago. */
void process_code_refresh(struct process_code *process, uint64_t now_ns);

/*
 * Where code address `address` lies. Reads the process's mappings if they do not hold it. False if there is
 * no code at that address.
 */
bool process_code_find(struct processes_code *all, struct process_code *process, uint64_t address,
                       uint64_t now_ns, struct code_place *place);

/* The binary of a mapping, opened if need be; NULL if it is no file or cannot be opened. */
struct binary *process_code_binary(struct processes_code *all, struct process_code *process,
                                   const struct mapping *mapping);

/* Name of generated code, NULL if not known. */
const char *process_code_jit(struct process_code *process, uint64_t address, uint64_t now_ns);

/* How many processes there were that /proc did not show: what they ran has no names. */
uint32_t processes_code_hidden(const struct processes_code *all);

void processes_code_free(struct processes_code *all);

#endif
