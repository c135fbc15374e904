/* SPDX-License-Identifier: GPL-2.0-only */
#include "attribute/workers.h"

#include <errno.h>
#include <math.h>

#include "attribute/walk.h"
#include "base/number.h"

struct state_mix {
	uint64_t total, running, runnable, sleep, disk, network, input, other;
};

void worker_waits_add(struct worker_waits *waits, uint32_t waiter, uint32_t worker, uint64_t from_ns,
                      uint64_t to_ns)
{
	struct worker_wait *wait = array_add(waits);

	if (!wait)
		waits->failed = true;
	else
		*wait = (struct worker_wait){waiter, worker, from_ns, to_ns};
}

static void add_blocked(struct state_mix *mix, const struct model *model, const struct offcpu *offcpu,
                        uint32_t consumer, uint64_t ns)
{
	uint32_t waker = model_waker(model, offcpu);

	if (offcpu->wait == WAIT_KIND_SLEEP)
		mix->sleep += ns;
	else if (offcpu->wait == WAIT_KIND_DISK || offcpu->wait == WAIT_KIND_DISK_FAULT)
		mix->disk += ns;
	else if (offcpu->wait == WAIT_KIND_INET_SOCKET)
		mix->network += ns;
	else if (offcpu->wake == WAKE_KIND_TASK && waker != MODEL_NONE &&
	         model->threads.items[waker].process == consumer)
		mix->input += ns; /* its consumer woke it: it had nothing to do before that */
	else
		mix->other += ns;
}

static uint64_t overlap(uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
	start = later(start, from);
	end = earlier(end, to);
	return end > start ? end - start : 0;
}

static void add_states(struct state_mix *mix, const struct model *model, uint32_t index, uint32_t consumer,
                       uint64_t from_ns, uint64_t to_ns)
{
	const struct thread *thread = &model->threads.items[index];
	uint64_t away = 0;

	if (from_ns < thread->start_ns)
		from_ns = thread->start_ns;
	if (from_ns < thread->tracked_from_ns)
		from_ns = thread->tracked_from_ns;
	if (to_ns > thread->end_ns)
		to_ns = thread->end_ns;
	if (to_ns <= from_ns)
		return;
	for (size_t at = thread_offcpu_after(thread, from_ns);
	     at < thread->offcpu.count && thread->offcpu.items[at].out_ns < to_ns; at++) {
		const struct offcpu *offcpu = &thread->offcpu.items[at];
		uint64_t blocked = overlap(offcpu->out_ns, offcpu->wake_ns, from_ns, to_ns);
		uint64_t runnable = overlap(offcpu->wake_ns, offcpu->in_ns, from_ns, to_ns);

		if (blocked)
			add_blocked(mix, model, offcpu, consumer, blocked);
		mix->runnable += runnable;
		away += blocked + runnable;
	}
	mix->total += to_ns - from_ns;
	mix->running += to_ns - from_ns - away;
}

/* Main thread of a process: it does the work; its other threads only deliver. */
static uint32_t main_thread(const struct model *model, uint32_t process)
{
	const struct process *own = &model->processes.items[process];
	const uint32_t *thread;

	array_for_each (thread, &own->threads) {
		if (model->threads.items[*thread].tid == own->pid)
			return *thread;
	}
	return MODEL_NONE;
}

int worker_group_measure(struct worker_group *group, const struct worker_waits *waits,
                         const struct model *model)
{
	struct state_mix mix = {0}, whole = {0};
	struct {
		ARRAY(uint32_t)
	} workers = {0};
	struct index_map known = {0};
	const struct worker_wait *wait;
	uint64_t start_ns = UINT64_MAX, end_ns = 0;
	uint32_t *worker, consumer = MODEL_NONE, ignored;
	int rc = waits->failed ? -ENOMEM : 0;

	*group = (struct worker_group){0};
	array_for_each (wait, waits) {
		uint32_t process = model->threads.items[wait->worker].process;

		group->wait_ns += wait->to_ns - wait->from_ns;
		start_ns = earlier(wait->from_ns, start_ns);
		end_ns = later(wait->to_ns, end_ns);
		consumer = model->threads.items[wait->waiter].process;
		if (rc || index_map_get(&known, process, &ignored))
			continue;
		worker = array_add(&workers);
		if (!worker || index_map_put(&known, process, 1)) {
			rc = -ENOMEM;
			break;
		}
		*worker = main_thread(model, process);
	}
	array_for_each (worker, &workers) {
		if (*worker == MODEL_NONE)
			continue;
		array_for_each (wait, waits)
			add_states(&mix, model, *worker, consumer, wait->from_ns, wait->to_ns);
		add_states(&whole, model, *worker, consumer, start_ns, end_ns);
	}
	group->count = workers.count;
	if (mix.total) {
		group->running = (double)mix.running / mix.total;
		group->runnable = (double)mix.runnable / mix.total;
		group->blocked_sleep = (double)mix.sleep / mix.total;
		group->blocked_disk = (double)mix.disk / mix.total;
		group->blocked_network = (double)mix.network / mix.total;
		group->blocked_input = (double)mix.input / mix.total;
		group->blocked_other = (double)mix.other / mix.total;
	}
	/* Work the group did from the first wait to the last, spread over the time left without those waits.
	 */
	if (whole.total && end_ns - start_ns > group->wait_ns)
		group->enough =
		    ceil((double)(whole.total - whole.input) / (end_ns - start_ns - group->wait_ns));
	if (group->enough < group->count)
		group->enough = 0;
	array_free(&workers);
	index_map_free(&known);
	return rc;
}
