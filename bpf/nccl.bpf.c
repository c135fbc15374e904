// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of NCCL: which operation on which communicator, in which order, of what size.
 *
 * Operations are probed at their entry only; userspace joins them with their kernels by thread and time. What
 * makes communicators is probed at its return too, where the handle is. A communicator is known across
 * processes and hosts by a hash of the ncclUniqueId that all its ranks were given; one that was split off
 * another by that one's, the number of the split and its colour. Operations are counted here, so that a lost
 * record does not shift the numbers of those that follow.
 *
 * Prototypes as in NCCL's user guide (docs.nvidia.com, "API"); tried with the simulated library only, never
 * with a real one.
 */
#include "call.bpf.h"
#include "nccl.bpf.h"

#define UNIQUE_ID_BYTES 128 /* NCCL_UNIQUE_ID_BYTES */
#define UNIQUE_IDS_MOST 16  /* of those that a communicator is made from, so many are hashed */
#define RESULT_SUCCESS  0
#define RESULT_PROGRESS 7 /* ncclInProgress: a communicator that does not block */
#define SPLIT_OF        0x73706c6974ULL

struct nccl_comm_key {
	__u64 comm;
	__u32 tgid;
	__u32 pad;
};

struct nccl_comm {
	__u64 id;
	__u64 operations; /* so far */
	__u64 splits;
	__u32 size, rank;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct nccl_comm_key);
	__type(value, struct nccl_comm);
} nccl_comms SEC(".maps") __weak;

struct nccl_message_key {
	__u64 comm;
	__u32 tgid;
	__u32 peer; /* WIRE_NCCL_RECEIVES */
};

/* Messages so far. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct nccl_message_key);
	__type(value, __u64);
} nccl_messages SEC(".maps") __weak;

/* The value of a key; a zeroed one is put in if there is none. NULL, and counted, if there is no room. */
static __always_inline void *value_of(void *map, const void *key, const void *zero)
{
	void *value = bpf_map_lookup_elem(map, key);

	if (value)
		return value;
	bpf_map_update_elem(map, key, zero, BPF_NOEXIST);
	value = bpf_map_lookup_elem(map, key);
	if (!value)
		count_loss(WIRE_LOSS_STORAGE);
	return value;
}

/* State of the current thread if its calls are to be recorded. */
static __always_inline struct nccl_thread *calling_thread(struct task_struct *task)
{
	static const struct nccl_thread zero;
	struct thread_state *thread;
	__u32 tid = task->pid;

	if (recording_end_ns)
		return NULL;
	thread = thread_find(task);
	if (!thread || (thread->guest && !process_tracked(task_tgid(task))))
		return NULL;
	return value_of(&nccl_threads, &tid, &zero);
}

/* Operations that NCCL may make out of others, by calling these. */
static __always_inline bool is_compound(__u32 function)
{
	return function == WIRE_NCCL_BCAST || function == WIRE_NCCL_ALL_TO_ALL ||
	       function == WIRE_NCCL_GATHER || function == WIRE_NCCL_SCATTER;
}

/*
 * The newest call was a compound one and has not returned: its return address is in its place, and this entry
 * is below. A tail call leaves the stack where it was.
 */
static __always_inline bool is_nested(const struct nccl_thread *thread, __u32 function, __u64 stack,
                                      __u64 now)
{
	if (!is_compound(thread->last_function) || function == thread->last_function ||
	    stack > thread->last_stack || now - thread->last_ns > CALL_NEST_NS)
		return false;
	return return_address(thread->last_stack) == thread->last_return;
}

static __always_inline struct wire_nccl *nccl_record(struct task_struct *task, __u32 function, __u64 now)
{
	struct wire_nccl *record = record_reserve(WIRE_NCCL, sizeof(*record));
	struct wire_header header;

	if (!record)
		return NULL;
	header = record->header;
	__builtin_memset(record, 0, sizeof(*record));
	record->header = header;
	record->time_ns = now;
	record->tgid = task_tgid(task);
	record->tid = task_tid(task);
	record->function = function;
	return record;
}

static __always_inline void group_starts(struct nccl_thread *thread)
{
	if (thread->depth++)
		return;
	thread->group++;
	thread->group_calls = 0;
}

/* Only the end of the outermost group starts what was called in it. */
static __always_inline void group_ends(struct nccl_thread *thread, struct task_struct *task, __u64 now)
{
	struct wire_nccl *record;

	if (!thread->depth || --thread->depth || !thread->group_calls)
		return;
	record = nccl_record(task, WIRE_NCCL_GROUP_END, now);
	if (!record)
		return;
	record->group = thread->group;
	record_submit(record);
}

static __always_inline __u64 operation_number(struct nccl_comm *comm, const struct nccl_comm_key *key,
                                              __u32 function, __u32 peer)
{
	struct nccl_message_key message = {.comm = key->comm, .tgid = key->tgid, .peer = peer};
	__u64 zero = 0, *count = &comm->operations;

	if (function == WIRE_NCCL_SEND || function == WIRE_NCCL_RECV) {
		message.peer |= function == WIRE_NCCL_RECV ? WIRE_NCCL_RECEIVES : 0;
		count = value_of(&nccl_messages, &message, &zero);
	}
	return count ? __sync_fetch_and_add(count, 1) : 0;
}

/* Operations, groups, and the end of communicators. */
SEC("uprobe")
int nccl_called(struct pt_regs *context)
{
	static const struct nccl_comm zero;
	struct task_struct *task = bpf_get_current_task_btf();
	struct nccl_thread *thread = calling_thread(task);
	__u64 stack = stack_pointer(context), cookie = bpf_get_attach_cookie(context), now;
	__u64 count = 0, type = 0, peer = 0, handle = 0, stream = 0;
	__u32 function = NCCL_FUNCTION(cookie);
	struct nccl_comm_key key = {};
	struct wire_nccl *record;
	struct nccl_comm *comm;

	if (!thread)
		return 0;
	now = bpf_ktime_get_ns();
	if (is_nested(thread, function, stack, now))
		return 0;
	thread->last_ns = now;
	thread->last_stack = stack;
	thread->last_return = return_address(stack);
	thread->last_function = function;
	if (function == WIRE_NCCL_GROUP_START) {
		group_starts(thread);
		return 0;
	}
	if (function == WIRE_NCCL_GROUP_END) {
		group_ends(thread, task, now);
		return 0;
	}
	if (!argument_read(context, NCCL_COMM(cookie), &handle) || !handle)
		return 0;
	argument_read(context, NCCL_COUNT(cookie), &count);
	argument_read(context, NCCL_TYPE(cookie), &type);
	argument_read(context, NCCL_PEER(cookie), &peer);
	argument_read(context, NCCL_STREAM(cookie), &stream);
	key.comm = handle;
	key.tgid = task->tgid;
	comm = value_of(&nccl_comms, &key, &zero);
	if (!comm)
		return 0;
	if (function != WIRE_NCCL_DESTROY && thread->depth)
		thread->group_calls++;
	record = nccl_record(task, function, now);
	if (record) {
		record->comm = handle;
		record->id = comm->id;
		record->size = comm->size;
		record->rank = comm->rank;
		record->count = count;
		record->type = (__u32)type;
		record->peer = (__u32)peer;
		record->stream = stream;
		record->group = thread->depth ? thread->group : 0;
	}
	/* Counted also where there was no room for the record. */
	count = function == WIRE_NCCL_DESTROY ? 0 : operation_number(comm, &key, function, (__u32)peer);
	if (function == WIRE_NCCL_DESTROY)
		bpf_map_delete_elem(&nccl_comms, &key);
	if (!record)
		return 0;
	record->number = count;
	record_submit(record);
	return 0;
}

/* ---- making communicators ---- */

/* Hash of one ncclUniqueId, 0: it cannot be read. */
static __always_inline __u64 unique_id_hash(__u64 hash, __u64 address)
{
	__u64 words[UNIQUE_ID_BYTES / 8];

	if (bpf_probe_read_user(words, sizeof(words), (void *)address))
		return 0;
	for (__u32 i = 0; i < UNIQUE_ID_BYTES / 8; i++)
		hash = hash_mix(hash, words[i]);
	return hash ? hash : 1;
}

static __always_inline __u64 unique_ids_hash(__u64 address, __u32 count)
{
	__u64 hash = 0;

	for (__u32 i = 0; i < UNIQUE_IDS_MOST && i < count; i++) {
		hash = unique_id_hash(hash, address + i * UNIQUE_ID_BYTES);
		if (!hash)
			break;
	}
	return hash;
}

/* ncclCommInitRank(handle, size, id, rank) and ncclCommInitRankConfig(…, config); the id is a struct by
 * value. */
static __always_inline void init_called(struct nccl_thread *thread, struct pt_regs *context, __u64 stack)
{
	__u64 rank = 0, size = 0, place = 0, address;

	argument_read(context, CALL_PLACE_ARGUMENT, &place);
	argument_read(context, CALL_PLACE_ARGUMENT + 1, &size);
#if defined(__TARGET_ARCH_x86)
	address = stack + RETURN_POPS;
	argument_read(context, CALL_PLACE_ARGUMENT + 2, &rank);
#else
	address = 0;
	argument_read(context, CALL_PLACE_ARGUMENT + 2, &address);
	argument_read(context, CALL_PLACE_ARGUMENT + 3, &rank);
#endif
	thread->new_place = place;
	thread->new_size = (__u32)size;
	thread->new_rank = (__u32)rank;
	thread->new_id = unique_id_hash(0, address);
}

/* ncclCommInitRankScalable(handle, size, rank, ids, array of ids, config) */
static __always_inline void scalable_called(struct nccl_thread *thread, struct pt_regs *context)
{
	__u64 rank = 0, size = 0, place = 0, count = 0, ids = 0;

	argument_read(context, CALL_PLACE_ARGUMENT, &place);
	argument_read(context, CALL_PLACE_ARGUMENT + 1, &size);
	argument_read(context, CALL_PLACE_ARGUMENT + 2, &rank);
	argument_read(context, CALL_PLACE_ARGUMENT + 3, &count);
	argument_read(context, CALL_PLACE_ARGUMENT + 4, &ids);
	thread->new_place = place;
	thread->new_size = (__u32)size;
	thread->new_rank = (__u32)rank;
	thread->new_id = unique_ids_hash(ids, (__u32)count);
}

/* ncclCommSplit(communicator, colour, key, handle, config): who is in the new one is not known here. */
static __always_inline void split_called(struct nccl_thread *thread, struct pt_regs *context, __u32 tgid)
{
	struct nccl_comm_key key = {.tgid = tgid};
	__u64 handle = 0, colour = 0, place = 0, number;
	struct nccl_comm *parent;

	argument_read(context, CALL_PLACE_ARGUMENT, &handle);
	argument_read(context, CALL_PLACE_ARGUMENT + 1, &colour);
	argument_read(context, CALL_PLACE_ARGUMENT + 3, &place);
	thread->new_place = place;
	thread->new_size = thread->new_rank = 0;
	thread->new_id = 0;
	key.comm = handle;
	parent = bpf_map_lookup_elem(&nccl_comms, &key);
	if (!parent || !parent->id)
		return;
	number = __sync_fetch_and_add(&parent->splits, 1);
	thread->new_id = hash_mix(hash_mix(hash_mix(parent->id, SPLIT_OF), number), (__u32)colour);
}

SEC("uprobe")
int nccl_creates(struct pt_regs *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct nccl_thread *thread = calling_thread(task);
	__u64 stack = stack_pointer(context);
	__u32 function = NCCL_FUNCTION(bpf_get_attach_cookie(context));

	/* One of them may be made of another: the outermost says how. */
	if (!thread || (thread->new_stack && stack < thread->new_stack))
		return 0;
	if (thread->new_stack)
		count_loss(WIRE_LOSS_NEST);
	thread->new_stack = stack;
	thread->new_function = function;
	if (function == WIRE_NCCL_INIT)
		init_called(thread, context, stack);
	else if (function == WIRE_NCCL_INIT_SCALABLE)
		scalable_called(thread, context);
	else
		split_called(thread, context, task->tgid);
	return 0;
}

SEC("uretprobe")
int nccl_created(struct pt_regs *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct nccl_thread *thread = calling_thread(task);
	__u64 stack = stack_pointer(context), handle = 0;
	__u32 result = (__u32)PT_REGS_RC(context);
	struct nccl_comm_key key = {};
	struct nccl_comm comm = {};
	struct wire_nccl *record;

	if (!thread || !thread->new_stack || stack < thread->new_stack + RETURN_POPS)
		return 0;
	if (stack > thread->new_stack + RETURN_POPS) {
		count_loss(WIRE_LOSS_NEST);
		thread->new_stack = 0;
		return 0;
	}
	thread->new_stack = 0;
	if ((result != RESULT_SUCCESS && result != RESULT_PROGRESS) ||
	    bpf_probe_read_user(&handle, sizeof(handle), (void *)thread->new_place) || !handle)
		return 0;
	key.comm = handle;
	key.tgid = task->tgid;
	comm.id = thread->new_id;
	comm.size = thread->new_size;
	comm.rank = thread->new_rank;
	if (bpf_map_update_elem(&nccl_comms, &key, &comm, BPF_ANY))
		count_loss(WIRE_LOSS_STORAGE);
	record = nccl_record(task, thread->new_function, bpf_ktime_get_ns());
	if (!record)
		return 0;
	record->comm = handle;
	record->id = comm.id;
	record->size = comm.size;
	record->rank = comm.rank;
	record_submit(record);
	return 0;
}
