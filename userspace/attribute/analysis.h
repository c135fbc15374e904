/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The result of attribution: what report/ and export/ show. Plain data; every string is owned by the model or
 * by the analysis itself and is NUL-terminated, but may hold any byte a target chose: show it only through an
 * escaping function.
 *
 * Invariant, asserted where it is made: the causes' ns of a device sum exactly to its idle_ns, and the chain
 * of a gap covers the gap without holes or overlaps.
 */
#ifndef WHYIDLE_ATTRIBUTE_ANALYSIS_H
#define WHYIDLE_ATTRIBUTE_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribute/cause.h"
#include "attribute/step_report.h"
#include "base/array.h"
#include "base/error.h"
#include "model/stack_cost.h"

struct model;

/* A thread to blame, with its part of a cause. */
struct cause_thread {
	uint32_t pid, tid;
	const char *comm;            /* never NULL */
	const char *cmdline;         /* of its process, NULL if not known */
	const char *container, *pod; /* that its process is in, NULL if in none or not known */
	uint32_t namespace_pid;      /* of its process in its innermost pid namespace, 0 not known */
	uint64_t ns;
};

/* The thing that a cause is about; NULL or 0 where it does not apply. */
struct cause_detail {
	const char *syscall;      /* name of the system call, "pread64" */
	const char *path;         /* file, pipe, peer or lock */
	const char *device;       /* what the file is on, "nvme0n1p2", "overlay" */
	const char *lock;         /* identity of a lock in words */
	const char *function;     /* CUDA call or native function */
	const char *python;       /* "file.py:12 function" */
	const char *waits_for;    /* what the C library's functions say of the wait that led here, in words */
	const char *holder;       /* thread that held the lock, or that had the CPU, "name (tid)" */
	const char *const *stack; /* frames, innermost first */
	size_t stack_count;
};

/* State of the whole group of workers while the launcher waited for one of them (attribution.md section 3).
 */
struct worker_group {
	uint32_t count;   /* workers that delivered at least once */
	uint64_t wait_ns; /* waits that ended in this group, summed */
	double running;   /* shares of wait_ns × count, 0..1 */
	double runnable;
	double blocked_sleep;
	double blocked_disk;
	double blocked_network;
	double blocked_input; /* idle: waiting for something to do */
	double blocked_other;
	uint32_t enough; /* number of workers that would keep the GPU busy, 0 not known */
};

#define CAUSE_CURVE 4 /* points of the gain curve: 25, 50, 75 and 100 % taken out */

/* One cause of a device's idle time: a (code, role) pair. */
struct cause {
	enum cause_code code;
	enum cause_role role;
	enum confidence confidence; /* time-weighted lowest that at least a tenth of it has */
	uint64_t ns;
	uint64_t gain_low_ns, gain_high_ns; /* wall time; low is 0 and high is ns where no replay was made */
	bool replayed;
	uint64_t gain_curve_ns[CAUSE_CURVE]; /* if replayed */
	bool has_next; /* if replayed: largest cause of the idle time that is left then */
	enum cause_code next_code;
	enum cause_role next_role;
	uint64_t gap_count; /* gaps it takes part in */
	struct {
		ARRAY(struct cause_thread)
	} threads;                  /* by ns, largest first */
	struct cause_detail detail; /* of the largest part */
	struct worker_group group;  /* count 0 if no group is involved */
	const struct cause_thread
	    *waiter; /* launcher that waited for it, NULL if the blamed thread is the launcher */
};

/* A stretch of a gap and what it is blamed on, in time order. */
struct chain_link {
	uint32_t pid, tid; /* 0 for the device */
	const char *comm;  /* never NULL */
	const char *state; /* "running", "runnable", "blocked", "device" */
	enum cause_code code;
	enum cause_role role;
	enum confidence confidence;
	uint64_t start_ns, end_ns;
	const char
	    *via; /* threads through which the walk came here, "main ← pt_data_pin ← …", NULL if none */
	struct cause_detail detail;
};

/* A gap that is shown by itself. */
struct gap_report {
	uint64_t start_ns, end_ns;
	const char *kernel; /* name of the operation that ended it, NULL if nothing did */
	const char *launch; /* CUDA call that launched that, NULL if not known */
	uint32_t pid, tid;  /* thread that launched it, 0 if not known */
	const char *comm;
	struct {
		ARRAY(struct chain_link)
	} chain;
};

/* How well the recorded times come out when the graph is replayed unchanged (attribute/replay.h). */
struct replay_report {
	bool ran;
	bool accepted;                  /* well enough: gains are given */
	double error_median, error_p95; /* of the length of stretches of the window, as a share */
	double gap_error;               /* of the sum of the gaps, as a share */
};

struct device_report {
	uint32_t device; /* dense index of the session */
	const char *name;
	uint8_t uuid[16];
	bool simulated;
	uint64_t window_start_ns, window_end_ns;
	uint64_t busy_ns, idle_ns;
	uint64_t compute_busy_ns; /* kernels only, collectives taken out */
	uint64_t lead_in_ns,
	    trail_out_ns; /* outside the window: recording start to it, it to recording end */
	uint64_t gap_count, op_count;
	uint64_t queued_ns, late_ns, unknown_ns; /* idle by launch: sums of whole gaps */
	struct replay_report replay;
	struct {
		ARRAY(struct cause)
	} causes; /* by ns, largest first */
	struct {
		ARRAY(struct gap_report)
	} top_gaps; /* longest first */
	struct step_report steps;
};

/* Records lost, by cause. */
struct loss_report {
	uint64_t bpf_ring, bridge_ring, cupti, stacks, storage, file;
	uint64_t user_stacks; /* no records of their own: others lack their names */
};

/* How well the user stacks of the whole recording tell what they should (attribute/stack_quality.h). */
struct stack_report {
	struct stack_cost cost;
	uint64_t frames, frames_named; /* user frames of CPU samples, each as often as it was sampled */
	const char *unnamed_file;      /* which most of the others are from, NULL if there are none */
	const char *unnamed_build_id;  /* of that file, NULL if not known */
	uint64_t unnamed_in_file;
	uint64_t long_waits,
	    long_waits_complete; /* blocked for over 1 ms; with a stack down to the thread's start */
};

struct analysis {
	const char *command;  /* what was recorded, NULL if not known */
	const char *tier;     /* "T2" */
	const char *timeline; /* "cupti", "none" */
	const char *source;   /* "session" */
	bool simulated;       /* any device is */
	bool incomplete;      /* the session has no end mark */
	uint64_t session_start_ns, session_end_ns;
	struct loss_report losses;
	struct stack_report stacks;
	struct {
		ARRAY(const char *)
	} degraded; /* what could not be recorded, one line each */
	struct {
		ARRAY(struct device_report)
	} devices;
	struct {
		ARRAY(char *)
	} owned; /* strings made by the analysis */
};

struct analysis_options {
	bool has_window;
	uint64_t window_start_ns, window_end_ns; /* CLOCK_MONOTONIC, clips all devices */
	int32_t device;                          /* only this one, -1 all */
	uint32_t top_gaps;                       /* how many to keep a device; 0 means 10 */
	bool steps;                              /* find the steps and what slow ones waited for */
};

/*
 * Attributes the idle time of every device. `model` must outlive `analysis`. Returns 0 or a negative errno
 * with `error` filled in; analysis_free may be called in either case.
 */
int analysis_run(struct analysis *analysis, const struct model *model, const struct analysis_options *options,
                 struct error *error);
void analysis_free(struct analysis *analysis);

#endif
