/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happened, as threads, processes and GPU operations on one clock: the input of attribution.
 *
 * Built from a session file (model_load_session) or, later, from imported traces. Read-only once built. All
 * times are CLOCK_MONOTONIC ns. Strings are NUL-terminated, owned by the model, and may hold any byte.
 */
#ifndef WHYIDLE_MODEL_H
#define WHYIDLE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hash.h"
#include "model/cuda_call.h"
#include "model/span.h"
#include "model/stack_cost.h"
#include "model/wait.h"
#include "trace/session.h"

#define MODEL_NONE UINT32_MAX /* "no such index" */

/* An off-CPU interval: blocked in [out, wake], runnable in [wake, in]. preempted: wake == out. */
struct offcpu {
	uint64_t out_ns, wake_ns, in_ns;
	uint32_t waker_tid, waker_pid;
	uint32_t next_tid, prev_tid;
	int32_t syscall, waker_syscall;
	uint64_t args[4], waker_args[2];
	uint64_t object, waker_object;
	uint32_t kstack, waker_kstack, ustack; /* indices of model.stacks, MODEL_NONE */
	uint32_t cpus_allowed;
	uint32_t faults;
	uint32_t path, device; /* string ids */
	uint16_t out_cpu, in_cpu;
	enum wait_kind wait; /* what it was blocked in */
	enum wake_kind wake; /* what woke it */
	bool preempted, open, woken;
	bool
	    waker_ending; /* the waker was on its way out: the record of its end may be older than the wake */
	bool throttled;   /* while it was runnable its cgroup had no CPU quota left */
	bool bound;       /* while it was runnable only CPUs were idle that it may not use */
	bool lost_before; /* at least one interval of the thread is missing just before this one */
	/* Of a wait inside a function of the C library that was probed, else lock_kind is 0. */
	uint8_t lock_kind;    /* enum record_lock_kind */
	uint64_t lock;        /* address of the object */
	uint32_t lock_holder; /* thread that had it at out_ns, by its id in its innermost pid namespace; 0 */
};

struct sample {
	uint64_t time_ns;
	int32_t syscall; /* -1 none */
	uint32_t kstack, ustack;
	uint32_t faults;
	enum sample_kind kind;
};

#define CALL_HAS_STREAM 1
#define CALL_HAS_OBJECT 2
#define CALL_HAS_WORK   4
#define CALL_HAS_RESULT 8

/* A CUDA call. exit_ns is never 0: where it was not seen it equals enter_ns and exit_known is false. */
struct call {
	uint64_t enter_ns, exit_ns;
	uint32_t correlation;
	uint64_t first_op_ns; /* start of the first operation it launched, UINT64_MAX none */
	uint32_t function;    /* string id */
	enum cuda_class class;
	bool exit_known;
	bool probed;       /* seen by a probe on the function */
	bool pageable;     /* a copy from or to memory that is not pinned */
	uint8_t arguments; /* CALL_HAS_*: which of the next four are known */
	int32_t result;    /* of the CUDA function, 0 success */
	uint64_t stream;   /* handle */
	uint64_t object;   /* of a launch its function, of a copy its direction, or an event */
	uint64_t work;     /* of a launch a hash of grid, block and shared memory, of a copy its bytes */
	uint32_t threads;  /* of a launch, of all blocks; UINT32_MAX: as many or more; 0: not known */
};

/* A call of an operation of NCCL, or the end of a group of them. */
struct nccl_call {
	uint64_t time_ns; /* entry */
	uint64_t handle;  /* of the communicator in its process; 0: the end of a group */
	uint64_t comm;    /* the same for all ranks of the communicator, 0 not known */
	uint64_t
	    number; /* of collectives, those before on the communicator; of messages, those to that peer */
	uint64_t bytes;      /* elements times their size, 0 not known */
	uint64_t stream;     /* handle */
	uint32_t function;   /* enum record_nccl_function */
	uint32_t peer;       /* of a message, else the root */
	uint32_t size, rank; /* of the communicator; size 0: neither is known */
	uint32_t group;      /* number on this thread, 0 in none */
};

/* What one kernel of NCCL does (model/nccl.c). */
struct nccl_work {
	uint64_t
	    comm; /* as in struct nccl_call; 0 not known: number and part then say nothing to other ranks */
	uint64_t handle; /* of the communicator in its process */
	uint64_t number; /* of the first collective in it, or of its message */
	/* Of all that it does, 0 not known: of calls that count all elements, and of those that count the
	 * elements of each rank (AllGather, ReduceScatter, AllToAll, Gather, Scatter). */
	uint64_t bytes, bytes_each;
	uint32_t function;   /* of the first collective in it; with messages alone, of the first one */
	uint32_t calls;      /* that were made for it, and the kernels beside it */
	uint32_t part;       /* of several kernels for one group of calls */
	uint32_t peer;       /* of messages alone: the one rank they go to or come from, MODEL_NONE several */
	uint32_t size, rank; /* of the communicator; size 0: neither is known */
};

enum scope_kind {
	SCOPE_OPERATOR,   /* a framework's operator: "aten::addmm" */
	SCOPE_ANNOTATION, /* a range that the user named (record_function, NVTX) */
	SCOPE_PYTHON,     /* a Python function: "train.py(12): step" */
	SCOPE_RANGE,      /* like ANNOTATION, but started and ended, perhaps by another thread */
};

/*
 * A named stretch of host code, from NVTX or an imported trace: it names what a thread did before a late
 * launch. Those that do not cross lie within each other or apart, so they can be drawn as one row.
 */
struct scope {
	uint64_t start_ns, end_ns;
	uint32_t name;  /* string id */
	uint32_t kind;  /* enum scope_kind */
	uint32_t outer; /* index of the one that was open when it began, MODEL_NONE; set by model_finish */
	bool crosses;   /* goes on beyond one that was open when it began; set by model_finish */
};

/* Time inside a call that CUPTI accounts for by itself: its own work, or the driver loading and compiling
 * code. */
struct overhead {
	uint64_t start_ns, end_ns;
	bool loading; /* the program's own: code was loaded or compiled */
};

struct thread {
	uint32_t pid, tid;
	uint32_t process;          /* index of model.processes */
	uint32_t comm;             /* string id, the last one it had */
	bool python_name;          /* which Python gave it, not the thread to itself */
	uint64_t start_ns, end_ns; /* life within the recording; start 0: it existed before */
	uint32_t namespace_tid;    /* tid in its innermost pid namespace, 0 not known, or in no other */
	uint32_t previous;         /* index of the earlier thread with the same tid, MODEL_NONE */
	bool tracked;              /* its off-CPU intervals were recorded: no interval means running */
	uint64_t tracked_from_ns;  /* but only from here on: it existed before; 0: since it began */
	bool guest;                /* of no recorded process: tracked because it woke one of theirs */
	bool lost_at_end;          /* intervals are missing between the last one and end_ns */
	uint64_t launches;
	struct {
		ARRAY(struct offcpu)
	} offcpu; /* by out_ns, disjoint */
	struct {
		ARRAY(struct sample)
	} samples; /* by time */
	struct {
		ARRAY(struct span)
	} stolen; /* when the hypervisor had its CPU: by start, disjoint */
	struct {
		ARRAY(struct call)
	} calls; /* outermost ones only: by enter_ns, disjoint */
	struct {
		ARRAY(struct overhead)
	} overhead; /* by start */
	struct {
		ARRAY(struct scope)
	} scopes; /* by start, outer ones before the ones they enclose */
	struct {
		ARRAY(struct nccl_call)
	} nccl_calls; /* by time */
};

struct process {
	uint32_t pid;
	uint32_t parent;         /* index of model.processes, MODEL_NONE */
	uint32_t comm;           /* string id */
	uint32_t cmdline;        /* string id, 0 not known */
	uint32_t container, pod; /* string ids: id, uid of a Kubernetes pod; 0 in none or not known */
	uint32_t namespace_pid;  /* in its innermost pid namespace, 0: not known, or in no other */
	uint64_t start_ns, end_ns;
	/* Another tool had CUPTI at first, and let go of it then: operations are recorded from here on only.
	 * 0: no such thing. */
	uint64_t cupti_from_ns;
	bool cupti_failed;         /* it did not start at first */
	bool forked;               /* made by fork within the recording and not (yet) replaced by exec */
	bool born;                 /* a record told of it and of its parent */
	bool parent_lost;          /* that record must have been lost: it may be anybody's child */
	uint32_t rank, world_size; /* of a distributed job; world_size 0: not known */
	uint64_t launches;
	struct {
		ARRAY(uint32_t)
	} threads; /* indices of model.threads */
};

enum op_kind {
	OP_KERNEL = RECORD_OP_KERNEL,
	OP_MEMCPY = RECORD_OP_MEMCPY,
	OP_MEMSET = RECORD_OP_MEMSET,
	OP_GRAPH = RECORD_OP_GRAPH,
};

struct gpu_op {
	uint64_t start_ns, end_ns; /* end >= start */
	uint64_t fed_ns;  /* first part, in which the device mostly waits for the host (fed_copies.h) */
	uint32_t process; /* index, MODEL_NONE */
	uint32_t context, stream;
	uint32_t correlation;
	uint32_t name; /* string id */
	uint32_t graph;
	uint64_t bytes;
	uint32_t launch_thread; /* thread and outermost call that launched it, MODEL_NONE */
	uint32_t launch_call;
	uint64_t launch_ns; /* entry of the call that carries the correlation id itself, 0 not known */
	uint8_t kind;       /* enum op_kind */
	uint8_t copy_kind, source_kind, target_kind;
	bool collective; /* a kernel of NCCL or RCCL */
	bool inferred;   /* from calls alone (model/infer.c); its end is when it was known to be over */
	uint32_t order;  /* position in the file */
	uint32_t nccl;   /* index of model.nccl_works, MODEL_NONE: its calls were not recorded */
};

struct device {
	uint32_t number; /* as the source counts devices: dense in sessions, any in imported traces */
	uint32_t name;   /* string id */
	uint8_t uuid[16];
	bool simulated;
	bool inferred; /* operations of some process are */
	struct {
		ARRAY(struct gpu_op)
	} ops; /* by start, then in file order */
	struct {
		ARRAY(struct span)
	} others; /* where operations of processes left out by model_keep_process ran: disjoint, by start */
};

/* A stretch in which records of some kind are missing. */
struct loss {
	uint64_t start_ns, end_ns, count;
	uint32_t cause; /* enum record_loss_cause */
	uint32_t pid;
};

struct stack {
	uint32_t kind; /* RECORD_STACK_* */
	uint32_t pid;
	uint32_t first, count; /* range of model.frames */
	bool cut;              /* the outermost frames are missing */
	/* A user stack within Python's garbage collection: by the record, or (set by model_finish) its names.
	 */
	bool collecting;
	/* A whole user stack whose every file is known, none of them CPython's; set by model_finish. */
	bool without_python;
	/* What a user stack is about, string ids, 0 not known; set by model_finish (model/stack_names.c). */
	uint32_t python;   /* "train.py:12 step": the innermost line of the program's own Python code */
	uint32_t function; /* the innermost native function that is not of the C library or the interpreter */
};

struct symbol {
	uint64_t address;
	uint32_t pid;
	uint32_t name, module, file; /* string ids */
	uint32_t line;
	uint32_t build_id;       /* string id, of the module */
	uint64_t module_address; /* in the module, 0 not known */
	uint64_t inner;          /* address of the symbol of what was inlined there, 0 none */
};

/* A synchronisation as CUPTI reports it: the host waited for a stream, an event or the context. */
struct sync {
	uint64_t start_ns, end_ns;
	uint32_t process, type, context, stream, correlation;
};

enum model_source {
	MODEL_SESSION,
	MODEL_KINETO,
	MODEL_NSYS,
};

struct model {
	enum model_source source;
	struct {
		ARRAY(const char *)
	} strings; /* [0] is "" */
	struct {
		ARRAY(struct thread)
	} threads;
	struct {
		ARRAY(struct process)
	} processes;
	struct {
		ARRAY(struct device)
	} devices;
	struct {
		ARRAY(struct stack)
	} stacks;
	struct {
		ARRAY(uint64_t)
	} frames;
	struct {
		ARRAY(struct symbol)
	} symbols;
	struct {
		ARRAY(struct loss)
	} losses; /* by start */
	struct {
		ARRAY(struct span)
	} gpu_holes; /* where GPU records are missing: disjoint, by start */
	struct {
		ARRAY(uint32_t)
	} callers; /* threads that made CUDA calls */
	struct {
		ARRAY(uint32_t)
	} degraded; /* string ids */
	struct {
		ARRAY(struct sync)
	} syncs;
	struct {
		ARRAY(struct nccl_work)
	} nccl_works;
	uint32_t command; /* string ids, 0 not known */
	uint32_t tier;
	uint32_t rank,
	    world_size; /* of a distributed job, as an imported trace has it; world_size 0: not known */
	uint64_t start_ns, end_ns; /* of the recording */
	uint64_t sample_period_ns; /* of a CPU, 0: not known, or no samples */
	uint64_t clock_error_ns;   /* largest of all processes */
	uint64_t sched_lost_ns;    /* end of the last stretch in which scheduler records were lost, 0 none */
	bool has_sched;            /* off-CPU intervals were recorded */
	bool has_timeline;         /* a GPU timeline was recorded, or inferred */
	bool inferred;             /* part of it is inferred from CUDA calls */
	bool simulated;
	struct stack_cost stack_cost;
	struct session_summary summary;
	struct index_map thread_by_tid;     /* tid → newest thread */
	struct index_map process_by_pid;    /* pid → newest process */
	struct index_map symbol_by_address; /* hash of (pid, address) → symbol */
	struct index_map call_by_id; /* (process, correlation) → packed thread and call, while loading */
	struct {
		ARRAY(char *)
	} owned; /* memory of the strings */
};

/* Reads a session file. Returns 0 or a negative errno with `error`; call model_free in either case. */
int model_load_session(struct model *model, const char *path, struct error *error);
void model_free(struct model *model);

/*
 * Building blocks for loaders: get-or-make lookups return MODEL_NONE if memory ran out. model_finish sorts,
 * links operations to their launches and classifies waits; call it once, after the last addition.
 */
uint32_t model_add_string(struct model *model, const char *text, size_t length);
uint32_t model_get_process(struct model *model, uint32_t pid);
uint32_t model_get_thread(struct model *model, uint32_t pid, uint32_t tid);
uint32_t model_new_process(struct model *model, uint32_t pid, uint32_t parent);
uint32_t model_new_thread(struct model *model, uint32_t pid, uint32_t tid, uint64_t start_ns);
int model_add_symbol(struct model *model, const struct symbol *symbol);
int model_finish(struct model *model, struct error *error);

/*
 * Leaves the GPU operations of one process, so that the rest of the time is idle as that process sees it.
 * Threads and calls of the others stay: they may be why it waited. -ENOENT if there is no such process.
 */
int model_keep_process(struct model *model, uint32_t pid, struct error *error);

/* "" for id 0 or an unknown one. */
const char *model_string(const struct model *model, uint32_t id);

/* Index of the thread that had this tid at `time`, MODEL_NONE. */
uint32_t model_thread_at(const struct model *model, uint32_t tid, uint64_t time_ns);

/* The thread that ended the wait, which may have been on its way out; MODEL_NONE: none, or not known. */
uint32_t model_waker(const struct model *model, const struct offcpu *offcpu);

/* What is known of frame `index` of a stack, 0 the innermost; NULL if nothing is. */
const struct symbol *model_frame(const struct model *model, const struct stack *stack, uint32_t index);

/*
 * Infers the operations of processes whose calls were probed and that have none. Returns 0 or -ENOMEM. Part
 * of model_finish, after the calls are in order.
 */
int model_infer(struct model *model);

/*
 * Gives functions that were inlined frames of their own in the user stacks, before the one that they are in;
 * what has them is left as it is. Returns 0 or -ENOMEM. Part of model_name_stacks.
 */
int model_expand_inlined(struct model *model);

/* Joins kernels of NCCL with its calls. Returns 0 or -ENOMEM. Part of model_finish, once operations have
 * their launches. */
int model_join_nccl(struct model *model);

/* Names the user stacks. Returns 0 or -ENOMEM. Part of model_finish. */
int model_name_stacks(struct model *model);

/*
 * Looks for functions and lines that were not known when the session was recorded, by build id, in the files
 * of a folder (symbols/symbol_folder.h, also for `whole`), and names the stacks anew. *functions: names that
 * were found. Returns 0 or a negative errno with `error`. After model_finish, before the model is used.
 */
int model_resolve(struct model *model, const char *folder, bool whole, uint64_t *functions,
                  struct error *error);

/* The symbol of an address, NULL. `pid`: address space, 0 for the kernel and for frames that are no
 * addresses. */
const struct symbol *model_find_symbol(const struct model *model, uint32_t pid, uint64_t address);

/* Function name at one address of a stack, NULL if not known. pid 0: the kernel. */
const char *model_symbol(const struct model *model, uint32_t pid, uint64_t address);

#endif
