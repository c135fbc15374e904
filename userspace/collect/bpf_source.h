/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel side of a recording: loads the BPF programs, tracks processes, and turns wire records
 * (bpf/events.h) into session records.
 *
 * Order: open → track → attach → poll … → finish → close. One thread only. Loading takes half a second of CPU
 * time; who records often loads once, and forks a child for each recording: open → (fork; renew → track → … →
 * finish) … → close.
 */
#ifndef WHYIDLE_COLLECT_BPF_SOURCE_H
#define WHYIDLE_COLLECT_BPF_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bpf/events.h"
#include "bpf/settings.h"
#include "trace/session.h"

struct bpf_source;

/* Processes that are not tracked and call CUDA functions that are probed for others: each is told of once. */
struct bpf_source_callers {
	void (*called)(void *context,
	               uint32_t pid); /* from within bpf_source_poll; NULL: nobody wants to know */
	bool adopt; /* track them from that call on: what is shorter than a poll is not missed */
	void *context;
};

/*
 * What users get who ask for nothing else: 100 samples a second of each CPU. More cost a program without
 * slack more than 2 % (docs/results.md, a12).
 */
#define BPF_SOURCE_SAMPLE_PERIOD_NS 10000000

struct bpf_source_options {
	uint64_t ring_bytes;       /* BPF ring buffer, a power of two, at least a page; 0: default (64 MiB) */
	uint64_t min_offcpu_ns;    /* shorter off-CPU intervals are not recorded */
	uint32_t sample_period_ns; /* cpu-clock sampling per CPU, 0: no samples */
	unsigned user_stacks;      /* which records have user stacks: STACKS_* of bpf/settings.h */
	bool small;                /* for recordings of a second or so: maps and ring take less memory */
	uint64_t min_stack_ns;     /* shorter off-CPU intervals have no user stack; 0: default (100 µs) */
	bool locks;                /* bpf_source_attach_locks will be called */
	bool lock_mutexes;         /* and is to probe mutexes as well, which cost the most */
	struct bpf_source_callers callers;
	void (*degraded)(void *context, const char *what); /* one line for each thing that will be missing */
	void *context;
};

struct bpf_source_stats {
	uint64_t events;                                         /* records taken from the ring */
	uint64_t lost_ring, lost_stack, lost_storage, lost_nest; /* losses so far, by cause */
	uint64_t stacks;                                         /* distinct stacks written */
	uint64_t user_stacks, cut_stacks; /* user stacks taken, and of these without their outermost frames */
	uint64_t lost_user_stacks;
	struct wire_stack_cost stack_cost;
	/* If the kernel counts it, else 0: run time of all programs; of those on CUDA calls, and their runs.
	 */
	uint64_t prog_ns, call_ns, call_hits;
};

/*
 * Opens and loads the programs. A program that this kernel refuses but that is not essential is left out,
 * with a line to options->degraded. Essential: sched_switch, sched_waking, fork, exit. Returns 0, or a
 * negative errno with `error` (no root or capabilities, no BTF, BPF not allowed, each with what to do).
 */
int bpf_source_open(struct bpf_source **source, const struct bpf_source_options *options,
                    struct error *error);

#define BPF_SOURCE_SAMPLES     (1u << 0) /* CPU samples */
#define BPF_SOURCE_USER_STACKS (1u << 1)

/*
 * In a child of the process that has opened it: makes ready for a recording, whatever became of those in
 * other children. Only one of them may record at a time. Descriptors and memory of the child go with it, and
 * so do probes, even if it is killed. `parts` (BPF_SOURCE_*) says what this recording has of what the
 * programs were loaded for. Returns 0 or a negative errno with `error`.
 */
int bpf_source_renew(struct bpf_source *source, unsigned parts, struct error *error);

/* Adds a process (all its threads, and what it forks from now on) to the tracked set. */
int bpf_source_track(struct bpf_source *source, uint32_t pid, struct error *error);

/*
 * The same for several processes once records flow, at the cost of one. Those that are tracked already, and
 * those that have gone, are passed over.
 */
int bpf_source_track_all(struct bpf_source *source, const uint32_t *pids, size_t count, struct error *error);

/* From here on records flow. Names of tasks and existing threads of tracked processes are written to
 * `writer`. */
int bpf_source_attach(struct bpf_source *source, struct session_writer *writer, struct error *error);

/*
 * Puts CUDA API uprobes on every known function that the ELF file at `path` exports (opened as given: use
 * /proc/PID/root/… or /proc/PID/map_files/… for other namespaces). Files are keyed by device and inode: a
 * second call for the same file does nothing. Returns the number of functions probed by this call or a
 * negative errno.
 *
 * It takes some 10 ms. Where the kernel lacks uprobe_multi (before 6.6) that is enough for a few functions
 * only: polls go on with the others, the most important ones first.
 */
int bpf_source_attach_calls(struct bpf_source *source, const char *path, struct error *error);

/*
 * Puts uprobes on the functions of the C library of a process that wait for other threads: intervals then say
 * which condition variable, semaphore, thread or lock. Files are keyed as above. Returns the number of files
 * that are probed, now or before, or a negative errno (-ENOENT: it has no glibc; -ENOTSUP: Linux before 6.6).
 */
int bpf_source_attach_locks(struct bpf_source *source, uint32_t pid, struct error *error);

/*
 * Puts uprobes on the functions of every copy of NCCL that a process has mapped (RECORD_NCCL). Files are
 * keyed as above: where nothing is new it costs a look at /proc/PID/maps. Returns the number of functions
 * probed by this call (0 also on Linux before 6.6), or a negative errno.
 */
int bpf_source_attach_nccl(struct bpf_source *source, uint32_t pid, struct error *error);

/* True if one of the files was the driver of the simulated GPU. */
bool bpf_source_simulated(const struct bpf_source *source);

/* Functions that are counted in by bpf_source_attach_calls but not probed yet. */
size_t bpf_source_calls_waiting(const struct bpf_source *source);

/*
 * Moves what is in the ring to the session, resolves new stacks and kernel symbols, writes RECORD_LOSS for
 * losses since the previous poll. Never blocks. Returns the number of records or a negative errno (of the
 * writer).
 */
int bpf_source_poll(struct bpf_source *source, struct error *error);

/*
 * Detaches, writes the intervals that are still open (threads that never ran again, RECORD_OFFCPU_OPEN with
 * in_ns = now) and drains the ring. Writes the info "lost_nest" if CUDA calls were left in a way that no
 * probe saw (longjmp, an exception): how many.
 */
int bpf_source_finish(struct bpf_source *source, struct error *error);

void bpf_source_stats(const struct bpf_source *source, struct bpf_source_stats *stats);

/* NULL is allowed. */
void bpf_source_close(struct bpf_source *source);

#endif
