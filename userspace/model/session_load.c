/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns the records of a session file into a model. */
#include "model/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "symbols/demangle.h"

struct loader {
	struct model *model;
	struct index_map strings;   /* id in the file → id in the model */
	struct index_map stacks;    /* id in the file → index */
	struct index_map devices;   /* device in the file → index */
	struct index_map in_words;  /* string of the model → the same name demangled */
	struct index_map in_domain; /* name and domain of a range, as in the file → string of the model */
	struct index_map last_seq;  /* thread index → sequence number of its newest interval */
	uint64_t first_ns, last_ns; /* of all records, where the file has no start and end */
	uint32_t ops;
};

static uint32_t load_string_id(const struct loader *loader, uint32_t id)
{
	uint32_t mapped;

	return id && index_map_get(&loader->strings, id, &mapped) ? mapped : 0;
}

static uint32_t load_stack_id(const struct loader *loader, uint32_t id)
{
	uint32_t mapped;

	return id && index_map_get(&loader->stacks, id, &mapped) ? mapped : MODEL_NONE;
}

static void see_time(struct loader *loader, uint64_t time_ns)
{
	if (!time_ns)
		return;
	if (!loader->first_ns || time_ns < loader->first_ns)
		loader->first_ns = time_ns;
	if (time_ns > loader->last_ns)
		loader->last_ns = time_ns;
}

static int load_string(struct loader *loader, const struct record_string *record)
{
	uint32_t id = model_add_string(loader->model, (const char *)(record + 1), record->length);

	return id == MODEL_NONE ? -ENOMEM : index_map_put(&loader->strings, record->id, id);
}

/* Takes an info that is a number; false if it is none. */
static bool take_number(struct model *model, const char *key, const char *text)
{
	const struct {
		const char *key;
		uint64_t *number;
	} numbers[] = {
	    {"start_mono_ns", &model->start_ns},
	    {"end_mono_ns", &model->end_ns},
	    {"sample_period_ns", &model->sample_period_ns},
	    {"user_stacks_copied", &model->stack_cost.copied},
	    {"user_stack_bytes_copied", &model->stack_cost.copied_bytes},
	    {"user_stacks_sent", &model->stack_cost.sent},
	    {"user_stack_bytes_sent", &model->stack_cost.sent_bytes},
	    {"lost_user_stacks", &model->stack_cost.lost},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(key, numbers[i].key))
			continue;
		*numbers[i].number = strtoull(text, NULL, 10);
		return true;
	}
	return false;
}

static int load_info(struct loader *loader, const struct record_info *record)
{
	struct model *model = loader->model;
	const char *key = model_string(model, load_string_id(loader, record->key));
	uint32_t value = load_string_id(loader, record->value);

	if (take_number(model, key, model_string(model, value)))
		return 0;
	if (!strcmp(key, "command")) {
		model->command = value;
	} else if (!strcmp(key, "simulated")) {
		model->simulated = true;
	} else if (!strcmp(key, "tier")) {
		model->tier = value;
	} else if (!strcmp(key, "degraded")) {
		uint32_t *slot = array_add(&model->degraded);

		if (!slot)
			return -ENOMEM;
		*slot = value;
	}
	return 0;
}

static int load_task(struct loader *loader, const struct record_task *record)
{
	struct model *model = loader->model;
	uint32_t index = model_get_thread(model, record->pid, record->tid), comm;
	struct thread *thread;
	const char *process;
	bool same, named;

	if (index == MODEL_NONE)
		return -ENOMEM;
	thread = &model->threads.items[index];
	comm = load_string_id(loader, record->comm);
	process = model_string(model, model->processes.items[thread->process].comm);
	same = !strcmp(model_string(model, comm), process);
	named = *process && *model_string(model, thread->comm) &&
	        strcmp(model_string(model, thread->comm), process) != 0;
	/* A name that the thread gave itself says more than Python's, and either more than that of the
	 * process. */
	if (named && (record->flags & RECORD_TASK_PYTHON ? !thread->python_name : same))
		return 0;
	thread->python_name = record->flags & RECORD_TASK_PYTHON;
	thread->comm = comm;
	if (record->pid == record->tid)
		model->processes.items[thread->process].comm = thread->comm;
	return 0;
}

/*
 * The thread that a fork made, if records from inside it came first: those of CUDA calls take another way
 * into the file than those of the scheduler. MODEL_NONE: none, or an older one with the same id.
 */
static uint32_t known_child(const struct model *model, const struct record_fork *record)
{
	const struct thread *thread;
	uint32_t index;

	if (!index_map_get(&model->thread_by_tid, record->child_tid, &index))
		return MODEL_NONE;
	thread = &model->threads.items[index];
	if (thread->pid != record->child_pid || thread->tracked || thread->start_ns ||
	    thread->end_ns != UINT64_MAX || !thread->calls.count ||
	    thread->calls.items[0].enter_ns < record->time_ns)
		return MODEL_NONE;
	return index;
}

/* A process that existed when it was first recorded. Records from inside it may have come before this one. */
static uint32_t existing_process(struct model *model, const struct record_fork *record, uint32_t parent)
{
	struct process *process;
	uint32_t index;

	if (!index_map_get(&model->process_by_pid, record->child_pid, &index) ||
	    model->processes.items[index].end_ns != UINT64_MAX)
		return model_new_process(model, record->child_pid, parent);
	process = &model->processes.items[index];
	if (!process->born || process->parent == MODEL_NONE)
		process->parent = parent;
	process->born = true;
	return index;
}

static uint32_t existing_thread(struct model *model, const struct record_fork *record)
{
	struct thread *thread;
	uint32_t index;

	if (!index_map_get(&model->thread_by_tid, record->child_tid, &index) ||
	    model->threads.items[index].pid != record->child_pid ||
	    model->threads.items[index].end_ns != UINT64_MAX)
		index = model_new_thread(model, record->child_pid, record->child_tid, 0);
	if (index == MODEL_NONE)
		return index;
	thread = &model->threads.items[index];
	if (!thread->tracked)
		thread->tracked_from_ns = record->time_ns;
	return index;
}

static int load_existing(struct loader *loader, const struct record_fork *record)
{
	struct model *model = loader->model;
	uint32_t comm = load_string_id(loader, record->comm), index, parent = MODEL_NONE;

	if (record->child_pid != record->parent_pid) {
		if (record->parent_pid)
			parent = model_get_process(model, record->parent_pid);
		index = existing_process(model, record, parent);
		if (index == MODEL_NONE)
			return -ENOMEM;
		model->processes.items[index].comm = comm;
	}
	index = existing_thread(model, record);
	if (index == MODEL_NONE)
		return -ENOMEM;
	model->threads.items[index].comm = comm;
	model->threads.items[index].tracked = true;
	model->threads.items[index].guest = false;
	return 0;
}

/* The bridge of a new process takes another way into the file as well: its rank may be known before its
 * birth. */
static void take_over_rank(struct model *model, uint32_t process, uint32_t earlier)
{
	const struct process *unborn = &model->processes.items[earlier];

	if (unborn->born || unborn->end_ns != UINT64_MAX)
		return;
	model->processes.items[process].rank = unborn->rank;
	model->processes.items[process].world_size = unborn->world_size;
}

static void take_over_place(struct model *model, uint32_t process, uint32_t parent)
{
	if (parent == MODEL_NONE)
		return;
	model->processes.items[process].container = model->processes.items[parent].container;
	model->processes.items[process].pod = model->processes.items[parent].pod;
}

static int load_fork(struct loader *loader, const struct record_fork *record)
{
	struct model *model = loader->model;
	uint32_t index = MODEL_NONE, process, earlier;

	if (!record->parent_tid)
		return load_existing(loader, record);
	if (record->child_pid != record->parent_pid) {
		uint32_t parent =
		    record->parent_pid ? model_get_process(model, record->parent_pid) : MODEL_NONE;
		bool known = index_map_get(&model->process_by_pid, record->child_pid, &earlier);

		process = model_new_process(model, record->child_pid, parent);
		if (process == MODEL_NONE)
			return -ENOMEM;
		if (known)
			take_over_rank(model, process, earlier);
		take_over_place(model, process, parent);
		model->processes.items[process].namespace_pid = record->namespace_tid;
		model->processes.items[process].forked = true;
		model->processes.items[process].start_ns = record->time_ns;
		model->processes.items[process].comm = load_string_id(loader, record->comm);
	} else {
		index = known_child(model, record);
	}
	if (index == MODEL_NONE)
		index = model_new_thread(model, record->child_pid, record->child_tid, record->time_ns);
	if (index == MODEL_NONE)
		return -ENOMEM;
	model->threads.items[index].start_ns = record->time_ns;
	model->threads.items[index].comm = load_string_id(loader, record->comm);
	model->threads.items[index].namespace_tid = record->namespace_tid;
	model->threads.items[index].tracked = true;
	model->threads.items[index].guest = record->child_tid == record->parent_tid;
	return 0;
}

/*
 * The thread that had these ids at `time_ns`. Where the known one has ended before, this is another: exec by
 * a thread that is not the leader ends the leader and gives its id to that thread, whose intervals are
 * counted from 1 again. (Or the record that told of the new one was lost.)
 */
static uint32_t living_thread(struct loader *loader, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	struct model *model = loader->model;
	uint32_t index = model_get_thread(model, pid, tid);

	if (index == MODEL_NONE || model->threads.items[index].end_ns >= time_ns)
		return index;
	model->processes.items[model->threads.items[index].process].end_ns = UINT64_MAX;
	return model_new_thread(model, pid, tid, time_ns);
}

static int load_exec(struct loader *loader, const struct record_exec *record)
{
	struct model *model = loader->model;
	uint32_t index = living_thread(loader, record->pid, record->tid, record->time_ns);
	struct process *process;

	if (index == MODEL_NONE)
		return -ENOMEM;
	model->threads.items[index].comm = load_string_id(loader, record->comm);
	model->threads.items[index].tracked = true;
	process = &model->processes.items[model->threads.items[index].process];
	process->forked = false;
	process->comm = load_string_id(loader, record->comm);
	process->cmdline = load_string_id(loader, record->cmdline);
	/* What could not be read, because it had gone already, is as it was before. */
	if (record->container)
		process->container = load_string_id(loader, record->container);
	if (record->pod)
		process->pod = load_string_id(loader, record->pod);
	if (record->namespace_pid)
		process->namespace_pid = record->namespace_pid;
	return 0;
}

static int load_exit(struct loader *loader, const struct record_exit *record)
{
	struct model *model = loader->model;
	uint32_t index = living_thread(loader, record->pid, record->tid, record->time_ns);
	struct process *process;
	struct thread *thread;
	uint32_t seq = 0;

	if (index == MODEL_NONE)
		return -ENOMEM;
	thread = &model->threads.items[index];
	thread->end_ns = record->time_ns;
	index_map_get(&loader->last_seq, index, &seq);
	thread->lost_at_end = record->seq > seq;
	/* A process ends with its leader, or with threads that outlive it. */
	process = &model->processes.items[thread->process];
	if (record->pid == record->tid || process->end_ns != UINT64_MAX)
		process->end_ns = record->time_ns;
	see_time(loader, record->time_ns);
	return 0;
}

static int load_offcpu(struct loader *loader, const struct record_offcpu *record)
{
	struct model *model = loader->model;
	uint32_t index = living_thread(loader, record->pid, record->tid, record->out_ns);
	uint32_t seq = 0;
	struct thread *thread;
	struct offcpu *offcpu;

	if (index == MODEL_NONE)
		return -ENOMEM;
	thread = &model->threads.items[index];
	thread->tracked = true;
	offcpu = array_add(&thread->offcpu);
	if (!offcpu)
		return -ENOMEM;
	index_map_get(&loader->last_seq, index, &seq);
	*offcpu = (struct offcpu){
	    .out_ns = record->out_ns,
	    .wake_ns = record->wake_ns,
	    .in_ns = record->in_ns,
	    .waker_tid = record->waker_tid,
	    .waker_pid = record->waker_pid,
	    .next_tid = record->next_tid,
	    .prev_tid = record->prev_tid,
	    .syscall = record->syscall,
	    .waker_syscall = record->waker_syscall,
	    .object = record->object,
	    .waker_object = record->waker_object,
	    .kstack = load_stack_id(loader, record->kstack),
	    .waker_kstack = load_stack_id(loader, record->waker_kstack),
	    .ustack = load_stack_id(loader, record->ustack),
	    .cpus_allowed = record->cpus_allowed,
	    .faults = record->faults,
	    .path = load_string_id(loader, record->path),
	    .device = load_string_id(loader, record->device),
	    .out_cpu = record->out_cpu,
	    .in_cpu = record->in_cpu,
	    .preempted = record->flags & RECORD_OFFCPU_PREEMPTED,
	    .open = record->flags & RECORD_OFFCPU_OPEN,
	    .woken = record->flags & RECORD_OFFCPU_WOKEN,
	    .throttled = record->flags & RECORD_OFFCPU_THROTTLED,
	    .bound = record->flags & RECORD_OFFCPU_BOUND,
	    .lost_before = record->seq > seq + 1 && (seq || thread->start_ns),
	    .lock_kind = record->lock_kind <= RECORD_LOCK_MUTEX ? record->lock_kind : 0,
	    .lock = record->lock,
	    .lock_holder = record->lock_holder,
	};
	memcpy(offcpu->args, record->args, sizeof(offcpu->args));
	memcpy(offcpu->waker_args, record->waker_args, sizeof(offcpu->waker_args));
	if (offcpu->preempted)
		offcpu->wake_ns = offcpu->out_ns;
	else if (!offcpu->woken)
		offcpu->wake_ns = offcpu->in_ns;
	see_time(loader, record->out_ns);
	see_time(loader, record->in_ns);
	model->has_sched = true;
	return index_map_put(&loader->last_seq, index, record->seq);
}

static int load_sample(struct loader *loader, const struct record_sample *record)
{
	struct model *model = loader->model;
	uint32_t index = model_get_thread(model, record->pid, record->tid);
	struct sample *sample;

	if (index == MODEL_NONE)
		return -ENOMEM;
	sample = array_add(&model->threads.items[index].samples);
	if (!sample)
		return -ENOMEM;
	*sample = (struct sample){
	    .time_ns = record->time_ns,
	    .syscall = record->syscall,
	    .kstack = load_stack_id(loader, record->kstack),
	    .ustack = load_stack_id(loader, record->ustack),
	    .faults = record->faults,
	    .kind = record->flags & RECORD_SAMPLE_FAULT  ? SAMPLE_FAULT
	            : record->flags & RECORD_SAMPLE_USER ? SAMPLE_USER
	                                                 : SAMPLE_KERNEL,
	};
	return 0;
}

static int load_steal(struct loader *loader, const struct record_steal *record)
{
	struct model *model = loader->model;
	uint32_t index = model_get_thread(model, record->pid, record->tid);
	struct span *span;

	if (index == MODEL_NONE)
		return -ENOMEM;
	span = array_add(&model->threads.items[index].stolen);
	if (!span)
		return -ENOMEM;
	*span = (struct span){record->start_ns, record->end_ns};
	return 0;
}

static int load_stack(struct loader *loader, const struct record_stack *record)
{
	struct model *model = loader->model;
	const uint64_t *frames = (const uint64_t *)(record + 1);
	struct stack *stack = array_add(&model->stacks);

	if (!stack)
		return -ENOMEM;
	*stack = (struct stack){.kind = record->kind,
	                        .pid = record->kind == RECORD_STACK_KERNEL ? 0 : record->pid,
	                        .first = model->frames.count,
	                        .count = record->count,
	                        .cut = record->flags & RECORD_STACK_CUT,
	                        .collecting = record->flags & RECORD_STACK_COLLECTING};
	for (uint32_t i = 0; i < record->count; i++) {
		uint64_t *frame = array_add(&model->frames);

		if (!frame)
			return -ENOMEM;
		*frame = frames[i];
	}
	return index_map_put(&loader->stacks, record->id, model->stacks.count - 1);
}

static int load_symbol(struct loader *loader, const struct record_symbol *record)
{
	return model_add_symbol(
	    loader->model,
	    &(struct symbol){.address = record->address,
	                     .pid = record->pid,
	                     .name = load_string_id(loader, record->name),
	                     .module = load_string_id(loader, record->module),
	                     .file = load_string_id(loader, record->file),
	                     .line = record->line,
	                     .build_id = load_string_id(loader, record->build_id),
	                     .module_address = record->module_address,
	                     .inner = record->inner ? RECORD_FRAME_INLINED | record->inner : 0});
}

static uint32_t get_device(struct loader *loader, uint32_t device)
{
	uint32_t index;

	if (index_map_get(&loader->devices, device, &index))
		return index;
	if (!array_add(&loader->model->devices) ||
	    index_map_put(&loader->devices, device, loader->model->devices.count - 1))
		return MODEL_NONE;
	return loader->model->devices.count - 1;
}

static int load_device(struct loader *loader, const struct record_device *record)
{
	struct model *model = loader->model;
	uint32_t index = get_device(loader, record->device);
	struct device *device;

	if (index == MODEL_NONE)
		return -ENOMEM;
	device = &model->devices.items[index];
	device->number = record->device;
	device->name = load_string_id(loader, record->name);
	device->simulated = record->simulated;
	memcpy(device->uuid, record->uuid, sizeof(device->uuid));
	model->simulated |= device->simulated;
	return 0;
}

/* A function's name in words, as other tools' traces have it; the string itself if it is in words already. */
static uint32_t in_words(struct loader *loader, uint32_t string)
{
	uint32_t known;
	char *text;

	if (!symbol_is_mangled(model_string(loader->model, string)))
		return string;
	if (index_map_get(&loader->in_words, string, &known))
		return known;
	text = symbol_demangle(model_string(loader->model, string));
	known = text ? model_add_string(loader->model, text, strlen(text)) : string;
	free(text);
	if (known == MODEL_NONE || index_map_put(&loader->in_words, string, known))
		return string;
	return known;
}

static int load_gpu_op(struct loader *loader, const struct record_gpu_op *record)
{
	struct model *model = loader->model;
	uint32_t index = get_device(loader, record->device);
	uint32_t process = model_get_process(model, record->pid);
	struct gpu_op *op;

	if (index == MODEL_NONE || process == MODEL_NONE)
		return -ENOMEM;
	op = array_add(&model->devices.items[index].ops);
	if (!op)
		return -ENOMEM;
	*op = (struct gpu_op){
	    .start_ns = record->start_ns,
	    .end_ns = record->end_ns < record->start_ns ? record->start_ns : record->end_ns,
	    .process = process,
	    .context = record->context,
	    .stream = record->stream,
	    .correlation = record->correlation,
	    .name = in_words(loader, load_string_id(loader, record->name)),
	    .graph = record->graph,
	    .bytes = record->bytes,
	    .kind = record->kind,
	    .copy_kind = record->copy_kind,
	    .source_kind = record->source_kind,
	    .target_kind = record->target_kind,
	    .order = loader->ops++,
	};
	see_time(loader, op->start_ns);
	see_time(loader, op->end_ns);
	model->has_timeline = true;
	return 0;
}

static int load_call(struct loader *loader, const struct record_call *record)
{
	struct model *model = loader->model;
	uint32_t index = model_get_thread(model, record->pid, record->tid);
	struct call *call;

	if (index == MODEL_NONE)
		return -ENOMEM;
	call = array_add(&model->threads.items[index].calls);
	if (!call)
		return -ENOMEM;
	*call = (struct call){
	    .enter_ns = record->enter_ns,
	    .exit_ns = record->exit_ns > record->enter_ns ? record->exit_ns : record->enter_ns,
	    .correlation = record->correlation,
	    .function = load_string_id(loader, record->function),
	    .exit_known = record->exit_ns != 0,
	    .probed = record->source == RECORD_CALL_UPROBE,
	    .arguments =
	        (record->known & RECORD_CALL_STREAM ? CALL_HAS_STREAM : 0) |
	        (record->known & RECORD_CALL_OBJECT ? CALL_HAS_OBJECT : 0) |
	        (record->known & RECORD_CALL_WORK ? CALL_HAS_WORK : 0) |
	        (record->known & RECORD_CALL_RESULT || record->source != RECORD_CALL_UPROBE ? CALL_HAS_RESULT
	                                                                                    : 0),
	    .result = record->result,
	    .stream = record->stream,
	    .object = record->object,
	    .work = record->work,
	    .threads = record->threads,
	};
	call->class = cuda_classify(model_string(model, call->function));
	return 0;
}

/* "DOMAIN:NAME", as other tools write it, or NAME in the default domain; MODEL_NONE if memory ran out. */
static uint32_t range_name(struct loader *loader, const struct record_range *record)
{
	uint32_t name = load_string_id(loader, record->name), domain = load_string_id(loader, record->domain),
	         id;
	uint64_t key = (uint64_t)record->domain << 32 | record->name;
	char *text;
	int length;

	if (!domain)
		return name;
	if (index_map_get(&loader->in_domain, key, &id))
		return id;
	length =
	    asprintf(&text, "%s:%s", model_string(loader->model, domain), model_string(loader->model, name));
	if (length < 0)
		return MODEL_NONE;
	id = model_add_string(loader->model, text, (size_t)length);
	free(text);
	if (id != MODEL_NONE && index_map_put(&loader->in_domain, key, id))
		return MODEL_NONE;
	return id;
}

static int load_range(struct loader *loader, const struct record_range *record)
{
	struct model *model = loader->model;
	uint32_t index = model_get_thread(model, record->pid, record->tid);
	uint32_t name = range_name(loader, record);
	struct scope *scope = NULL;

	if (index != MODEL_NONE && name != MODEL_NONE)
		scope = array_add(&model->threads.items[index].scopes);
	if (!scope)
		return -ENOMEM;
	*scope = (struct scope){
	    .start_ns = record->start_ns,
	    .end_ns = later(record->start_ns, record->end_ns),
	    .name = name,
	    .kind = record->kind == RECORD_RANGE_START_END ? SCOPE_RANGE : SCOPE_ANNOTATION,
	};
	return 0;
}

static int load_sync(struct loader *loader, const struct record_sync *record)
{
	struct sync *sync = array_add(&loader->model->syncs);
	uint32_t process = model_get_process(loader->model, record->pid);

	if (!sync || process == MODEL_NONE)
		return -ENOMEM;
	*sync = (struct sync){.start_ns = record->start_ns,
	                      .end_ns = record->end_ns,
	                      .process = process,
	                      .type = record->type,
	                      .context = record->context,
	                      .stream = record->stream,
	                      .correlation = record->correlation};
	return 0;
}

/* CUpti_ActivityOverheadKind, cupti_activity.h (13.0). */
enum {
	OVERHEAD_DRIVER_COMPILER = 1,
	OVERHEAD_BUFFER_FLUSH = 1 << 16,
	OVERHEAD_INSTRUMENTATION = 2 << 16,
	OVERHEAD_RESOURCE = 3 << 16,
	OVERHEAD_MODULE_LOADING = 4 << 16,
	OVERHEAD_FUNCTION_LOADING = 5 << 16,
	OVERHEAD_BUFFER_REQUEST = 7 << 16,
};

static int load_overhead(struct loader *loader, const struct record_overhead *record)
{
	struct overhead *overhead;
	bool loading = false;
	uint32_t index;

	switch (record->kind) {
	case OVERHEAD_BUFFER_FLUSH:
	case OVERHEAD_INSTRUMENTATION:
	case OVERHEAD_RESOURCE:
	case OVERHEAD_BUFFER_REQUEST:
		break;
	case OVERHEAD_DRIVER_COMPILER:
	case OVERHEAD_MODULE_LOADING:
	case OVERHEAD_FUNCTION_LOADING:
		loading = true;
		break;
	default:
		return 0; /* a full command buffer is the GPU's being behind, not overhead */
	}
	/* Not tied to a thread: CUPTI's own worker did it, beside the program. */
	if (!record->tid)
		return 0;
	index = model_get_thread(loader->model, record->pid, record->tid);
	if (index == MODEL_NONE)
		return -ENOMEM;
	overhead = array_add(&loader->model->threads.items[index].overhead);
	if (!overhead)
		return -ENOMEM;
	*overhead = (struct overhead){record->start_ns, record->end_ns, loading};
	return 0;
}

static int load_loss(struct loader *loader, const struct record_loss *record)
{
	struct loss *loss = array_add(&loader->model->losses);

	if (!loss)
		return -ENOMEM;
	*loss = (struct loss){record->start_ns, record->end_ns, record->count, record->cause, record->pid};
	return 0;
}

static int load_bridge(struct loader *loader, const struct record_bridge *record)
{
	struct model *model = loader->model;
	uint32_t index = model_get_process(model, record->pid);
	struct process *process;

	if (index == MODEL_NONE)
		return -ENOMEM;
	process = &model->processes.items[index];
	if (record->clock_error_ns > model->clock_error_ns)
		model->clock_error_ns = record->clock_error_ns;
	model->simulated |= record->simulated != 0;
	if (record->phase == RECORD_BRIDGE_FAILED)
		process->cupti_failed = true;
	else if (record->phase == RECORD_BRIDGE_RUNNING && process->cupti_failed && !process->cupti_from_ns)
		process->cupti_from_ns = record->time_ns;
	return 0;
}

static int load_rank(struct loader *loader, const struct record_rank *record)
{
	uint32_t index = model_get_process(loader->model, record->pid);

	if (index == MODEL_NONE)
		return -ENOMEM;
	if (record->rank < record->world_size) {
		loader->model->processes.items[index].rank = record->rank;
		loader->model->processes.items[index].world_size = record->world_size;
	}
	return 0;
}

/* By the values of ncclDataType_t, 0: not known. */
static uint64_t nccl_type_bytes(uint32_t type)
{
	static const uint8_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return type < sizeof(bytes) ? bytes[type] : 0;
}

static int load_nccl(struct loader *loader, const struct record_nccl *record)
{
	struct model *model = loader->model;
	uint32_t index = model_get_thread(model, record->pid, record->tid);
	struct nccl_call *call =
	    index == MODEL_NONE ? NULL : array_add(&model->threads.items[index].nccl_calls);

	if (!call)
		return -ENOMEM;
	*call = (struct nccl_call){
	    .time_ns = record->time_ns,
	    .handle = record->comm,
	    .comm = record->id,
	    .number = record->number,
	    .stream = record->stream,
	    .function = record->function,
	    .peer = record->peer,
	    .group = record->group,
	};
	if (record->rank < record->size) {
		call->size = record->size;
		call->rank = record->rank;
	}
	if (__builtin_mul_overflow(record->count, nccl_type_bytes(record->type), &call->bytes))
		call->bytes = 0;
	return 0;
}

static int load_record(void *context, const struct record_header *record)
{
	struct loader *loader = context;
	const void *body = record;

	switch (record->type) {
	case RECORD_STRING:
		return load_string(loader, body);
	case RECORD_INFO:
		return load_info(loader, body);
	case RECORD_TASK:
		return load_task(loader, body);
	case RECORD_FORK:
		return load_fork(loader, body);
	case RECORD_EXEC:
		return load_exec(loader, body);
	case RECORD_EXIT:
		return load_exit(loader, body);
	case RECORD_OFFCPU:
		return load_offcpu(loader, body);
	case RECORD_SAMPLE:
		return load_sample(loader, body);
	case RECORD_STEAL:
		return load_steal(loader, body);
	case RECORD_STACK:
		return load_stack(loader, body);
	case RECORD_SYMBOL:
		return load_symbol(loader, body);
	case RECORD_DEVICE:
		return load_device(loader, body);
	case RECORD_GPU_OP:
		return load_gpu_op(loader, body);
	case RECORD_CALL:
		return load_call(loader, body);
	case RECORD_SYNC:
		return load_sync(loader, body);
	case RECORD_RANGE:
		return load_range(loader, body);
	case RECORD_OVERHEAD:
		return load_overhead(loader, body);
	case RECORD_LOSS:
		return load_loss(loader, body);
	case RECORD_BRIDGE:
		return load_bridge(loader, body);
	case RECORD_RANK:
		return load_rank(loader, body);
	case RECORD_NCCL:
		return load_nccl(loader, body);
	default:
		return 0; /* mappings, and what a newer version wrote */
	}
}

int model_load_session(struct model *model, const char *path, struct error *error)
{
	struct loader loader = {.model = model};
	int rc;

	*model = (struct model){0};
	rc = session_read(path, load_record, &loader, &model->summary, error);
	if (rc == -ENOMEM)
		error_no_memory(error);
	index_map_free(&loader.strings);
	index_map_free(&loader.stacks);
	index_map_free(&loader.devices);
	index_map_free(&loader.in_words);
	index_map_free(&loader.in_domain);
	index_map_free(&loader.last_seq);
	if (rc)
		return rc;
	if (!model->start_ns)
		model->start_ns = loader.first_ns;
	if (model->end_ns < model->start_ns || !model->end_ns)
		model->end_ns = loader.last_ns;
	return model_finish(model, error);
}
