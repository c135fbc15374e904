/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records of a session file (docs/session-format.md). Written by collect/, read by model/.
 *
 * Rules that keep old files readable and old readers working:
 *  - little endian, fixed-width fields, no implicit padding;
 *  - fields are only ever appended; a reader gets each record zero-extended to the struct it knows, so a zero
 *    in an appended field must mean "not known";
 *  - a type is never reused; unknown types are skipped.
 *
 * Times are CLOCK_MONOTONIC nanoseconds. pid and tid are those of the initial pid namespace; "pid" is the
 * kernel's tgid. Strings are ids of RECORD_STRING (0: none), defined before their first use. Devices are
 * dense indices of RECORD_DEVICE, one per physical GPU (by UUID), not CUDA ordinals.
 */
#ifndef WHYIDLE_TRACE_RECORD_H
#define WHYIDLE_TRACE_RECORD_H

#include <stdint.h>

enum record_type {
	RECORD_STRING = 1,
	RECORD_INFO = 2,
	RECORD_TASK = 3,
	RECORD_FORK = 4,
	RECORD_EXEC = 5,
	RECORD_EXIT = 6,
	RECORD_OFFCPU = 7,
	RECORD_SAMPLE = 8,
	RECORD_STACK = 9,
	RECORD_SYMBOL = 10,
	RECORD_MAPPING = 11,
	RECORD_DEVICE = 12,
	RECORD_GPU_OP = 13,
	RECORD_CALL = 14,
	RECORD_SYNC = 15,
	RECORD_OVERHEAD = 16,
	RECORD_LOSS = 17,
	RECORD_BRIDGE = 18,
	RECORD_RANK = 19,
	RECORD_RANGE = 20,
	RECORD_STEAL = 21,
	RECORD_NCCL = 22,
};

struct record_header {
	uint16_t type; /* enum record_type */
	uint16_t pad;
	uint32_t size; /* bytes of the record, header included, a multiple of 8 */
};

/* Defines string `id`; `length` bytes follow, not terminated, padded with zeros to a multiple of 8. */
struct record_string {
	struct record_header header;
	uint32_t id;
	uint32_t length;
};

/*
 * A fact about the session as key and value. Keys in use: "version", "command", "kernel", "hostname",
 * "start_mono_ns", "start_real_ns", "end_mono_ns", "tier", "cpus", "options", "exit_status",
 * "sample_period_ns", "simulated" (the driver that was probed is that of tests/sim), "degraded" (may repeat:
 * one line for each thing that could not be recorded, in a person's words), "lost_nest" (number of CUDA calls
 * seen by probes that were left without a return, as by longjmp: they are there with exit_ns 0; not written
 * if there was none), "lost_user_stacks" (number of user stacks that could not be kept: names are missing,
 * nothing else), "user_stacks_copied", "user_stack_bytes_copied" (in the programs that recorded),
 * "user_stacks_sent", "user_stack_bytes_sent" (of these, to the collector).
 */
struct record_info {
	struct record_header header;
	uint32_t key, value; /* strings */
};

#define RECORD_TASK_PYTHON                                                                                   \
	(1u << 0) /* what Python calls it: counts where the kernel has the name of the process */

/* Name (comm) of a thread from time_ns on. */
struct record_task {
	struct record_header header;
	uint64_t time_ns;
	uint32_t pid, tid;
	uint32_t comm;  /* string */
	uint32_t flags; /* RECORD_TASK_* */
};

/* A new thread (child_pid == parent_pid) or process. Processes that existed at the start have parent_tid 0.
 */
struct record_fork {
	struct record_header header;
	uint64_t time_ns;
	uint32_t parent_pid, parent_tid;
	uint32_t child_pid, child_tid;
	uint32_t comm;
	uint32_t namespace_tid; /* child_tid in its innermost pid namespace, 0: not known, or in no other */
};

struct record_exec {
	struct record_header header;
	uint64_t time_ns;
	uint32_t pid, tid;
	uint32_t comm;     /* string */
	uint32_t filename; /* string */
	uint32_t cmdline;  /* string, arguments separated by spaces, 0 if not read in time */
	/* Of the process's control group, strings: 64 hexadecimal digits; the uid of a Kubernetes pod; 0: in
	 * none */
	uint32_t container, pod;
	uint32_t namespace_pid; /* the same of `pid` */
};

struct record_exit {
	struct record_header header;
	uint64_t time_ns;
	uint32_t pid, tid;
	int32_t exit_code; /* as wait(2) reports it */
	uint32_t seq;      /* number of the thread's last off-CPU interval */
	uint32_t faults;
	uint32_t pad;
};

#define RECORD_OFFCPU_PREEMPTED (1u << 0)
#define RECORD_OFFCPU_IOWAIT    (1u << 1)
#define RECORD_OFFCPU_OPEN      (1u << 2) /* still off CPU when recording ended */
#define RECORD_OFFCPU_WOKEN     (1u << 3) /* wake and waker fields are valid */
#define RECORD_OFFCPU_THROTTLED (1u << 4) /* the CPU quota of its cgroup was used up */
#define RECORD_OFFCPU_BOUND     (1u << 5) /* only CPUs that it may not use were idle while it was runnable */

enum record_lock_kind {
	RECORD_LOCK_CONDITION = 1,
	RECORD_LOCK_SEMAPHORE = 2,
	RECORD_LOCK_JOIN = 3,
	RECORD_LOCK_READ = 4, /* a read-write lock, to read or to write */
	RECORD_LOCK_WRITE = 5,
	RECORD_LOCK_MUTEX = 6,
};

/* One off-CPU interval of a thread: see struct wire_offcpu in bpf/events.h for the meaning of each field. */
struct record_offcpu {
	struct record_header header;
	uint64_t out_ns, wake_ns, in_ns;
	uint32_t pid, tid;
	uint32_t waker_pid, waker_tid;
	uint32_t next_tid, prev_tid;
	int32_t syscall, waker_syscall; /* -1 none */
	uint64_t args[4];
	uint64_t waker_args[2];
	uint64_t object, waker_object;
	uint32_t kstack, waker_kstack, ustack; /* ids of RECORD_STACK, 0 none */
	uint32_t state;
	uint32_t flags; /* RECORD_OFFCPU_* */
	uint32_t seq;   /* +1 for each interval of the thread; a jump means that records were lost */
	uint32_t faults;
	uint16_t out_cpu, in_cpu;
	uint32_t cpus_allowed;
	uint32_t path;   /* string: what args[0] or the fault refers to (file, pipe, peer, lock), 0 unknown */
	uint32_t device; /* string: what the file's file system is on, 0 unknown or no file */
	/* Of a futex wait inside a function of the C library that was probed (record --locks) */
	uint32_t lock_kind;   /* enum record_lock_kind, 0 not known */
	uint64_t lock;        /* address of the object, of a join the handle of the thread */
	uint32_t lock_holder; /* thread that had it when the wait began, by its id in its innermost pid
	                         namespace; 0 not known */
	uint32_t pad;
};

#define RECORD_SAMPLE_USER  (1u << 0)
#define RECORD_SAMPLE_FAULT (1u << 1) /* user mode, on the way back from a page fault */

struct record_sample {
	struct record_header header;
	uint64_t time_ns;
	uint32_t pid, tid;
	int32_t syscall;
	uint32_t kstack, ustack;
	uint32_t flags; /* RECORD_SAMPLE_* */
	uint32_t faults;
	uint32_t cpu;
	uint64_t ip;
};

/*
 * The hypervisor ran something else on the CPU that the thread had, or that had been idle and was to take it.
 * How long is exact, when is so but for a few milliseconds.
 */
struct record_steal {
	struct record_header header;
	uint64_t start_ns, end_ns;
	uint32_t pid, tid;
	uint32_t cpu;
	uint32_t pad;
};

#define RECORD_STACK_KERNEL 1
#define RECORD_STACK_USER   2

#define RECORD_STACK_CUT (1u << 0) /* the outermost frames are missing */
#define RECORD_STACK_COLLECTING                                                                              \
	(1u << 1) /* within Python's garbage collection, by the interpreter's word                           \
	           */

/*
 * A frame with this bit set, and the highest one not, is no address: it is a function of an interpreter,
 * named by the RECORD_SYMBOL with the same address and pid 0.
 */
#define RECORD_FRAME_INTERPRETED (1ull << 62)

/* The same for functions that were inlined. Stacks in files have no such frames: see struct record_symbol. */
#define RECORD_FRAME_INLINED (1ull << 61)

/*
 * The address space of a user stack and its symbols is the process id or, where a process has had another
 * before (exec, an id that came again, a library in the place of another), a number with this bit.
 */
#define RECORD_SPACE_LATER (1u << 31)

/* Defines stack `id`; `count` addresses of 8 bytes follow, innermost first. All but the first address of a
 * user stack are return addresses: behind the call. */
struct record_stack {
	struct record_header header;
	uint32_t id;   /* dense, from 1 */
	uint32_t kind; /* RECORD_STACK_KERNEL, RECORD_STACK_USER */
	uint32_t pid;  /* address space of a user stack, see RECORD_SPACE_LATER; 0 for the kernel */
	uint32_t count;
	uint32_t flags; /* RECORD_STACK_* */
	uint32_t pad;
};

/* Name of one address: in the kernel (pid 0) or in an address space. Defined before or after the stacks that
 * use it.
 */
struct record_symbol {
	struct record_header header;
	uint64_t address;
	uint32_t pid;
	uint32_t name;   /* string: function */
	uint32_t module; /* string: file or kernel module, 0 */
	uint32_t file;   /* string: source file, 0 */
	uint32_t line;
	uint32_t build_id; /* string: of the module, hexadecimal, 0 unknown */
	uint64_t
	    module_address; /* in the module, before it was loaded anywhere; within the call; 0 unknown */
	/*
	 * A function that the compiler put there in the place of its call: the RECORD_SYMBOL with address
	 * RECORD_FRAME_INLINED | inner and pid 0, which may have another in it. `line` is then that of the
	 * call. 0: none.
	 */
	uint32_t inner;
	uint32_t pad;
};

struct record_mapping {
	struct record_header header;
	uint64_t time_ns;
	uint64_t start, end, offset;
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t pid;
	uint32_t path;     /* string */
	uint32_t build_id; /* string, hexadecimal, 0 unknown */
	uint32_t pad;
};

struct record_device {
	struct record_header header;
	uint32_t device; /* dense index */
	uint32_t name;   /* string */
	uint8_t uuid[16];
	uint32_t sm_count;
	uint32_t compute_major, compute_minor;
	uint32_t simulated; /* 1: the stand-in of tests/sim */
	uint64_t memory_bytes;
};

enum record_op_kind {
	RECORD_OP_KERNEL = 1,
	RECORD_OP_MEMCPY = 2,
	RECORD_OP_MEMSET = 3,
	RECORD_OP_GRAPH = 4,
};

#define RECORD_OP_ASYNC (1u << 0)

/* An operation on the GPU. */
struct record_gpu_op {
	struct record_header header;
	uint64_t start_ns, end_ns;
	uint32_t device; /* dense index */
	uint32_t pid;
	uint32_t context, stream;
	uint32_t correlation; /* unique within pid only; 0 none */
	uint32_t kind;        /* enum record_op_kind */
	uint32_t name;        /* string, mangled; 0 for copies */
	uint32_t graph;       /* graph id, 0 none */
	uint64_t graph_node;
	uint64_t bytes;                   /* copies and memsets */
	uint8_t copy_kind;                /* CUpti_ActivityMemcpyKind: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP … */
	uint8_t source_kind, target_kind; /* CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, 3 device … */
	uint8_t flags;                    /* RECORD_OP_* */
	uint32_t grid[3], block[3];
	uint32_t pad;
};

enum record_call_source {
	RECORD_CALL_CUPTI = 1,
	RECORD_CALL_UPROBE = 2,
	RECORD_CALL_IMPORT = 3,
};

#define RECORD_CALL_STREAM (1u << 0)
#define RECORD_CALL_OBJECT (1u << 1)
#define RECORD_CALL_WORK   (1u << 2)
#define RECORD_CALL_RESULT (1u << 3) /* of probed calls; other sources always have it */

/* A CUDA API call of a host thread. */
struct record_call {
	struct record_header header;
	uint64_t enter_ns;
	uint64_t exit_ns; /* 0: not known (entry probe only) */
	uint32_t pid, tid;
	uint32_t correlation; /* 0 if the source has none */
	uint32_t function;    /* string, as exported by the library or named by CUPTI */
	uint32_t source;      /* enum record_call_source */
	int32_t result;
	uint64_t stream; /* handle as the program gave it */
	uint64_t object; /* of a launch its function or graph, of a copy its direction (cudaMemcpyKind), or an
	                    event */
	uint32_t known;  /* RECORD_CALL_*: which of these are */
	uint32_t threads; /* of a launch, of all blocks; UINT32_MAX: as many or more; 0: not known */
	uint64_t work; /* of a launch a hash of grid, block and shared memory, of a copy its bytes */
};

/* type: CUpti_ActivitySynchronizationType: 1 event, 2 stream wait event, 3 stream, 4 context */
struct record_sync {
	struct record_header header;
	uint64_t start_ns, end_ns;
	uint32_t pid;
	uint32_t type;
	uint32_t context, stream;
	uint32_t correlation;
	uint32_t event;
};

/* Time that CUPTI itself took; kind: CUpti_ActivityOverheadKind, tid 0: not tied to a thread. */
struct record_overhead {
	struct record_header header;
	uint64_t start_ns, end_ns;
	uint32_t pid, tid;
	uint32_t kind;
	uint32_t pad;
};

enum record_range_kind {
	RECORD_RANGE_PUSH_POP = 1,
	RECORD_RANGE_START_END = 2, /* may cross others */
};

/* A range that the program named by NVTX; tid is the thread that began it. */
struct record_range {
	struct record_header header;
	uint64_t start_ns, end_ns;
	uint32_t pid, tid;
	uint32_t name;   /* string, 0: it has none */
	uint32_t domain; /* string, 0: the default one */
	uint32_t kind;   /* enum record_range_kind */
	uint32_t pad;
};

enum record_loss_cause {
	RECORD_LOSS_BPF_RING = 1,
	RECORD_LOSS_BRIDGE_RING = 2,
	RECORD_LOSS_CUPTI = 3,
	RECORD_LOSS_STACKS = 4,
	RECORD_LOSS_FILE = 5,
	RECORD_LOSS_STORAGE = 6,
};

/* `count` records were lost; what they described lies in [start_ns, end_ns]. */
struct record_loss {
	struct record_header header;
	uint64_t start_ns, end_ns;
	uint64_t count;
	uint32_t cause; /* enum record_loss_cause */
	uint32_t pid;   /* process concerned, 0 all */
};

enum record_bridge_phase {
	RECORD_BRIDGE_CONNECTED = 1, /* CUPTI has not started yet */
	RECORD_BRIDGE_RUNNING = 2,
	RECORD_BRIDGE_FAILED = 3,  /* CUPTI could not be used: `text` says why */
	RECORD_BRIDGE_STOPPED = 4, /* at its end; all that there was has been recorded */
};

/* State of the bridge in a process. */
struct record_bridge {
	struct record_header header;
	uint64_t time_ns;
	uint32_t pid;
	uint32_t phase; /* enum record_bridge_phase */
	int32_t error;
	uint32_t text; /* string: what happened, in a person's words */
	uint32_t cupti_version;
	uint32_t cupti_path; /* string */
	uint32_t driver_version;
	uint32_t simulated;
	uint64_t clock_error_ns; /* bound of the clock's error, 0 for the same clock */
	uint64_t bridge_ns;      /* CPU time used by the bridge */
};

/* Which rank of a distributed job a process is. */
struct record_rank {
	struct record_header header;
	uint32_t pid;
	uint32_t rank, world_size; /* world_size is never 0 */
	uint32_t pad;
};

enum record_nccl_function {
	RECORD_NCCL_ALL_REDUCE = 1,
	RECORD_NCCL_REDUCE = 2,
	RECORD_NCCL_BROADCAST = 3,
	RECORD_NCCL_ALL_GATHER = 4,
	RECORD_NCCL_REDUCE_SCATTER = 5,
	RECORD_NCCL_ALL_TO_ALL = 6,
	RECORD_NCCL_GATHER = 7,
	RECORD_NCCL_SCATTER = 8,
	RECORD_NCCL_SEND = 9,
	RECORD_NCCL_RECV = 10,
	RECORD_NCCL_GROUP_END =
	    11,                  /* of the outermost group, if operations were called in it: they start now */
	RECORD_NCCL_CREATE = 12, /* a communicator */
	RECORD_NCCL_DESTROY = 13,
};

/* A call of NCCL that was probed. */
struct record_nccl {
	struct record_header header;
	uint64_t time_ns; /* entry; of a communicator that is made the return */
	uint32_t pid, tid;
	uint32_t function; /* enum record_nccl_function */
	uint32_t type;     /* ncclDataType_t */
	uint64_t comm;     /* handle of the communicator; 0: the end of a group */
	uint64_t id; /* of the communicator, the same for all its ranks, whatever process and host they are
	                in; 0: not known */
	uint64_t number; /* operations that were called on the communicator before; of a send or receive the
	                    messages to or from that peer */
	uint64_t count;  /* elements, as the function counts them */
	uint64_t stream; /* handle */
	uint32_t peer;   /* of a send or receive, else the root */
	uint32_t size, rank; /* of the communicator; size 0: not known */
	uint32_t group;      /* number of the outermost group on this thread, 0: in none */
};

_Static_assert(sizeof(struct record_header) == 8, "record_header");
_Static_assert(sizeof(struct record_string) == 16, "record_string");
_Static_assert(sizeof(struct record_info) == 16, "record_info");
_Static_assert(sizeof(struct record_task) == 32, "record_task");
_Static_assert(sizeof(struct record_fork) == 40, "record_fork");
_Static_assert(sizeof(struct record_exec) == 48, "record_exec");
_Static_assert(sizeof(struct record_exit) == 40, "record_exit");
_Static_assert(sizeof(struct record_offcpu) == 192, "record_offcpu");
_Static_assert(sizeof(struct record_sample) == 56, "record_sample");
_Static_assert(sizeof(struct record_stack) == 32, "record_stack");
_Static_assert(sizeof(struct record_symbol) == 56, "record_symbol");
_Static_assert(sizeof(struct record_mapping) == 72, "record_mapping");
_Static_assert(sizeof(struct record_device) == 56, "record_device");
_Static_assert(sizeof(struct record_gpu_op) == 104, "record_gpu_op");
_Static_assert(sizeof(struct record_call) == 80, "record_call");
_Static_assert(sizeof(struct record_sync) == 48, "record_sync");
_Static_assert(sizeof(struct record_overhead) == 40, "record_overhead");
_Static_assert(sizeof(struct record_loss) == 40, "record_loss");
_Static_assert(sizeof(struct record_bridge) == 64, "record_bridge");
_Static_assert(sizeof(struct record_rank) == 24, "record_rank");
_Static_assert(sizeof(struct record_range) == 48, "record_range");
_Static_assert(sizeof(struct record_steal) == 40, "record_steal");
_Static_assert(sizeof(struct record_nccl) == 88, "record_nccl");

#endif
