/* SPDX-License-Identifier: GPL-2.0-only */
/* Hand-made models for tests of attribution: threads, waits, calls and GPU operations, one line each. */
#ifndef WHYIDLE_TESTS_TIMELINE_H
#define WHYIDLE_TESTS_TIMELINE_H

#include "attribute/analysis.h"
#include "model/model.h"

#define US 1000ULL
#define MS 1000000ULL

struct timeline {
	struct model model;
	struct analysis analysis;
	uint32_t correlation;
	uint64_t next_address;
};

void timeline_begin(struct timeline *timeline);
void timeline_end(struct timeline *timeline); /* frees everything */

/* A process (parent 0: none) with its main thread; returns the thread. */
uint32_t timeline_process(struct timeline *timeline, uint32_t pid, uint32_t parent_pid, const char *comm);
uint32_t timeline_thread(struct timeline *timeline, uint32_t pid, uint32_t tid, const char *comm);

/*
 * Waits, by the functions of the two kernel stacks ("inner<outer" for several). waker MODEL_NONE: an
 * interrupt on the idle task.
 */
struct offcpu *timeline_blocked(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t wake,
                                uint64_t in, const char *blocked_in, uint32_t waker, const char *woken_by);
struct offcpu *timeline_futex(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t wake,
                              uint64_t in, uint32_t waker, uint64_t address);
struct offcpu *timeline_pipe(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t wake,
                             uint64_t in, uint32_t waker);
struct offcpu *timeline_sleep(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t in);
struct offcpu *timeline_preempted(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t in,
                                  uint32_t by);

void timeline_call(struct timeline *timeline, uint32_t thread, const char *function, uint64_t enter,
                   uint64_t exit, uint32_t correlation);
/* A kernel on device 0 without or with its launch call of the given length. */
struct gpu_op *timeline_op(struct timeline *timeline, uint32_t pid, uint64_t start, uint64_t end,
                           uint32_t correlation);
void timeline_kernel(struct timeline *timeline, uint32_t thread, uint64_t launch, uint64_t start,
                     uint64_t end);
void timeline_sample(struct timeline *timeline, uint32_t thread, uint64_t time, const char *kernel_function);
/* A call of NCCL in no group, 1 KiB on stream 7 of its communicator, which is also its handle. */
struct nccl_call *timeline_nccl(struct timeline *timeline, uint32_t thread, uint64_t time, uint32_t function,
                                uint64_t comm, uint64_t number);
/* The hypervisor had the thread's CPU. */
void timeline_stolen(struct timeline *timeline, uint32_t thread, uint64_t start, uint64_t end);
void timeline_lost(struct timeline *timeline, uint32_t cause, uint64_t start, uint64_t end);

/* Finishes the model and analyses it; asserts success. */
const struct device_report *timeline_analyse(struct timeline *timeline);
/* ns of a cause on device 0, 0 if it is not there. */
uint64_t timeline_ns(const struct timeline *timeline, enum cause_code code, enum cause_role role);
/* Largest cause. */
const struct cause *timeline_top(const struct timeline *timeline);

#endif
