/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A GPU timeline from CUDA calls alone, for processes whose calls were probed and whose operations nobody
 * recorded.
 *
 * Every submission becomes an operation that starts a moment after the call and ends when it is known to be
 * over: when a synchronisation that covers it returned (of its stream, of an event recorded behind it, of the
 * device), or a copy to the host that waits for itself. One that nothing ever waited for lasts until the
 * process or the recording ends. So the GPU is idle in the result only where that is certain of these
 * processes: after such a return and before the next submission. It may have been idle for longer.
 */
#include "model/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define SUBMIT_NS     5000 /* from a launch to its start on an idle GPU: a usual latency (attribute/owner.c) */
#define COPY_TO_HOST  2    /* cudaMemcpyDeviceToHost */
#define CHAIN_DEPTH   16   /* streams that wait for each other in a row */
#define DEFAULT_QUEUE 0    /* handle of the legacy default stream */

/* A moment of one process: a submission or an event at its entry, a synchronisation at its return. */
struct moment {
	uint64_t time_ns;
	uint32_t thread, call;
};

struct inferred_op {
	uint32_t op; /* index in `ops` of the run */
	uint64_t submit_ns;
	uint32_t after_queue; /* it waits for the first `after_count` operations of that one, MODEL_NONE */
	size_t after_count;
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
	struct {
		ARRAY(struct gpu_op)
	} ops;
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

static bool counts(const struct call *call)
{
	return call->probed &&
	       (cuda_class_submits(call->class) || call->class == CUDA_SYNC || call->class == CUDA_EVENT);
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
			if (!counts(call) || (call->class == CUDA_SYNC && !call->exit_known))
				continue;
			moment = array_add(&run->moments);
			if (!moment)
				return -ENOMEM;
			*moment = (struct moment){call->class == CUDA_SYNC ? call->exit_ns : call->enter_ns,
			                          *thread, i};
		}
	}
	array_sort(&run->moments, compare_moment);
	return 0;
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

/* The first `count` operations of a queue, and what they waited for, were over at `time_ns`. */
static void cover(struct inference *run, uint32_t index, size_t count, uint64_t time_ns, int depth)
{
	struct queue *queue = &run->queues.items[index];

	for (; queue->done < count; queue->done++) {
		const struct inferred_op *item = &queue->items[queue->done];
		struct gpu_op *op = &run->ops.items[item->op];

		op->end_ns = later(op->start_ns, time_ns);
		if (item->after_queue != MODEL_NONE && depth < CHAIN_DEPTH)
			cover(run, item->after_queue, item->after_count, time_ns, depth + 1);
	}
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
	uint32_t index = queue_of(run, call->arguments & CALL_HAS_STREAM ? call->stream : DEFAULT_QUEUE);
	struct gpu_op *op = index == MODEL_NONE ? NULL : array_add(&run->ops);
	struct inferred_op *item = op ? array_add(&run->queues.items[index]) : NULL;
	struct queue *queue;

	if (!item)
		return -ENOMEM;
	queue = &run->queues.items[index];
	*item =
	    (struct inferred_op){run->ops.count - 1, call->enter_ns, queue->after_queue, queue->after_count};
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

static int note_event(struct inference *run, const struct call *call)
{
	bool waits = strstr(model_string(run->model, call->function), "WaitEvent") != NULL;
	uint32_t index = queue_of(run, call->arguments & CALL_HAS_STREAM ? call->stream : DEFAULT_QUEUE),
	         known;
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
	*event = (struct recorded_event){index, queue->count};
	return 0;
}

static void synchronise(struct inference *run, const struct call *call)
{
	const char *name = model_string(run->model, call->function);
	uint32_t known;

	if (strstr(name, "EventSynchronize")) {
		if (call->arguments & CALL_HAS_OBJECT &&
		    index_map_get(&run->event_by_handle, call->object, &known)) {
			const struct recorded_event *event = &run->events.items[known];

			cover(run, event->queue,
			      earlier(event->count,
			              submitted_before(&run->queues.items[event->queue], call->enter_ns)),
			      call->exit_ns, 0);
		}
		return;
	}
	if (strstr(name, "StreamSynchronize")) {
		if (call->arguments & CALL_HAS_STREAM &&
		    index_map_get(&run->queue_by_handle, call->stream, &known))
			cover(run, known, submitted_before(&run->queues.items[known], call->enter_ns),
			      call->exit_ns, 0);
		return;
	}
	for (uint32_t i = 0; i < run->queues.count; i++)
		cover(run, i, submitted_before(&run->queues.items[i], call->enter_ns), call->exit_ns, 0);
}

static int follow(struct inference *run)
{
	const struct moment *moment;
	int rc = 0;

	array_for_each (moment, &run->moments) {
		const struct call *call = call_of(run, moment);

		if (call->class == CUDA_SYNC)
			synchronise(run, call);
		else if (call->class == CUDA_EVENT)
			rc = note_event(run, call);
		else
			rc = submit(run, moment, call);
		if (rc)
			return rc;
		if (waits_for_itself(run->model, call)) {
			uint32_t queue = run->ops.items[run->ops.count - 1].stream;

			cover(run, queue, run->queues.items[queue].count, call->exit_ns, 0);
		}
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

static int put_ops(struct inference *run)
{
	struct model *model = run->model;
	const struct process *process = &model->processes.items[run->process];
	uint64_t horizon = earlier(process->end_ns, model->end_ns ? model->end_ns : UINT64_MAX);
	struct device *device = device_for(model);
	char text[300];
	uint32_t *line;
	int length;

	for (size_t i = 0; device && i < run->ops.count; i++) {
		struct gpu_op *op = array_add(&device->ops);

		if (!op)
			return -ENOMEM;
		*op = run->ops.items[i];
		op->order = device->ops.count;
		if (op->end_ns == UINT64_MAX)
			op->end_ns = later(op->start_ns, horizon);
	}
	line = device ? array_add(&model->degraded) : NULL;
	if (!line)
		return -ENOMEM;
	device->inferred = model->inferred = model->has_timeline = true;
	length = snprintf(
	    text, sizeof(text),
	    "the GPU timeline of process %u is inferred from its CUDA calls, all of which are taken to be "
	    "for one GPU: only idle time that is certain counts, from the return of a synchronisation to "
	    "the next submission",
	    process->pid);
	*line = model_add_string(model, text, length);
	return *line == MODEL_NONE ? -ENOMEM : 0;
}

static void free_run(struct inference *run)
{
	struct queue *queue;

	array_for_each (queue, &run->queues)
		array_free(queue);
	array_free(&run->queues);
	array_free(&run->events);
	array_free(&run->ops);
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
	int rc = 0;

	for (uint32_t i = 0; !rc && i < model->processes.count; i++) {
		struct inference run = {.model = model, .process = i};

		rc = list_moments(&run);
		if (!rc && run.moments.count && !has_operations(model, i)) {
			rc = follow(&run);
			if (!rc && run.ops.count)
				rc = put_ops(&run);
		}
		free_run(&run);
	}
	return rc;
}
