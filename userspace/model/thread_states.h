/* SPDX-License-Identifier: GPL-2.0-only */
/* What a host thread did, as a run of states without holes: what timelines show. */
#ifndef WHYIDLE_MODEL_THREAD_STATES_H
#define WHYIDLE_MODEL_THREAD_STATES_H

#include "model/model.h"

enum thread_state {
	STATE_RUNNING,
	STATE_RUNNABLE,    /* woken or preempted, waits for a CPU */
	STATE_BLOCKED,     /* waits for something */
	STATE_NOT_RECORDED /* at least one interval is missing here */
};

struct state_span {
	uint64_t start_ns, end_ns; /* end > start */
	enum thread_state state;
	const struct offcpu *offcpu; /* of RUNNABLE and BLOCKED, else NULL */
};

/*
 * Calls `visit` for each span in time order, from the thread's start (or the recording's) to its end. Nothing
 * is known of threads that were not tracked but their waits. A non-zero return ends the walk and is returned.
 */
int thread_states_visit(const struct model *model, const struct thread *thread,
                        int (*visit)(void *context, const struct state_span *span), void *context);

const char *thread_state_name(enum thread_state state); /* "running", … */

/* "task", "timer" …: what woke a thread. */
const char *wake_kind_name(enum wake_kind kind);

/* Name of the thread that had this tid at a time, "" if there is none. */
const char *thread_comm_at(const struct model *model, uint32_t tid, uint64_t time_ns);
/* Name of the thread that ended a wait, "" if it is not known. */
const char *waker_comm(const struct model *model, const struct offcpu *offcpu);

#endif
