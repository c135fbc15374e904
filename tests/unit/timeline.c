/* SPDX-License-Identifier: GPL-2.0-only */
#include "timeline.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/syscall.h>

void timeline_begin(struct timeline *timeline)
{
	*timeline = (struct timeline){.correlation = 1, .next_address = 0xffffffff81000000ULL};
	timeline->model.has_sched = true;
	timeline->model.sample_period_ns = 4000000;
	timeline->model.has_timeline = true;
	timeline->model.summary.complete = true;
	cr_assert(array_add(&timeline->model.devices));
}

void timeline_end(struct timeline *timeline)
{
	analysis_free(&timeline->analysis);
	model_free(&timeline->model);
}

static uint32_t add_string(struct timeline *timeline, const char *text)
{
	return model_add_string(&timeline->model, text, strlen(text));
}

uint32_t timeline_thread(struct timeline *timeline, uint32_t pid, uint32_t tid, const char *comm)
{
	uint32_t index = model_new_thread(&timeline->model, pid, tid, 0);

	cr_assert_neq(index, MODEL_NONE);
	timeline->model.threads.items[index].comm = add_string(timeline, comm);
	timeline->model.threads.items[index].tracked = true;
	return index;
}

uint32_t timeline_process(struct timeline *timeline, uint32_t pid, uint32_t parent_pid, const char *comm)
{
	uint32_t parent = parent_pid ? model_get_process(&timeline->model, parent_pid) : MODEL_NONE;

	model_new_process(&timeline->model, pid, parent);
	return timeline_thread(timeline, pid, pid, comm);
}

static void add_frame(struct timeline *timeline, const char *name, size_t length)
{
	struct model *model = &timeline->model;
	uint64_t *frame = array_add(&model->frames);

	*frame = timeline->next_address++;
	model_add_symbol(model,
	                 &(struct symbol){.address = *frame, .name = model_add_string(model, name, length)});
	model->stacks.items[model->stacks.count - 1].count++;
}

/* A kernel stack of the named frames, innermost first, between those that every stack has. */
static uint32_t add_stack(struct timeline *timeline, const char *functions)
{
	struct model *model = &timeline->model;
	struct stack *stack = array_add(&model->stacks);

	*stack = (struct stack){.kind = RECORD_STACK_KERNEL, .first = model->frames.count};
	add_frame(timeline, "__schedule", strlen("__schedule"));
	for (size_t length; *functions; functions += length + (functions[length] == '<')) {
		length = strcspn(functions, "<");
		add_frame(timeline, functions, length);
	}
	add_frame(timeline, "do_syscall_64", strlen("do_syscall_64"));
	return model->stacks.count - 1;
}

struct offcpu *timeline_blocked(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t wake,
                                uint64_t in, const char *blocked_in, uint32_t waker, const char *woken_by)
{
	struct offcpu *offcpu = array_add(&timeline->model.threads.items[thread].offcpu);

	*offcpu = (struct offcpu){
	    .out_ns = out,
	    .wake_ns = wake,
	    .in_ns = in,
	    .syscall = -1,
	    .waker_syscall = -1,
	    .kstack = add_stack(timeline, blocked_in),
	    .waker_kstack = add_stack(timeline, woken_by),
	    .ustack = MODEL_NONE,
	    .woken = true,
	};
	if (waker != MODEL_NONE) {
		offcpu->waker_tid = timeline->model.threads.items[waker].tid;
		offcpu->waker_pid = timeline->model.threads.items[waker].pid;
	}
	return offcpu;
}

struct offcpu *timeline_futex(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t wake,
                              uint64_t in, uint32_t waker, uint64_t address)
{
	struct offcpu *offcpu =
	    timeline_blocked(timeline, thread, out, wake, in, "futex_do_wait", waker, "futex_wake");

	offcpu->syscall = offcpu->waker_syscall = SYS_futex;
	offcpu->args[0] = offcpu->waker_args[0] = address;
	offcpu->args[1] =
	    0x189; /* FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME: a condition variable */
	return offcpu;
}

struct offcpu *timeline_pipe(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t wake,
                             uint64_t in, uint32_t waker)
{
	struct offcpu *offcpu =
	    timeline_blocked(timeline, thread, out, wake, in, "anon_pipe_read", waker, "anon_pipe_write");

	offcpu->syscall = SYS_read;
	offcpu->waker_syscall = SYS_write;
	offcpu->object = offcpu->waker_object = 77;
	return offcpu;
}

struct offcpu *timeline_sleep(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t in)
{
	struct offcpu *offcpu =
	    timeline_blocked(timeline, thread, out, in, in, "do_nanosleep", MODEL_NONE, "hrtimer_wakeup");

	offcpu->syscall = SYS_clock_nanosleep;
	return offcpu;
}

struct offcpu *timeline_preempted(struct timeline *timeline, uint32_t thread, uint64_t out, uint64_t in,
                                  uint32_t by)
{
	struct offcpu *offcpu = array_add(&timeline->model.threads.items[thread].offcpu);

	*offcpu = (struct offcpu){.out_ns = out,
	                          .wake_ns = out,
	                          .in_ns = in,
	                          .syscall = -1,
	                          .waker_syscall = -1,
	                          .kstack = MODEL_NONE,
	                          .waker_kstack = MODEL_NONE,
	                          .ustack = MODEL_NONE,
	                          .next_tid = timeline->model.threads.items[by].tid,
	                          .prev_tid = timeline->model.threads.items[by].tid,
	                          .preempted = true};
	return offcpu;
}

void timeline_call(struct timeline *timeline, uint32_t thread, const char *function, uint64_t enter,
                   uint64_t exit, uint32_t correlation)
{
	uint32_t name = add_string(timeline, function);
	struct call *call = array_add(&timeline->model.threads.items[thread].calls);

	*call = (struct call){.enter_ns = enter,
	                      .exit_ns = exit,
	                      .correlation = correlation,
	                      .function = name,
	                      .class = cuda_classify(function),
	                      .exit_known = true};
}

struct gpu_op *timeline_op(struct timeline *timeline, uint32_t pid, uint64_t start, uint64_t end,
                           uint32_t correlation)
{
	uint32_t process = model_get_process(&timeline->model, pid);
	struct device *device = &timeline->model.devices.items[0];
	struct gpu_op *op = array_add(&device->ops);

	*op = (struct gpu_op){.start_ns = start,
	                      .end_ns = end,
	                      .process = process,
	                      .stream = 7,
	                      .correlation = correlation,
	                      .kind = OP_KERNEL,
	                      .order = device->ops.count};
	op->name = add_string(timeline, "kernel");
	return op;
}

void timeline_kernel(struct timeline *timeline, uint32_t thread, uint64_t launch, uint64_t start,
                     uint64_t end)
{
	uint32_t correlation = timeline->correlation++;

	timeline_call(timeline, thread, "cudaLaunchKernel", launch, launch + 3 * US, correlation);
	timeline_op(timeline, timeline->model.threads.items[thread].pid, start, end, correlation);
}

void timeline_sample(struct timeline *timeline, uint32_t thread, uint64_t time, const char *kernel_function)
{
	uint32_t stack = kernel_function ? add_stack(timeline, kernel_function) : MODEL_NONE;
	struct sample *sample = array_add(&timeline->model.threads.items[thread].samples);

	*sample = (struct sample){.time_ns = time,
	                          .syscall = -1,
	                          .kstack = stack,
	                          .ustack = MODEL_NONE,
	                          .kind = kernel_function ? SAMPLE_KERNEL : SAMPLE_USER};
}

struct nccl_call *timeline_nccl(struct timeline *timeline, uint32_t thread, uint64_t time, uint32_t function,
                                uint64_t comm, uint64_t number)
{
	struct nccl_call *call = array_add(&timeline->model.threads.items[thread].nccl_calls);

	*call = (struct nccl_call){.time_ns = time,
	                           .function = function,
	                           .handle = comm,
	                           .comm = comm,
	                           .number = number,
	                           .bytes = 1024,
	                           .stream = 7};
	return call;
}

void timeline_stolen(struct timeline *timeline, uint32_t thread, uint64_t start, uint64_t end)
{
	struct span *span = array_add(&timeline->model.threads.items[thread].stolen);

	*span = (struct span){start, end};
}

void timeline_lost(struct timeline *timeline, uint32_t cause, uint64_t start, uint64_t end)
{
	struct loss *loss = array_add(&timeline->model.losses);

	*loss = (struct loss){.start_ns = start, .end_ns = end, .count = 1, .cause = cause};
}

const struct device_report *timeline_analyse(struct timeline *timeline)
{
	struct analysis_options options = {.device = -1};
	struct error error = {0};
	const struct device_report *device;
	const struct cause *cause;
	uint64_t sum = 0;

	cr_assert_eq(model_finish(&timeline->model, &error), 0, "%s", error.text);
	cr_assert_eq(analysis_run(&timeline->analysis, &timeline->model, &options, &error), 0, "%s",
	             error.text);
	device = &timeline->analysis.devices.items[0];
	array_for_each (cause, &device->causes)
		sum += cause->ns;
	cr_assert_eq(sum, device->idle_ns);
	cr_assert_eq(device->busy_ns + device->idle_ns, device->window_end_ns - device->window_start_ns);
	return device;
}

uint64_t timeline_ns(const struct timeline *timeline, enum cause_code code, enum cause_role role)
{
	const struct cause *cause;

	array_for_each (cause, &timeline->analysis.devices.items[0].causes) {
		if (cause->code == code && cause->role == role)
			return cause->ns;
	}
	return 0;
}

const struct cause *timeline_top(const struct timeline *timeline)
{
	const struct device_report *device = &timeline->analysis.devices.items[0];

	cr_assert_gt(device->causes.count, 0);
	return &device->causes.items[0];
}
