/* SPDX-License-Identifier: GPL-2.0-only */
/* Questions about one thread's timeline. */
#include "attribute/thread_state.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/number.h"

size_t thread_offcpu_after(const struct thread *thread, uint64_t time_ns)
{
	size_t low = 0, high = thread->offcpu.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->offcpu.items[middle].in_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

bool thread_ran(const struct thread *thread, uint64_t from_ns, uint64_t to_ns)
{
	size_t at = thread_offcpu_after(thread, from_ns);

	return at == thread->offcpu.count || thread->offcpu.items[at].out_ns >= to_ns;
}

/* The first call that is not over at `time`, NULL if there is none. */
static const struct call *thread_call_after(const struct thread *thread, uint64_t time_ns)
{
	size_t low = 0, high = thread->calls.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->calls.items[middle].exit_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low == thread->calls.count ? NULL : &thread->calls.items[low];
}

const struct call *thread_call_at(const struct thread *thread, uint64_t time_ns)
{
	const struct call *call = thread_call_after(thread, time_ns);

	return call && call->enter_ns <= time_ns ? call : NULL;
}

enum cause_role thread_role(const struct model *model, uint32_t launcher, uint32_t index)
{
	const struct thread *thread, *root;
	const struct process *own;

	if (index == MODEL_NONE || launcher == MODEL_NONE)
		return ROLE_DEVICE;
	thread = &model->threads.items[index];
	root = &model->threads.items[launcher];
	own = &model->processes.items[root->process];
	if (thread->process == root->process) {
		/* A thread that launches now and then only (set-up, say) is not a launcher. */
		return index == launcher || thread->launches * 100 > own->launches ? ROLE_LAUNCHER
		                                                                   : ROLE_THREAD;
	}
	for (uint32_t p = thread->process, depth = 0; p != MODEL_NONE && depth < 64; depth++) {
		p = model->processes.items[p].parent;
		if (p == root->process)
			return ROLE_WORKER;
	}
	return ROLE_PROCESS;
}

bool thread_role_certain(const struct model *model, uint32_t thread, enum cause_role role)
{
	uint32_t process;

	if (role != ROLE_PROCESS)
		return true;
	process = model->threads.items[thread].process;
	for (uint32_t depth = 0; process != MODEL_NONE && depth < 64; depth++) {
		if (model->processes.items[process].parent_lost)
			return false;
		process = model->processes.items[process].parent;
	}
	return true;
}

bool offcpu_is_lock(const struct offcpu *offcpu)
{
	uint32_t operation = offcpu->args[1] & FUTEX_CMD_MASK;

	if (offcpu->wait != WAIT_KIND_FUTEX || offcpu->syscall != SYS_futex)
		return false;
	/* glibc's low-level lock sets the word to 2 before it waits, and waits while it is 2 (2.26 to 2.41).
	 */
	return (operation == FUTEX_WAIT && (uint32_t)offcpu->args[2] == 2) || operation == FUTEX_LOCK_PI ||
	       operation == FUTEX_LOCK_PI2;
}

/* Any program may wait for 5 ms: only one that may be in the interpreter waits for its lock. */
static bool expired_switch_interval(const struct model *model, const struct offcpu *offcpu)
{
	uint64_t length = offcpu->wake_ns - offcpu->out_ns;

	if (offcpu->ustack != MODEL_NONE && model->stacks.items[offcpu->ustack].without_python)
		return false;
	return offcpu->wait == WAIT_KIND_FUTEX && offcpu->woken && offcpu->wake == WAKE_KIND_TIMER &&
	       length >= INTERPRETER_LOCK_MIN_NS && length <= INTERPRETER_LOCK_MAX_NS;
}

static bool same_object(const struct offcpu *a, const struct offcpu *b)
{
	return !a->preempted && !b->preempted && a->syscall == b->syscall && a->syscall >= 0 &&
	       a->wait == b->wait && a->args[0] == b->args[0];
}

/* Each leads to the same thread, whether or not the first of the two wakes was a false one. */
static bool same_waker(const struct offcpu *a, const struct offcpu *b)
{
	return a->wake == WAKE_KIND_TASK && b->wake == WAKE_KIND_TASK && a->waker_tid == b->waker_tid;
}

/* It launched or synchronised something in between: whatever woke it was what it had waited for. */
static bool went_on(const struct thread *thread, uint64_t from_ns, uint64_t to_ns)
{
	const struct call *call = thread_call_after(thread, from_ns);

	return call && call->enter_ns < to_ns;
}

struct wait wait_merge(const struct model *model, const struct thread *thread, size_t first,
                       uint64_t latency_ns)
{
	struct wait wait = {.first = &thread->offcpu.items[first], .last = first};
	const struct offcpu *current = wait.first;

	wait.interpreter_lock = expired_switch_interval(model, current);
	/* Sleeps and disk waits that follow each other are separate; a lock goes to each holder in turn. */
	if (current->wait != WAIT_KIND_FUTEX || offcpu_is_lock(current))
		return wait;
	while (wait.last + 1 < thread->offcpu.count) {
		const struct offcpu *next = &thread->offcpu.items[wait.last + 1];

		if (next->lost_before || !same_object(current, next) || same_waker(current, next) ||
		    next->out_ns - current->in_ns > FALSE_WAKE_NS ||
		    current->in_ns - current->wake_ns > latency_ns ||
		    went_on(thread, current->in_ns, next->out_ns))
			break;
		wait.interpreter_lock |= expired_switch_interval(model, next);
		current = next;
		wait.last++;
	}
	return wait;
}

static uint64_t running_ns(const struct thread *thread, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t away = 0;

	if (from_ns < thread->start_ns)
		from_ns = thread->start_ns;
	if (from_ns < thread->tracked_from_ns)
		from_ns = thread->tracked_from_ns;
	if (to_ns > thread->end_ns)
		to_ns = thread->end_ns;
	if (!thread->tracked || to_ns <= from_ns)
		return 0;
	for (size_t at = thread_offcpu_after(thread, from_ns);
	     at < thread->offcpu.count && thread->offcpu.items[at].out_ns < to_ns; at++) {
		const struct offcpu *offcpu = &thread->offcpu.items[at];
		uint64_t start = later(offcpu->out_ns, from_ns);

		away += earlier(offcpu->in_ns, to_ns) - start;
	}
	return to_ns - from_ns - away;
}

uint32_t busiest_sibling(const struct model *model, uint32_t of, uint64_t from_ns, uint64_t to_ns)
{
	const struct process *process = &model->processes.items[model->threads.items[of].process];
	uint32_t best = MODEL_NONE;
	const uint32_t *thread;
	uint64_t most = 0;

	array_for_each (thread, &process->threads) {
		uint64_t ns = *thread == of ? 0 : running_ns(&model->threads.items[*thread], from_ns, to_ns);

		if (ns > most) {
			most = ns;
			best = *thread;
		}
	}
	return best;
}
