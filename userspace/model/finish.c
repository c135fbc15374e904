/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last step of building a model: order everything by time, link GPU operations to the calls that launched
 * them, and classify waits by their kernel stacks.
 */
#include "model/fed_copies.h"
#include "model/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>

#define FRAMES_MAX 128

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_offcpu(const void *a, const void *b)
{
	const struct offcpu *x = a, *y = b;

	return COMPARE(x->out_ns, y->out_ns);
}

static int compare_sample(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return COMPARE(x->time_ns, y->time_ns);
}

/* Outer calls before the ones they enclose. */
static int compare_call(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	int order = COMPARE(x->enter_ns, y->enter_ns);

	return order ? order : COMPARE(y->exit_ns, x->exit_ns);
}

static int compare_overhead(const void *a, const void *b)
{
	const struct overhead *x = a, *y = b;

	return COMPARE(x->start_ns, y->start_ns);
}

static int compare_scope(const void *a, const void *b)
{
	const struct scope *x = a, *y = b;
	int order = COMPARE(x->start_ns, y->start_ns);

	return order ? order : COMPARE(y->end_ns, x->end_ns);
}

static int compare_op(const void *a, const void *b)
{
	const struct gpu_op *x = a, *y = b;
	int order = COMPARE(x->start_ns, y->start_ns);

	return order ? order : COMPARE(x->order, y->order);
}

static int compare_loss(const void *a, const void *b)
{
	const struct loss *x = a, *y = b;

	return COMPARE(x->start_ns, y->start_ns);
}

/* Names of a kernel stack's frames; returns how many. */
static size_t stack_names(const struct model *model, uint32_t index, const char **names)
{
	const struct stack *stack;
	size_t count;

	if (index == MODEL_NONE)
		return 0;
	stack = &model->stacks.items[index];
	count = stack->count < FRAMES_MAX ? stack->count : FRAMES_MAX;
	for (size_t i = 0; i < count; i++)
		names[i] = model_symbol(model, stack->pid, model->frames.items[stack->first + i]);
	return count;
}

#define WAKE_ENDING (1u << 16) /* beside an enum wake_kind: see offcpu.waker_ending */

/* Classification is a pure function of the stack and a few small values, so each combination is done once. */
struct classifier {
	const struct model *model;
	struct index_map waits, wakes, samples;
};

static uint64_t classifier_key(uint32_t stack, int32_t syscall, bool flag)
{
	return (uint64_t)stack << 32 | (uint64_t)(flag ? 1 : 0) << 31 | ((uint32_t)syscall & 0x7fffffff);
}

static bool is_fault(enum wait_kind kind)
{
	return kind == WAIT_KIND_DISK_FAULT || kind == WAIT_KIND_FAULT || kind == WAIT_KIND_MMAP_LOCK ||
	       kind == WAIT_KIND_RECLAIM;
}

/* Of several descriptors, the one that was named is the one that the waker used. */
static bool waits_for_several(const struct offcpu *offcpu)
{
	switch (offcpu->syscall) {
#ifdef SYS_poll
	case SYS_poll:
#endif
	case SYS_ppoll:
		return offcpu->args[1] != 1;
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_pselect6:
		return true;
	default:
		return false;
	}
}

static int classify_offcpu(struct classifier *classifier, struct offcpu *offcpu)
{
	const char *names[FRAMES_MAX];
	uint32_t kind;
	uint64_t key = classifier_key(offcpu->kstack, offcpu->syscall, false);
	size_t count;

	if (!index_map_get(&classifier->waits, key, &kind)) {
		count = stack_names(classifier->model, offcpu->kstack, names);
		kind = wait_classify(names, count, offcpu->syscall);
		if (index_map_put(&classifier->waits, key, kind))
			return -ENOMEM;
	}
	offcpu->wait = kind;
	/* Without a system call, what is named is what the last page fault touched: did that one block? */
	if (offcpu->syscall < 0 && !is_fault(kind))
		offcpu->path = offcpu->device = 0;
	if (!offcpu->woken)
		return 0;
	key = classifier_key(offcpu->waker_kstack, offcpu->waker_syscall, offcpu->waker_tid != 0);
	if (!index_map_get(&classifier->wakes, key, &kind)) {
		count = stack_names(classifier->model, offcpu->waker_kstack, names);
		kind =
		    wake_classify(names, count, offcpu->waker_tid, offcpu->waker_pid, offcpu->waker_syscall);
		if (wake_is_ending(names, count, offcpu->waker_syscall))
			kind |= WAKE_ENDING;
		if (index_map_put(&classifier->wakes, key, kind))
			return -ENOMEM;
	}
	offcpu->waker_ending = kind & WAKE_ENDING;
	kind &= ~WAKE_ENDING;
	offcpu->wake = kind;
	/* An interrupt may run on top of any system call: what that one was about has no part in it. */
	if (kind != WAKE_KIND_TASK && waits_for_several(offcpu))
		offcpu->path = 0;
	return 0;
}

static int classify_sample(struct classifier *classifier, struct sample *sample)
{
	const char *names[FRAMES_MAX];
	bool user = sample->kind == SAMPLE_USER;
	uint64_t key = classifier_key(sample->kstack, sample->syscall, user);
	uint32_t kind;

	if (sample->kind == SAMPLE_FAULT) /* as it was recorded */
		return 0;
	if (!index_map_get(&classifier->samples, key, &kind)) {
		size_t count = stack_names(classifier->model, sample->kstack, names);

		kind = sample_classify(names, count, user, sample->syscall);
		if (index_map_put(&classifier->samples, key, kind))
			return -ENOMEM;
	}
	sample->kind = kind;
	return 0;
}

/*
 * Makes the intervals of a thread disjoint: the collector merges per-CPU streams, so equal times can come in
 * any order, and a hostile or damaged file can hold anything. Later ones lose what overlaps.
 */
static void trim_offcpu(struct thread *thread)
{
	size_t kept = 0;
	uint64_t free_from = 0;

	for (size_t i = 0; i < thread->offcpu.count; i++) {
		struct offcpu *offcpu = &thread->offcpu.items[i];

		if (offcpu->out_ns < free_from)
			offcpu->out_ns = free_from;
		if (offcpu->in_ns <= offcpu->out_ns)
			continue;
		if (offcpu->wake_ns < offcpu->out_ns)
			offcpu->wake_ns = offcpu->out_ns;
		if (offcpu->wake_ns > offcpu->in_ns)
			offcpu->wake_ns = offcpu->in_ns;
		free_from = offcpu->in_ns;
		thread->offcpu.items[kept++] = *offcpu;
	}
	thread->offcpu.count = kept;
}

/* Makes the stretches that were stolen from a thread disjoint, whatever the file holds. */
static void trim_stolen(struct thread *thread)
{
	size_t kept = 0;
	uint64_t free_from = 0;

	for (size_t i = 0; i < thread->stolen.count; i++) {
		struct span span = thread->stolen.items[i];

		if (span.start_ns < free_from)
			span.start_ns = free_from;
		if (span.end_ns <= span.start_ns)
			continue;
		free_from = span.end_ns;
		thread->stolen.items[kept++] = span;
	}
	thread->stolen.count = kept;
}

static uint64_t call_key(uint32_t process, uint32_t correlation)
{
	return (uint64_t)process << 32 | correlation;
}

/*
 * Keeps the outermost calls and remembers, for each correlation id, the outermost call that carries it or
 * encloses the call that does. Values are indices into `sites`.
 */
struct call_site {
	uint32_t thread, call;
	uint64_t enter_ns; /* of the call with the id itself */
};

struct call_sites {
	ARRAY(struct call_site)
};

static const struct call_site *find_site(const struct model *model, const struct call_sites *sites,
                                         uint64_t key)
{
	uint32_t index;

	if (!index_map_get(&model->call_by_id, key, &index) || index >= sites->count)
		return NULL;
	return &sites->items[index];
}

static int keep_outer_calls(struct model *model, uint32_t index, struct call_sites *sites)
{
	struct thread *thread = &model->threads.items[index];
	uint64_t measured = model->processes.items[thread->process].cupti_from_ns;
	size_t kept = 0;

	array_sort(&thread->calls, compare_call);
	for (size_t i = 0; i < thread->calls.count; i++) {
		struct call call = thread->calls.items[i];
		struct call *outer = kept ? &thread->calls.items[kept - 1] : NULL;

		/* CUPTI has the same ones from there on. */
		if (call.probed && measured && call.enter_ns >= measured)
			continue;

		if (outer && call.enter_ns < outer->exit_ns) {
			if (call.exit_ns > outer->exit_ns)
				outer->exit_ns = call.exit_ns;
		} else {
			call.first_op_ns = UINT64_MAX;
			thread->calls.items[kept++] = call;
		}
		if (cuda_class_submits(call.class))
			thread->launches++;
		if (call.correlation) {
			uint64_t key = call_key(thread->process, call.correlation);
			const struct call_site *old = find_site(model, sites, key);
			struct call_site *site;

			/* Of several with one id, the earliest is the launch. */
			if (old && old->enter_ns <= call.enter_ns)
				continue;
			site = array_add(sites);
			if (!site)
				return -ENOMEM;
			*site = (struct call_site){index, kept - 1, call.enter_ns};
			if (index_map_put(&model->call_by_id, key, sites->count - 1))
				return -ENOMEM;
		}
	}
	thread->calls.count = kept;
	model->processes.items[thread->process].launches += thread->launches;
	return 0;
}

/* Calls have the names that people know, whatever the source adds. */
static int name_calls(const struct thread *thread, struct model *model, struct index_map *plain)
{
	struct call *call;
	uint32_t known;

	array_for_each (call, &thread->calls) {
		if (!index_map_get(plain, call->function, &known)) {
			const char *name = model_string(model, call->function);
			size_t length = cuda_name_length(name);

			known = name[length] ? model_add_string(model, name, length) : call->function;
			if (known == MODEL_NONE || index_map_put(plain, call->function, known))
				return -ENOMEM;
		}
		call->function = known;
	}
	return 0;
}

static bool is_collective(const char *name)
{
	for (; *name; name++) {
		if (!strncasecmp(name, "nccl", 4) || !strncasecmp(name, "rccl", 4))
			return true;
	}
	return false;
}

/* What the operations tell of the call that launched them. */
static void note_launch(struct model *model, const struct gpu_op *op)
{
	struct call *call = &model->threads.items[op->launch_thread].calls.items[op->launch_call];

	if (op->start_ns < call->first_op_ns)
		call->first_op_ns = op->start_ns;
	if (is_pageable_copy(op))
		call->pageable = true;
}

static int finish_device(struct model *model, struct device *device, const struct call_sites *sites)
{
	struct index_map collective = {0};
	struct gpu_op *op;
	int rc = 0;

	array_sort(&device->ops, compare_op);
	array_for_each (op, &device->ops) {
		const struct call_site *site = NULL;
		uint32_t flag = 0;

		if (op->kind == OP_KERNEL && !index_map_get(&collective, op->name, &flag)) {
			flag = is_collective(model_string(model, op->name));
			rc = index_map_put(&collective, op->name, flag);
			if (rc)
				break;
		}
		op->collective = flag;
		op->nccl = MODEL_NONE;
		if (op->inferred) {
			note_launch(model, op);
			continue;
		}
		op->launch_thread = op->launch_call = MODEL_NONE;
		if (op->correlation && op->process != MODEL_NONE)
			site = find_site(model, sites, call_key(op->process, op->correlation));
		if (site) {
			op->launch_thread = site->thread;
			op->launch_call = site->call;
			op->launch_ns = site->enter_ns;
			note_launch(model, op);
		}
	}
	index_map_free(&collective);
	if (model->source == MODEL_SESSION) /* foreign traces are taken at their word */
		mark_fed_copies(device);
	return rc;
}

/* Traces of other tools do not always name threads; reports need something to call them by. */
static int name_thread(struct model *model, struct thread *thread)
{
	char text[32];
	int length;

	if (*model_string(model, thread->comm))
		return 0;
	length = snprintf(text, sizeof(text), "thread %u", thread->tid);
	thread->comm = model_add_string(model, text, length);
	return thread->comm == MODEL_NONE ? -ENOMEM : 0;
}

/*
 * Every scope that is open at some moment is on the way outwards from the last one that began before. `row`
 * holds the ends of those that are open and do not cross, the innermost last. Returns 0 or -ENOMEM.
 */
static int nest_scopes(struct thread *thread)
{
	struct scope *scopes = thread->scopes.items;
	uint32_t open = MODEL_NONE;
	struct {
		ARRAY(uint64_t)
	} row = {0};
	int rc = 0;

	for (uint32_t i = 0; i < thread->scopes.count; i++) {
		while (open != MODEL_NONE && scopes[open].end_ns <= scopes[i].start_ns)
			open = scopes[open].outer;
		scopes[i].outer = open;
		open = i;
		while (row.count && row.items[row.count - 1] <= scopes[i].start_ns)
			row.count--;
		scopes[i].crosses = row.count && row.items[row.count - 1] < scopes[i].end_ns;
		if (!scopes[i].crosses) {
			uint64_t *end = array_add(&row);

			if (!end) {
				rc = -ENOMEM;
				break;
			}
			*end = scopes[i].end_ns;
		}
	}
	array_free(&row);
	return rc;
}

static int finish_thread(struct thread *thread, struct classifier *classifier)
{
	struct offcpu *offcpu;
	struct sample *sample;

	array_sort(&thread->offcpu, compare_offcpu);
	array_sort(&thread->samples, compare_sample);
	array_sort(&thread->stolen, span_compare);
	array_sort(&thread->overhead, compare_overhead);
	array_sort(&thread->scopes, compare_scope);
	if (nest_scopes(thread))
		return -ENOMEM;
	trim_offcpu(thread);
	trim_stolen(thread);
	array_for_each (offcpu, &thread->offcpu) {
		if (classify_offcpu(classifier, offcpu))
			return -ENOMEM;
	}
	array_for_each (sample, &thread->samples) {
		if (classify_sample(classifier, sample))
			return -ENOMEM;
	}
	return 0;
}

static bool loses_gpu_records(const struct loss *loss)
{
	return loss->cause == RECORD_LOSS_BRIDGE_RING || loss->cause == RECORD_LOSS_CUPTI ||
	       loss->cause == RECORD_LOSS_FILE;
}

/* Losses may overlap and touch; holes do not. */
static int make_holes(struct model *model)
{
	const struct loss *loss;

	array_sort(&model->losses, compare_loss);
	array_for_each (loss, &model->losses) {
		struct span *last =
		    model->gpu_holes.count ? &model->gpu_holes.items[model->gpu_holes.count - 1] : NULL;

		if (loss->cause == RECORD_LOSS_BPF_RING && loss->end_ns > model->sched_lost_ns)
			model->sched_lost_ns = loss->end_ns;
		if (!loses_gpu_records(loss) || loss->end_ns <= loss->start_ns)
			continue;
		if (last && loss->start_ns <= last->end_ns) {
			if (loss->end_ns > last->end_ns)
				last->end_ns = loss->end_ns;
			continue;
		}
		last = array_add(&model->gpu_holes);
		if (!last)
			return -ENOMEM;
		*last = (struct span){loss->start_ns, loss->end_ns};
	}
	return 0;
}

/*
 * A jump in a thread's record numbers shows what was lost between two of its records. After the last one only
 * its exit could: without that, anything lost since may have been this thread's.
 */
static void mark_lost_ends(struct model *model)
{
	struct thread *thread;

	array_for_each (thread, &model->threads) {
		const struct offcpu *last =
		    thread->offcpu.count ? &thread->offcpu.items[thread->offcpu.count - 1] : NULL;

		if (thread->end_ns == UINT64_MAX &&
		    model->sched_lost_ns > (last ? last->in_ns : thread->start_ns))
			thread->lost_at_end = true;
	}
}

/* Every process whose threads are recorded was seen to be born, unless that record was lost. */
static void mark_lost_parents(struct model *model)
{
	const struct thread *thread;

	array_for_each (thread, &model->threads) {
		struct process *process = &model->processes.items[thread->process];

		if (model->sched_lost_ns && thread->tracked && !process->born)
			process->parent_lost = true;
	}
}

static int list_threads(struct model *model)
{
	for (uint32_t i = 0; i < model->threads.count; i++) {
		const struct thread *thread = &model->threads.items[i];
		uint32_t *slot = array_add(&model->processes.items[thread->process].threads);

		if (!slot)
			return -ENOMEM;
		*slot = i;
		if (!thread->calls.count)
			continue;
		slot = array_add(&model->callers);
		if (!slot)
			return -ENOMEM;
		*slot = i;
	}
	return 0;
}

int model_finish(struct model *model, struct error *error)
{
	struct classifier classifier = {.model = model};
	struct index_map plain_names = {0};
	struct call_sites sites = {0};
	struct device *device;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < model->threads.count; i++) {
		rc = name_thread(model, &model->threads.items[i]);
		if (!rc)
			rc = finish_thread(&model->threads.items[i], &classifier);
		if (!rc)
			rc = name_calls(&model->threads.items[i], model, &plain_names);
		if (!rc)
			rc = keep_outer_calls(model, i, &sites);
	}
	if (!rc)
		rc = model_name_stacks(model);
	if (!rc)
		rc = list_threads(model);
	if (!rc)
		rc = model_infer(model);
	array_for_each (device, &model->devices) {
		if (!rc)
			rc = finish_device(model, device, &sites);
	}
	if (!rc)
		rc = make_holes(model);
	if (!rc)
		rc = model_join_nccl(model);
	mark_lost_ends(model);
	mark_lost_parents(model);
	index_map_free(&classifier.waits);
	index_map_free(&classifier.wakes);
	index_map_free(&classifier.samples);
	index_map_free(&plain_names);
	index_map_free(&model->call_by_id);
	array_free(&sites);
	return rc ? error_no_memory(error) : 0;
}
