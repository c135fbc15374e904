/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_locks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/events.h"
#include "collect/bpf_exports.h"
#include "collect/bpf_uprobe.h"
#include "collect/process_info.h"
#include "symbols/elf_file.h"

#define MAX_PLACES 64 /* of one file: names have several versions */

static const struct {
	const char *name;
	enum wire_lock kind;
} functions[] = {
    {"pthread_cond_wait", WIRE_LOCK_CONDITION},
    {"pthread_cond_timedwait", WIRE_LOCK_CONDITION},
    {"pthread_cond_clockwait", WIRE_LOCK_CONDITION},
    {"sem_wait", WIRE_LOCK_SEMAPHORE},
    {"sem_timedwait", WIRE_LOCK_SEMAPHORE},
    {"sem_clockwait", WIRE_LOCK_SEMAPHORE},
    {"pthread_join", WIRE_LOCK_JOIN},
    {"pthread_timedjoin_np", WIRE_LOCK_JOIN},
    {"pthread_clockjoin_np", WIRE_LOCK_JOIN},
    {"pthread_rwlock_rdlock", WIRE_LOCK_READ},
    {"pthread_rwlock_timedrdlock", WIRE_LOCK_READ},
    {"pthread_rwlock_clockrdlock", WIRE_LOCK_READ},
    {"pthread_rwlock_wrlock", WIRE_LOCK_WRITE},
    {"pthread_rwlock_timedwrlock", WIRE_LOCK_WRITE},
    {"pthread_rwlock_clockwrlock", WIRE_LOCK_WRITE},
    {"pthread_mutex_lock", WIRE_LOCK_MUTEX},
    {"pthread_mutex_timedlock", WIRE_LOCK_MUTEX},
    {"pthread_mutex_clocklock", WIRE_LOCK_MUTEX},
};

/*
 * Where glibc is, for a process that has not mapped it yet because it has not executed its program.
 * Until 2.33 the functions are in libpthread.
 */
static const char *const usual_places[] = {
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
    "/lib/x86_64-linux-gnu/libpthread.so.0",
    "/lib/aarch64-linux-gnu/libpthread.so.0",
    "/lib64/libpthread.so.0",
    "/usr/lib/libpthread.so.0",
};

struct places {
	uint64_t offsets[MAX_PLACES], cookies[MAX_PLACES];
	uint32_t count;
	bool mutexes;
};

static enum wire_lock kind_of(const char *name, bool mutexes)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!strcmp(functions[i].name, name))
			return functions[i].kind == WIRE_LOCK_MUTEX && !mutexes ? WIRE_LOCK_NONE
			                                                        : functions[i].kind;
	}
	return WIRE_LOCK_NONE;
}

static int add_place(void *context, const struct bpf_export *export)
{
	struct places *places = context;
	enum wire_lock kind = export->code ? kind_of(export->name, places->mutexes) : WIRE_LOCK_NONE;

	if (kind == WIRE_LOCK_NONE || places->count == MAX_PLACES)
		return 0;
	for (uint32_t i = 0; i < places->count; i++) {
		if (places->offsets[i] == export->offset)
			return 0;
	}
	places->offsets[places->count] = export->offset;
	places->cookies[places->count++] = kind;
	return 0;
}

static int probe(struct bpf_locks *locks, int program, int fd, const struct bpf_uprobe_places *places)
{
	char path[32];
	int link = bpf_uprobe_multi_attach(program, bpf_exports_path(fd, path), places, false);
	int *slot = link < 0 ? NULL : array_add(&locks->links);

	if (slot)
		*slot = link;
	else if (link >= 0)
		close(link);
	return slot ? 0 : link < 0 ? link : -ENOMEM;
}

/* All at once. One that the kernel cannot probe makes it refuse them all: then each by itself. */
static int probe_places(struct bpf_locks *locks, int program, int fd, const struct places *places)
{
	int err = probe(locks, program, fd,
	                &(struct bpf_uprobe_places){places->offsets, places->cookies, places->count});
	uint32_t probed = 0;

	for (uint32_t i = 0; err && i < places->count; i++)
		probed += !probe(locks, program, fd,
		                 &(struct bpf_uprobe_places){places->offsets + i, places->cookies + i, 1});
	return probed ? 0 : err;
}

/* Returns 1 if it has functions that are probed, 0 if not, or a negative errno with `error`. */
static int probe_file(struct bpf_locks *locks, int program, int fd, const char *path, struct error *error)
{
	struct places places = {.mutexes = locks->mutexes};
	Elf *elf;
	int err = 0;

	elf = elf_file_open(fd);
	if (elf)
		bpf_exports_visit(elf, add_place, &places);
	elf_end(elf);
	if (places.count)
		err = probe_places(locks, program, fd, &places);
	if (err)
		return error_set(error, err, "cannot probe the functions of %s: %s%s", path, strerror(-err),
		                 err == -EACCES || err == -EPERM ? " (CAP_SYS_ADMIN is needed)" : "");
	return places.count > 0;
}

/* The same for a path, of which nothing is expected. */
static int attach_path(struct bpf_locks *locks, int program, const char *path, struct error *error)
{
	struct locks_file *file;
	struct stat status;
	int result, fd = bpf_exports_open(path, &status);

	if (fd < 0)
		return 0;
	array_for_each (file, &locks->files) {
		if (file->device == status.st_dev && file->inode == status.st_ino) {
			close(fd);
			return file->probed;
		}
	}
	file = array_add(&locks->files);
	if (!file) {
		close(fd);
		return error_no_memory(error);
	}
	*file = (struct locks_file){.device = status.st_dev, .inode = status.st_ino};
	result = probe_file(locks, program, fd, path, error);
	file->probed = result > 0;
	close(fd);
	return result;
}

int bpf_locks_attach(struct bpf_locks *locks, int program, uint32_t pid, struct error *error)
{
	enum { LIBRARIES = 4 };
	struct cuda_library libraries[LIBRARIES];
	size_t count = process_c_libraries(pid, libraries, LIBRARIES);
	int probed = 0, one = 0;
	char path[128];

	for (size_t i = 0; i < count && one >= 0; i++) {
		one = attach_path(locks, program, libraries[i].path, error);
		probed += one > 0;
	}
	for (size_t i = 0; i < sizeof(usual_places) / sizeof(usual_places[0]) && one >= 0; i++) {
		snprintf(path, sizeof(path), "/proc/%u/root%s", pid, usual_places[i]);
		one = attach_path(locks, program, path, error);
		probed += one > 0;
	}
	if (one < 0)
		return one;
	return probed ? probed : error_set(error, -ENOENT, "there is no glibc");
}

void bpf_locks_free(struct bpf_locks *locks)
{
	int *link;

	array_for_each (link, &locks->links)
		close(*link);
	array_free(&locks->links);
	array_free(&locks->files);
}
