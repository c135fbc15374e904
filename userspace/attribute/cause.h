/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cause codes, roles and confidence: the stable vocabulary of every report (docs/causes.md).
 * Files and reports have the names: codes may be added, none is renamed.
 */
#ifndef WHYIDLE_ATTRIBUTE_CAUSE_H
#define WHYIDLE_ATTRIBUTE_CAUSE_H

#include <stdbool.h>

/* X(enumerator, code, one-line meaning for a person) */
#define CAUSE_TABLE(X)                                                                                       \
	X(DEVICE_DEPENDENCY, "device.dependency", "work was queued; another stream or event held it back")   \
	X(DEVICE_COPY, "device.copy", "work was queued; a copy held it back")                                \
	X(DEVICE_PEER, "device.peer", "work was queued; a collective waited for another rank")               \
	X(DEVICE_OTHER_PROCESS, "device.other_process", "work was queued; another process had the GPU")      \
	X(DEVICE_FLOOR, "device.floor", "the GPU's own time between operations that are ready")              \
	X(HOST_LAUNCH_BOUND, "host.launch_bound",                                                            \
	  "kernels are shorter than the time it takes to launch them")                                       \
	X(HOST_SYNC_THEN_SERIAL, "host.sync_then_serial",                                                    \
	  "a synchronisation drained the GPU, then host code ran before the next launch")                    \
	X(HOST_USER_CODE, "host.user_code", "host code was running")                                         \
	X(HOST_GIL, "host.gil", "waiting for the Python interpreter lock")                                   \
	X(HOST_GC, "host.gc", "Python garbage collection")                                                   \
	X(HOST_COMPILE, "host.compile", "compiling or loading code")                                         \
	X(HOST_CUDA_ALLOC, "host.cuda_alloc", "allocating or freeing GPU memory")                            \
	X(HOST_PAGEABLE_COPY, "host.pageable_copy", "copying from or to memory that is not pinned")          \
	X(HOST_CUDA_LOCK, "host.cuda_lock", "waiting for a lock inside the CUDA driver")                     \
	X(HOST_CUDA_API, "host.cuda_api", "inside another CUDA call")                                        \
	X(SCHED_CPU_CONTENTION, "sched.cpu_contention", "ready to run, but other threads had the CPUs")      \
	X(SCHED_THROTTLED, "sched.throttled", "ready to run, but the CPU quota of its cgroup was used up")   \
	X(SCHED_AFFINITY, "sched.affinity", "ready to run, but bound to busy CPUs while others were idle")   \
	X(SCHED_IRQ, "sched.irq", "interrupts had the CPU")                                                  \
	X(SCHED_STEAL, "sched.steal", "the hypervisor had taken the CPU away (steal time)")                  \
	X(WAIT_LOCK, "wait.lock", "waiting for a lock that another thread held")                             \
	X(WAIT_SYSCALL, "wait.syscall", "blocked in a system call")                                          \
	X(WAIT_DISK, "wait.disk", "waiting for storage")                                                     \
	X(WAIT_NETWORK, "wait.network", "waiting for the network")                                           \
	X(WAIT_SLEEP, "wait.sleep", "asleep on a timer")                                                     \
	X(WAIT_CHILD, "wait.child", "waiting for a child process to end")                                    \
	X(WAIT_SIGNAL, "wait.signal", "waiting for a signal")                                                \
	X(MEMORY_MINOR_FAULT, "memory.minor_fault", "page faults on fresh memory")                           \
	X(MEMORY_MAJOR_FAULT, "memory.major_fault", "page faults that read from storage")                    \
	X(MEMORY_RECLAIM, "memory.reclaim", "the kernel was freeing memory")                                 \
	X(MEMORY_MMAP_LOCK, "memory.mmap_lock", "waiting for the lock of the address space")                 \
	X(EXTERNAL_NO_WORK, "external.no_work", "the host had nothing to do")                                \
	X(EXTERNAL_PEER, "external.peer", "waiting for a remote peer")                                       \
	X(TOOL_OVERHEAD, "tool.overhead", "the cost of this tool or of CUPTI")                               \
	X(UNKNOWN_LOST, "unknown.lost", "records were lost here")                                            \
	X(UNKNOWN_NO_WAKER, "unknown.no_waker", "what ended the wait was not seen")                          \
	X(UNKNOWN_UNTRACED, "unknown.untraced", "the wait ended in something that was not recorded")         \
	X(UNKNOWN_NO_SCHED, "unknown.no_sched", "launched late, but there is no scheduler data")             \
	X(UNKNOWN_BEFORE_TRACE, "unknown.before_trace", "it began before the recording")                     \
	X(UNKNOWN_CLOCK, "unknown.clock", "shorter than the error of the clock")

enum cause_code {
#define CAUSE_ENUM(name, code, meaning) CAUSE_##name,
	CAUSE_TABLE(CAUSE_ENUM)
#undef CAUSE_ENUM
	    CAUSE_COUNT
};

/* Where in the chain the time was lost. */
enum cause_role {
	ROLE_LAUNCHER, /* a thread that launches work on the GPU */
	ROLE_WORKER,   /* a process forked by the launcher's process (or its thread) that feeds it */
	ROLE_THREAD,   /* another thread of the launcher's process */
	ROLE_PROCESS,  /* another process */
	ROLE_DEVICE,   /* no host thread is to blame: the device or nothing known */
	ROLE_COUNT
};

enum confidence {
	CONFIDENCE_LOW,
	CONFIDENCE_MEDIUM,
	CONFIDENCE_HIGH,
};

/* "host.user_code" etc. */
const char *cause_code_name(enum cause_code code);
/* One line for a person. */
const char *cause_code_meaning(enum cause_code code);
const char *cause_role_name(enum cause_role role); /* "launcher", "worker", "thread", "process", "device" */
const char *confidence_name(enum confidence confidence);
/* True for unknown.*: says why nothing is claimed. */
bool cause_is_unknown(enum cause_code code);

#endif
