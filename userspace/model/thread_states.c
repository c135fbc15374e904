// SPDX-License-Identifier: GPL-2.0-only
#include "model/thread_states.h"

const char *thread_state_name(enum thread_state state)
{
	static const char *const names[] = {
	    [STATE_RUNNING] = "running",
	    [STATE_RUNNABLE] = "runnable",
	    [STATE_BLOCKED] = "blocked",
	    [STATE_NOT_RECORDED] = "not recorded",
	};

	return names[state];
}

const char *wake_kind_name(enum wake_kind kind)
{
	static const char *const names[WAKE_KIND_COUNT] = {
	    [WAKE_KIND_UNKNOWN] = "unknown",       [WAKE_KIND_TASK] = "task",
	    [WAKE_KIND_TIMER] = "timer",           [WAKE_KIND_DISK] = "disk",
	    [WAKE_KIND_NETWORK] = "network",       [WAKE_KIND_GPU] = "gpu",
	    [WAKE_KIND_WORKER] = "worker",         [WAKE_KIND_SIGNAL] = "signal",
	    [WAKE_KIND_CHILD_EXIT] = "child exit",
	};

	return (unsigned)kind < WAKE_KIND_COUNT ? names[kind] : names[WAKE_KIND_UNKNOWN];
}

struct state_walk {
	int (*visit)(void *context, const struct state_span *span);
	void *context;
};

static int show(const struct state_walk *walk, uint64_t start_ns, uint64_t end_ns, enum thread_state state,
                const struct offcpu *offcpu)
{
	const struct state_span span = {start_ns, end_ns, state, offcpu};

	return end_ns > start_ns ? walk->visit(walk->context, &span) : 0;
}

int thread_states_visit(const struct model *model, const struct thread *thread,
                        int (*visit)(void *context, const struct state_span *span), void *context)
{
	const struct state_walk walk = {visit, context};
	uint64_t from = thread->start_ns > model->start_ns ? thread->start_ns : model->start_ns;
	uint64_t to = thread->end_ns < model->end_ns ? thread->end_ns : model->end_ns;
	const struct offcpu *offcpu;
	int rc = 0;

	array_for_each (offcpu, &thread->offcpu) {
		if (thread->tracked)
			rc = show(&walk, from, offcpu->out_ns,
			          offcpu->lost_before ? STATE_NOT_RECORDED : STATE_RUNNING, NULL);
		if (!rc && !offcpu->preempted)
			rc = show(&walk, offcpu->out_ns, offcpu->wake_ns, STATE_BLOCKED, offcpu);
		if (!rc)
			rc = show(&walk, offcpu->preempted ? offcpu->out_ns : offcpu->wake_ns, offcpu->in_ns,
			          STATE_RUNNABLE, offcpu);
		if (rc)
			return rc;
		from = offcpu->in_ns;
	}
	if (thread->tracked)
		rc = show(&walk, from, to, thread->lost_at_end ? STATE_NOT_RECORDED : STATE_RUNNING, NULL);
	return rc;
}

static const char *comm_of(const struct model *model, uint32_t index)
{
	return index == MODEL_NONE ? "" : model_string(model, model->threads.items[index].comm);
}

const char *thread_comm_at(const struct model *model, uint32_t tid, uint64_t time_ns)
{
	return comm_of(model, model_thread_at(model, tid, time_ns));
}

const char *waker_comm(const struct model *model, const struct offcpu *offcpu)
{
	return comm_of(model, model_waker(model, offcpu));
}
