/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What /proc tells about other processes. They may go at any moment: everything here is best effort, and a
 * process that has gone gives empty answers, not errors.
 */
#ifndef WHYIDLE_COLLECT_PROCESS_INFO_H
#define WHYIDLE_COLLECT_PROCESS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/hash.h"
#include "collect/pure_process_match.h"

#define PROCESS_CGROUP_TEXT 8192

/* Adds every thread of `pid` to `map`: its id in its innermost pid namespace → its id in ours. */
void process_namespace_tids(uint32_t pid, struct index_map *map);

/* Parent of a process, 0 if it has gone. */
uint32_t process_parent(uint32_t pid);

/* Name (comm) of a process, "" if it has gone. */
void process_name(uint32_t pid, char *name, size_t size);

/*
 * A hash that differs between programs but is the same for a process and those it forked without exec: of its
 * auxiliary vector, which holds the random addresses that exec chose. 0 if it cannot be read.
 */
uint64_t process_image(uint32_t pid);

/* True if `pid` has a file of this path open; false also if that cannot be read. */
bool process_has_open(uint32_t pid, const char *path);

/* True if this process runs in the initial pid namespace. */
bool process_in_initial_pid_namespace(void);

/* The text of /proc/PID/cgroup, "" if it has gone. */
void process_cgroups(uint32_t pid, char text[PROCESS_CGROUP_TEXT]);

/* Where a process is: of its control group "" if it is in no container or pod, or has gone. */
struct process_place {
	uint32_t namespace_pid; /* in its innermost pid namespace, 0 if that is ours */
	char container[65], pod[37];
};

void process_place_read(uint32_t pid, struct process_place *place);

/* What /proc/PID/stat says; false if the process has gone. */
bool process_stat_read(uint32_t pid, struct process_stat *stat);

struct process_id {
	uint32_t pid;
	struct process_stat stat;
};

struct process_list {
	ARRAY(struct process_id)
};

/* All processes. Returns 0 or a negative errno; free with array_free. */
int process_list_read(struct process_list *list);

/* A CUDA library that a process has mapped. Files are told apart by device and inode, as stat(2) gives them.
 */
struct cuda_library {
	char path[512]; /* to open it by, below /proc/PID */
	char name[128]; /* last part of its own path */
	uint64_t device, inode;
	bool driver;  /* libcuda; else the runtime */
	bool deleted; /* it has no name any more */
};

/*
 * Finds the CUDA driver and runtime libraries that `pid` has mapped, at most `max`: every copy, in the view
 * of the file system that the process has. Returns how many; 0 also if the maps cannot be read.
 */
size_t process_cuda_libraries(uint32_t pid, struct cuda_library *libraries, size_t max);

/* The same for glibc: libc and, until 2.33, libpthread. */
size_t process_c_libraries(uint32_t pid, struct cuda_library *libraries, size_t max);

/* The same for what may hold NCCL. */
size_t process_nccl_libraries(uint32_t pid, struct cuda_library *libraries, size_t max);

#endif
