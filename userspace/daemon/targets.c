// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/targets.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/families.h"

#define SMOOTH         0.5  /* weight of the newest reading */
#define SETTLED        3    /* readings, since the last window, before what is usual is known */
#define SHIFT_CPU      0.15 /* CPUs, and … */
#define SHIFT_SWITCHES 40.0 /* … switches a second that a change must be larger than … */
#define SHIFT_SHARE    0.4  /* … besides this share of the larger figure */

struct target *targets_find(const struct targets *targets, uint32_t pid)
{
	struct target *target;

	array_for_each (target, &targets->items) {
		if (target->pid == pid)
			return target;
	}
	return NULL;
}

struct target *targets_add(struct targets *targets, uint32_t pid, const struct identity *identity)
{
	struct target *target = targets_find(targets, pid);

	if (target)
		return target;
	target = array_add(&targets->items);
	if (!target)
		return NULL;
	target->pid = pid;
	target->identity = *identity;
	return target;
}

void targets_remove(struct targets *targets, uint32_t pid)
{
	struct target *target = targets_find(targets, pid);

	if (!target)
		return;
	*target = targets->items.items[targets->items.count - 1];
	targets->items.count--;
}

void targets_free(struct targets *targets)
{
	array_free(&targets->items);
	array_free(&targets->before);
	array_free(&targets->reading);
}

int targets_take(struct targets *targets, const struct counters_thread *thread)
{
	struct counters_thread *slot = array_add(&targets->reading);

	if (!slot)
		return -ENOMEM;
	*slot = *thread;
	return 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct counters_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

uint32_t targets_root(const struct targets *targets, uint32_t pid)
{
	const struct counters_thread wanted = {.tid = pid}, *thread = NULL;

	if (targets_find(targets, pid))
		return pid;
	/* The thread that a process began with has its number. */
	if (targets->before.count)
		thread =
		    bsearch(&wanted, targets->before.items, targets->before.count, sizeof(wanted), by_tid);
	return thread && targets_find(targets, thread->root) ? thread->root : 0;
}

static uint64_t grown(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

struct adding {
	struct metrics *metrics;
	uint64_t now_ns;
	const struct identity *who;
};

static void add(const struct adding *adding, enum family family, const char *more, double value)
{
	const struct identity *who = adding->who;

	if (value)
		*metrics_at(adding->metrics, family, adding->now_ns, who->process, who->container, who->pod,
		            more) += value;
}

/* What one thread has done since `before`. */
static void count_thread(struct target *target, const struct adding *adding,
                         const struct counters_thread *before, const struct counters_thread *now)
{
	double run = grown(before->run_ns, now->run_ns) / 1e9;
	double runqueue = grown(before->runqueue_ns, now->runqueue_ns) / 1e9;
	double disk = grown(before->disk_ns, now->disk_ns) / 1e9;
	double voluntary = grown(before->voluntary, now->voluntary);

	target->sums.cpu += run;
	target->sums.runqueue += runqueue;
	target->sums.disk += disk;
	target->sums.switches += voluntary;
	add(adding, FAMILY_PROCESS_CPU, NULL, run);
	add(adding, FAMILY_PROCESS_RUNQUEUE, NULL, runqueue);
	add(adding, FAMILY_PROCESS_BLOCKED, "disk", disk);
	add(adding, FAMILY_PROCESS_BLOCKED, "sleep", grown(before->sleep_ns, now->sleep_ns) / 1e9);
	add(adding, FAMILY_PROCESS_SWITCHES, "voluntary", voluntary);
	add(adding, FAMILY_PROCESS_SWITCHES, "preempted", grown(before->preempted, now->preempted));
	add(adding, FAMILY_PROCESS_FAULTS, "minor", grown(before->minor_faults, now->minor_faults));
	add(adding, FAMILY_PROCESS_FAULTS, "major", grown(before->major_faults, now->major_faults));
	if (!(now->flags & COUNTERS_IO))
		return;
	add(adding, FAMILY_PROCESS_IO, "read", grown(before->read_bytes, now->read_bytes));
	add(adding, FAMILY_PROCESS_IO, "write", grown(before->write_bytes, now->write_bytes));
}

static void blend(double *smoothed, double value, bool first)
{
	*smoothed = first ? value : *smoothed + SMOOTH * (value - *smoothed);
}

static void end_reading(struct target *target, double seconds)
{
	bool first = !target->has_profile;

	blend(&target->now.cpu, target->sums.cpu / seconds, first);
	blend(&target->now.runqueue, target->sums.runqueue / seconds, first);
	blend(&target->now.disk, target->sums.disk / seconds, first);
	blend(&target->now.switches, target->sums.switches / seconds, first);
	target->has_profile = true;
	target->readings++;
}

/* Threads that are new since the last reading are counted from when they began, if that was after it. */
void targets_read(struct targets *targets, struct metrics *metrics, uint64_t now_ns)
{
	double seconds = targets->read_ns ? (now_ns - targets->read_ns) / 1e9 : 0;
	struct adding adding = {metrics, now_ns, NULL};
	static const struct counters_thread nothing;
	const struct counters_thread *thread;
	struct target *target;
	size_t at = 0;

	array_sort(&targets->reading, by_tid);
	array_for_each (target, &targets->items) {
		target->threads = target->processes = 0;
		memset(&target->sums, 0, sizeof(target->sums));
	}
	array_for_each (thread, &targets->reading) {
		const struct counters_thread *before = NULL;

		target = targets_find(targets, thread->root);
		if (!target)
			continue;
		target->threads++;
		target->processes += thread->tid == thread->tgid;
		while (at < targets->before.count && targets->before.items[at].tid < thread->tid)
			at++;
		if (at < targets->before.count && targets->before.items[at].tid == thread->tid &&
		    targets->before.items[at].start_ns == thread->start_ns)
			before = &targets->before.items[at];
		else if (target->has_profile)
			before = &nothing;
		if (!before)
			continue;
		adding.who = &target->identity;
		count_thread(target, &adding, before, thread);
	}
	array_for_each (target, &targets->items) {
		if (seconds > 0 && target->threads)
			end_reading(target, seconds);
	}
	/* The two lists change places. */
	{
		__typeof__(targets->before) old = targets->before;

		memcpy(&targets->before, &targets->reading, sizeof(old));
		memcpy(&targets->reading, &old, sizeof(old));
	}
	targets->reading.count = 0;
	targets->read_ns = now_ns;
}

void targets_window(struct targets *targets)
{
	struct target *target;

	array_for_each (target, &targets->items) {
		target->at_window = target->now;
		target->has_window = target->has_profile;
		target->readings = 0;
	}
}

bool targets_settled(const struct targets *targets)
{
	const struct target *target;

	array_for_each (target, &targets->items) {
		if (target->has_window || target->readings >= SETTLED)
			return true;
	}
	return false;
}

static bool shifted(double then, double now, double least)
{
	double change = fabs(now - then);

	return change > least && change > SHIFT_SHARE * fmax(then, now);
}

const struct target *targets_shifted(const struct targets *targets)
{
	const struct target *target;

	array_for_each (target, &targets->items) {
		if (!target->has_profile || target->readings < SETTLED)
			continue;
		if (!target->has_window || shifted(target->at_window.cpu, target->now.cpu, SHIFT_CPU) ||
		    shifted(target->at_window.runqueue, target->now.runqueue, SHIFT_CPU) ||
		    shifted(target->at_window.disk, target->now.disk, SHIFT_CPU) ||
		    shifted(target->at_window.switches, target->now.switches, SHIFT_SWITCHES))
			return target;
	}
	return NULL;
}
