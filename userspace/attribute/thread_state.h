/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to attribute/: the parts of the walk and what they share. */
#ifndef WHYIDLE_ATTRIBUTE_THREAD_STATE_H
#define WHYIDLE_ATTRIBUTE_THREAD_STATE_H

#include "attribute/walk.h"

/*
 * One wait as a person sees it: from `first` to the interval with index `last`. A wake after which the thread
 * blocks again on the same object without getting anywhere is part of the wait (attribution.md section 3).
 */
struct wait {
	const struct offcpu *first;
	size_t last;
	bool interpreter_lock; /* expired at the interval at which CPython asks for its lock again */
};

/* Longest run between two waits on one object that still counts as getting nowhere. */
#define FALSE_WAKE_NS 50000

/* CPython's switch interval is 5 ms (sys.getswitchinterval); a wait expires that long after it began, plus
 * slack. */
#define INTERPRETER_LOCK_MIN_NS 4900000
#define INTERPRETER_LOCK_MAX_NS 6500000

/*
 * The wait that begins with interval `first` of the thread. A false wake after which the thread was without a
 * CPU for longer than `latency_ns` ends it: where that time is to be told from waiting.
 */
struct wait wait_merge(const struct model *model, const struct thread *thread, size_t first,
                       uint64_t latency_ns);

/* The wait is to be blamed on the thread that ended it, if that is known. `last` is its last interval. */
bool wait_leads_on(const struct wait *wait, const struct offcpu *last);

/* The thread that had the interpreter lock over a wait for it, MODEL_NONE. */
uint32_t interpreter_lock_holder(const struct model *model, uint32_t thread, const struct offcpu *last,
                                 uint64_t from_ns, uint64_t to_ns);

/* A futex wait for a contended lock of the C library (operation and expected value tell), or a
 * priority-inheriting one. */
bool offcpu_is_lock(const struct offcpu *offcpu);

/* The thread of `of`'s process, other than it, that ran longest in [from, to]; MODEL_NONE if none ran. */
uint32_t busiest_sibling(const struct model *model, uint32_t of, uint64_t from_ns, uint64_t to_ns);

/* False if the role is only that of another process because the record that told of its parent was lost. */
bool thread_role_certain(const struct model *model, uint32_t thread, enum cause_role role);

struct leaf walk_leaf(const struct walk *walk, uint32_t thread, uint64_t from_ns, uint64_t to_ns,
                      enum cause_code code, enum confidence confidence);
void walk_emit(struct walk *walk, struct leaf leaf);

/* Enters a thread; false if the chain is too long or closes on itself. walk_leave undoes it. */
bool walk_enter(struct walk *walk, uint32_t thread, uint64_t from_ns);
void walk_leave(struct walk *walk);

/* Blames a stretch of any thread that has been entered. */
void walk_thread(struct walk *walk, uint32_t thread, uint64_t from_ns, uint64_t to_ns);

/* run_rules.c: the thread was on the CPU. */
void walk_running(struct walk *walk, uint32_t thread, uint64_t from_ns, uint64_t to_ns);
/* What being inside this call means for the host thread. */
enum cause_code call_cause(const struct call *call);

/*
 * A thread was in a synchronising call while the GPU was idle: the GPU is done and the call returns, which is
 * nobody's fault, unless it takes long. Sets code and role.
 */
void sync_outlasts(struct leaf *leaf);

/* wait_rules.c: the thread was blocked. */
void walk_blocked(struct walk *walk, uint32_t thread, const struct wait *wait, uint64_t from_ns,
                  uint64_t to_ns);

#endif
