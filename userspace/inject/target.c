// SPDX-License-Identifier: GPL-2.0-only
#include "inject/target.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/proc_file.h"

#define MAX_MAPPINGS 262144

static bool parse_mapping(const char *line, struct target_mapping *mapping)
{
	unsigned int major, minor;
	char mode[5] = "";
	int path = 0;
	const char *name, *slash;

	memset(mapping, 0, sizeof(*mapping));
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &mapping->start,
	           &mapping->end, mode, &mapping->offset, &major, &minor, &mapping->inode, &path) < 7 ||
	    !path)
		return false;
	mapping->device = makedev(major, minor);
	mapping->readable = mode[0] == 'r';
	mapping->writable = mode[1] == 'w';
	mapping->executable = mode[2] == 'x';
	mapping->shared = mode[3] == 's';
	name = line + path;
	slash = strrchr(name, '/');
	snprintf(mapping->name, sizeof(mapping->name), "%s", slash ? slash + 1 : name);
	mapping->name[strcspn(mapping->name, "\n")] = '\0';
	return true;
}

int target_maps_read(uint32_t pid, struct target_maps *maps)
{
	char path[64], *line = NULL;
	size_t size = 0;
	FILE *file;
	int err = 0;

	memset(maps, 0, sizeof(*maps));
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (!err && getline(&line, &size, file) > 0 && maps->count < MAX_MAPPINGS) {
		struct target_mapping mapping, *added;

		if (!parse_mapping(line, &mapping))
			continue;
		added = array_add(maps);
		if (added)
			*added = mapping;
		else
			err = -ENOMEM;
	}
	free(line);
	fclose(file);
	return err;
}

const struct target_mapping *target_maps_find(const struct target_maps *maps, uint64_t address)
{
	for (size_t i = 0; i < maps->count; i++)
		if (address >= maps->items[i].start && address < maps->items[i].end)
			return &maps->items[i];
	return NULL;
}

uint64_t target_maps_base(const struct target_maps *maps, const struct target_mapping *mapping)
{
	/* The nearest one below: a file may be mapped more than once. */
	for (size_t i = (size_t)(mapping - maps->items) + 1; i-- > 0;) {
		const struct target_mapping *other = &maps->items[i];

		if (other->device == mapping->device && other->inode == mapping->inode &&
		    other->offset == 0 && other->inode)
			return other->start;
	}
	return 0;
}

/* The value behind "\nKEY:\t", NULL if there is none. */
static const char *field(const char *text, const char *key)
{
	char pattern[32];
	const char *found;

	snprintf(pattern, sizeof(pattern), "\n%s:", key);
	found = strstr(text, pattern);
	if (!found)
		return NULL;
	found += strlen(pattern);
	return found + strspn(found, "\t ");
}

static uint64_t field_number(const char *text, const char *key, int base)
{
	const char *value = field(text, key);

	return value ? strtoull(value, NULL, base) : 0;
}

bool target_status_read(uint32_t pid, uint32_t tid, struct target_status *status)
{
	char path[64], text[PROC_STATUS_BYTES];
	const char *value;
	uint32_t inner;
	size_t length;

	memset(status, 0, sizeof(*status));
	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", pid, tid);
	if (!proc_file_read(path, text, sizeof(text)))
		return false;
	/* The name comes first; the kernel escapes newlines in it. */
	if (!strncmp(text, "Name:\t", 6)) {
		length = strcspn(text + 6, "\n");
		snprintf(status->name, sizeof(status->name), "%.*s", (int)(length < 31 ? length : 31),
		         text + 6);
	}
	value = field(text, "State");
	status->state = value ? *value : '?';
	status->tracer = (uint32_t)field_number(text, "TracerPid", 10);
	status->seccomp = (uint32_t)field_number(text, "Seccomp", 10);
	status->blocked = field_number(text, "SigBlk", 16);
	status->caught = field_number(text, "SigCgt", 16);
	status->pending = field_number(text, "SigPnd", 16) | field_number(text, "ShdPnd", 16);
	value = field(text, "x86_Thread_features");
	if (value) {
		length = strcspn(value, "\n");
		status->shadow_stack = memmem(value, length, "shstk", 5) != NULL;
	}
	inner = proc_status_namespace_id(text);
	status->inner_tid = inner ? inner : tid;
	return true;
}

bool target_wait_read(uint32_t pid, uint32_t tid, struct target_wait *wait)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/syscall", pid, tid);
	if (!proc_file_read(path, text, sizeof(text)))
		return false;
	/* "running", or "-1 SP PC" outside of system calls */
	return sscanf(text,
	              "%ld 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64
	              " 0x%" SCNx64 " 0x%" SCNx64,
	              &wait->number, &wait->arguments[0], &wait->arguments[1], &wait->arguments[2],
	              &wait->arguments[3], &wait->arguments[4], &wait->arguments[5], &wait->sp,
	              &wait->pc) == 9 &&
	       wait->number >= 0;
}

bool target_fd_is_pipe(uint32_t pid, uint64_t fd)
{
	char path[64];
	struct stat info;

	if (fd > INT32_MAX)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, (uint32_t)fd);
	return stat(path, &info) == 0 && S_ISFIFO(info.st_mode);
}

int target_threads_read(uint32_t pid, struct target_threads *threads)
{
	const struct dirent *entry;
	char path[64];
	DIR *folder;
	int err = 0;

	memset(threads, 0, sizeof(*threads));
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	folder = opendir(path);
	if (!folder)
		return -errno;
	while (!err && (entry = readdir(folder))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10), *added;

		if (!tid)
			continue;
		added = array_add(threads);
		if (added)
			*added = tid;
		else
			err = -ENOMEM;
	}
	closedir(folder);
	return err;
}
