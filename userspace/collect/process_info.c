// SPDX-License-Identifier: GPL-2.0-only
#include "collect/process_info.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/proc_file.h"

/* Inode number of the initial pid namespace (PROC_PID_INIT_INO of the kernel, part of its ABI in practice).
 */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCul

static bool is_number(const char *name)
{
	return isdigit((unsigned char)name[0]);
}

static void add_thread(uint32_t pid, const char *name, struct index_map *map)
{
	uint32_t tid = strtoul(name, NULL, 10), inner;
	char path[64], status[PROC_STATUS_BYTES];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", pid, tid);
	if (!proc_file_read(path, status, sizeof(status)))
		return;
	inner = proc_status_namespace_id(status);
	index_map_put(map, inner ? inner : tid, tid);
}

void process_namespace_tids(uint32_t pid, struct index_map *map)
{
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return;
	while ((entry = readdir(tasks))) {
		if (is_number(entry->d_name))
			add_thread(pid, entry->d_name, map);
	}
	closedir(tasks);
}

bool process_stat_read(uint32_t pid, struct process_stat *stat)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	return proc_file_read(path, text, sizeof(text)) && process_stat_parse(text, stat);
}

uint32_t process_parent(uint32_t pid)
{
	struct process_stat stat;

	return process_stat_read(pid, &stat) ? stat.parent : 0;
}

void process_cgroups(uint32_t pid, char text[PROCESS_CGROUP_TEXT])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	proc_file_read(path, text, PROCESS_CGROUP_TEXT);
}

void process_place_read(uint32_t pid, struct process_place *place)
{
	char path[64], status[PROC_STATUS_BYTES], groups[PROCESS_CGROUP_TEXT];

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	proc_file_read(path, status, sizeof(status));
	process_cgroups(pid, groups);
	place->namespace_pid = proc_status_namespace_id(status);
	if (!cgroup_container(groups, place->container))
		*place->container = '\0';
	if (!cgroup_pod(groups, place->pod))
		*place->pod = '\0';
}

void process_name(uint32_t pid, char *name, size_t size)
{
	char path[64];
	size_t got;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	got = proc_file_read(path, name, size);
	if (got && name[got - 1] == '\n')
		name[got - 1] = '\0';
}

uint64_t process_image(uint32_t pid)
{
	char path[64], vector[1024];
	size_t got;

	snprintf(path, sizeof(path), "/proc/%u/auxv", pid);
	got = proc_file_read(path, vector, sizeof(vector));
	return got ? hash_bytes(vector, got) : 0;
}

bool process_has_open(uint32_t pid, const char *path)
{
	char name[64], target[256];
	const struct dirent *entry;
	bool found = false;
	DIR *directory;

	snprintf(name, sizeof(name), "/proc/%u/fd", pid);
	directory = opendir(name);
	if (!directory)
		return false;
	while (!found && (entry = readdir(directory)) != NULL) {
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

		if (length < 0)
			continue;
		target[length] = '\0';
		found = !strcmp(target, path);
	}
	closedir(directory);
	return found;
}

bool process_in_initial_pid_namespace(void)
{
	struct stat info;

	return stat("/proc/self/ns/pid", &info) < 0 || info.st_ino == INITIAL_PID_NAMESPACE;
}

int process_list_read(struct process_list *list)
{
	struct process_id *process;
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	int err = 0;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		struct process_stat stat;
		uint32_t pid;

		if (!is_number(entry->d_name))
			continue;
		pid = strtoul(entry->d_name, NULL, 10);
		if (!process_stat_read(pid, &stat))
			continue;
		process = array_add(list);
		if (!process) {
			err = -ENOMEM;
			break;
		}
		process->pid = pid;
		process->stat = stat;
	}
	closedir(proc);
	return err;
}

/*
 * How the file of one mapping can be opened: by its path in the target's own view of the file system, or by
 * the mapping where another file has that path now, or none.
 */
static bool find_file(uint32_t pid, const char *range, const char *path, size_t length,
                      struct cuda_library *library)
{
	char mapping[128];
	struct stat mapped, named;
	bool known;

	snprintf(mapping, sizeof(mapping), "/proc/%u/map_files/%s", pid, range);
	known = !stat(mapping, &mapped);
	if (snprintf(library->path, sizeof(library->path), "/proc/%u/root%.*s", pid, (int)length, path) >=
	        (int)sizeof(library->path) ||
	    stat(library->path, &named) ||
	    (known && (named.st_dev != mapped.st_dev || named.st_ino != mapped.st_ino))) {
		if (!known)
			return false;
		snprintf(library->path, sizeof(library->path), "%s", mapping);
		named = mapped;
	}
	library->device = named.st_dev;
	library->inode = named.st_ino;
	return true;
}

/* Adds the library of one line of /proc/PID/maps, unless it is there or is none. */
static size_t add_library(uint32_t pid, char *line, bool (*wanted)(const char *name),
                          struct cuda_library *libraries, size_t count)
{
	struct cuda_library *library = &libraries[count];
	char *path = strchr(line, '/'), *range_end = strchr(line, ' ');
	const char *name;
	size_t length;

	if (!path || !range_end)
		return count;
	library->deleted = mapped_path_deleted(path, &length);
	*range_end = '\0';
	path[length] = '\0';
	name = strrchr(path, '/') + 1;
	if (!wanted(name) || !find_file(pid, line, path, length, library))
		return count;
	for (size_t i = 0; i < count; i++) {
		if (libraries[i].device == library->device && libraries[i].inode == library->inode)
			return count;
	}
	snprintf(library->name, sizeof(library->name), "%s", name);
	library->driver = is_cuda_driver(name);
	return count + 1;
}

/* `hint` is in the path of each of them. */
static size_t mapped_libraries(uint32_t pid, const char *hint, bool (*wanted)(const char *name),
                               struct cuda_library *libraries, size_t max)
{
	char path[64], *line = NULL;
	size_t size = 0, count = 0;
	ssize_t length;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return 0;
	while (count < max && (length = getline(&line, &size, maps)) > 0) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		if (strstr(line, hint))
			count = add_library(pid, line, wanted, libraries, count);
	}
	free(line);
	fclose(maps);
	return count;
}

size_t process_cuda_libraries(uint32_t pid, struct cuda_library *libraries, size_t max)
{
	return mapped_libraries(pid, "/libcuda", is_cuda_library, libraries, max);
}

size_t process_c_libraries(uint32_t pid, struct cuda_library *libraries, size_t max)
{
	return mapped_libraries(pid, "/lib", is_c_library, libraries, max);
}

size_t process_nccl_libraries(uint32_t pid, struct cuda_library *libraries, size_t max)
{
	return mapped_libraries(pid, "/lib", is_nccl_library, libraries, max);
}
