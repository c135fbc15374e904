// SPDX-License-Identifier: GPL-2.0-only
/*
 * CUDA API calls of tracked threads, seen by uprobes: launches at their entry only, because a return probe
 * would cost as much as the launch; calls that block at entry and return.
 *
 * The runtime calls the driver, so one call of the program is several probed functions deep. Only the
 * outermost is sent. Nesting is told by the stack pointer, not by counting entries and returns: a return that
 * never comes (longjmp, an exception, a probe that was attached in between) can then not shift the count for
 * good. While a blocking call is open, an entry with a lower stack pointer is inside it; an entry or a return
 * at or above it shows that the open call was left without its return. A launch leaves no such mark, so an
 * inner launch is told by the outer one's return address, which is still in its place on the stack.
 *
 * Queries are made in floods by those who poll: of the same thread, about the same event or stream and with
 * the same result, one in QUERY_PERIOD_NS is sent. What changes is always sent, and how long a query took is
 * of no use.
 *
 * A blocking call inside a launch (code that is loaded lazily) is sent: the launch itself has no length.
 */
#include "call.bpf.h"

#define QUERY_PERIOD_NS 50000

/* What a call is about. */
struct call_about {
	__u64 stream, object, work;
	__u32 known;   /* WIRE_CALL_* */
	__u32 threads; /* of a launch, all blocks together; 0: not known */
	__s32 result;
};

/* Launches of a function with one grid, block and shared memory are taken for the same work: a hash of them.
 */
static __always_inline __u64 work_of(const __u32 words[8])
{
	__u64 hash = 0;

	for (__u32 i = 0; i < 4; i++)
		hash = hash_mix(hash, words[2 * i] | (__u64)words[2 * i + 1] << 32);
	return hash;
}

/* Threads of a grid of blocks, UINT32_MAX for more than that. */
static __always_inline __u32 threads_of(const __u32 words[8])
{
	__u64 threads = 1;

	for (__u32 i = 0; i < 6; i++) {
		threads *= words[i];
		if (threads > (__u32)-1)
			threads = (__u32)-1;
	}
	return (__u32)threads;
}

/* Arguments of 32 bits each: what lies in the other half of their place means nothing. */
static __always_inline bool numbers_read(struct pt_regs *context, __u32 words[8])
{
	__u64 value;

	for (__u32 i = 0; i < 7; i++) {
		if (!argument_read(context, CALL_PLACE_ARGUMENT + 1 + i, &value))
			return false;
		words[i] = (__u32)value;
	}
	return true;
}

/* A dim3 is passed in two places, of which the second one's other half means nothing. */
static __always_inline bool dim3_read(struct pt_regs *context, __u32 words[8])
{
	__u64 value;

	for (__u32 i = 0; i < 2; i++) {
		if (!argument_read(context, CALL_PLACE_ARGUMENT + 1 + 2 * i, &value))
			return false;
		words[3 * i] = (__u32)value;
		words[3 * i + 1] = (__u32)(value >> 32);
		if (!argument_read(context, CALL_PLACE_ARGUMENT + 2 + 2 * i, &value))
			return false;
		words[3 * i + 2] = (__u32)value;
	}
	/* Behind the address of the parameters. */
	if (!argument_read(context, CALL_PLACE_ARGUMENT + 6, &value))
		return false;
	words[6] = (__u32)value;
	return true;
}

static __always_inline bool config_read(struct pt_regs *context, __u32 words[8])
{
	__u64 address = PT_REGS_PARM1(context);

	asm volatile("" : "+r"(address));
	return !bpf_probe_read_user(words, 28, (void *)address);
}

/* How much work a call is; false: not known. */
static __always_inline bool work_read(struct pt_regs *context, __u32 size, struct call_about *about)
{
	__u32 words[8] = {0};
	bool known = false;

	if (size >= CALL_SIZE_ARGUMENT)
		return argument_read(context, size - CALL_SIZE_ARGUMENT + CALL_PLACE_ARGUMENT, &about->work);
	if (size == CALL_SIZE_NUMBERS)
		known = numbers_read(context, words);
	else if (size == CALL_SIZE_DIM3)
		known = dim3_read(context, words);
	else if (size == CALL_SIZE_CONFIG)
		known = config_read(context, words);
	if (known) {
		about->work = work_of(words);
		about->threads = threads_of(words);
	}
	return known;
}

static __always_inline void call_about_read(struct call_about *about, struct pt_regs *context, __u64 cookie)
{
	about->stream = about->object = about->work = 0;
	about->known = about->threads = 0;
	about->result = 0;
	if (argument_read(context, CALL_STREAM(cookie), &about->stream))
		about->known |= WIRE_CALL_STREAM;
	if (argument_read(context, CALL_OBJECT(cookie), &about->object))
		about->known |= WIRE_CALL_OBJECT;
	if (work_read(context, CALL_SIZE(cookie), about))
		about->known |= WIRE_CALL_WORK;
}

static __always_inline void record_call(struct task_struct *task, __u64 cookie,
                                        const struct call_about *about, __u64 enter, __u64 exit)
{
	struct wire_call *record = record_reserve(WIRE_CALL, sizeof(*record));

	if (!record)
		return;
	record->enter_ns = enter;
	record->exit_ns = exit;
	record->tgid = task_tgid(task);
	record->tid = task_tid(task);
	record->function = CALL_FUNCTION(cookie);
	record->known = about->known;
	record->stream = about->stream;
	record->object = about->object;
	record->work = about->work;
	record->result = about->result;
	record->threads = about->threads;
	record_submit(record);
}

/* The same for the blocking call that the thread is in. */
static __always_inline void record_open_call(struct thread_state *thread, struct task_struct *task,
                                             __u64 exit, __s32 result)
{
	struct call_about about = {
	    .stream = thread->call_target,
	    .object = thread->call_object,
	    .work = thread->call_work,
	    .known = thread->call_known,
	    .result = result,
	};

	if (exit)
		about.known |= WIRE_CALL_RESULT;
	record_call(task, thread->call_cookie, &about, thread->call_ns, exit);
}

/* The open call was left in a way that no probe saw: its end is not known. */
static __always_inline void call_abandon(struct thread_state *thread, struct task_struct *task)
{
	count_loss(WIRE_LOSS_NEST);
	record_open_call(thread, task, 0, 0);
	thread->call_stack = 0;
}

/* True if an entry at `stack` is inside the open blocking call. Ends a call that cannot be open any more. */
static __always_inline bool call_encloses(struct thread_state *thread, struct task_struct *task, __u64 stack)
{
	if (!thread->call_stack)
		return false;
	if (stack < thread->call_stack)
		return true;
	call_abandon(thread, task);
	return false;
}

static __always_inline bool launch_encloses(struct thread_state *thread, __u64 stack, __u64 now)
{
	if (!thread->launch_stack || stack >= thread->launch_stack || now - thread->launch_ns > CALL_NEST_NS)
		return false;
	return return_address(thread->launch_stack) == thread->launch_return;
}

/* Processes outside the tracked set that were told of: by thread group id, their start. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} callers_told SEC(".maps") __weak;

/*
 * A thread that is not tracked calls CUDA. The collector is told, once for each process, and decides. Where
 * all are wanted the process is tracked from here on, so that what lives for less than the collector's next
 * look is seen too: this thread at once, its others when the collector goes through them.
 */
static __attribute__((noinline)) struct thread_state *caller_seen(struct task_struct *task)
{
	__u32 tgid = task_tgid(task), number = task->tgid;
	__u64 start = task->group_leader->start_time, *told;
	struct thread_state *thread = NULL;
	struct wire_caller *record;
	__u8 tracked = TRACKED_CALLER;

	told = bpf_map_lookup_elem(&callers_told, &number);
	if (told && *told == start && !settings.adopt_callers)
		return NULL;
	if (tgid == settings.collector || task->flags & TASK_FLAG_EXITING)
		return NULL;
	if (settings.adopt_callers) {
		if (bpf_map_update_elem(&tracked_processes, &tgid, &tracked, BPF_NOEXIST) < 0 &&
		    !process_tracked(tgid))
			count_loss(WIRE_LOSS_STORAGE);
		thread = thread_create(task);
	}
	if (told && *told == start)
		return thread;
	record = record_reserve(WIRE_CALLER, sizeof(*record));
	if (!record)
		return thread;
	record->time_ns = bpf_ktime_get_ns();
	record->tgid = tgid;
	record->tid = task_tid(task);
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	record->tracked = thread != NULL;
	record->pad = 0;
	record_submit(record);
	bpf_map_update_elem(&callers_told, &number, &start, BPF_ANY);
	return thread;
}

/* State of the current thread if its calls are to be recorded. */
static __always_inline struct thread_state *calling_thread(struct task_struct *task)
{
	struct thread_state *thread;

	if (recording_end_ns)
		return NULL;
	thread = thread_find(task);
	/* A thread that is followed only because it woke one of ours: its calls are not what was asked for.
	 */
	if (thread && thread->guest && !process_tracked(task_tgid(task)))
		thread = NULL;
	if (!thread && settings.report_callers)
		thread = caller_seen(task);
	return thread;
}

SEC("uprobe")
int call_launches(struct pt_regs *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *thread = calling_thread(task);
	__u64 stack = stack_pointer(context), now, cookie;
	struct call_about about;

	if (!thread || call_encloses(thread, task, stack))
		return 0;
	now = bpf_ktime_get_ns();
	if (launch_encloses(thread, stack, now))
		return 0;
	thread->launch_ns = now;
	thread->launch_stack = stack;
	thread->launch_return = return_address(stack);
	thread_name(thread, task, now);
	cookie = bpf_get_attach_cookie(context);
	call_about_read(&about, context, cookie);
	record_call(task, cookie, &about, now, 0);
	return 0;
}

SEC("uprobe")
int call_enters(struct pt_regs *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *thread = calling_thread(task);
	__u64 stack = stack_pointer(context), cookie;
	struct call_about about;

	if (!thread || call_encloses(thread, task, stack))
		return 0;
	cookie = bpf_get_attach_cookie(context);
	call_about_read(&about, context, cookie);
	thread->call_cookie = cookie;
	thread->call_target = about.stream;
	thread->call_object = about.object;
	thread->call_work = about.work;
	thread->call_known = about.known;
	thread->call_ns = bpf_ktime_get_ns();
	thread->call_stack = stack;
	return 0;
}

/* True if the open call is a query that says the same as the last one, which was sent only now. */
static __always_inline bool query_repeats(struct thread_state *thread, __s32 result, __u64 now)
{
	__u64 object = thread->call_known & WIRE_CALL_OBJECT ? thread->call_object : thread->call_target;

	if (!CALL_IS_QUERY(thread->call_cookie))
		return false;
	if (thread->query_object == object && thread->query_result == result &&
	    now - thread->query_ns < QUERY_PERIOD_NS)
		return true;
	thread->query_ns = now;
	thread->query_object = object;
	thread->query_result = result;
	return false;
}

SEC("uretprobe")
int call_returns(struct pt_regs *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *thread = calling_thread(task);
	__u64 stack = stack_pointer(context), now;
	__s32 result = (__s32)PT_REGS_RC(context);

	if (!thread || !thread->call_stack || stack < thread->call_stack + RETURN_POPS)
		return 0;
	if (stack > thread->call_stack + RETURN_POPS) {
		call_abandon(thread, task);
		return 0;
	}
	now = bpf_ktime_get_ns();
	if (!query_repeats(thread, result, now)) {
		thread_name(thread, task, now);
		record_open_call(thread, task, now, result);
	}
	thread->call_stack = 0;
	return 0;
}
