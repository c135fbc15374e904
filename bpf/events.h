/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wire records: what the BPF programs put into the ring buffer and the collector reads from it.
 *
 * Shared by bpf/ and userspace/collect/ only. What is kept on disk is another set of types
 * (userspace/trace/record.h), so that either side can change alone.
 *
 * All times are CLOCK_MONOTONIC nanoseconds (bpf_ktime_get_ns). Process and thread ids are those that the
 * collector sees (its pid namespace); tasks that it cannot see have WIRE_ID_OUTSIDE set in theirs.
 * Fixed-width fields, explicit padding, asserted sizes.
 */
#ifndef WHYIDLE_BPF_EVENTS_H
#define WHYIDLE_BPF_EVENTS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define WIRE_COMM_LEN     16
#define WIRE_FILENAME_LEN 128
#define WIRE_CMDLINE_LEN  256 /* of a program that is executed; the whole may be longer */
#define WIRE_SYSCALL_ARGS 4
#define WIRE_STACK_DEPTH  32    /* frames kept of a kernel stack */
#define WIRE_STACK_BYTES  32768 /* at most this much memory of a user stack is copied */
#define WIRE_PYTHON_DEPTH 96    /* Python frames kept of a thread */
#define WIRE_NO_STACK     (-1)
#define WIRE_STACK_SECOND (1 << 24) /* set in a stack id: the rest is an id of the second map of its kind */
#define WIRE_NO_SYSCALL   (-1)
#define WIRE_ID_OUTSIDE   (1 << 30) /* the rest is an id of the initial pid namespace */

enum wire_type {
	WIRE_OFFCPU = 1,
	WIRE_SAMPLE = 2,
	WIRE_TASK = 3,
	WIRE_FORK = 4,
	WIRE_EXEC = 5,
	WIRE_EXIT = 6,
	WIRE_CALL = 7,
	WIRE_STACK = 8,
	WIRE_FILE = 9,
	WIRE_CALLER = 10,
	WIRE_STEAL = 11,
	WIRE_NCCL = 12,
};

struct wire_header {
	__u16 type; /* enum wire_type */
	__u16 size; /* bytes of the whole record, header included */
	__u32 cpu;  /* CPU that wrote the record */
};

/* struct wire_offcpu.flags */
#define WIRE_OFFCPU_PREEMPTED (1u << 0) /* switched out while runnable (state 0) */
#define WIRE_OFFCPU_IOWAIT    (1u << 1) /* task_struct.in_iowait was set at the switch */
#define WIRE_OFFCPU_OPEN                                                                                     \
	(1u << 2)                   /* the thread had not run again when recording ended; in_ns is that end  \
	                             */
#define WIRE_OFFCPU_WOKEN (1u << 3) /* sched_waking was seen: the wake and waker fields are valid */
/* It could have run, but the CPU quota of its cgroup was used up: seen when it left the CPU or was woken. */
#define WIRE_OFFCPU_THROTTLED (1u << 4)
/*
 * The second half of the time that it was runnable, of WIRE_BOUND_MIN_NS or more in all, a CPU was idle that
 * it may not use, and none that it may. (Half, and but for moments: a little work there would not
 * have been in its way.)
 */
#define WIRE_OFFCPU_BOUND (1u << 5)
#define WIRE_BOUND_MIN_NS 1000000ULL

/* What a thread waits for in the C library. */
enum wire_lock {
	WIRE_LOCK_NONE = 0,
	WIRE_LOCK_CONDITION = 1,
	WIRE_LOCK_SEMAPHORE = 2,
	WIRE_LOCK_JOIN = 3,
	WIRE_LOCK_READ = 4, /* a read-write lock, to read or to write */
	WIRE_LOCK_WRITE = 5,
	WIRE_LOCK_MUTEX = 6,
};

/*
 * One interval in which a tracked thread did not run: from the switch away from it to the switch back.
 * It was blocked in [out_ns, wake_ns] and runnable in [wake_ns, in_ns]; if WIRE_OFFCPU_PREEMPTED is set it
 * was runnable all the time. The waker is whatever task was current at sched_waking: an interrupt runs on
 * top of an arbitrary task, so only waker_kstack tells whether that task did the waking.
 */
struct wire_offcpu {
	struct wire_header header;
	__u64 out_ns;
	__u64 wake_ns; /* 0 if no wake was seen */
	__u64 in_ns;
	__u32 tgid, tid;
	__u32 waker_tgid, waker_tid; /* 0 for the idle task */
	__u32 next_tid;              /* thread that got the CPU at out_ns (0 idle) */
	__u32 prev_tid;              /* thread that left the CPU to it at in_ns (0 idle) */
	__s32 syscall;       /* number of the system call it was in, WIRE_NO_SYSCALL if none (fault, user) */
	__s32 waker_syscall; /* the same for the waker */
	/* First arguments of that system call. Without one, args[0] is the address of the last page fault. */
	__u64 args[WIRE_SYSCALL_ARGS];
	__u64 waker_args[2];
	/*
	 * Identity of the file behind args[0], 0 if unknown or not a file: inode number; for files without an
	 * inode of their own (eventfd, epoll) the address of what is behind them. poll: of its descriptor if
	 * it has just one.
	 */
	__u64 object;
	__u64 file;  /* key of a struct wire_file that came before, 0 none; without a system call: what is
	                mapped at args[0] */
	__u64 ready; /* the same for what ended a wait for several files (epoll, poll, select), 0 not known */
	__u64 waker_object; /* the same as `object` for the waker; for a Unix socket the inode of its peer,
	                       where the bytes go */
	__s32 kstack, waker_kstack; /* ids in the stack maps, WIRE_NO_STACK if none */
	__u32 has_stack;            /* 1: a struct wire_stack of this thread with time out_ns came before */
	__u32 state;                /* task state bits as given to sched_switch */
	__u32 flags;                /* WIRE_OFFCPU_* */
	__u32
	    seq; /* per thread, +1 for each interval over the threshold, counted also when a record is lost */
	__u32 faults; /* page faults of the thread since its previous record */
	__u16 out_cpu, in_cpu;
	__u32 cpus_allowed; /* number of CPUs the thread may use */
	/*
	 * Of a futex wait inside a probed function of the C library (lock.bpf.c): what it waits for. 0: no
	 * such wait.
	 */
	__u32 lock_kind;   /* enum wire_lock */
	__u64 lock;        /* address of the object; of a join the thread's handle */
	__u32 lock_holder; /* thread that had it at out_ns by the object's own memory, as the program counts
	                      threads (innermost pid namespace); 0: nobody, or not known */
	__u32 pad;
};

/* struct wire_sample.flags */
#define WIRE_SAMPLE_USER  (1u << 0) /* the interrupted context was user mode */
#define WIRE_SAMPLE_FAULT (1u << 1) /* user mode, on the way back from a page fault (sample.bpf.c) */

/* A cpu-clock sample of a tracked thread. */
struct wire_sample {
	struct wire_header header;
	__u64 time_ns;
	__u32 tgid, tid;
	__s32 syscall; /* WIRE_NO_SYSCALL in user mode */
	__s32 kstack;
	__u32 has_stack; /* 1: a struct wire_stack of this thread with time time_ns came before */
	__u32 flags;
	__u32 faults; /* page faults of the thread since its previous record */
	__u32 pad;
	__u64 ip; /* interrupted instruction */
};

/* What user stacks cost so far. Value of a BPF map, one for each CPU. */
struct wire_stack_cost {
	__u64 copied, copied_bytes; /* in the programs, Python frames counted in */
	__u64 sent, sent_bytes;     /* to the collector */
};

/* struct wire_stack.flags */
#define WIRE_STACK_CUT        (1u << 0) /* the stack goes on behind what was copied */
#define WIRE_STACK_PYTHON_CUT (1u << 1) /* there are more Python frames than were followed */
#define WIRE_STACK_COLLECTING (1u << 2) /* the thread is within Python's garbage collection */

/* In wire_python_frame.code, whose lower bits are free: native code called the interpreter with this frame.
 */
#define WIRE_PYTHON_CODE_ENTRY 1ull
/*
 * No function: `position` is the address of the frame by which native code called the interpreter with the
 * one before. It is a variable of the interpreter's own function, so it tells that function's native frame.
 */
#define WIRE_PYTHON_CODE_NATIVE 2ull

struct wire_python_frame {
	__u64 code;     /* address of the code object, WIRE_PYTHON_CODE_* */
	__u64 position; /* address of the instruction, or its index where struct wire_python says so */
};

/*
 * User stack of a thread as it is in memory; comes just before the interval or sample that it belongs to.
 * `python_count` struct wire_python_frame follow, innermost first, then `stack_bytes` bytes from `sp` on,
 * then up to 7 bytes without meaning.
 */
struct wire_stack {
	struct wire_header header;
	__u64 time_ns;
	__u64 ip, sp, bp; /* of user mode; bp: the register that may be the frame pointer */
	__u64 link;       /* return address in a register, 0 where the machine has none */
	__u32 tgid, tid;
	__u32 stack_bytes, python_count;
	__u32 flags; /* WIRE_STACK_* */
	__u32 pad;
	__u64 python_thread; /* PyThreadState, if there are Python frames */
};

/* struct wire_python.flags */
#define WIRE_PYTHON_CFRAME  (1u << 0) /* thread_frame is a pointer to a struct that points to the frame */
#define WIRE_PYTHON_OBJECTS (1u << 1) /* each frame has a call of the interpreter of its own (until 3.10) */
#define WIRE_PYTHON_ENTRY   (1u << 2) /* frame_mark: not 0 where native code called the interpreter (3.11) */
#define WIRE_PYTHON_OWNER                                                                                    \
	(1u << 3) /* frame_mark: WIRE_PYTHON_OWNER_NATIVE or more: no function (3.12 on)                     \
	           */
#define WIRE_PYTHON_INDEX        (1u << 4) /* positions are indices of 4 bytes */
#define WIRE_PYTHON_RUNTIME_LOCK (1u << 5) /* `holder` is an offset in the runtime (until 3.11) */

#define WIRE_PYTHON_FRAME_BYTES  128
#define WIRE_PYTHON_OWNER_NATIVE 3 /* FRAME_OWNED_BY_CSTACK, FRAME_OWNED_BY_INTERPRETER */

enum wire_file_kind {
	WIRE_FILE_PATH = 0, /* has a place in the file system, or at least a name */
	WIRE_FILE_PIPE = 1,
	WIRE_FILE_UNIX = 2,
	WIRE_FILE_INET = 3, /* address and port of the peer, in network order; 0: it has none */
	WIRE_FILE_INET6 = 4,
};

#define WIRE_FILE_CUT   (1u << 0) /* there are more folders around it */
#define WIRE_FILE_BARE  (1u << 1) /* it is in no folder */
#define WIRE_FILE_BOUND (1u << 2) /* the Unix socket itself has the path, not the one at its other end */

#define WIRE_DEVICE_LEN 32
#define WIRE_FILE_PARTS 12
#define WIRE_FILE_PART  80

/* Names a file, pipe or socket that intervals refer to by `key`; sent once as long as the kernel remembers.
 */
struct wire_file {
	struct wire_header header;
	__u64 key;
	__u8 address[16];
	char device[WIRE_DEVICE_LEN]; /* what its file system is on, as the kernel calls it ("sda1", "tmpfs")
	                               */
	__u32 peer; /* process that connected a Unix socket or, if that has no path, listens; 0 not known */
	__u32 pad2;
	__u16 port;
	__u16 pad;
	__u32 kind; /* enum wire_file_kind */
	__u32 part_count;
	__u32 flags; /* WIRE_FILE_* */
	/* Name, then its folders outwards; NUL-terminated, cut to fit. Of a Unix socket: its path, if it has
	 * one. */
	char parts[WIRE_FILE_PARTS][WIRE_FILE_PART];
};

/* Where a version of CPython keeps the frames of its threads: offsets in its structs. Value of a BPF map. */
struct wire_python {
	__u64 runtime; /* address of _PyRuntime */
	__u32 interpreters_head, threads_head;
	__u32 thread_next, thread_id, thread_frame;
	__u32 cframe_current;
	__u32 frame_previous, frame_code, frame_position, frame_mark;
	__u32 flags;       /* WIRE_PYTHON_* */
	__u32 frame_bytes; /* how much of a frame holds all its fields, each taken as one of 8 bytes */
	/* In an interpreter: an int that is not 0 during a collection; 0: not known. */
	__u32 collecting;
	__u32 holder; /* in it or in the runtime: the thread that has the interpreter lock, or had it last */
	__u32 thread_interpreter, thread_previous;
	__u64 collector; /* kept by the programs: the thread that collects, while one is known to */
};

/* Names a thread that other records refer to (tracked or not); sent once per name. */
struct wire_task {
	struct wire_header header;
	__u64 time_ns;
	__u32 tgid, tid;
	char comm[WIRE_COMM_LEN]; /* NUL-terminated */
};

struct wire_fork {
	struct wire_header header;
	__u64 time_ns;
	__u32 parent_tgid, parent_tid;
	__u32 child_tgid,
	    child_tid; /* child_tgid == parent_tgid: a thread; equal to the parent: tracked from now on */
	__u32 namespace_tid; /* of the child in its innermost pid namespace, 0 if that is the initial one */
	__u32 pad;
	char comm[WIRE_COMM_LEN];
};

struct wire_exec {
	struct wire_header header;
	__u64 time_ns;
	__u32 tgid, tid;
	char comm[WIRE_COMM_LEN];
	char filename[WIRE_FILENAME_LEN]; /* NUL-terminated, cut to fit */
	__u32 cmdline_bytes;              /* 0: it could not be read */
	__u32 pad;
	char cmdline[WIRE_CMDLINE_LEN]; /* arguments, each ended by NUL, cut to fit */
};

struct wire_exit {
	struct wire_header header;
	__u64 time_ns;
	__u32 tgid, tid;
	__s32 exit_code; /* as wait(2) reports it */
	__u32 seq;       /* last interval sequence number of the thread */
	__u32 faults;    /* page faults of the thread since its previous record */
	__u32 pad;
};

#define WIRE_CALL_STREAM (1u << 0)
#define WIRE_CALL_OBJECT (1u << 1)
#define WIRE_CALL_WORK   (1u << 2)
#define WIRE_CALL_RESULT (1u << 3)

/* A CUDA API call seen by uprobes: the outermost one of its thread. */
struct wire_call {
	struct wire_header header;
	__u64 enter_ns;
	__u64 exit_ns; /* 0: only the entry was probed (launches) */
	__u32 tgid, tid;
	__u32 function; /* index that userspace gave in the attach cookie */
	__u32 known;    /* WIRE_CALL_*: which of the fields below are */
	__u64 stream;   /* handle */
	__u64 object;   /* what it is about: function, graph, event, direction of a copy */
	__u64 work;     /* of a launch a hash of grid, block and shared memory, of a copy its bytes */
	__s32 result;
	__u32 threads; /* of a launch, of all blocks; UINT32_MAX: as many or more; 0: not known */
};

/* A process outside the tracked set called a CUDA function that is probed. Once a process. */
struct wire_caller {
	struct wire_header header;
	__u64 time_ns;
	__u32 tgid, tid;
	char comm[WIRE_COMM_LEN]; /* of the thread */
	__u32 tracked;            /* 1: its thread is tracked from here on */
	__u32 pad;
};

/*
 * The hypervisor kept a CPU from running, from a thread that had it or took it out of idleness. Where in the
 * time between two looks at the clock of it is not known: it is taken to be the end.
 */
struct wire_steal {
	struct wire_header header;
	__u64 start_ns, end_ns;
	__u32 tgid, tid;
};

enum wire_nccl_function {
	WIRE_NCCL_ALL_REDUCE = 1,
	WIRE_NCCL_REDUCE = 2,
	WIRE_NCCL_BROADCAST = 3,
	WIRE_NCCL_ALL_GATHER = 4,
	WIRE_NCCL_REDUCE_SCATTER = 5,
	WIRE_NCCL_ALL_TO_ALL = 6,
	WIRE_NCCL_GATHER = 7,
	WIRE_NCCL_SCATTER = 8,
	WIRE_NCCL_SEND = 9,
	WIRE_NCCL_RECV = 10,
	WIRE_NCCL_BCAST = 11, /* the older form of a broadcast, which calls the other */
	WIRE_NCCL_GROUP_START = 12,
	WIRE_NCCL_GROUP_END = 13,
	WIRE_NCCL_INIT = 14,          /* ncclUniqueId passed by value */
	WIRE_NCCL_INIT_SCALABLE = 15, /* several, passed by address */
	WIRE_NCCL_SPLIT = 16,
	WIRE_NCCL_DESTROY = 17,
};

#define WIRE_NCCL_RECEIVES (1u << 31) /* set in the peer of a receive where messages are counted */

/*
 * A call of NCCL seen by uprobes: an operation, the end of the outermost group if there were operations in
 * it, a communicator that is made or given up.
 */
struct wire_nccl {
	struct wire_header header;
	__u64 time_ns; /* entry; of a communicator that is made the return */
	__u32 tgid, tid;
	__u32 function; /* enum wire_nccl_function */
	__u32 type;     /* ncclDataType_t */
	__u64 comm;     /* handle, 0: of the end of a group */
	__u64 id; /* of the communicator, the same on all its ranks; 0: it was made before the probes were set
	           */
	__u64 number; /* operations on the communicator before this one; of a send or receive the messages to
	                 or from that peer */
	__u64 count;  /* elements, as the function counts them */
	__u64 stream;
	__u32 peer;       /* of a send or receive; else the root */
	__u32 size, rank; /* of the communicator; size 0: not known */
	__u32 group;      /* number of the group on this thread, 0: in none */
};

/* Indices of the loss counters kept by BPF (one 64-bit counter each). */
enum wire_loss {
	WIRE_LOSS_RING = 0,    /* ring buffer full */
	WIRE_LOSS_STACK = 1,   /* stack map full or a bucket collision */
	WIRE_LOSS_STORAGE = 2, /* no per-thread storage could be had */
	WIRE_LOSS_NEST = 3,    /* CUDA call whose entry and return did not pair */
	WIRE_LOSS_SLOT = 4,    /* user stack: more threads than slots */
	WIRE_LOSS_BUDGET = 5,  /* user stack: too many bytes since the last poll */
	WIRE_LOSS_COUNT = 6,
};

_Static_assert(sizeof(struct wire_header) == 8, "wire_header");
_Static_assert(sizeof(struct wire_offcpu) == 200, "wire_offcpu");
_Static_assert(sizeof(struct wire_sample) == 56, "wire_sample");
_Static_assert(sizeof(struct wire_stack) == 80, "wire_stack");
_Static_assert(sizeof(struct wire_python_frame) == 16, "wire_python_frame");
_Static_assert(sizeof(struct wire_file) == 1048, "wire_file");
_Static_assert(sizeof(struct wire_python) == 80, "wire_python");
_Static_assert(sizeof(struct wire_task) == 40, "wire_task");
_Static_assert(sizeof(struct wire_fork) == 56, "wire_fork");
_Static_assert(sizeof(struct wire_exec) == 432, "wire_exec");
_Static_assert(sizeof(struct wire_exit) == 40, "wire_exit");
_Static_assert(sizeof(struct wire_call) == 72, "wire_call");
_Static_assert(sizeof(struct wire_caller) == 48, "wire_caller");
_Static_assert(sizeof(struct wire_steal) == 32, "wire_steal");
_Static_assert(sizeof(struct wire_nccl) == 88, "wire_nccl");

#endif
