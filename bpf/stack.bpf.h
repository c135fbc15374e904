/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User stacks of the current thread.
 *
 * Most code that matters (C library, Python, PyTorch) is built without frame pointers, so nothing is unwound
 * here: the registers and the upper part of the stack's memory are copied, and the collector unwinds them by
 * the tables of the files. Python's own frames are not on that stack but in the heap; they are followed here,
 * code object and position of each.
 *
 * A thread's memory can only be read while it is the current one, so the copy is made when it leaves the CPU,
 * before it is known how long it will wait. The copy stays in a slot of the thread, and only that of a long
 * wait is sent.
 */
#ifndef WHYIDLE_BPF_STACK_H
#define WHYIDLE_BPF_STACK_H

#include "common.bpf.h"

#define PAGE_BYTES   4096
#define GUEST_NS     5000000000 /* guests have stacks for so long after they woke a tracked thread */
#define PYTHON_STEPS 128        /* threads of an interpreter that are looked through for the current one */

struct stack_slot {
	struct wire_stack record;
	__u8 data[WIRE_PYTHON_DEPTH * sizeof(struct wire_python_frame) + WIRE_STACK_BYTES];
	__u8 frame[WIRE_PYTHON_FRAME_BYTES]; /* of Python, while it is looked at; not sent */
};

/* One slot for each thread that needs one, while it lives. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct stack_slot);
} stack_slots SEC(".maps") __weak;

/* Numbers of the slots that nobody has; filled by the collector. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1024);
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wire_stack_cost);
} stack_cost SEC(".maps") __weak;

/* Where CPython keeps things, by thread group id; filled by the collector. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct wire_python);
} python_processes SEC(".maps") __weak;

static __always_inline struct stack_slot *slot_of(const struct thread_state *thread)
{
	__u32 index = thread->slot - 1;

	return thread->slot ? bpf_map_lookup_elem(&stack_slots, &index) : NULL;
}

/* Of this CPU; never NULL in practice, but the verifier wants to know. */
static __always_inline struct wire_stack_cost *cost_here(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&stack_cost, &only);
}

/* The thread's slot, made its own if it has none yet. NULL if all are taken. */
static __always_inline struct stack_slot *slot_take(struct thread_state *thread)
{
	__u32 index;

	if (!thread->slot) {
		if (bpf_map_pop_elem(&free_slots, &index)) {
			count_loss(WIRE_LOSS_SLOT);
			return NULL;
		}
		thread->slot = index + 1;
	}
	return slot_of(thread);
}

static __always_inline void slot_give_back(struct thread_state *thread)
{
	__u32 index = thread->slot - 1;

	if (thread->slot)
		bpf_map_push_elem(&free_slots, &index, BPF_ANY);
	thread->slot = 0;
}

/* What pthread_self() gives in this thread: in the C libraries in use it lies just above a thread's stack. */
static __always_inline __u64 thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#else
	return task->thread.uw.tp_value;
#endif
}

/* An address that the stack at `sp` does not reach. */
static __always_inline __u64 stack_end(struct task_struct *task, __u64 sp)
{
	__u64 self = thread_pointer(task), start = BPF_CORE_READ(task, mm, start_stack);

	if (self > sp && self - sp < 1ULL << 30)
		return self;
	return start > sp ? start : ~0ULL;
}

static __always_inline bool read_word(__u64 address, __u64 *value)
{
	*value = 0;
	return !bpf_probe_read_user(value, sizeof(*value), (void *)address);
}

/*
 * Whether this is the state of the thread `self`, and still in the list of an interpreter: when one is ended,
 * or a thread that native code lent to it is taken out again, what was there stays in memory for a while.
 */
static __always_inline bool python_state_holds(const struct wire_python *python, __u64 state, __u64 self)
{
	__u64 id, previous, interpreter, entry;

	if (!read_word(state + python->thread_id, &id) || id != self ||
	    !read_word(state + python->thread_previous, &previous))
		return false;
	if (previous)
		return read_word(previous + python->thread_next, &entry) && entry == state;
	return read_word(state + python->thread_interpreter, &interpreter) && interpreter &&
	       read_word(interpreter + python->threads_head, &entry) && entry == state;
}

/* The interpreter's state of the current thread, 0 if it has none. */
static __always_inline __u64 python_thread(struct thread_state *thread, const struct wire_python *python,
                                           __u64 self)
{
	__u64 interpreter, head, at, id;

	if (thread->python_thread && python_state_holds(python, thread->python_thread, self))
		return thread->python_thread;
	thread->python_thread = 0;
	if (!read_word(python->runtime + python->interpreters_head, &interpreter) || !interpreter ||
	    !read_word(interpreter + python->threads_head, &head))
		return 0;
	at = head;
	for (int i = 0; i < (head == thread->python_missed ? 1 : PYTHON_STEPS) && at; i++) {
		if (read_word(at + python->thread_id, &id) && id == self) {
			thread->python_thread = at;
			return at;
		}
		if (!read_word(at + python->thread_next, &at))
			break;
	}
	/*
	 * New ones are put in front: as long as the first is the same there is no more to look for than
	 * whether it is one that lies where another was.
	 */
	thread->python_missed = head;
	return 0;
}

/* Room for frame number `index`; NULL if there is no more. */
static __always_inline struct wire_python_frame *python_room(struct stack_slot *slot, __u32 index)
{
	if (index >= WIRE_PYTHON_DEPTH)
		return NULL;
	return (struct wire_python_frame *)&slot->data[index * sizeof(struct wire_python_frame)];
}

/* A word of the frame that was read last; 0 if it has none at `offset`. */
static __always_inline __u64 frame_word(const struct stack_slot *slot, __u32 offset)
{
	return offset <= WIRE_PYTHON_FRAME_BYTES - 8 ? *(__u64 *)&slot->frame[offset] : 0;
}

/*
 * Keeps the frame at address `*at`, and goes on to the one before it. Returns false at the end: no room, or
 * memory that cannot be read. The count lives in memory, where the verifier does not follow its value: it
 * would look at each one by itself.
 */
static __always_inline bool python_frame(struct stack_slot *slot, const struct wire_python *python, __u64 *at)
{
	__u64 position, entry = 0, own = *at;
	struct wire_python_frame *frame;
	__u32 size = python->frame_bytes;
	__u8 mark;

	if (size > WIRE_PYTHON_FRAME_BYTES || bpf_probe_read_user(slot->frame, size, (void *)*at))
		return false;
	*at = frame_word(slot, python->frame_previous);
	mark = python->flags & (WIRE_PYTHON_OWNER | WIRE_PYTHON_ENTRY) ? frame_word(slot, python->frame_mark)
	                                                               : 0;
	if (python->flags & WIRE_PYTHON_OWNER && mark >= WIRE_PYTHON_OWNER_NATIVE) {
		/* No function: it marks where native code called the interpreter. */
		frame = python_room(slot, slot->record.python_count - 1);
		if (frame)
			frame->code |= WIRE_PYTHON_CODE_ENTRY;
		frame = python_room(slot, slot->record.python_count);
		if (!frame)
			return false;
		frame->code = WIRE_PYTHON_CODE_NATIVE;
		frame->position = own;
		slot->record.python_count++;
		return true;
	}
	frame = python_room(slot, slot->record.python_count);
	if (!frame)
		return false;
	position = frame_word(slot, python->frame_position);
	if (python->flags & WIRE_PYTHON_INDEX)
		position = (__u32)position;
	if (python->flags & WIRE_PYTHON_OBJECTS || (python->flags & WIRE_PYTHON_ENTRY && mark))
		entry = WIRE_PYTHON_CODE_ENTRY;
	frame->code = (frame_word(slot, python->frame_code) & ~7ULL) | entry;
	frame->position = position;
	slot->record.python_count++;
	return true;
}

/*
 * Whether the thread with this state collects garbage: somebody does, and it has the interpreter lock. A
 * finaliser within the collection may give the lock up and let another thread have it: so who is seen first
 * with both is the one until the collection is over.
 */
static __always_inline bool python_collects(struct wire_python *python, __u64 state)
{
	__u64 interpreter, holder;
	__s32 collecting = 0;

	if (!python->collecting || !read_word(state + python->thread_interpreter, &interpreter) ||
	    !interpreter)
		return false;
	bpf_probe_read_user(&collecting, sizeof(collecting), (void *)(interpreter + python->collecting));
	if (!collecting) {
		python->collector = 0;
		return false;
	}
	if (!read_word((python->flags & WIRE_PYTHON_RUNTIME_LOCK ? python->runtime : interpreter) +
	                   python->holder,
	               &holder) ||
	    holder != state)
		return false;
	if (!python->collector)
		python->collector = state;
	return python->collector == state;
}

/* Follows the frames of the interpreter, innermost first. */
static __always_inline void python_frames(struct stack_slot *slot, struct thread_state *thread,
                                          struct task_struct *task)
{
	__u32 tgid = slot->record.tgid;
	struct wire_python *python = bpf_map_lookup_elem(&python_processes, &tgid);
	__u64 state, at;

	if (!python)
		return;
	state = python_thread(thread, python, thread_pointer(task));
	if (!state)
		return;
	if (python_collects(python, state))
		slot->record.flags |= WIRE_STACK_COLLECTING;
	if (!read_word(state + python->thread_frame, &at))
		return;
	if (python->flags & WIRE_PYTHON_CFRAME && !read_word(at + python->cframe_current, &at))
		return;
	/* Frames that are no functions come in between. */
	for (int i = 0; i < WIRE_PYTHON_DEPTH * 3 / 2; i++) {
		if (!at)
			return;
		if (!python_frame(slot, python, &at))
			break;
	}
	slot->record.flags |= WIRE_STACK_PYTHON_CUT;
}

/* Copies from `from` up to `end`, as far as there is room and memory. Returns the number of bytes. */
static __always_inline __u32 copy_stack(struct stack_slot *slot, __u32 python_count, __u64 from, __u64 end)
{
	__u32 start = python_count * sizeof(struct wire_python_frame), done = 0, part;

	if (start > WIRE_PYTHON_DEPTH * sizeof(struct wire_python_frame))
		return 0;
	/* The last part may begin at most a page before the end of the room. */
	for (int i = 0; i < WIRE_STACK_BYTES / PAGE_BYTES && from < end; i++) {
		part = PAGE_BYTES - (from & (PAGE_BYTES - 1));
		if (end - from < part)
			part = end - from;
		if (done > WIRE_STACK_BYTES - PAGE_BYTES)
			break;
		asm volatile("" : "+r"(part));
		if (part > PAGE_BYTES)
			break;
		if (bpf_probe_read_user(&slot->data[start + done], part, (void *)from))
			break;
		done += part;
		from += part;
	}
	if (from < end)
		slot->record.flags |= WIRE_STACK_CUT;
	return done;
}

/* Copies the stack of the current thread, `task`, into its slot if records of this kind, STACKS_*, have one.
 */
static __always_inline void stack_take(struct thread_state *thread, struct task_struct *task, __u32 kind,
                                       __u64 now)
{
	struct wire_stack_cost *cost;
	struct stack_slot *slot;
	struct pt_regs *regs;
	__u32 count;

	thread->stack_bytes = 0;
	if (!(settings.user_stacks & kind) || stacks_off ||
	    task->flags & (TASK_FLAG_KTHREAD | TASK_FLAG_IO_WORKER | TASK_FLAG_EXITING))
		return;
	/* Many guests are some by chance: an interrupt woke the thread on top of them. */
	if (thread->guest && now - thread->guest_ns > GUEST_NS)
		return;
	slot = slot_take(thread);
	if (!slot)
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	slot->record.time_ns = now;
	slot->record.tgid = task_tgid(task);
	slot->record.tid = thread->tid;
	slot->record.flags = 0;
#if defined(__TARGET_ARCH_x86)
	slot->record.ip = regs->ip;
	slot->record.sp = regs->sp;
	slot->record.bp = regs->bp;
	slot->record.link = 0;
#else
	slot->record.ip = regs->pc;
	slot->record.sp = regs->sp;
	slot->record.bp = regs->regs[29];
	slot->record.link = regs->regs[30];
#endif
	slot->record.python_count = 0;
	python_frames(slot, thread, task);
	count = slot->record.python_count;
	slot->record.python_thread = count ? thread->python_thread : 0;
	slot->record.stack_bytes = copy_stack(slot, count, slot->record.sp, stack_end(task, slot->record.sp));
	thread->stack_bytes =
	    sizeof(slot->record) + count * sizeof(struct wire_python_frame) + slot->record.stack_bytes;
	cost = cost_here();
	if (cost) {
		cost->copied++;
		cost->copied_bytes += thread->stack_bytes;
	}
}

/* Sends what is in the slot. Returns true if a record that follows may count on it. */
static __always_inline bool stack_send(struct thread_state *thread)
{
	struct stack_slot *slot = slot_of(thread);
	struct wire_stack_cost *cost;
	__u32 size = thread->stack_bytes;

	thread->stack_bytes = 0;
	if (!slot || !size)
		return false;
	if (__sync_fetch_and_add(&stack_bytes_sent, size) > settings.stack_budget) {
		count_loss(WIRE_LOSS_BUDGET);
		return false;
	}
	size = (size + 7) & ~7u;
	asm volatile("" : "+r"(size));
	if (size > offsetof(struct stack_slot, frame))
		return false;
	slot->record.header.type = WIRE_STACK;
	slot->record.header.size = size;
	slot->record.header.cpu = bpf_get_smp_processor_id();
	if (bpf_ringbuf_output(&ring, slot, size, BPF_RB_NO_WAKEUP)) {
		count_loss(WIRE_LOSS_RING);
		return false;
	}
	cost = cost_here();
	if (cost) {
		cost->sent++;
		cost->sent_bytes += size;
	}
	return true;
}

#endif
