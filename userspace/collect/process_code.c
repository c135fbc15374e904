// SPDX-License-Identifier: GPL-2.0-only
#include "collect/process_code.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc_file.h"
#include "trace/record.h"

/* Reading the mappings of a large process takes milliseconds and holds up those of its threads that map. */
#define REFRESH_NS     100000000ULL
#define STALE_NS       10000000000ULL /* a file may have been unmapped and another mapped in its place */
#define MAX_FILES      8192
#define MAX_FILE_BYTES (8ULL << 30)

struct process_code *process_code_get(struct processes_code *all, uint32_t pid)
{
	struct process_code *process, **slot;
	uint32_t at;

	if (index_map_get(&all->process_by_pid, pid, &at))
		return all->processes.items[at];
	process = calloc(1, sizeof(*process));
	slot = process ? array_add(&all->processes) : NULL;
	if (!slot || index_map_put(&all->process_by_pid, pid, all->processes.count - 1)) {
		if (slot)
			all->processes.count--;
		free(process);
		return NULL;
	}
	process->pid = process->space = pid;
	*slot = process;
	return process;
}

static void begin_space(struct process_code *process)
{
	if (process->space_used)
		process->space = 0;
	process->space_used = false;
}

uint32_t process_code_space(struct processes_code *all, struct process_code *process)
{
	if (!process->space)
		process->space = RECORD_SPACE_LATER | ++all->later_spaces;
	process->space_used = true;
	return process->space;
}

static void forget(struct process_code *process)
{
	begin_space(process);
	mapping_list_free(&process->mappings);
	index_map_free(&process->data_names);
	perf_map_free(&process->jit);
	process->read = process->closed = false;
	process->read_ns = process->jit_read_ns = 0;
}

void process_code_forget(struct processes_code *all, uint32_t pid)
{
	uint32_t at;

	if (index_map_get(&all->process_by_pid, pid, &at))
		forget(all->processes.items[at]);
}

void process_code_fork(struct processes_code *all, uint32_t parent, uint32_t child)
{
	const struct process_code *from;
	struct process_code *to;
	uint32_t at;

	process_code_forget(all, child);
	if (!index_map_get(&all->process_by_pid, parent, &at) || !all->processes.items[at]->read)
		return;
	to = process_code_get(all, child);
	from = all->processes.items[at];
	if (to && !mapping_list_copy(&to->mappings, &from->mappings)) {
		to->read = true;
		to->read_ns = from->read_ns;
	} else if (to) {
		forget(to);
	}
}

/* Whether /proc keeps a process that is there from us: fopen has just failed with `error`. */
static bool is_hidden(uint32_t pid, int error)
{
	if (error == EACCES || error == EPERM)
		return true;
	return error == ENOENT && (!kill((pid_t)pid, 0) || errno == EPERM);
}

/* What is known is kept if the process has gone meanwhile. */
static void read_mappings(struct process_code *process, uint64_t now_ns)
{
	struct mapping_list list = {0};
	char path[64];
	FILE *maps;

	process->read_ns = now_ns;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", process->pid);
	maps = fopen(path, "re");
	if (!maps) {
		process->hidden = process->hidden || is_hidden(process->pid, errno);
		return;
	}
	if (!mapping_list_read(&list, maps) && list.count) {
		if (!mapping_list_keeps_code(&list, &process->mappings))
			begin_space(process);
		mapping_list_free(&process->mappings);
		index_map_free(&process->data_names);
		process->mappings = list;
		process->read = true;
	} else {
		mapping_list_free(&list);
	}
	fclose(maps);
}

void process_code_refresh(struct process_code *process, uint64_t now_ns)
{
	if (!process->read_ns || now_ns - process->read_ns >= REFRESH_NS)
		read_mappings(process, now_ns);
}

uint32_t processes_code_hidden(const struct processes_code *all)
{
	struct process_code *const *process;
	uint32_t count = 0;

	array_for_each (process, &all->processes)
		count += (*process)->hidden;
	return count;
}

/* ---- files ---- */

static bool is_file(int fd, const struct mapping *mapping, bool exact)
{
	struct stat info;

	/* File systems that lie over others show other numbers there than in the mappings. */
	return !fstat(fd, &info) && S_ISREG(info.st_mode) && (uint64_t)info.st_size <= MAX_FILE_BYTES &&
	       (!exact || info.st_ino == mapping->inode);
}

static int open_checked(const char *path, const struct mapping *mapping, bool exact)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0 && !is_file(fd, mapping, exact)) {
		close(fd);
		errno = EINVAL;
		fd = -1;
	}
	return fd;
}

/* Whether the process keeps all files from us, not only one. */
static bool is_closed(uint32_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno != ENOENT;
}

/* By the mapping itself, which needs more privilege; else by its path in the process's own view. */
static int open_mapped(uint32_t pid, const struct mapping *mapping)
{
	char path[64 + 4096];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start,
	         mapping->end);
	fd = open_checked(path, mapping, false);
	if (fd >= 0 ||
	    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root%s", pid, mapping->path) >= (int)sizeof(path))
		return fd;
	return open_checked(path, mapping, true);
}

/* Debug information that was split off lies under its build id, in the process's view or in ours. */
static void add_debug(struct binary *binary, uint32_t pid)
{
	const char *id = binary_build_id(binary);
	char root[32], path[512];

	if (strlen(id) < 3)
		return;
	snprintf(root, sizeof(root), "/proc/%" PRIu32 "/root", pid);
	for (int i = 0; i < 2; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/%.2s/%s.debug", i ? "" : root, id,
		         id + 2);
		fd = open_checked(path, NULL, false);
		if (fd >= 0) {
			binary_add_debug(binary, fd);
			return;
		}
	}
}

/* The kernel's own library is the same in all processes of a machine: ours is one that can be trusted. */
static struct binary *open_vdso(void)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR); // NOLINT(performance-no-int-to-ptr)
	const ElfW(Ehdr) *header = (const void *)image;

	if (!image)
		return NULL;
	return binary_open_memory(image, header->e_shoff + (size_t)header->e_shnum * header->e_shentsize);
}

struct binary *process_code_binary(struct processes_code *all, struct process_code *process,
                                   const struct mapping *mapping)
{
	const uint64_t id[] = {mapping->device, mapping->inode};
	uint64_t key = hash_bytes(id, sizeof(id));
	struct code_file *file;
	uint32_t at;
	int fd;

	if (!mapping->inode) {
		if (strcmp(mapping->path, "[vdso]"))
			return NULL;
		if (!all->vdso)
			all->vdso = open_vdso();
		return all->vdso;
	}
	if (index_map_get(&all->file_by_id, key, &at))
		return all->files.items[at].binary;
	if (all->files.count >= MAX_FILES || process->closed)
		return NULL;
	fd = open_mapped(process->pid, mapping);
	/* It may be open to us by way of another process. */
	if (fd < 0 && (errno == EACCES || errno == EPERM) && is_closed(process->pid)) {
		process->hidden = process->closed = true;
		return NULL;
	}
	if (fd < 0 && errno == ENOENT)
		return NULL; /* the process may have gone: another may still have it */
	file = array_add(&all->files);
	if (!file || index_map_put(&all->file_by_id, key, all->files.count - 1)) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	file->device = mapping->device;
	file->inode = mapping->inode;
	file->binary = fd >= 0 ? binary_open(fd) : NULL;
	if (file->binary)
		add_debug(file->binary, process->pid);
	return file->binary;
}

bool process_code_find(struct processes_code *all, struct process_code *process, uint64_t address,
                       uint64_t now_ns, struct code_place *place)
{
	const struct mapping *mapping;

	if (!process->read || now_ns - process->read_ns > STALE_NS)
		process_code_refresh(process, now_ns);
	mapping = mapping_list_find(&process->mappings, address);
	if (!mapping) {
		process_code_refresh(process, now_ns);
		mapping = mapping_list_find(&process->mappings, address);
	}
	if (!mapping || !mapping->executable)
		return false;
	*place = (struct code_place){.mapping = mapping};
	place->binary = process_code_binary(all, process, mapping);
	if (place->binary && place->binary == all->vdso)
		place->address = address - mapping->start;
	else if (place->binary &&
	         !binary_address(place->binary, address - mapping->start + mapping->offset, &place->address))
		place->binary = NULL;
	return true;
}

/* ---- generated code ---- */

/* Its id in its own pid namespace: what it names its file by. */
static uint32_t own_pid(uint32_t pid)
{
	char path[64], status[PROC_STATUS_BYTES];
	uint32_t own;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	proc_file_read(path, status, sizeof(status));
	own = proc_status_namespace_id(status);
	return own ? own : pid;
}

static void read_jit(struct process_code *process, uint64_t now_ns)
{
	char path[96];
	int fd;

	process->jit_read_ns = now_ns;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root/tmp/perf-%" PRIu32 ".map", process->pid,
	         own_pid(process->pid));
	fd = open_checked(path, NULL, false);
	if (fd < 0)
		return;
	perf_map_free(&process->jit);
	perf_map_read(&process->jit, fd);
	close(fd);
}

const char *process_code_jit(struct process_code *process, uint64_t address, uint64_t now_ns)
{
	const char *name = perf_map_find(&process->jit, address);

	if (name || (process->jit_read_ns && now_ns - process->jit_read_ns < REFRESH_NS * 10))
		return name;
	read_jit(process, now_ns);
	return perf_map_find(&process->jit, address);
}

void processes_code_free(struct processes_code *all)
{
	struct process_code **process;
	struct code_file *file;

	array_for_each (process, &all->processes) {
		forget(*process);
		free(*process);
	}
	array_free(&all->processes);
	index_map_free(&all->process_by_pid);
	array_for_each (file, &all->files) {
		binary_free(file->binary);
	}
	array_free(&all->files);
	index_map_free(&all->file_by_id);
	binary_free(all->vdso);
	all->vdso = NULL;
}
