// SPDX-License-Identifier: GPL-2.0-only
#include "collect/doctor_process.h"

#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc_file.h"
#include "collect/bpf_exports.h"
#include "collect/discover.h"
#include "collect/doctor_process_code.h"
#include "collect/doctor_process_cupti.h"
#include "collect/process_info.h"
#include "inject/inject.h"
#include "model/cuda_call.h"
#include "symbols/elf_file.h"

#define MEMORY_DEVICE "/dev/nvidia-uvm"

/* ---- who it is ---- */

static bool other_namespace(uint32_t pid, const char *kind)
{
	struct stat own, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	if (stat(path, &own))
		return false;
	snprintf(path, sizeof(path), "/proc/%u/ns/%s", pid, kind);
	return !stat(path, &theirs) && own.st_ino != theirs.st_ino;
}

static void check_identity(uint32_t pid, struct doctor_report *report)
{
	bool mounts = other_namespace(pid, "mnt"), pids = other_namespace(pid, "pid");
	struct process_place place;
	char name[64], where[256] = "";

	process_name(pid, name, sizeof(name));
	process_place_read(pid, &place);
	if (place.pod[0])
		snprintf(where, sizeof(where), ", pod %s", place.pod);
	if (place.container[0])
		snprintf(where + strlen(where), sizeof(where) - strlen(where), ", container %.12s",
		         place.container);
	if (place.namespace_pid)
		snprintf(where + strlen(where), sizeof(where) - strlen(where),
		         ", process %u in its own namespace", place.namespace_pid);
	doctor_add(report, "process", DOCTOR_OK, "%u (%s)%s; %s", pid, name, where,
	           mounts && pids ? "mount and pid namespaces of its own"
	           : mounts       ? "a mount namespace of its own"
	           : pids         ? "a pid namespace of its own"
	                          : "in our mount and pid namespaces");
}

/* ---- its CUDA ---- */

static int count_call(void *context, const struct bpf_export *export)
{
	size_t *count = context;

	*count += export->code && cuda_function_find(export->name);
	return 0;
}

/* Functions that recordings look at; 0 also if the file cannot be read. */
static size_t known_calls(const struct cuda_library *library)
{
	struct stat status;
	int fd = bpf_exports_open(library->path, &status);
	size_t count = 0;
	Elf *elf;

	if (fd < 0)
		return 0;
	elf = elf_file_open(fd);
	if (elf)
		bpf_exports_visit(elf, count_call, &count);
	elf_end(elf);
	close(fd);
	return count;
}

/* Its path as the process sees it. */
static const char *own_path(const struct cuda_library *library)
{
	const char *root = strstr(library->path, "/root/");

	return root && !strncmp(library->path, "/proc/", 6) ? root + 5 : library->name;
}

static void tell_library(struct doctor_report *report, const struct cuda_library *library)
{
	const char *name = library->driver ? "cuda_driver" : "cuda_runtime";
	size_t calls = known_calls(library);
	struct doctor_check *check;

	if (calls) {
		doctor_add(report, name, DOCTOR_OK, "%s%s, inode %llu; %zu of its functions can be probed",
		           own_path(library), library->deleted ? " (deleted since)" : "",
		           (unsigned long long)library->inode, calls);
		return;
	}
	check =
	    doctor_add(report, name, DOCTOR_DEGRADED, "%s: its functions cannot be read", own_path(library));
	doctor_fix(check, "run as root");
}

static bool has(const struct cuda_library *libraries, size_t count, bool driver)
{
	for (size_t i = 0; i < count; i++) {
		if (libraries[i].driver == driver)
			return true;
	}
	return false;
}

/* The first process that descends from it and uses CUDA; 0 none. */
static uint32_t descendant_with_cuda(uint32_t pid)
{
	struct process_list list = {0};
	const struct process_id *process;
	uint32_t found = 0;

	process_list_read(&list); /* what there is of it */
	array_for_each (process, &list) {
		uint32_t parent = process->stat.parent;
		struct cuda_library library;

		for (int depth = 0; parent && parent != pid && depth < 64; depth++)
			parent = process_parent(parent);
		if (parent == pid && process->pid != pid &&
		    process_cuda_libraries(process->pid, &library, 1)) {
			found = process->pid;
			break;
		}
	}
	array_free(&list);
	return found;
}

static void tell_no_driver(struct doctor_report *report, uint32_t pid)
{
	uint32_t child = descendant_with_cuda(pid);
	struct doctor_check *check;

	if (child) {
		doctor_add(report, "cuda_driver", DOCTOR_NOTE,
		           "it has no CUDA driver library itself; process %u, which descends from it, has",
		           child);
		return;
	}
	check =
	    doctor_add(report, "cuda_driver", DOCTOR_MISSING,
	               "it has no CUDA driver library (libcuda.so) mapped: no use of a GPU to be seen yet");
	doctor_fix(check,
	           "if it starts CUDA later, record -p waits for that; else name the process that does");
	if (check)
		check->essential = true;
}

static bool check_cuda(uint32_t pid, struct doctor_report *report, const struct cuda_library *libraries,
                       size_t count)
{
	struct doctor_check *check;

	if (!has(libraries, count, true)) {
		tell_no_driver(report, pid);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		tell_library(report, &libraries[i]);
	if (!has(libraries, count, false))
		doctor_add(
		    report, "cuda_runtime", DOCTOR_NOTE,
		    "no library of the runtime: linked statically, or not used; calls are seen where they "
		    "reach the driver");
	if (access(MEMORY_DEVICE, F_OK)) {
		doctor_add(report, "cuda_started", DOCTOR_NOTE,
		           "not known: this machine has no " MEMORY_DEVICE " by which to tell");
	} else if (process_has_open(pid, MEMORY_DEVICE)) {
		doctor_add(report, "cuda_started", DOCTOR_OK,
		           "it has started CUDA (" MEMORY_DEVICE " is open)");
	} else {
		check = doctor_add(report, "cuda_started", DOCTOR_DEGRADED,
		                   "it has the driver, but has not started CUDA: nothing to see yet");
		doctor_fix(check, "a recording waits for it");
	}
	return true;
}

/* ---- CUPTI in it ---- */

static void check_attach(uint32_t pid, struct doctor_report *report)
{
	struct error error = {0};
	enum inject_reason reason = inject_check(pid, &error);
	struct doctor_check *check;

	if (reason == INJECT_OK) {
		doctor_add(report, "attach", DOCTOR_OK,
		           "it can be attached (record -p %u --inject): nothing is in the way", pid);
		return;
	}
	check = doctor_add(report, "attach", DOCTOR_DEGRADED, "it cannot be attached now (%s): %s",
	                   inject_reason_code(reason), error.text);
	doctor_fix(check,
	           "record -p %u without --inject probes its CUDA calls; the GPU timeline is then inferred",
	           pid);
}

/* ---- limits ---- */

static void check_quota(uint32_t pid, struct doctor_report *report)
{
	char groups[PROCESS_CGROUP_TEXT], path[PROCESS_CGROUP_TEXT + 64], text[64], *line, *end;
	unsigned long long quota, period;

	process_cgroups(pid, groups);
	line = strstr(groups, "0::/");
	if (!line)
		return;
	line += 3;
	end = strchrnul(line, '\n');
	/* A limit of a group above counts as well; the nearest one is told. */
	while (end > line) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/cpu.max", (int)(end - line), line);
		if (proc_file_read(path, text, sizeof(text)) &&
		    sscanf(text, "%llu %llu", &quota, &period) == 2 && period) {
			doctor_add(report, "cpu_quota", DOCTOR_NOTE,
			           "its control group may use %.2f CPUs: time without quota is told as "
			           "sched.throttled",
			           (double)quota / (double)period);
			return;
		}
		do
			end--;
		while (end > line && *end != '/');
	}
}

int doctor_check_process(uint32_t pid, struct doctor_report *report, struct error *error)
{
	struct cuda_library libraries[DISCOVER_LIBRARIES];
	size_t first = report->count, count;
	struct process_stat stat;
	char path[64];
	int maps;

	if (!process_stat_read(pid, &stat))
		return error_set(error, -ESRCH, "there is no process %u", pid);
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = open(path, O_RDONLY | O_CLOEXEC);
	if (maps < 0)
		return error_set(error, -errno,
		                 "cannot look into process %u: %s: root and CAP_SYS_PTRACE are needed", pid,
		                 strerror(errno));
	close(maps);
	if (!stat.memory_bytes)
		return error_set(error, -ESRCH, "process %u has ended, or is a part of the kernel", pid);
	check_identity(pid, report);
	count = process_cuda_libraries(pid, libraries, DISCOVER_LIBRARIES);
	if (check_cuda(pid, report, libraries, count)) {
		check_attach(pid, report);
		doctor_check_process_cupti(pid, report, libraries, count);
	}
	doctor_check_process_code(pid, report);
	check_quota(pid, report);
	for (size_t i = first; i < report->count; i++)
		report->items[i].process = true;
	return 0;
}
