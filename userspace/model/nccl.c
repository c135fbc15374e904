/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which calls of NCCL each of its kernels was launched for.
 *
 * NCCL launches on the thread that called it: a call outside a group before it returns, the calls of a group
 * when its outermost ncclGroupEnd does. So the kernels of NCCL that a thread launched between such a call and
 * its next one are that call's. The calls of a group become one kernel for each communicator, in the order of
 * its first call; if they are more, and all of one communicator, they are parts of it. What does not come out
 * even, was launched by a graph or another thread (communicators that do not block), or lies where records
 * were lost is left without its calls.
 */
#include "model/model.h"

#include <errno.h>

#define GROUP_COMMS_MOST 64 /* communicators of one group that are told apart */

/* A kernel of NCCL, by who launched it and when. */
struct launched {
	uint64_t launch_ns;
	uint32_t thread, device, op;
};

struct joining {
	struct model *model;
	struct {
		ARRAY(struct launched)
	} kernels;                /* by thread and launch */
	struct index_map streams; /* hash of (process, handle) → stream of the kernels that went there */
};

/* Calls that are launched together: those of one group, or one alone. */
struct unit {
	const struct nccl_call *first, *end; /* end: behind the last one */
	uint64_t from_ns, to_ns;             /* when its kernels are launched */
};

/* What a unit calls on one communicator. */
struct portion {
	struct nccl_work work;
	uint64_t stream; /* handle, of its first call */
	bool sized;      /* the bytes of all its calls are known */
	bool collective;
};

static bool is_message(uint32_t function)
{
	return function == RECORD_NCCL_SEND || function == RECORD_NCCL_RECV;
}

static bool is_operation(const struct nccl_call *call)
{
	return call->function >= RECORD_NCCL_ALL_REDUCE && call->function <= RECORD_NCCL_RECV;
}

/* The count is of the elements of each rank. */
static bool counts_each(uint32_t function)
{
	return function == RECORD_NCCL_ALL_GATHER || function == RECORD_NCCL_REDUCE_SCATTER ||
	       function == RECORD_NCCL_ALL_TO_ALL || function == RECORD_NCCL_GATHER ||
	       function == RECORD_NCCL_SCATTER;
}

static int compare_call(const void *a, const void *b)
{
	const struct nccl_call *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int compare_launched(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;
	int order = (x->thread > y->thread) - (x->thread < y->thread);

	if (!order)
		order = (x->launch_ns > y->launch_ns) - (x->launch_ns < y->launch_ns);
	return order ? order : (x->op > y->op) - (x->op < y->op);
}

static int list_kernels(struct joining *joining)
{
	struct model *model = joining->model;

	for (uint32_t d = 0; d < model->devices.count; d++) {
		const struct device *device = &model->devices.items[d];

		for (uint32_t i = 0; i < device->ops.count; i++) {
			const struct gpu_op *op = &device->ops.items[i];
			struct launched *launched;

			if (!op->collective || op->graph || !op->launch_ns ||
			    op->launch_thread == MODEL_NONE ||
			    !model->threads.items[op->launch_thread].nccl_calls.count)
				continue;
			launched = array_add(&joining->kernels);
			if (!launched)
				return -ENOMEM;
			*launched = (struct launched){op->launch_ns, op->launch_thread, d, i};
		}
	}
	array_sort(&joining->kernels, compare_launched);
	return 0;
}

/* ---- what is called ---- */

/* The unit that begins at `first`; false if nothing is launched by it, or its end was not recorded. */
static bool unit_of(const struct thread *thread, const struct nccl_call *first, struct unit *unit)
{
	const struct nccl_call *behind = thread->nccl_calls.items + thread->nccl_calls.count, *next = first;

	if (!is_operation(first)) {
		*unit = (struct unit){.first = first, .end = first + 1};
		return false;
	}
	if (!first->group) {
		next = first + 1;
		*unit =
		    (struct unit){first, next, first->time_ns, next < behind ? next->time_ns : UINT64_MAX};
		return true;
	}
	while (next < behind && is_operation(next) && next->group == first->group)
		next++;
	*unit = (struct unit){.first = first, .end = next};
	if (next == behind || next->function != RECORD_NCCL_GROUP_END || next->group != first->group)
		return false;
	unit->from_ns = next->time_ns;
	unit->to_ns = next + 1 < behind ? next[1].time_ns : UINT64_MAX;
	return true;
}

static void portion_add(struct portion *portion, const struct nccl_call *call)
{
	struct nccl_work *work = &portion->work;
	uint64_t *bytes = counts_each(call->function) ? &work->bytes_each : &work->bytes;
	bool collective = !is_message(call->function);

	if (!work->calls) {
		*portion = (struct portion){
		    .work = {.comm = call->comm,
		             .handle = call->handle,
		             .number = call->number,
		             .function = call->function,
		             .peer = collective ? MODEL_NONE : call->peer,
		             .size = call->size,
		             .rank = call->rank},
		    .stream = call->stream,
		    .sized = true,
		    .collective = collective,
		};
	} else if (collective && !portion->collective) {
		portion->collective = true;
		work->function = call->function;
		work->number = call->number;
	}
	if (!collective && call->peer != work->peer)
		work->peer = MODEL_NONE;
	if (portion->collective)
		work->peer = MODEL_NONE;
	work->calls++;
	portion->sized &= call->bytes && !__builtin_add_overflow(*bytes, call->bytes, bytes);
}

/* Returns how many communicators there are, 0 if too many to tell apart. */
static size_t split_unit(const struct unit *unit, struct portion *portions)
{
	size_t count = 0;

	for (const struct nccl_call *call = unit->first; call < unit->end; call++) {
		size_t i = 0;

		while (i < count && portions[i].work.handle != call->handle)
			i++;
		if (i == GROUP_COMMS_MOST)
			return 0;
		if (i == count)
			portions[count++] = (struct portion){0};
		portion_add(&portions[i], call);
	}
	return count;
}

/* ---- which kernels it became ---- */

static struct gpu_op *op_of(const struct joining *joining, const struct launched *launched)
{
	return &joining->model->devices.items[launched->device].ops.items[launched->op];
}

static uint64_t stream_key(uint32_t process, uint64_t handle)
{
	return hash_bytes((const uint64_t[]){process, handle}, 2 * sizeof(uint64_t));
}

static int keep_work(struct joining *joining, const struct portion *portion, const struct launched *launched,
                     uint32_t part, bool sized)
{
	struct model *model = joining->model;
	struct nccl_work *work = array_add(&model->nccl_works);

	if (!work)
		return -ENOMEM;
	*work = portion->work;
	work->part = part;
	if (!sized || !portion->sized)
		work->bytes = work->bytes_each = 0;
	op_of(joining, launched)->nccl = (uint32_t)model->nccl_works.count - 1;
	return 0;
}

/* All kernels are of one communicator; of several nobody can say which moved what. */
static int join_one(struct joining *joining, const struct portion *portion, const struct launched *kernels,
                    size_t count)
{
	const struct gpu_op *op = op_of(joining, &kernels[0]);
	int rc = 0;

	if (count == 1)
		rc = index_map_put(&joining->streams, stream_key(op->process, portion->stream), op->stream);
	for (size_t i = 0; !rc && i < count; i++)
		rc = keep_work(joining, portion, &kernels[i], (uint32_t)i, count == 1);
	return rc;
}

/* True unless the stream of that handle is known to be another one. */
static bool may_be_on(const struct joining *joining, const struct portion *portion, const struct gpu_op *op)
{
	uint32_t stream;

	return !index_map_get(&joining->streams, stream_key(op->process, portion->stream), &stream) ||
	       stream == op->stream;
}

/* One kernel for each communicator. */
static int join_several(struct joining *joining, const struct portion *portions,
                        const struct launched *kernels, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count; i++) {
		if (!may_be_on(joining, &portions[i], op_of(joining, &kernels[i])))
			return 0;
	}
	for (size_t i = 0; !rc && i < count; i++)
		rc = keep_work(joining, &portions[i], &kernels[i], 0, true);
	return rc;
}

/* Records of this stretch may be missing. */
static bool is_lossy(const struct model *model, uint64_t from_ns, uint64_t to_ns)
{
	const struct loss *loss;

	array_for_each (loss, &model->losses) {
		if (loss->start_ns > to_ns)
			break;
		if (loss->cause == RECORD_LOSS_BPF_RING && loss->end_ns >= from_ns)
			return true;
	}
	return false;
}

/* Kernels from *next on are the thread's that were launched since the unit before. */
static int join_unit(struct joining *joining, const struct unit *unit, uint32_t thread, size_t *next)
{
	const struct launched *kernels = joining->kernels.items;
	struct portion portions[GROUP_COMMS_MOST];
	size_t first, count, comms;

	while (*next < joining->kernels.count && kernels[*next].thread == thread &&
	       kernels[*next].launch_ns < unit->from_ns)
		++*next;
	for (first = *next; *next < joining->kernels.count && kernels[*next].thread == thread &&
	                    kernels[*next].launch_ns < unit->to_ns;)
		++*next;
	count = *next - first;
	if (!count || is_lossy(joining->model, unit->first->time_ns, kernels[*next - 1].launch_ns))
		return 0;
	comms = split_unit(unit, portions);
	if (comms == 1)
		return join_one(joining, &portions[0], &kernels[first], count);
	return comms == count ? join_several(joining, portions, &kernels[first], count) : 0;
}

static int join_thread(struct joining *joining, uint32_t index, size_t *next)
{
	struct thread *thread = &joining->model->threads.items[index];
	struct unit unit;
	int rc = 0;

	array_sort(&thread->nccl_calls, compare_call);
	while (*next < joining->kernels.count && joining->kernels.items[*next].thread < index)
		++*next;
	for (const struct nccl_call *call = thread->nccl_calls.items;
	     !rc && call < thread->nccl_calls.items + thread->nccl_calls.count; call = unit.end) {
		if (unit_of(thread, call, &unit))
			rc = join_unit(joining, &unit, index, next);
	}
	return rc;
}

int model_join_nccl(struct model *model)
{
	struct joining joining = {.model = model};
	size_t next = 0;
	int rc = list_kernels(&joining);

	for (uint32_t i = 0; !rc && i < model->threads.count; i++) {
		if (model->threads.items[i].nccl_calls.count)
			rc = join_thread(&joining, i, &next);
	}
	array_free(&joining.kernels);
	index_map_free(&joining.streams);
	return rc;
}
