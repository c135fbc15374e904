// SPDX-License-Identifier: GPL-2.0-only
#include "inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inject/places.h"
#include "inject/target.h"

static const char *const codes[] = {
    [INJECT_OK] = "ok",
    [INJECT_GONE] = "gone",
    [INJECT_ARCHITECTURE] = "architecture",
    [INJECT_NOT_PERMITTED] = "not-permitted",
    [INJECT_TRACED] = "traced",
    [INJECT_STOPPED] = "stopped",
    [INJECT_NO_CUDA] = "no-cuda",
    [INJECT_NO_LIBC] = "no-libc",
    [INJECT_SECCOMP] = "seccomp",
    [INJECT_SHADOW_STACK] = "shadow-stack",
    [INJECT_NO_ROOM] = "no-room",
    [INJECT_NO_SAFE_POINT] = "no-safe-point",
    [INJECT_TIMEOUT] = "timeout",
    [INJECT_LOAD] = "load",
    [INJECT_BUSY] = "busy",
    [INJECT_KERNEL] = "kernel",
    [INJECT_FAILED_REASON] = "failed",
};

const char *inject_reason_code(enum inject_reason reason)
{
	return (size_t)reason < sizeof(codes) / sizeof(codes[0]) ? codes[reason] : "failed";
}

static enum inject_reason refuse(struct error *error, enum inject_reason reason, const char *text)
{
	error_set(error, -ECANCELED, "%s", text);
	return reason;
}

/* Threads may differ: seccomp and tracers are a matter of each. */
static enum inject_reason check_threads(uint32_t pid, struct error *error)
{
	struct target_threads threads;
	enum inject_reason reason = INJECT_OK;

	if (target_threads_read(pid, &threads))
		return refuse(error, INJECT_GONE, "there is no such process");
	for (size_t i = 0; i < threads.count && reason == INJECT_OK; i++) {
		struct target_status status;

		if (!target_status_read(pid, threads.items[i], &status))
			continue;
		if (status.state == 'Z' || status.state == 'X') {
			if (threads.items[i] == pid && threads.count == 1)
				reason = refuse(error, INJECT_GONE, "the process has ended");
		} else if (status.tracer) {
			error_set(error, -EBUSY,
			          "a debugger or another tool traces it (process %u): detach that first",
			          status.tracer);
			reason = INJECT_TRACED;
		} else if (status.state == 'T' || status.state == 't') {
			reason = refuse(error, INJECT_STOPPED, "it is stopped: let it go on (kill -CONT)");
		} else if (status.seccomp) {
			reason = refuse(error, INJECT_SECCOMP,
			                "it runs under seccomp, which might end it for what the bridge "
			                "does: start it through whyidle record instead");
		} else if (status.shadow_stack) {
			reason = refuse(error, INJECT_SHADOW_STACK, "it uses a shadow stack (CET)");
		}
	}
	array_free(&threads);
	return reason;
}

static enum inject_reason check_memory(uint32_t pid, struct error *error)
{
	struct c_library library;
	struct target_maps maps;
	enum inject_reason reason;
	char path[64];
	int memory, err = target_maps_read(pid, &maps);

	if (err == -ENOENT || err == -ESRCH)
		return refuse(error, INJECT_GONE, "there is no such process");
	if (err || !maps.count) {
		array_free(&maps);
		return refuse(error, INJECT_NOT_PERMITTED,
		              "its mappings cannot be read: CAP_SYS_PTRACE (root) is needed");
	}
	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0) {
		error_set(error, -errno, "its memory cannot be opened: %s; root is needed, and %s",
		          strerror(errno), "kernel.yama.ptrace_scope must not be 3");
		reason = INJECT_NOT_PERMITTED;
	} else if (!places_has_cuda(&maps)) {
		reason = refuse(error, INJECT_NO_CUDA, "it has not loaded the CUDA driver (libcuda.so)");
	} else {
		reason = places_c_library(&maps, memory, &library, error);
	}
	if (memory >= 0)
		close(memory);
	array_free(&maps);
	return reason;
}

enum inject_reason inject_check(uint32_t pid, struct error *error)
{
	enum inject_reason reason;

#ifndef __x86_64__
	return refuse(error, INJECT_ARCHITECTURE, "attaching works on x86-64 only");
#endif
	if (pid == (uint32_t)getpid())
		return refuse(error, INJECT_NOT_PERMITTED, "whyidle does not attach to itself");
	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		return refuse(error, INJECT_GONE, "there is no such process");
	reason = check_threads(pid, error);
	return reason == INJECT_OK ? check_memory(pid, error) : reason;
}
