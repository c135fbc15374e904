// SPDX-License-Identifier: GPL-2.0-only
#include "report/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "report/advice.h"
#include "report/format.h"

#define NAME_COLUMNS  24 /* one thread's name */
#define NAMES_COLUMNS 40 /* a list of them in a title */
#define NAMES_MOST    16 /* different names that a list looks at */

/* A cause together with the device it belongs to. */
struct candidate {
	const struct device_report *device;
	const struct cause *cause;
};

struct candidates {
	ARRAY(struct candidate)
};

static uint64_t window_ns(const struct device_report *device)
{
	return device->window_end_ns > device->window_start_ns
	           ? device->window_end_ns - device->window_start_ns
	           : 0;
}

/* part < percent % of whole, without overflow. */
static bool is_below(uint64_t part, uint64_t whole, unsigned percent)
{
	return (double)part * 100 < (double)whole * percent;
}

bool findings_device_healthy(const struct device_report *device)
{
	return is_below(device->idle_ns, window_ns(device), 3);
}

static bool is_candidate(const struct device_report *device, const struct cause *cause)
{
	uint64_t window = window_ns(device);

	if (findings_device_healthy(device) || !cause->ns || is_below(cause->ns, window, 1))
		return false;
	if (cause->code == CAUSE_DEVICE_FLOOR || cause->code == CAUSE_EXTERNAL_NO_WORK ||
	    cause_is_unknown(cause->code))
		return false;
	if (cause->code == CAUSE_TOOL_OVERHEAD)
		return !is_below(cause->ns, window, 5) && (double)cause->ns * 100 > (double)window * 5;
	return true;
}

/* Larger gain first, then more idle time, then the order of codes and roles, so that reports can be compared.
 */
static int candidate_compare(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->cause->gain_high_ns != b->cause->gain_high_ns)
		return a->cause->gain_high_ns < b->cause->gain_high_ns ? 1 : -1;
	if (a->cause->ns != b->cause->ns)
		return a->cause->ns < b->cause->ns ? 1 : -1;
	if (a->device->device != b->device->device)
		return a->device->device < b->device->device ? -1 : 1;
	if (a->cause->code != b->cause->code)
		return a->cause->code < b->cause->code ? -1 : 1;
	return (int)a->cause->role - (int)b->cause->role;
}

static bool same_kind(const struct cause *a, const struct cause *b)
{
	return a->code == b->code && a->role == b->role;
}

/* All candidates, best first; of one (code, role) only the best device stays in front of `kinds`. */
static int candidates_collect(struct candidates *all, const struct analysis *analysis)
{
	const struct device_report *device;
	const struct cause *cause;

	array_for_each (device, &analysis->devices) {
		array_for_each (cause, &device->causes) {
			struct candidate *candidate;

			if (!is_candidate(device, cause))
				continue;
			candidate = array_add(all);
			if (!candidate)
				return -ENOMEM;
			candidate->device = device;
			candidate->cause = cause;
		}
	}
	array_sort(all, candidate_compare);
	return 0;
}

/* A thread's name, "?" if it has none. */
static const char *name_text(char buffer[FORMAT_TEXT_SIZE(NAME_COLUMNS)], const char *comm)
{
	return format_text(buffer, FORMAT_TEXT_SIZE(NAME_COLUMNS), *comm ? comm : "?", NAME_COLUMNS);
}

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

static void print_title(FILE *out, const struct candidate *candidate)
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

/* ---- evidence ---- */

/* Adds a line made by `format`; every argument is fit to be printed. */
static int __attribute__((format(printf, 2, 3)))
evidence_add(struct finding *finding, const char *format, ...)
{
	char **line = array_add(&finding->evidence);
	va_list args;
	int length;

	if (!line)
		return -ENOMEM;
	va_start(args, format);
	length = vasprintf(line, format, args);
	va_end(args);
	if (length < 0) {
		finding->evidence.count--;
		return -ENOMEM;
	}
	return 0;
}

static int evidence_time(struct finding *finding, const struct candidate *candidate)
{
	const struct cause *cause = candidate->cause;
	char time[FORMAT_FIGURE], idle[FORMAT_FIGURE], percent[FORMAT_FIGURE], in[32], all[32];

	return evidence_add(
	    finding, "%s of %s idle time (%s), in %s of %s gaps, with %s confidence",
	    format_duration(time, cause->ns), format_duration(idle, candidate->device->idle_ns),
	    format_percent(percent, cause->ns, candidate->device->idle_ns),
	    format_count(in, cause->gap_count), format_count(all, candidate->device->gap_count),
	    confidence_name(cause->confidence));
}

static int evidence_threads(struct finding *finding, const struct cause *cause)
{
	enum { MOST = 4 };
	char *list = NULL, name[FORMAT_TEXT_SIZE(NAME_COLUMNS)], time[FORMAT_FIGURE];
	size_t size, shown = cause->threads.count < MOST ? cause->threads.count : MOST;
	FILE *out;
	int err;

	if (!shown)
		return 0;
	out = open_memstream(&list, &size);
	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < shown; i++) {
		const struct cause_thread *thread = &cause->threads.items[i];

		fprintf(out, "%s%s (%" PRIu32 "/%" PRIu32 ") %s", i ? ", " : "",
		        name_text(name, thread->comm), thread->pid, thread->tid,
		        format_duration(time, thread->ns));
	}
	if (shown < cause->threads.count)
		fprintf(out, " and %zu more", cause->threads.count - shown);
	err = fclose(out) ? -ENOMEM : evidence_add(finding, "by thread (pid/tid): %s", list);
	free(list);
	return err;
}

static unsigned percent_of(double share)
{
	return share >= 1 ? 100 : share > 0 ? (unsigned)(share * 100 + 0.5) : 0;
}

static int evidence_group(struct finding *finding, const struct worker_group *group)
{
	char time[FORMAT_FIGURE];
	int err;

	if (!group->count)
		return 0;
	err = evidence_add(
	    finding,
	    "while they were waited for (%s), the %" PRIu32 " workers ran %u %% of the time, had no CPU "
	    "%u %%, waited for storage %u %%, for the network %u %%, for work %u %%, slept %u %%, other "
	    "waits %u %%",
	    format_duration(time, group->wait_ns), group->count, percent_of(group->running),
	    percent_of(group->runnable), percent_of(group->blocked_disk), percent_of(group->blocked_network),
	    percent_of(group->blocked_input), percent_of(group->blocked_sleep),
	    percent_of(group->blocked_other));
	if (err || !group->enough)
		return err;
	return evidence_add(finding,
	                    "%" PRIu32 " workers would keep the GPU busy, if each works as fast as now",
	                    group->enough);
}

const char *findings_holder_label(enum cause_code code)
{
	switch (code) {
	case CAUSE_WAIT_LOCK:
	case CAUSE_HOST_GIL:
	case CAUSE_HOST_CUDA_LOCK:
	case CAUSE_MEMORY_MMAP_LOCK:
		return "held by";
	case CAUSE_SCHED_CPU_CONTENTION:
	case CAUSE_SCHED_AFFINITY:
	case CAUSE_SCHED_THROTTLED:
		return "the CPU went to";
	default:
		return "woken by";
	}
}

static int evidence_detail(struct finding *finding, const struct cause *cause)
{
	const struct {
		const char *label, *value;
	} lines[] = {
	    {"system call", cause->detail.syscall},
	    {"on", cause->detail.path},
	    {"lock", cause->detail.lock},
	    {findings_holder_label(cause->code), cause->detail.holder},
	    {"in", cause->detail.function},
	    {"Python", cause->detail.python},
	};
	char text[FORMAT_TEXT_SIZE(72)];
	int err = 0;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && !err; i++) {
		if (!lines[i].value)
			continue;
		err = evidence_add(finding, "%s %s", lines[i].label,
		                   format_text(text, sizeof(text), lines[i].value, 72));
	}
	if (!err && cause->waiter)
		err = evidence_add(
		    finding, "%s (%" PRIu32 "/%" PRIu32 ") waited for it before its next launch",
		    name_text(text, cause->waiter->comm), cause->waiter->pid, cause->waiter->tid);
	return err;
}

static int evidence_other_devices(struct finding *finding, const struct candidate *candidate,
                                  const struct candidates *all)
{
	enum { MOST = 8 };
	const struct candidate *other;
	char *list = NULL, time[FORMAT_FIGURE];
	size_t size, count = 0;
	FILE *out = open_memstream(&list, &size);
	int err = 0;

	if (!out)
		return -ENOMEM;
	array_for_each (other, all) {
		if (other == candidate || !same_kind(other->cause, candidate->cause))
			continue;
		if (count++ < MOST)
			fprintf(out, "%sGPU %" PRIu32 " (%s)", count > 1 ? ", " : "", other->device->device,
			        format_duration(time, other->cause->ns));
	}
	if (count > MOST)
		fprintf(out, " and %zu more", count - MOST);
	if (fclose(out))
		err = -ENOMEM;
	else if (count)
		err = evidence_add(finding, "the same on %s", list);
	free(list);
	return err;
}

static int evidence_make(struct finding *finding, const struct candidate *candidate,
                         const struct candidates *all)
{
	int err = evidence_time(finding, candidate);

	if (!err)
		err = evidence_threads(finding, candidate->cause);
	if (!err)
		err = evidence_group(finding, &candidate->cause->group);
	if (!err)
		err = evidence_detail(finding, candidate->cause);
	if (!err)
		err = evidence_other_devices(finding, candidate, all);
	return err;
}

/* ---- putting it together ---- */

static int advice_for(struct finding *finding, const struct cause *cause)
{
	char enough[16], ample[16], workers[16], path[FORMAT_TEXT_SIZE(32)], holder[FORMAT_TEXT_SIZE(24)];
	char function[FORMAT_TEXT_SIZE(32)], thread[FORMAT_TEXT_SIZE(NAME_COLUMNS)];
	const struct cause_detail *detail = &cause->detail;
	struct advice_facts facts = {0};

	if (cause->group.count) {
		snprintf(workers, sizeof(workers), "%" PRIu32, cause->group.count);
		facts.workers = workers;
	}
	if (cause->group.enough > cause->group.count) {
		snprintf(enough, sizeof(enough), "%" PRIu32, cause->group.enough);
		facts.enough = enough;
	} else if (cause->group.enough) {
		snprintf(ample, sizeof(ample), "%" PRIu32, cause->group.enough);
		facts.ample = ample;
	}
	if (detail->path)
		facts.path = format_text(path, sizeof(path), detail->path, 32);
	if (detail->holder)
		facts.holder = format_text(holder, sizeof(holder), detail->holder, 24);
	if (detail->function)
		facts.function = format_text(function, sizeof(function), detail->function, 32);
	if (cause->threads.count)
		facts.thread = name_text(thread, cause->threads.items[0].comm);
	return advice_make(&finding->advice, &finding->hint, cause->code, cause->role, &facts);
}

static int finding_fill(struct finding *finding, const struct candidate *candidate,
                        const struct candidates *all)
{
	const struct cause *cause = candidate->cause;
	size_t size;
	FILE *out;
	int err;

	finding->code = cause->code;
	finding->role = cause->role;
	finding->confidence = cause->confidence;
	finding->device = candidate->device->device;
	finding->window_ns = window_ns(candidate->device);
	finding->idle_ns = cause->ns;
	finding->gain_low_ns = cause->gain_low_ns;
	finding->gain_high_ns = cause->gain_high_ns;
	out = open_memstream(&finding->title, &size);
	if (!out)
		return -ENOMEM;
	print_title(out, candidate);
	if (fclose(out))
		return -ENOMEM;
	err = advice_for(finding, cause);
	return err ? err : evidence_make(finding, candidate, all);
}

/* True if a better candidate before this one is of the same kind, which then speaks for both. */
static bool is_repeated(const struct candidates *all, const struct candidate *candidate)
{
	for (const struct candidate *other = all->items; other < candidate; other++) {
		if (same_kind(other->cause, candidate->cause))
			return true;
	}
	return false;
}

int findings_make(struct findings *findings, const struct analysis *analysis)
{
	struct candidates all = {0};
	const struct candidate *candidate;
	int err = candidates_collect(&all, analysis);

	memset(findings, 0, sizeof(*findings));
	array_for_each (candidate, &all) {
		struct finding *finding;

		if (err || findings->count == FINDINGS_MOST)
			break;
		if (is_repeated(&all, candidate))
			continue;
		finding = array_add(findings);
		if (!finding) {
			err = -ENOMEM;
			break;
		}
		finding->rank = (uint32_t)findings->count;
		err = finding_fill(finding, candidate, &all);
	}
	array_free(&all);
	return err;
}

void findings_free(struct findings *findings)
{
	struct finding *finding;
	char **line;

	array_for_each (finding, findings) {
		array_for_each (line, &finding->evidence)
			free(*line);
		array_free(&finding->evidence);
		free(finding->title);
		free(finding->advice);
		free(finding->hint);
	}
	array_free(findings);
}
