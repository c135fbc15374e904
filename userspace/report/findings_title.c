// SPDX-License-Identifier: GPL-2.0-only
/* Findings in words: who was waited for, and what it was doing. */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "report/findings_parts.h"

#define NAMES_COLUMNS 40 /* a list of names in a title */
#define NAMES_MOST    16 /* different names that a list looks at */

const char *findings_thread_names(char *buffer, size_t size, const struct cause *cause, unsigned columns)
{
	struct {
		const char *comm;
		unsigned count;
	} names[NAMES_MOST];
	unsigned count = 0;
	char one[FORMAT_TEXT_SIZE(NAME_COLUMNS)], list[NAMES_MOST * (sizeof(one) + 16)];
	size_t used = 0;

	for (size_t i = 0; i < cause->threads.count; i++) {
		unsigned at = 0;

		while (at < count && strcmp(names[at].comm, cause->threads.items[i].comm))
			at++;
		if (at == NAMES_MOST)
			break;
		if (at == count) {
			names[count].comm = cause->threads.items[i].comm;
			names[count++].count = 0;
		}
		names[at].count++;
	}
	list[0] = '\0';
	for (unsigned i = 0; i < count && used < sizeof(list); i++) {
		name_text(one, names[i].comm);
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", one);
		if (names[i].count > 1 && used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, " ×%u", names[i].count);
	}
	return format_text(buffer, size, list, columns);
}

/* What the blamed threads were doing, to follow "was" or "were". NULL: the title has another form. */
static const char *const states[CAUSE_COUNT] = {
    [CAUSE_HOST_SYNC_THEN_SERIAL] = "running host code after a synchronisation had drained the GPU",
    [CAUSE_HOST_USER_CODE] = "busy computing",
    [CAUSE_HOST_GIL] = "waiting for the Python interpreter lock",
    [CAUSE_HOST_GC] = "collecting Python garbage",
    [CAUSE_HOST_COMPILE] = "compiling or loading code",
    [CAUSE_HOST_CUDA_ALLOC] = "allocating or freeing GPU memory",
    [CAUSE_HOST_PAGEABLE_COPY] = "copying memory that is not pinned",
    [CAUSE_HOST_CUDA_LOCK] = "waiting for a lock inside the CUDA driver",
    [CAUSE_HOST_CUDA_API] = "inside a CUDA call",
    [CAUSE_SCHED_CPU_CONTENTION] = "ready to run while other threads had the CPUs",
    [CAUSE_SCHED_THROTTLED] = "stopped because a CPU quota was used up",
    [CAUSE_SCHED_AFFINITY] = "bound to busy CPUs while others were idle",
    [CAUSE_SCHED_IRQ] = "held up by interrupts",
    [CAUSE_SCHED_STEAL] = "without a CPU because the hypervisor had taken it",
    [CAUSE_WAIT_LOCK] = "waiting for a lock",
    [CAUSE_WAIT_SYSCALL] = "blocked in a system call",
    [CAUSE_WAIT_DISK] = "waiting for storage",
    [CAUSE_WAIT_NETWORK] = "waiting for the network",
    [CAUSE_WAIT_SLEEP] = "asleep on a timer",
    [CAUSE_WAIT_CHILD] = "waiting for a child process to end",
    [CAUSE_WAIT_SIGNAL] = "waiting for a signal",
    [CAUSE_MEMORY_MINOR_FAULT] = "taking page faults on fresh memory",
    [CAUSE_MEMORY_MAJOR_FAULT] = "taking page faults that read from storage",
    [CAUSE_MEMORY_RECLAIM] = "held up while the kernel freed memory",
    [CAUSE_MEMORY_MMAP_LOCK] = "waiting for the lock of an address space",
    [CAUSE_EXTERNAL_PEER] = "waiting for a remote peer",
};

/* What held back work that was queued. */
static const char *const holders[CAUSE_COUNT] = {
    [CAUSE_DEVICE_DEPENDENCY] = "another stream or an event",
    [CAUSE_DEVICE_COPY] = "a copy",
    [CAUSE_DEVICE_PEER] = "a collective that waited for another rank",
    [CAUSE_DEVICE_OTHER_PROCESS] = "another process on the same GPU",
};

/* States that name the thing itself where it is known; false: none does. */
static bool print_known_state(FILE *out, const struct cause *cause)
{
	char text[FORMAT_TEXT_SIZE(40)];
	const struct cause_detail *detail = &cause->detail;

	switch (cause->code) {
	case CAUSE_HOST_USER_CODE:
		if (cause->role != ROLE_LAUNCHER)
			return false;
		fputs("running host code", out);
		return true;
	case CAUSE_HOST_GIL:
	case CAUSE_WAIT_LOCK:
		if (!detail->holder)
			return false;
		fprintf(out, "%s held by %s", states[cause->code],
		        format_text(text, sizeof(text), detail->holder, 32));
		return true;
	case CAUSE_SCHED_CPU_CONTENTION:
		if (!detail->holder)
			return false;
		fprintf(out, "ready to run while %s and others had the CPUs",
		        format_text(text, sizeof(text), detail->holder, 32));
		return true;
	case CAUSE_HOST_CUDA_ALLOC:
	case CAUSE_HOST_CUDA_API:
		if (!detail->function)
			return false;
		fprintf(out, "inside %s", format_text(text, sizeof(text), detail->function, 32));
		return true;
	case CAUSE_WAIT_SYSCALL:
		if (!detail->syscall)
			return false;
		fprintf(out, "blocked in the system call %s",
		        format_text(text, sizeof(text), detail->syscall, 24));
		return true;
	default:
		return false;
	}
}

static void print_state(FILE *out, const struct cause *cause)
{
	if (!print_known_state(out, cause))
		fputs(states[cause->code], out);
}

/* Number of processes among the blamed threads; 0 if memory ran out. */
static unsigned process_count(const struct cause *cause)
{
	struct index_map seen = {0};
	const struct cause_thread *thread;
	unsigned count = 0;

	array_for_each (thread, &cause->threads) {
		if (index_map_put(&seen, thread->pid, 1)) {
			index_map_free(&seen);
			return 0;
		}
	}
	count = (unsigned)seen.count;
	index_map_free(&seen);
	return count;
}

/* "2 workers that were busy computing (loader-0, loader-1)" */
static void print_workers(FILE *out, const struct cause *cause, const char *names)
{
	unsigned count = process_count(cause);

	if (cause->group.count > count && count)
		fprintf(out, "%u of %" PRIu32 " workers", count, cause->group.count);
	else
		fprintf(out, "%u worker%s", count, count == 1 ? "" : "s");
	fprintf(out, " that %s ", count == 1 ? "was" : "were");
	print_state(out, cause);
	fprintf(out, " (%s)", names);
}

/* "launcher main (1230), running host code", "2 threads of the launching process that were …" */
static void print_threads(FILE *out, const struct cause *cause, const char *names)
{
	static const char *const many[ROLE_COUNT] = {
	    [ROLE_LAUNCHER] = "launching threads",
	    [ROLE_THREAD] = "threads of the launching process",
	    [ROLE_PROCESS] = "other processes",
	};
	bool processes = cause->role == ROLE_PROCESS;
	unsigned count = processes ? process_count(cause) : (unsigned)cause->threads.count;
	char name[FORMAT_TEXT_SIZE(NAME_COLUMNS)];

	if (count == 1) {
		const struct cause_thread *thread = cause->threads.items;

		name_text(name, thread->comm);
		fputs(cause->role == ROLE_LAUNCHER ? "launcher " : processes ? "process " : "thread ", out);
		fprintf(out, "%s (%" PRIu32 "), ", name, processes ? thread->pid : thread->tid);
		print_state(out, cause);
		return;
	}
	fprintf(out, "%u %s that were ", count, many[cause->role]);
	print_state(out, cause);
	fprintf(out, " (%s)", names);
}

void title_print(FILE *out, const struct candidate *candidate)
{
	const struct cause *cause = candidate->cause;
	const struct device_report *device = candidate->device;
	char share[FORMAT_FIGURE], names[FORMAT_TEXT_SIZE(NAMES_COLUMNS)];

	format_share(share, cause->ns, device->idle_ns);
	findings_thread_names(names, sizeof(names), cause, NAMES_COLUMNS);
	if (holders[cause->code]) {
		fprintf(out, "GPU %" PRIu32 " had work queued for %s of its idle time, held back by %s",
		        device->device, share, holders[cause->code]);
		if (cause->threads.count)
			fprintf(out, " (%s)", names);
	} else if (cause->code == CAUSE_HOST_LAUNCH_BOUND) {
		fprintf(out,
		        "GPU %" PRIu32
		        " lost %s of its idle time between kernels that are shorter than their launch",
		        device->device, share);
		if (cause->threads.count)
			fprintf(out, " (%s)", names);
	} else if (cause->code == CAUSE_TOOL_OVERHEAD) {
		fprintf(out, "The recording itself made %s of the idle time of GPU %" PRIu32, share,
		        device->device);
	} else if (!states[cause->code] || !cause->threads.count || cause->role == ROLE_DEVICE) {
		fprintf(out, "GPU %" PRIu32 " lost %s of its idle time: %s", device->device, share,
		        cause_code_meaning(cause->code));
	} else {
		fprintf(out, "GPU %" PRIu32 " waited %s of its idle time for ", device->device, share);
		if (cause->role == ROLE_WORKER)
			print_workers(out, cause, names);
		else
			print_threads(out, cause, names);
	}
	fputs(cause->confidence == CONFIDENCE_LOW ? " (low confidence)." : ".", out);
}
