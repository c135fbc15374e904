/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A GPU timeline from CUDA calls alone, for processes whose calls were probed and whose operations nobody
 * recorded.
 *
 * Every submission becomes an operation that starts a moment after the call and ends when it is known to be
 * over: when a synchronisation that covers it returned (of its stream, of an event recorded behind it, of the
 * device), when a query of the same said so, or a copy to the host that waits for itself. One that nothing
 * ever waited for lasts until the process or the recording ends. So the GPU is idle in the result where that
 * is certain of these processes: after such a return and before the next submission. It may have been idle
 * for longer; where the same work is known to take less time, operations end earlier (infer_length.c), and
 * that idle time is an estimate.
 *
 * A query answers for a moment between its entry and its return. Ready: all that it covers, of what was
 * submitted before it began, was over at its return. Not ready: some of it was not at its entry, which says
 * nothing of when it will be, but that it is no shorter.
 *
 * Where another tool had CUPTI first and let go of it later, only what came before is inferred.
 */
#include "model/infer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define SUBMIT_NS       5000 /* from a launch to its start on an idle GPU: a usual latency (attribute/owner.c) */
#define COPY_TO_HOST    2    /* cudaMemcpyDeviceToHost */
#define CHAIN_DEPTH     16 /* streams that wait for each other in a row */
#define NAMED_PROCESSES 3
/* Handles that stand for a default stream: cudaStreamLegacy is 1, cudaStreamPerThread 2, as in the driver. */
#define DEFAULT_QUEUE    0
#define LEGACY_STREAM    1
#define THREAD_STREAM    2
#define THREAD_QUEUE(id) (1ULL << 63 | (id)) /* no handle: those are addresses of the program */
#define READY            0                   /* results of queries, of the runtime and of the driver */
#define NOT_READY        600

/* A moment of one process: a submission or an event at its entry, a synchronisation or a query at its return.
 */
struct moment {
	uint64_t time_ns;
	uint32_t thread, call;
};

struct inferred_op {
	uint32_t op; /* index in `work.ops` of the run */
	uint64_t submit_ns;
	uint32_t after_queue; /* it waits for the first `after_count` operations of that one, MODEL_NONE */
	size_t after_count;
	/* It and those before were not all over at these times, the first and the last; 0: not known. */
	uint64_t unfinished_ns, still_unfinished_ns;
};

struct queue {
	ARRAY(struct inferred_op)
	size_t done;          /* these are known to be over */
	uint32_t after_queue; /* of the next operation */
	size_t after_count;
};

struct recorded_event {
	uint32_t queue;
	size_t count; /* operations of the queue that came before */
	uint64_t recorded_ns;
};

struct inference {
	struct model *model;
	uint32_t process;
	struct {
		ARRAY(struct moment)
	} moments;
	struct {
		ARRAY(struct queue)
	} queues;
	struct {
		ARRAY(struct recorded_event)
	} events;
	struct inferred_work work;
	struct waited_work shown; /* what queries had shown of all that the call that is followed covers */
	struct index_map queue_by_handle, event_by_handle;
};

static const struct call *call_of(const struct inference *run, const struct moment *moment)
{
	return &run->model->threads.items[moment->thread].calls.items[moment->call];
}

static int compare_moment(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static bool counts(const struct process *process, const struct call *call)
{
	if (process->cupti_from_ns && call->enter_ns >= process->cupti_from_ns)
		return false;
	return call->probed && (cuda_class_submits(call->class) || call->class == CUDA_SYNC ||
	                        call->class == CUDA_QUERY || call->class == CUDA_EVENT);
}

static bool is_at_return(const struct call *call)
{
	return call->class == CUDA_SYNC || call->class == CUDA_QUERY;
}

static int list_moments(struct inference *run)
{
	const struct process *process = &run->model->processes.items[run->process];
	const uint32_t *thread;

	array_for_each (thread, &process->threads) {
		const struct thread *owner = &run->model->threads.items[*thread];

		for (uint32_t i = 0; i < owner->calls.count; i++) {
			const struct call *call = &owner->calls.items[i];
			struct moment *moment;

			/* A synchronisation without a known end shows nothing. */
			if (!counts(process, call) || (is_at_return(call) && !call->exit_known))
				continue;
			moment = array_add(&run->moments);
			if (!moment)
				return -ENOMEM;
			*moment =
			    (struct moment){is_at_return(call) ? call->exit_ns : call->enter_ns, *thread, i};
		}
	}
	array_sort(&run->moments, compare_moment);
	return 0;
}

static bool means_thread_stream(const char *function)
{
	return strstr(function, "_ptsz") || strstr(function, "_ptds");
}

/* The stream of a call, of which each thread has its own behind the same handle. */
static uint64_t handle_of(const struct inference *run, const struct moment *moment, const struct call *call)
{
	uint64_t stream = call->arguments & CALL_HAS_STREAM ? call->stream : DEFAULT_QUEUE;

	if (stream == LEGACY_STREAM)
		return DEFAULT_QUEUE;
	if (stream == THREAD_STREAM ||
	    (stream == DEFAULT_QUEUE && means_thread_stream(model_string(run->model, call->function))))
		return THREAD_QUEUE(moment->thread);
	return stream;
}

/* MODEL_NONE: no memory. */
static uint32_t queue_of(struct inference *run, uint64_t handle)
{
	struct queue *queue;
	uint32_t index;

	if (index_map_get(&run->queue_by_handle, handle, &index))
		return index;
	queue = array_add(&run->queues);
	if (!queue || index_map_put(&run->queue_by_handle, handle, run->queues.count - 1))
		return MODEL_NONE;
	queue->after_queue = MODEL_NONE;
	return run->queues.count - 1;
}

static void note_unfinished(struct inference *run, const struct inferred_op *item)
{
	struct waited_work *wait = &run->shown;

	if (item->still_unfinished_ns - item->unfinished_ns >
	    wait->unfinished_until_ns - wait->unfinished_from_ns) {
		wait->unfinished_from_ns = item->unfinished_ns;
		wait->unfinished_until_ns = item->still_unfinished_ns;
	}
	wait->still_unfinished_ns = later(wait->still_unfinished_ns, item->still_unfinished_ns);
}

/* The first `count` operations of a queue, and what they waited for, were over at `time_ns`. */
static int cover(struct inference *run, uint32_t index, size_t count, uint64_t time_ns, int depth)
{
	struct queue *queue = &run->queues.items[index];
	int rc = 0;

	for (; !rc && queue->done < count; queue->done++) {
		const struct inferred_op *item = &queue->items[queue->done];
		struct gpu_op *op = &run->work.ops.items[item->op];
		uint32_t *covered = array_add(&run->work.covered);

		if (!covered)
			return -ENOMEM;
		*covered = item->op;
		op->end_ns = later(op->start_ns, time_ns);
		note_unfinished(run, item);
		if (item->after_queue != MODEL_NONE && depth < CHAIN_DEPTH)
			rc = cover(run, item->after_queue, item->after_count, time_ns, depth + 1);
	}
	return rc;
}

static int compare_index(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Makes a wait of what was covered since there were `first` operations in the list. */
static int note_wait(struct inference *run, const struct call *call, size_t first)
{
	struct inferred_work *work = &run->work;
	struct waited_work *wait;

	if (work->covered.count == first)
		return 0;
	wait = array_add(&work->waits);
	if (!wait)
		return -ENOMEM;
	*wait = run->shown;
	wait->first = first;
	wait->count = work->covered.count - first;
	wait->entered_ns = call->enter_ns;
	wait->until_ns = call->exit_ns;
	wait->asked = call->class == CUDA_QUERY;
	qsort_items(work->covered.items + first, wait->count, sizeof(uint32_t), compare_index);
	return 0;
}

/* Operations that were submitted before a call began. */
static size_t submitted_before(const struct queue *queue, uint64_t time_ns)
{
	size_t count = queue->count;

	while (count > queue->done && queue->items[count - 1].submit_ns > time_ns)
		count--;
	return count;
}

static int submit(struct inference *run, const struct moment *moment, const struct call *call)
{
	uint32_t index = queue_of(run, handle_of(run, moment, call));
	struct gpu_op *op = index == MODEL_NONE ? NULL : array_add(&run->work.ops);
	struct inferred_op *item = op ? array_add(&run->queues.items[index]) : NULL;
	struct queue *queue;

	if (!item)
		return -ENOMEM;
	queue = &run->queues.items[index];
	*item = (struct inferred_op){.op = run->work.ops.count - 1,
	                             .submit_ns = call->enter_ns,
	                             .after_queue = queue->after_queue,
	                             .after_count = queue->after_count};
	queue->after_queue = MODEL_NONE;
	*op = (struct gpu_op){
	    .start_ns = call->enter_ns + SUBMIT_NS,
	    .end_ns = UINT64_MAX,
	    .process = run->process,
	    .stream = index,
	    .name = call->class == CUDA_COPY || call->class == CUDA_MEMSET ? 0 : call->function,
	    .launch_thread = moment->thread,
	    .launch_call = moment->call,
	    .launch_ns = call->enter_ns,
	    .kind = call->class == CUDA_COPY           ? OP_MEMCPY
	            : call->class == CUDA_MEMSET       ? OP_MEMSET
	            : call->class == CUDA_GRAPH_LAUNCH ? OP_GRAPH
	                                               : OP_KERNEL,
	    .inferred = true,
	};
	return 0;
}

/* Copies to the host that are not asynchronous are over, with all before them in their queue, when they
 * return. */
static bool waits_for_itself(const struct model *model, const struct call *call)
{
	const char *name = model_string(model, call->function);

	if (call->class != CUDA_COPY || !call->exit_known || strstr(name, "Async"))
		return false;
	return !strncmp(name, "cuMemcpyDtoH", strlen("cuMemcpyDtoH")) ||
	       (call->arguments & CALL_HAS_OBJECT && call->object == COPY_TO_HOST);
}

static int note_event(struct inference *run, const struct moment *moment, const struct call *call)
{
	bool waits = strstr(model_string(run->model, call->function), "WaitEvent") != NULL;
	uint32_t index = queue_of(run, handle_of(run, moment, call)), known;
	struct recorded_event *event;
	struct queue *queue;

	if (index == MODEL_NONE)
		return -ENOMEM;
	queue = &run->queues.items[index];
	if (!(call->arguments & CALL_HAS_OBJECT))
		return 0;
	if (index_map_get(&run->event_by_handle, call->object, &known)) {
		event = &run->events.items[known];
		if (waits) {
			queue->after_queue = event->queue;
			queue->after_count = event->count;
			return 0;
		}
	} else {
		if (waits)
			return 0;
		event = array_add(&run->events);
		if (!event || index_map_put(&run->event_by_handle, call->object, run->events.count - 1))
			return -ENOMEM;
	}
	*event = (struct recorded_event){index, queue->count, call->enter_ns};
	return 0;
}

/*
 * What an event or stream stands for in a call: the first *count operations of queue *index, of those that
 * were submitted before the call began. False: not known.
 */
static bool names_work(const struct inference *run, const struct moment *moment, const struct call *call,
                       uint32_t *index, size_t *count)
{
	const struct recorded_event *event = NULL;
	uint32_t known;

	if (strstr(model_string(run->model, call->function), "Event")) {
		if (!(call->arguments & CALL_HAS_OBJECT) ||
		    !index_map_get(&run->event_by_handle, call->object, &known))
			return false;
		event = &run->events.items[known];
		/* Recorded anew while the call was under way: it may have been about what was before. */
		if (event->recorded_ns > call->enter_ns)
			return false;
		*index = event->queue;
	} else if (!(call->arguments & CALL_HAS_STREAM) ||
	           !index_map_get(&run->queue_by_handle, handle_of(run, moment, call), index)) {
		return false;
	}
	*count = submitted_before(&run->queues.items[*index], call->enter_ns);
	if (event)
		*count = earlier(event->count, *count);
	return true;
}

static int synchronise(struct inference *run, const struct moment *moment, const struct call *call)
{
	const char *name = model_string(run->model, call->function);
	uint32_t index;
	size_t count;
	int rc = 0;

	if (call->arguments & CALL_HAS_RESULT && call->result)
		return 0; /* what failed shows nothing */
	if (strstr(name, "EventSynchronize") || strstr(name, "StreamSynchronize"))
		return names_work(run, moment, call, &index, &count)
		           ? cover(run, index, count, call->exit_ns, 0)
		           : 0;
	for (index = 0; !rc && index < run->queues.count; index++)
		rc = cover(run, index, submitted_before(&run->queues.items[index], call->enter_ns),
		           call->exit_ns, 0);
	return rc;
}

static int follow_query(struct inference *run, const struct moment *moment, const struct call *call)
{
	struct inferred_op *last;
	uint32_t index;
	size_t count;

	if (!(call->arguments & CALL_HAS_RESULT) || !names_work(run, moment, call, &index, &count))
		return 0;
	if (call->result == READY)
		return cover(run, index, count, call->exit_ns, 0);
	/* Of what is over long since a query cannot say this; then the event is not what it is taken for. */
	if (call->result != NOT_READY || count <= run->queues.items[index].done)
		return 0;
	last = &run->queues.items[index].items[count - 1];
	last->unfinished_ns = last->unfinished_ns ? last->unfinished_ns : call->enter_ns;
	last->still_unfinished_ns = later(last->still_unfinished_ns, call->enter_ns);
	return 0;
}

static int follow_call(struct inference *run, const struct moment *moment, const struct call *call)
{
	size_t covered = run->work.covered.count;
	int rc;

	run->shown = (struct waited_work){0};
	if (call->class == CUDA_EVENT)
		return note_event(run, moment, call);
	if (call->class == CUDA_SYNC) {
		rc = synchronise(run, moment, call);
	} else if (call->class == CUDA_QUERY) {
		rc = follow_query(run, moment, call);
	} else {
		rc = submit(run, moment, call);
		if (!rc && waits_for_itself(run->model, call)) {
			uint32_t queue = run->work.ops.items[run->work.ops.count - 1].stream;

			rc = cover(run, queue, run->queues.items[queue].count, call->exit_ns, 0);
		}
	}
	return rc ? rc : note_wait(run, call, covered);
}

static int follow(struct inference *run)
{
	const struct moment *moment;
	int rc = 0;

	array_for_each (moment, &run->moments) {
		rc = follow_call(run, moment, call_of(run, moment));
		if (rc)
			return rc;
	}
	return 0;
}

/* The GPU that the operations are put on: the only one that is known, or one without a name. */
static struct device *device_for(struct model *model)
{
	static const char simulated[] = "Simulated GPU";
	struct device *device;

	if (model->devices.count)
		return &model->devices.items[0];
	device = array_add(&model->devices);
	if (device && model->simulated) {
		device->simulated = true;
		device->name = model_add_string(model, simulated, strlen(simulated));
	}
	return device;
}

struct span_list {
	ARRAY(struct span)
};

/* What is said of all processes together, whose operations share a GPU. */
struct inferred_whole {
	struct span_list certain, estimated; /* the operations, before and after infer_lengths */
	size_t processes;
	char names[120]; /* of the first ones: "train (12), eval (13)" */
};

static int add_spans(struct span_list *list, const struct inference *run)
{
	const struct gpu_op *op;

	array_for_each (op, &run->work.ops) {
		struct span *span = array_add(list);

		if (!span)
			return -ENOMEM;
		*span = (struct span){op->start_ns, op->end_ns};
	}
	return 0;
}

/* Time in which none of them runs, from the first to the last. Sorts them. */
static uint64_t idle_between(struct span_list *list)
{
	uint64_t idle = 0, over;
	const struct span *span;

	array_sort(list, span_compare);
	over = list->count ? list->items[0].start_ns : 0;
	array_for_each (span, list) {
		idle += span->start_ns > over ? span->start_ns - over : 0;
		over = later(over, span->end_ns);
	}
	return idle;
}

static void add_name(struct inferred_whole *whole, const struct model *model, const struct process *process)
{
	size_t used = strlen(whole->names);

	if (whole->processes++ < NAMED_PROCESSES)
		snprintf(whole->names + used, sizeof(whole->names) - used, "%s%.20s (%u)", used ? ", " : "",
		         model_string(model, process->comm), process->pid);
}

/* Says whose times these are, and how much of the idle time is certain. */
static int say_inferred(struct model *model, struct inferred_whole *whole)
{
	uint64_t certain = idle_between(&whole->certain), idle = idle_between(&whole->estimated);
	uint32_t *line = array_add(&model->degraded);
	char text[400], more[32] = "";
	int length;

	if (!line)
		return -ENOMEM;
	if (whole->processes > NAMED_PROCESSES)
		snprintf(more, sizeof(more), " and %zu more", whole->processes - NAMED_PROCESSES);
	length =
	    snprintf(text, sizeof(text),
	             "GPU times of %s%s are inferred from CUDA calls%s: of the idle time %.3f s are certain, "
	             "%.3f s estimated",
	             whole->names, more, whole->processes > 1 ? ", as if all used one GPU" : "",
	             certain / 1e9, (later(idle, certain) - certain) / 1e9);
	*line = model_add_string(model, text, length);
	return *line == MODEL_NONE ? -ENOMEM : 0;
}

static int put_ops(struct inference *run, struct inferred_whole *whole)
{
	struct model *model = run->model;
	const struct process *process = &model->processes.items[run->process];
	uint64_t horizon = earlier(process->end_ns, model->end_ns ? model->end_ns : UINT64_MAX);
	uint64_t measured = process->cupti_from_ns ? process->cupti_from_ns : UINT64_MAX;
	struct device *device = device_for(model);
	struct gpu_op *op, *put;
	int rc;

	if (!device)
		return -ENOMEM;
	array_for_each (op, &run->work.ops) {
		if (op->end_ns == UINT64_MAX)
			op->end_ns = later(op->start_ns, horizon);
		/* From there on CUPTI tells, also of what still runs then but is not known to. */
		op->start_ns = earlier(op->start_ns, measured);
		op->end_ns = earlier(op->end_ns, measured);
	}
	add_name(whole, model, process);
	rc = add_spans(&whole->certain, run);
	if (!rc)
		rc = infer_lengths(model, &run->work);
	if (!rc)
		rc = add_spans(&whole->estimated, run);
	array_for_each (op, &run->work.ops) {
		put = rc ? NULL : array_add(&device->ops);
		if (!put)
			return -ENOMEM;
		*put = *op;
		put->order = device->ops.count;
	}
	device->inferred = model->inferred = model->has_timeline = true;
	return 0;
}

static void free_run(struct inference *run)
{
	struct queue *queue;

	array_for_each (queue, &run->queues)
		array_free(queue);
	array_free(&run->queues);
	array_free(&run->events);
	array_free(&run->work.ops);
	array_free(&run->work.covered);
	array_free(&run->work.waits);
	array_free(&run->moments);
	index_map_free(&run->queue_by_handle);
	index_map_free(&run->event_by_handle);
}

static bool has_operations(const struct model *model, uint32_t process)
{
	const struct device *device;
	const struct gpu_op *op;

	array_for_each (device, &model->devices) {
		array_for_each (op, &device->ops) {
			if (op->process == process)
				return true;
		}
	}
	return false;
}

int model_infer(struct model *model)
{
	struct inferred_whole whole = {0};
	int rc = 0;

	for (uint32_t i = 0; !rc && i < model->processes.count; i++) {
		struct inference run = {.model = model, .process = i};

		rc = list_moments(&run);
		if (!rc && run.moments.count &&
		    (model->processes.items[i].cupti_from_ns || !has_operations(model, i))) {
			rc = follow(&run);
			if (!rc && run.work.ops.count)
				rc = put_ops(&run, &whole);
		}
		free_run(&run);
	}
	if (!rc && whole.processes)
		rc = say_inferred(model, &whole);
	array_free(&whole.certain);
	array_free(&whole.estimated);
	return rc;
}
