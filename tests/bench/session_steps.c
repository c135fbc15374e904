/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a made-up session to measure the analysis with: a training loop that eight loader processes feed too
 * slowly, one gap and ten off-CPU intervals a step.
 *
 *	session_steps FILE STEPS
 *
 * A step lasts 7 ms. The GPU is busy for the first 1.4 ms of it, then main waits on a futex for pin_memory,
 *which waits on a pipe for the worker whose turn it is. Every tenth wait is for a lock, every tenth for the
 *interpreter lock, by its time-out. Workers are preempted, read from disk and wait for input; 32 threads of a
 *pool are woken now and then and never matter.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/session.h"

#define US           1000ULL
#define STEP_NS      (7000 * US)
#define START_NS     1000000000000ULL
#define MAIN         1000
#define PIN          1001
#define POOL         1100
#define POOL_THREADS 32
#define WORKER       2000
#define WORKERS      8
#define KERNELS      4
#define LAST_TID     (WORKER + WORKERS)

enum stack { NO_STACK, FUTEX_WAIT, FUTEX_WAKE, PIPE_READ, PIPE_WRITE, TIMER, DISK_WAIT, DISK_WAKE, STACKS };

static const char *const functions[STACKS] = {
    [FUTEX_WAIT] = "futex_do_wait",     [FUTEX_WAKE] = "futex_wake", [PIPE_READ] = "anon_pipe_read",
    [PIPE_WRITE] = "anon_pipe_write",   [TIMER] = "hrtimer_wakeup",  [DISK_WAIT] = "folio_wait_bit_common",
    [DISK_WAKE] = "wake_page_function",
};

struct session {
	struct session_writer *writer;
	struct error error;
	int rc;
	uint32_t seq[LAST_TID];
	uint32_t kernel, launch, synchronise, correlation;
};

static void put(struct session *session, const void *record)
{
	if (!session->rc)
		session->rc = session_writer_put(session->writer, record, &session->error);
}

static uint32_t process_of(uint32_t tid)
{
	return tid >= WORKER ? tid : MAIN;
}

static void put_fork(struct session *session, uint32_t parent, uint32_t tid, const char *name)
{
	struct record_fork record = {
	    .header = {.type = RECORD_FORK, .size = sizeof(record)},
	    .time_ns = START_NS - STEP_NS,
	    .parent_pid = parent,
	    .parent_tid = parent,
	    .child_pid = process_of(tid),
	    .child_tid = tid,
	    .comm = session_writer_cstring(session->writer, name),
	};

	put(session, &record);
}

/* A kernel stack of one named frame, which is also its address. */
static void put_stack(struct session *session, enum stack stack)
{
	struct {
		struct record_stack stack;
		uint64_t frame;
	} record = {.stack = {.header = {.type = RECORD_STACK, .size = sizeof(record)},
	                      .id = stack,
	                      .kind = RECORD_STACK_KERNEL,
	                      .count = 1},
	            .frame = 0xffffffff81000000ULL + stack};
	struct record_symbol symbol = {
	    .header = {.type = RECORD_SYMBOL, .size = sizeof(symbol)},
	    .address = record.frame,
	    .name = session_writer_cstring(session->writer, functions[stack]),
	};

	put(session, &record);
	put(session, &symbol);
}

static void put_opening(struct session *session)
{
	struct record_device device = {
	    .header = {.type = RECORD_DEVICE, .size = sizeof(device)},
	    .name = session_writer_cstring(session->writer, "made-up GPU"),
	    .uuid = {1},
	    .simulated = 1,
	};
	char name[16];

	put(session, &device);
	for (enum stack stack = 1; stack < STACKS; stack++)
		put_stack(session, stack);
	put_fork(session, 1, MAIN, "train");
	put_fork(session, MAIN, PIN, "pin_memory");
	for (uint32_t i = 0; i < POOL_THREADS; i++)
		put_fork(session, MAIN, POOL + i, "pool");
	for (uint32_t i = 0; i < WORKERS; i++) {
		snprintf(name, sizeof(name), "loader-%u", i);
		put_fork(session, MAIN, WORKER + i, name);
	}
	session->kernel = session_writer_cstring(session->writer, "_Z12train_kernelPfS_i");
	session->launch = session_writer_cstring(session->writer, "cudaLaunchKernel_v7000");
	session->synchronise = session_writer_cstring(session->writer, "cudaStreamSynchronize_v3020");
}

/* waker 0: an interrupt on an idle CPU. Returns the record for what only some intervals have. */
static struct record_offcpu blocked(struct session *session, uint32_t tid, uint64_t out, uint64_t wake,
                                    enum stack stack, uint32_t waker, enum stack waker_stack)
{
	return (struct record_offcpu){
	    .header = {.type = RECORD_OFFCPU, .size = sizeof(struct record_offcpu)},
	    .out_ns = out,
	    .wake_ns = wake,
	    .in_ns = wake + 10 * US,
	    .pid = process_of(tid),
	    .tid = tid,
	    .waker_pid = waker ? process_of(waker) : 0,
	    .waker_tid = waker,
	    .syscall = stack == FUTEX_WAIT ? 202 : 0,
	    .waker_syscall = waker_stack == FUTEX_WAKE   ? 202
	                     : waker_stack == PIPE_WRITE ? 1
	                                                 : -1,
	    .args = {stack == FUTEX_WAIT ? 0x7f0000001000 : 5, stack == FUTEX_WAIT ? 128 : 0},
	    .waker_args = {waker_stack == FUTEX_WAKE ? 0x7f0000001000 : 6, 129},
	    .object = stack == PIPE_READ ? 4711 : 0,
	    .waker_object = waker_stack == PIPE_WRITE ? 4711 : 0,
	    .kstack = stack,
	    .waker_kstack = waker_stack,
	    .state = 1,
	    .flags = RECORD_OFFCPU_WOKEN,
	    .seq = ++session->seq[tid],
	    .cpus_allowed = 16,
	};
}

static void put_preempted(struct session *session, uint32_t tid, uint64_t out, uint64_t length, uint32_t by)
{
	struct record_offcpu record = {
	    .header = {.type = RECORD_OFFCPU, .size = sizeof(record)},
	    .out_ns = out,
	    .in_ns = out + length,
	    .pid = process_of(tid),
	    .tid = tid,
	    .next_tid = by,
	    .prev_tid = by,
	    .syscall = -1,
	    .waker_syscall = -1,
	    .flags = RECORD_OFFCPU_PREEMPTED,
	    .seq = ++session->seq[tid],
	    .cpus_allowed = 16,
	};

	put(session, &record);
}

static void put_call(struct session *session, uint32_t function, uint64_t enter, uint64_t exit)
{
	struct record_call record = {
	    .header = {.type = RECORD_CALL, .size = sizeof(record)},
	    .enter_ns = enter,
	    .exit_ns = exit,
	    .pid = MAIN,
	    .tid = MAIN,
	    .correlation = session->correlation,
	    .function = function,
	    .source = RECORD_CALL_CUPTI,
	};

	put(session, &record);
}

static void put_gpu_work(struct session *session, uint64_t at)
{
	for (uint64_t i = 0; i < KERNELS; i++) {
		struct record_gpu_op record = {
		    .header = {.type = RECORD_GPU_OP, .size = sizeof(record)},
		    .start_ns = at + i * 350 * US,
		    .end_ns = at + (i + 1) * 350 * US,
		    .pid = MAIN,
		    .context = 1,
		    .stream = 7,
		    .correlation = ++session->correlation,
		    .kind = RECORD_OP_KERNEL,
		    .name = session->kernel,
		};

		put_call(session, session->launch, at - (30 - 6 * i) * US, at - (25 - 6 * i) * US);
		put(session, &record);
	}
	session->correlation++;
	put_call(session, session->synchronise, at + 200 * US, at + 1400 * US);
}

static void put_main_wait(struct session *session, uint64_t step, uint64_t at)
{
	struct record_offcpu wait =
	    blocked(session, MAIN, at + 1420 * US, at + 6900 * US, FUTEX_WAIT, PIN, FUTEX_WAKE);

	if (step % 10 == 3)
		wait.args[2] = 2; /* the C library's lock */
	if (step % 10 == 7) {
		wait.wake_ns = at + 6470 * US; /* 5.05 ms: nobody let go of the interpreter lock */
		wait.in_ns = wait.wake_ns + 10 * US;
		wait.waker_pid = wait.waker_tid = 0;
		wait.waker_syscall = -1;
		wait.waker_kstack = TIMER;
	}
	put(session, &wait);
}

static void put_sample(struct session *session, uint32_t tid, uint64_t at)
{
	struct record_sample record = {
	    .header = {.type = RECORD_SAMPLE, .size = sizeof(record)},
	    .time_ns = at,
	    .pid = process_of(tid),
	    .tid = tid,
	    .syscall = -1,
	    .flags = RECORD_SAMPLE_USER,
	};

	put(session, &record);
}

static void put_step(struct session *session, uint64_t step)
{
	uint64_t at = START_NS + step * STEP_NS;
	uint32_t worker = WORKER + step % WORKERS;
	struct record_offcpu wait;

	put_gpu_work(session, at);
	put_preempted(session, WORKER + (step + 3) % WORKERS, at + 2500 * US, 100 * US, PIN);
	wait = blocked(session, WORKER + (step + 1) % WORKERS, at + 3000 * US, at + 3200 * US, DISK_WAIT, 0,
	               DISK_WAKE);
	put(session, &wait);
	put_sample(session, worker, at + 1000 * US);
	put_sample(session, worker, at + 5000 * US);
	put_preempted(session, worker, at + 6000 * US, 100 * US, WORKER + (step + 5) % WORKERS);
	wait = blocked(session, PIN, at + 100 * US, at + 6850 * US, PIPE_READ, worker, PIPE_WRITE);
	put(session, &wait);
	put_main_wait(session, step, at);
	wait = blocked(session, worker, at + 6870 * US, at + 6920 * US, FUTEX_WAIT, MAIN, FUTEX_WAKE);
	put(session, &wait);
	for (uint64_t i = 0; i < 4; i++) {
		uint32_t thread = POOL + (4 * step + i) % POOL_THREADS;

		wait =
		    blocked(session, thread, at - 7 * STEP_NS, at + 6930 * US, FUTEX_WAIT, MAIN, FUTEX_WAKE);
		put(session, &wait);
	}
}

int main(int argc, char **argv)
{
	uint64_t steps = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	struct session session = {0};
	int rc;

	if (!steps) {
		fprintf(stderr, "usage: %s FILE STEPS\n", argv[0]);
		return 2;
	}
	session.rc = session_writer_open(&session.writer, argv[1], &session.error);
	if (!session.rc) {
		put_opening(&session);
		for (uint64_t step = 0; step < steps && !session.rc; step++)
			put_step(&session, step);
	}
	rc = session_writer_close(session.writer, session.rc ? NULL : &session.error);
	if (session.rc || rc) {
		fprintf(stderr, "%s: %s\n", argv[0], session.error.text);
		return 1;
	}
	return 0;
}
