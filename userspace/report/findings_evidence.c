// SPDX-License-Identifier: GPL-2.0-only
/* What proves a finding: figures with units, the threads, the thing they waited for. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "report/findings_parts.h"

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

/* What the replay without the cause gave. */
static int evidence_replay(struct finding *finding, const struct cause *cause)
{
	char half[FORMAT_FIGURE], all[FORMAT_FIGURE];

	if (!cause->replayed)
		return 0;
	format_duration(half, cause->gain_curve_ns[CAUSE_CURVE / 2 - 1]);
	format_duration(all, cause->gain_curve_ns[CAUSE_CURVE - 1]);
	if (!cause->has_next)
		return evidence_add(finding, "replayed without it: half of it gone gives %s, all of it %s",
		                    half, all);
	return evidence_add(
	    finding,
	    "replayed without it: half of it gone gives %s, all of it %s; then the largest cause is %s@%s",
	    half, all, cause_code_name(cause->next_code), cause_role_name(cause->next_role));
}

/* Where the thread with the largest part runs. */
static int evidence_place(struct finding *finding, const struct cause_thread *thread)
{
	char inner[48] = "";

	if (!thread->container && !thread->pod)
		return 0;
	if (thread->namespace_pid)
		snprintf(inner, sizeof(inner), ", as process %" PRIu32 " there", thread->namespace_pid);
	return evidence_add(finding, "%" PRIu32 " is in %s%.12s%s%s%.36s%s", thread->pid,
	                    thread->container ? "container " : "", thread->container ? thread->container : "",
	                    thread->container && thread->pod ? ", " : "", thread->pod ? "pod " : "",
	                    thread->pod ? thread->pod : "", inner);
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
	return err ? err : evidence_place(finding, &cause->threads.items[0]);
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
	    {"device", cause->detail.device},
	    {"lock", cause->detail.lock},
	    {findings_holder_label(cause->code), cause->detail.holder},
	    {"in", cause->detail.function},
	    {"Python", cause->detail.python},
	};
	char text[FORMAT_TEXT_SIZE(72)], wait[FORMAT_TEXT_SIZE(160)];
	int err = 0;

	if (cause->detail.waits_for)
		err = evidence_add(finding, "%s",
		                   format_text(wait, sizeof(wait), cause->detail.waits_for, 160));
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

int evidence_make(struct finding *finding, const struct candidate *candidate, const struct candidates *all)
{
	int err = evidence_time(finding, candidate);

	if (!err)
		err = evidence_replay(finding, candidate->cause);
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
