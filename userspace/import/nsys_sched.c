/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When threads were off the CPU: by the scheduler rows (SCHED_EVENTS) where there are any, named by the
 * traced functions of the C library (OSRT_API) that the thread was in. Neither tells what woke a thread.
 *
 * Only threads that made CUDA calls are followed: without wakers nothing leads to any other, and a
 * system-wide trace has millions of rows of those.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <strings.h>

#include "import/nsys_loader.h"

/* ENUM_SAMPLING_THREAD_STATE, where the file does not have that table. */
enum {
	STATE_UNKNOWN = 0,
	STATE_RUNNING = 1, /* switched out while it wanted to go on: preempted */
	STATE_TERMINATED = 5,
};

/* A thread came to or left a CPU. */
struct switch_event {
	int64_t time_ns;
	uint32_t order; /* of rows */
	uint16_t cpu;
	bool in;
	uint8_t state; /* enum, as it left */
};

/* A function of the C library that waits. */
struct os_span {
	int64_t start_ns, end_ns;
	const struct nsys_os_call *call;
};

/* What is gathered of a thread. */
struct timeline {
	struct {
		ARRAY(struct switch_event)
	} switches;
	struct {
		ARRAY(struct os_span)
	} spans;
};

struct gatherer {
	struct timeline *timelines; /* one per thread of the model */
	uint32_t order;
	int64_t first_ns;            /* of all scheduler rows */
	int64_t running, terminated; /* values of threadState */
};

/* The timeline of a thread that made CUDA calls, NULL for others. */
static struct timeline *find_timeline(const struct nsys_loader *loader, struct gatherer *gatherer,
                                      int64_t global_tid)
{
	uint32_t index = nsys_known_thread(loader, global_tid);

	if (index == MODEL_NONE || !loader->model->threads.items[index].calls.count)
		return NULL;
	return &gatherer->timelines[index];
}

enum { STATE_ID, STATE_NAME };

static int load_state(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	struct gatherer *gatherer = context;
	const char *name = nsys_text(table, STATE_NAME);
	int64_t id;

	(void)loader;
	if (!name || !nsys_integer(table, STATE_ID, &id))
		return 1;
	if (!strcasecmp(name, "Running"))
		gatherer->running = id;
	else if (!strcasecmp(name, "Terminated"))
		gatherer->terminated = id;
	return 0;
}

enum { SWITCH_TIME, SWITCH_IN, SWITCH_THREAD, SWITCH_CPU, SWITCH_STATE };

static int load_switch(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	struct gatherer *gatherer = context;
	struct switch_event *event;
	struct timeline *timeline;
	int64_t time, in, global_tid, state;

	if (!nsys_time(table, SWITCH_TIME, &time) || !nsys_integer(table, SWITCH_IN, &in) ||
	    !nsys_integer(table, SWITCH_THREAD, &global_tid))
		return 1;
	if (time < gatherer->first_ns)
		gatherer->first_ns = time;
	timeline = find_timeline(loader, gatherer, global_tid);
	if (!timeline)
		return 0;
	event = array_add(&timeline->switches);
	if (!event)
		return -ENOMEM;
	*event = (struct switch_event){
	    .time_ns = time,
	    .order = gatherer->order++,
	    .cpu = (uint16_t)nsys_unsigned(table, SWITCH_CPU, 0),
	    .in = in != 0,
	};
	/* A state beside a thread that comes in is left over from when it went. */
	if (!event->in && nsys_integer(table, SWITCH_STATE, &state))
		event->state = state == gatherer->running      ? STATE_RUNNING
		               : state == gatherer->terminated ? STATE_TERMINATED
		                                               : STATE_UNKNOWN;
	loader->model->has_sched = true;
	nsys_see_time(loader, time);
	return 0;
}

static int load_switches(struct nsys_loader *loader, struct gatherer *gatherer)
{
	static const struct nsys_column states[] = {[STATE_ID] = {"id", true}, [STATE_NAME] = {"name", true}};
	static const struct nsys_column columns[] = {
	    [SWITCH_TIME] = {"start", true},         [SWITCH_IN] = {"isSchedIn", true},
	    [SWITCH_THREAD] = {"globalTid", true},   [SWITCH_CPU] = {"cpu", false},
	    [SWITCH_STATE] = {"threadState", false},
	};
	struct nsys_table table;
	int rc = nsys_read(loader, &table, "ENUM_SAMPLING_THREAD_STATE",
	                   "why threads left the CPU is not known", states, 2, load_state, gatherer);

	return rc ? rc
	          : nsys_read(loader, &table, "SCHED_EVENTS", "there is no scheduler data", columns, 5,
	                      load_switch, gatherer);
}

enum { OS_START, OS_END, OS_THREAD, OS_NAME };

static int load_os_call(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	const struct nsys_os_call *call;
	int64_t start, end, global_tid;
	struct timeline *timeline;
	struct os_span *span;
	uint32_t name;

	if (!nsys_time(table, OS_START, &start) || !nsys_time(table, OS_END, &end) || end < start ||
	    !nsys_integer(table, OS_THREAD, &global_tid))
		return 1;
	timeline = find_timeline(loader, context, global_tid);
	if (!timeline)
		return 0;
	name = nsys_name(loader, table, OS_NAME);
	if (name == MODEL_NONE)
		return -ENOMEM;
	call = nsys_os_call_find(model_string(loader->model, name));
	if (!call)
		return 0;
	span = array_add(&timeline->spans);
	if (!span)
		return -ENOMEM;
	*span = (struct os_span){start, end, call};
	return 0;
}

static int load_os_calls(struct nsys_loader *loader, struct gatherer *gatherer)
{
	static const struct nsys_column columns[] = {
	    [OS_START] = {"start", true},
	    [OS_END] = {"end", true},
	    [OS_THREAD] = {"globalTid", true},
	    [OS_NAME] = {"nameId", true},
	};
	struct nsys_table table;

	return nsys_read(loader, &table, "OSRT_API", "what threads waited in is not known", columns, 4,
	                 load_os_call, gatherer);
}

static int compare_switch(const void *a, const void *b)
{
	const struct switch_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* Outer ones before the ones that they enclose. */
static int compare_span(const void *a, const void *b)
{
	const struct os_span *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* system() waits by calling waitpid(): the outer one is kept. */
static void keep_outer_spans(struct timeline *timeline)
{
	size_t kept = 0;

	array_sort(&timeline->spans, compare_span);
	for (size_t i = 0; i < timeline->spans.count; i++) {
		const struct os_span *span = &timeline->spans.items[i];

		if (!kept || span->start_ns >= timeline->spans.items[kept - 1].end_ns)
			timeline->spans.items[kept++] = *span;
	}
	timeline->spans.count = kept;
}

static const struct os_span *span_at(const struct timeline *timeline, int64_t time_ns)
{
	size_t low = 0, high = timeline->spans.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (timeline->spans.items[middle].end_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == timeline->spans.count || timeline->spans.items[low].start_ns > time_ns)
		return NULL;
	return &timeline->spans.items[low];
}

static struct offcpu *add_offcpu(struct thread *thread, int64_t out_ns, int64_t in_ns,
                                 const struct os_span *span)
{
	struct offcpu *offcpu = array_add(&thread->offcpu);

	if (!offcpu)
		return NULL;
	*offcpu = (struct offcpu){
	    .out_ns = (uint64_t)out_ns,
	    .wake_ns = (uint64_t)in_ns, /* nothing tells when it could have gone on */
	    .in_ns = (uint64_t)in_ns,
	    .syscall = span ? span->call->syscall : -1,
	    .waker_syscall = -1,
	    .kstack = MODEL_NONE,
	    .waker_kstack = MODEL_NONE,
	    .ustack = MODEL_NONE,
	};
	if (span && span->call->lock) {
		/* How the C library's locks wait. */
		offcpu->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
		offcpu->args[2] = 2;
	}
	return offcpu;
}

static bool called_before(const struct thread *thread, int64_t time_ns)
{
	const struct call *call;

	array_for_each (call, &thread->calls) {
		if ((int64_t)call->enter_ns < time_ns)
			return true;
	}
	return false;
}

/* What is carried from one switch of a thread to the next. */
struct switching {
	struct switch_event last;
	bool lost; /* a switch is missing since the last whole interval */
};

/* The interval that `event` ends, if it ends one. */
static int add_switch(struct thread *thread, const struct timeline *timeline, struct switching *state,
                      const struct switch_event *event)
{
	struct offcpu *offcpu;

	if (event->in == state->last.in) {
		/* Twice the same: what was between them is not known. */
		state->lost |= event->time_ns != state->last.time_ns;
		state->last = *event;
		return 0;
	}
	if (event->in) {
		offcpu = add_offcpu(thread, state->last.time_ns, event->time_ns,
		                    span_at(timeline, state->last.time_ns));
		if (!offcpu)
			return -ENOMEM;
		offcpu->preempted = state->last.state == STATE_RUNNING;
		if (offcpu->preempted)
			offcpu->wake_ns = offcpu->out_ns;
		offcpu->out_cpu = state->last.cpu;
		offcpu->in_cpu = event->cpu;
		offcpu->lost_before = state->lost;
		state->lost = false;
	}
	state->last = *event;
	return 0;
}

/*
 * A thread whose first row is that it came was away since the recording began, and one whose first row is
 * that it went had been running, unless its calls were recorded from before that.
 */
static int begin_switches(const struct nsys_loader *loader, const struct gatherer *gatherer,
                          struct thread *thread, struct switching *state, const struct switch_event *first)
{
	*state = (struct switching){.last = *first};
	if (!first->in) {
		state->lost = called_before(thread, gatherer->first_ns);
		return 0;
	}
	if (called_before(thread, first->time_ns)) {
		state->lost = true;
		return 0;
	}
	return add_offcpu(thread, loader->first_ns, first->time_ns, NULL) ? 0 : -ENOMEM;
}

static int make_waits(const struct nsys_loader *loader, const struct gatherer *gatherer,
                      struct thread *thread, struct timeline *timeline)
{
	struct switching state;
	struct offcpu *offcpu;

	if (!timeline->switches.count)
		return 0;
	thread->tracked = true;
	array_sort(&timeline->switches, compare_switch);
	if (begin_switches(loader, gatherer, thread, &state, &timeline->switches.items[0]))
		return -ENOMEM;
	for (size_t i = 1; i < timeline->switches.count; i++) {
		if (add_switch(thread, timeline, &state, &timeline->switches.items[i]))
			return -ENOMEM;
	}
	if (state.last.in) {
		thread->lost_at_end = state.lost;
		return 0;
	}
	if (state.last.state == STATE_TERMINATED) {
		thread->end_ns = (uint64_t)state.last.time_ns;
		thread->lost_at_end = state.lost;
		return 0;
	}
	offcpu =
	    add_offcpu(thread, state.last.time_ns, loader->last_ns, span_at(timeline, state.last.time_ns));
	if (!offcpu)
		return -ENOMEM;
	offcpu->open = true;
	offcpu->lost_before = state.lost;
	return 0;
}

/* Without scheduler rows, a call that waits is all there is to say that a thread was blocked. */
static int make_waits_of_spans(struct thread *thread, const struct timeline *timeline)
{
	const struct os_span *span;

	array_for_each (span, &timeline->spans) {
		if (!add_offcpu(thread, span->start_ns, span->end_ns, span))
			return -ENOMEM;
	}
	return 0;
}

static int make_all_waits(struct nsys_loader *loader, struct gatherer *gatherer)
{
	struct model *model = loader->model;
	bool spans = false;

	for (size_t i = 0; i < model->threads.count; i++) {
		struct timeline *timeline = &gatherer->timelines[i];
		int rc;

		keep_outer_spans(timeline);
		rc = model->has_sched ? make_waits(loader, gatherer, &model->threads.items[i], timeline)
		                      : make_waits_of_spans(&model->threads.items[i], timeline);
		if (rc)
			return rc;
		spans |= timeline->spans.count > 0;
	}
	if (model->has_sched)
		return nsys_note(loader, "the scheduler rows do not say what woke a thread");
	if (spans)
		return nsys_note(loader,
		                 "waits are known from the traced OS functions only: short ones were not "
		                 "recorded, and not what woke a thread");
	return loader->ops ? nsys_note(loader, "the export holds no scheduler data: record with nsys profile "
	                                       "--cpuctxsw=process-tree --trace=cuda,nvtx,osrt")
	                   : 0;
}

int nsys_load_waits(struct nsys_loader *loader)
{
	size_t count = loader->model->threads.count;
	struct gatherer gatherer = {
	    .timelines = calloc(count ? count : 1, sizeof(*gatherer.timelines)),
	    .first_ns = INT64_MAX,
	    .running = STATE_RUNNING,
	    .terminated = STATE_TERMINATED,
	};
	int rc;

	if (!gatherer.timelines)
		return -ENOMEM;
	rc = load_switches(loader, &gatherer);
	if (!rc)
		rc = load_os_calls(loader, &gatherer);
	if (!rc)
		rc = make_all_waits(loader, &gatherer);
	for (size_t i = 0; i < count; i++) {
		array_free(&gatherer.timelines[i].switches);
		array_free(&gatherer.timelines[i].spans);
	}
	free(gatherer.timelines);
	return rc;
}
