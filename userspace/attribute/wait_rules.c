/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a blocked thread is blamed for. Some waits explain themselves (a sleep, a disk); the others lead to
 * the thread that ended them, provided that its wake fits the wait.
 */
#include "attribute/thread_state.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "attribute/detail.h"
#include "base/number.h"

#define LOCK_TURNS 16 /* holders of a lock one after the other, within a single wait for it */

/* Waits that name their cause whoever ended them. */
static bool cause_of_wait(enum wait_kind wait, enum cause_code *code)
{
	switch (wait) {
	case WAIT_KIND_SLEEP:
		*code = CAUSE_WAIT_SLEEP;
		return true;
	case WAIT_KIND_DISK:
		*code = CAUSE_WAIT_DISK;
		return true;
	case WAIT_KIND_DISK_FAULT:
		*code = CAUSE_MEMORY_MAJOR_FAULT;
		return true;
	case WAIT_KIND_FAULT:
		*code = CAUSE_MEMORY_MINOR_FAULT;
		return true;
	case WAIT_KIND_MMAP_LOCK:
		*code = CAUSE_MEMORY_MMAP_LOCK;
		return true;
	case WAIT_KIND_RECLAIM:
		*code = CAUSE_MEMORY_RECLAIM;
		return true;
	case WAIT_KIND_CHILD:
		*code = CAUSE_WAIT_CHILD;
		return true;
	case WAIT_KIND_SIGNAL:
		*code = CAUSE_WAIT_SIGNAL;
		return true;
	case WAIT_KIND_FILE_LOCK:
		*code = CAUSE_WAIT_LOCK;
		return true;
	case WAIT_KIND_GPU_DRIVER:
		*code = CAUSE_HOST_CUDA_API;
		return true;
	default:
		return false;
	}
}

/* Wakes that name the cause where the wait alone does not. WAKE_KIND_TASK leads on to a thread instead. */
static enum cause_code cause_of_wake(const struct offcpu *offcpu, enum confidence *confidence)
{
	*confidence = CONFIDENCE_HIGH;
	switch (offcpu->wake) {
	case WAKE_KIND_TIMER:
		/* A time-out of a poll or of a timed wait: a sleep in all but name. */
		return CAUSE_WAIT_SLEEP;
	case WAKE_KIND_DISK:
		return CAUSE_WAIT_DISK;
	case WAKE_KIND_NETWORK:
		return CAUSE_WAIT_NETWORK;
	case WAKE_KIND_SIGNAL:
		return CAUSE_WAIT_SIGNAL;
	case WAKE_KIND_CHILD_EXIT:
		return CAUSE_WAIT_CHILD;
	case WAKE_KIND_GPU:
		return CAUSE_DEVICE_FLOOR;
	case WAKE_KIND_WORKER:
		*confidence = CONFIDENCE_MEDIUM;
		return CAUSE_WAIT_SYSCALL;
	default:
		*confidence = CONFIDENCE_LOW;
		return CAUSE_UNKNOWN_NO_WAKER;
	}
}

/* How sure it is that this wake ended this wait. */
static enum confidence edge_confidence(const struct offcpu *offcpu)
{
	if (offcpu->kstack == MODEL_NONE || offcpu->waker_kstack == MODEL_NONE)
		return CONFIDENCE_LOW;
	if (offcpu->wait == WAIT_KIND_FUTEX)
		return offcpu->waker_syscall == SYS_futex && offcpu->args[0] == offcpu->waker_args[0]
		           ? CONFIDENCE_HIGH
		           : CONFIDENCE_MEDIUM;
	if (offcpu->object && offcpu->waker_object)
		return offcpu->object == offcpu->waker_object ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
	/* poll and epoll name no single object: the kernel woke the thread from the waker's own write. */
	return CONFIDENCE_HIGH;
}

static void emit_blocked(struct walk *walk, struct leaf leaf, const struct offcpu *offcpu)
{
	leaf.state = LEAF_BLOCKED;
	leaf.syscall = offcpu->syscall;
	leaf.path = offcpu->path;
	if (offcpu->wait == WAIT_KIND_DISK || offcpu->wait == WAIT_KIND_DISK_FAULT)
		leaf.device = offcpu->device;
	leaf_take_stack(&leaf, walk->model, offcpu->ustack);
	walk_emit(walk, leaf);
}

/* Blocked inside a CUDA call: the call's class says more than the wait does. */
static bool blame_call(struct walk *walk, uint32_t index, const struct offcpu *offcpu, uint64_t from_ns,
                       uint64_t to_ns)
{
	const struct call *call = thread_call_at(&walk->model->threads.items[index], offcpu->out_ns);
	struct leaf leaf;

	if (!call)
		return false;
	leaf = walk_leaf(walk, index, from_ns, to_ns, call_cause(call), CONFIDENCE_HIGH);
	leaf.function = call->function;
	if (leaf.code == CAUSE_DEVICE_FLOOR)
		sync_outlasts(&leaf);
	else if (leaf.code == CAUSE_HOST_CUDA_API && offcpu->wait == WAIT_KIND_FUTEX &&
	         offcpu->wake == WAKE_KIND_TASK)
		leaf.code = CAUSE_HOST_CUDA_LOCK;
	if (offcpu->wake == WAKE_KIND_TASK)
		leaf.holder = model_waker(walk->model, offcpu);
	emit_blocked(walk, leaf, offcpu);
	return true;
}

/* Goes on in another thread, over the same time; false if the chain ends here. */
static bool follow(struct walk *walk, uint32_t index, uint32_t next, enum confidence edge, uint64_t from_ns,
                   uint64_t to_ns)
{
	const struct model *model = walk->model;
	enum confidence before = walk->confidence;

	if (walk->alone || next == MODEL_NONE || next == index || !walk_enter(walk, next, from_ns))
		return false;
	if (edge < walk->confidence)
		walk->confidence = edge;
	if (walk->crossed && thread_role(model, walk->launcher, next) == ROLE_WORKER &&
	    thread_role(model, walk->launcher, index) != ROLE_WORKER)
		walk->crossed(walk->context, index, next, from_ns, to_ns);
	walk_thread(walk, next, from_ns, to_ns);
	walk->confidence = before;
	walk_leave(walk);
	return true;
}

uint32_t interpreter_lock_holder(const struct model *model, uint32_t thread, const struct offcpu *last,
                                 uint64_t from_ns, uint64_t to_ns)
{
	uint32_t holder = MODEL_NONE;

	if (last->wake == WAKE_KIND_TASK)
		holder = model_waker(model, last);
	return holder == MODEL_NONE || holder == thread ? busiest_sibling(model, thread, from_ns, to_ns)
	                                                : holder;
}

/*
 * Waiting for the interpreter lock. In the launcher's process the lock itself is what can be changed. In a
 * worker, the thread that only delivers waits while the one that makes the data computes: that computing is
 * the cause.
 */
static void blame_interpreter_lock(struct walk *walk, uint32_t index, const struct offcpu *last,
                                   uint64_t from_ns, uint64_t to_ns)
{
	struct leaf leaf = walk_leaf(walk, index, from_ns, to_ns, CAUSE_HOST_GIL, CONFIDENCE_MEDIUM);

	leaf.holder = interpreter_lock_holder(walk->model, index, last, from_ns, to_ns);
	if (leaf.role != ROLE_LAUNCHER && leaf.role != ROLE_THREAD &&
	    follow(walk, index, leaf.holder, CONFIDENCE_MEDIUM, from_ns, to_ns))
		return;
	emit_blocked(walk, leaf, last);
}

bool wait_leads_on(const struct wait *wait, const struct offcpu *last)
{
	enum cause_code code;

	return last->woken && last->wake == WAKE_KIND_TASK && !cause_of_wait(last->wait, &code) &&
	       !offcpu_is_lock(last) && !wait->interpreter_lock;
}

/*
 * The wait of `index` for a lock that ended last before `before_ns`, and began or went on after `after_ns`;
 * NULL if it did not wait for it.
 */
static const struct offcpu *last_lock_wait(const struct model *model, uint32_t index,
                                           const struct offcpu *lock, uint64_t after_ns, uint64_t before_ns)
{
	const struct thread *thread = &model->threads.items[index];

	for (size_t at = thread_offcpu_after(thread, before_ns); at--;) {
		const struct offcpu *offcpu = &thread->offcpu.items[at];

		if (offcpu->wake_ns <= after_ns)
			break;
		if (offcpu->woken && offcpu->wake_ns < before_ns && offcpu_is_lock(offcpu) &&
		    offcpu->args[0] == lock->args[0])
			return offcpu;
	}
	return NULL;
}

/*
 * Waiting for a lock that several threads have in turn: each that hands it on had waited for it until it had
 * it, and was handed it by the one before. Who had it when the wait began is found from the end backwards.
 */
static void blame_lock(struct walk *walk, uint32_t index, const struct offcpu *last, uint64_t from_ns,
                       uint64_t to_ns)
{
	struct leaf leaf = walk_leaf(walk, index, from_ns, to_ns, CAUSE_WAIT_LOCK,
	                             last->woken ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	uint32_t pid = walk->model->threads.items[index].pid, holders[LOCK_TURNS];
	uint64_t since[LOCK_TURNS];
	const struct offcpu *handed = last;
	uint64_t until = last->wake_ns;
	int turns = 0;

	leaf.lock = last->args[0];
	leaf.lock_shared = !(last->args[1] & FUTEX_PRIVATE_FLAG);
	while (turns < LOCK_TURNS) {
		uint32_t holder =
		    handed->wake == WAKE_KIND_TASK ? model_waker(walk->model, handed) : MODEL_NONE;

		holders[turns] = holder;
		since[turns++] = from_ns;
		if (holder == MODEL_NONE || holder == index || walk->model->threads.items[holder].pid != pid)
			break;
		handed = last_lock_wait(walk->model, holder, last, from_ns, until);
		if (!handed)
			break;
		since[turns - 1] = until = handed->wake_ns;
	}
	since[turns - 1] = from_ns;
	while (turns--) {
		leaf.start_ns = since[turns];
		leaf.end_ns = turns ? earlier(since[turns - 1], to_ns) : to_ns;
		leaf.holder = holders[turns];
		emit_blocked(walk, leaf, last);
	}
}

static void blame_blocked(struct walk *walk, uint32_t index, const struct wait *wait, uint64_t from_ns,
                          uint64_t to_ns)
{
	const struct model *model = walk->model;
	const struct offcpu *last = &model->threads.items[index].offcpu.items[wait->last];
	struct leaf leaf = walk_leaf(walk, index, from_ns, to_ns, CAUSE_UNKNOWN_NO_WAKER, CONFIDENCE_HIGH);

	if (blame_call(walk, index, wait->first, from_ns, to_ns))
		return;
	if (last->wake == WAKE_KIND_TASK || last->wake == WAKE_KIND_CHILD_EXIT)
		leaf.holder = model_waker(model, last);
	if (cause_of_wait(last->wait, &leaf.code)) {
		emit_blocked(walk, leaf, last);
		return;
	}
	if (offcpu_is_lock(last)) {
		blame_lock(walk, index, last, from_ns, to_ns);
		return;
	}
	if (wait->interpreter_lock) {
		blame_interpreter_lock(walk, index, last, from_ns, to_ns);
		return;
	}
	if (wait_leads_on(wait, last)) {
		if (follow(walk, index, leaf.holder, edge_confidence(last), from_ns, to_ns))
			return;
		leaf.code = CAUSE_UNKNOWN_UNTRACED;
		leaf.confidence = CONFIDENCE_LOW;
		emit_blocked(walk, leaf, last);
		return;
	}
	leaf.code = cause_of_wake(last, &leaf.confidence);
	if (leaf.code == CAUSE_DEVICE_FLOOR)
		leaf.role = ROLE_DEVICE;
	emit_blocked(walk, leaf, last);
}

void walk_blocked(struct walk *walk, uint32_t index, const struct wait *wait, uint64_t from_ns,
                  uint64_t to_ns)
{
	bool named = !walk->lock_wait && wait->first->lock_kind;

	if (named) {
		walk->lock_wait = wait->first;
		walk->lock_waiter = index;
	}
	blame_blocked(walk, index, wait, from_ns, to_ns);
	if (named)
		walk->lock_wait = NULL;
}
