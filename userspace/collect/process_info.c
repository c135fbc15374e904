// SPDX-License-Identifier: GPL-2.0-only
#include "collect/process_info.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Inode number of the initial pid namespace (PROC_PID_INIT_INO of the kernel, part of its ABI in practice).
 */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCul

/* Reads a small file of /proc; returns its length or -1. The buffer is always terminated. */
static ssize_t read_small(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	buffer[0] = '\0';
	if (fd < 0)
		return -1;
	got = read(fd, buffer, size - 1);
	close(fd);
	if (got < 0)
		return -1;
	buffer[got] = '\0';
	return got;
}

static bool is_number(const char *name)
{
	return isdigit((unsigned char)name[0]);
}

static void add_thread(uint32_t pid, const char *tid, struct index_map *map)
{
	char path[64], status[4096], *line, *last, *end;

	snprintf(path, sizeof(path), "/proc/%u/task/%.20s/status", pid, tid);
	if (read_small(path, status, sizeof(status)) <= 0)
		return;
	line = strstr(status, "\nNSpid:");
	if (!line)
		return;
	line += strlen("\nNSpid:");
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	last = strrchr(line, '\t');
	if (last)
		index_map_put(map, strtoul(last + 1, NULL, 10), strtoul(tid, NULL, 10));
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

uint32_t process_parent(uint32_t pid)
{
	char path[64], stat[512], *name_end;
	unsigned int parent = 0;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (read_small(path, stat, sizeof(stat)) <= 0)
		return 0;
	name_end = strrchr(stat, ')'); /* the name may hold anything, also ") R 1" */
	if (!name_end || sscanf(name_end + 1, " %*c %u", &parent) != 1)
		return 0;
	return parent;
}

void process_name(uint32_t pid, char *name, size_t size)
{
	char path[64];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	got = read_small(path, name, size);
	if (got > 0 && name[got - 1] == '\n')
		name[got - 1] = '\0';
}

uint64_t process_image(uint32_t pid)
{
	char path[64], vector[1024];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%u/auxv", pid);
	got = read_small(path, vector, sizeof(vector));
	return got > 0 ? hash_bytes(vector, got) : 0;
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
		uint32_t pid, parent;

		if (!is_number(entry->d_name))
			continue;
		pid = strtoul(entry->d_name, NULL, 10);
		parent = process_parent(pid);
		if (!parent)
			continue;
		process = array_add(list);
		if (!process) {
			err = -ENOMEM;
			break;
		}
		process->pid = pid;
		process->parent = parent;
	}
	closedir(proc);
	return err;
}

/* "libcuda.so", "libcuda.so.1", "libcudart.so.13", "libcudart-0a1b2c.so.12.1" (as wheels rename it). */
static bool is_cuda_library(const char *name)
{
	const char *rest;

	if (!strncmp(name, "libcudart", 9))
		rest = name + 9;
	else if (!strncmp(name, "libcuda", 7))
		rest = name + 7;
	else
		return false;
	return !strncmp(rest, ".so", 3) || (rest[0] == '-' && strstr(rest, ".so"));
}

/* Adds the library of one line of /proc/PID/maps, unless it is there or is none. */
static size_t add_library(uint32_t pid, const char *line, struct cuda_library *libraries, size_t count)
{
	unsigned long long start, end, inode;
	struct cuda_library *library = &libraries[count];
	const char *name;
	struct stat info;
	int path_at = 0;

	if (sscanf(line, "%llx-%llx %*4s %*x %*x:%*x %llu %n", &start, &end, &inode, &path_at) < 3 ||
	    !path_at || line[path_at] != '/')
		return count;
	name = strrchr(line + path_at, '/') + 1;
	if (!is_cuda_library(name))
		return count;
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(libraries[i].name, name, sizeof(libraries[i].name) - 1))
			return count;
	}
	/* By its path in the target's own view of the file system, or by the mapping where that has changed.
	 */
	snprintf(library->name, sizeof(library->name), "%s", name);
	if (snprintf(library->path, sizeof(library->path), "/proc/%u/root%s", pid, line + path_at) >=
	        (int)sizeof(library->path) ||
	    stat(library->path, &info) < 0 || info.st_ino != inode)
		snprintf(library->path, sizeof(library->path), "/proc/%u/map_files/%llx-%llx", pid, start,
		         end);
	return count + 1;
}

size_t process_cuda_libraries(uint32_t pid, struct cuda_library *libraries, size_t max)
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
		if (strstr(line, "/libcuda"))
			count = add_library(pid, line, libraries, count);
	}
	free(line);
	fclose(maps);
	return count;
}
