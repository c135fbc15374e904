/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a record costs to write to a session file and to read from it, and how many bytes it takes there.
 *
 *	make bench-session [BENCH_RECORDS=4000000]
 *	build/bench/session_bench FILE [RECORDS]
 *
 * The mix is that of a training loop with four loader workers: for every 10 records 4 off-CPU intervals, 1
 * sample, 3 CUDA calls and 2 GPU operations, with times that advance by 5 µs a record (200 k records/s), a
 * handful of threads, a few hundred stacks and kernel names, and a flush for every 200 k records. FILE is
 *left behind. CPU time is this process's own, system time included.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "trace/session.h"

#define RATE    200000 /* records a second that the times stand for */
#define THREADS 12
#define STACKS  300
#define NAMES   200

struct mix {
	uint64_t state;
	uint64_t now;
	uint32_t correlation;
	uint32_t sequence[THREADS];
	uint32_t kernels[NAMES], calls[4];
	uint64_t by_type[RECORD_RANK + 1];
};

static uint32_t draw(struct mix *mix, uint32_t below)
{
	mix->state = mix->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((mix->state >> 33) % below);
}

/* Low values are drawn much more often: a few stacks and kernels make up most of a program. */
static uint32_t draw_skewed(struct mix *mix, uint32_t below)
{
	return draw(mix, 1 + draw(mix, 1 + draw(mix, below)));
}

static int put_offcpu(struct mix *mix, struct session_writer *writer, struct error *error)
{
	static const int32_t syscalls[] = {202, 0, 232, 7, -1};
	uint32_t thread = draw(mix, THREADS), waker = draw(mix, THREADS);
	uint64_t blocked = 2000 + draw(mix, 3000000);
	struct record_offcpu record = {
	    .header = {.type = RECORD_OFFCPU, .size = sizeof(record)},
	    .out_ns = mix->now - blocked - 5000,
	    .wake_ns = mix->now - 3000 - draw(mix, 2000),
	    .in_ns = mix->now,
	    .pid = 41200 + thread / 3,
	    .tid = 41200 + thread,
	    .waker_pid = 41200 + waker / 3,
	    .waker_tid = 41200 + waker,
	    .next_tid = draw(mix, 2) ? 0 : 41200 + draw(mix, THREADS),
	    .prev_tid = draw(mix, 2) ? 0 : 41200 + draw(mix, THREADS),
	    .syscall = syscalls[draw_skewed(mix, 5)],
	    .waker_syscall = syscalls[draw_skewed(mix, 5)],
	    .args = {0x7f1200000000 + 64 * (uint64_t)draw_skewed(mix, 500), 0x189, draw(mix, 4), 0},
	    .waker_args = {0x7f1200000000 + 64 * (uint64_t)draw_skewed(mix, 500), 0x81},
	    .object = draw(mix, 3) ? 0 : 90000 + draw(mix, 20),
	    .kstack = 1 + draw_skewed(mix, STACKS),
	    .waker_kstack = 1 + draw_skewed(mix, STACKS),
	    .ustack = 1 + draw_skewed(mix, STACKS),
	    .state = 1,
	    .flags = RECORD_OFFCPU_WOKEN,
	    .seq = ++mix->sequence[thread],
	    .faults = draw(mix, 20) ? 0 : draw(mix, 50),
	    .out_cpu = (uint16_t)draw(mix, 16),
	    .in_cpu = (uint16_t)draw(mix, 16),
	    .cpus_allowed = 16,
	};

	return session_writer_put(writer, &record, error);
}

static int put_sample(struct mix *mix, struct session_writer *writer, struct error *error)
{
	uint32_t thread = draw(mix, THREADS);
	struct record_sample record = {
	    .header = {.type = RECORD_SAMPLE, .size = sizeof(record)},
	    .time_ns = mix->now,
	    .pid = 41200 + thread / 3,
	    .tid = 41200 + thread,
	    .syscall = -1,
	    .ustack = 1 + draw_skewed(mix, STACKS),
	    .flags = RECORD_SAMPLE_USER,
	    .cpu = draw(mix, 16),
	    .ip = 0x7f3400000000 + draw_skewed(mix, 1 << 20),
	};

	return session_writer_put(writer, &record, error);
}

static int put_call(struct mix *mix, struct session_writer *writer, struct error *error)
{
	struct record_call record = {
	    .header = {.type = RECORD_CALL, .size = sizeof(record)},
	    .enter_ns = mix->now - 4000 - draw(mix, 3000),
	    .exit_ns = mix->now,
	    .pid = 41200,
	    .tid = 41200,
	    .correlation = ++mix->correlation,
	    .function = mix->calls[draw_skewed(mix, 4)],
	    .source = RECORD_CALL_CUPTI,
	};

	return session_writer_put(writer, &record, error);
}

static int put_gpu_op(struct mix *mix, struct session_writer *writer, struct error *error)
{
	uint32_t kernel = draw_skewed(mix, NAMES);
	struct record_gpu_op record = {
	    .header = {.type = RECORD_GPU_OP, .size = sizeof(record)},
	    .start_ns = mix->now - 1000000,
	    .end_ns = mix->now - 1000000 + 2000 + draw(mix, 60000),
	    .pid = 41200,
	    .context = 1,
	    .stream = 7 + 6 * (draw(mix, 10) == 0),
	    .correlation = mix->correlation,
	    .kind = RECORD_OP_KERNEL,
	    .name = mix->kernels[kernel],
	    .flags = RECORD_OP_ASYNC,
	    .grid = {64 * (1 + kernel % 40), 1, 1},
	    .block = {128 << kernel % 3, 1, 1},
	};

	return session_writer_put(writer, &record, error);
}

static int put_names(struct mix *mix, struct session_writer *writer, struct error *error)
{
	static const char *const calls[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize",
	                                    "cudaEventRecord"};
	struct {
		struct record_stack stack;
		uint64_t frames[24];
	} record = {
	    .stack = {.header = {.type = RECORD_STACK, .size = sizeof(record)}, .kind = RECORD_STACK_USER}};
	char name[256];
	int rc = 0;

	for (int i = 0; i < 4; i++)
		mix->calls[i] = session_writer_cstring(writer, calls[i]);
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name),
		         "_ZN2at6native%dvectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_"
		         "addIfEESt5arrayIPcLm3EEEEviT0"
		         "_T1__%d",
		         i % 30, i);
		mix->kernels[i] = session_writer_cstring(writer, name);
	}
	for (uint32_t i = 1; i <= STACKS && !rc; i++) {
		record.stack.id = i;
		record.stack.count = 24;
		for (int frame = 0; frame < 24; frame++)
			record.frames[frame] = 0x7f3400000000 + 16 * (uint64_t)draw_skewed(mix, 1 << 20);
		rc = session_writer_put(writer, &record, error);
	}
	return rc;
}

static int put_mix(struct mix *mix, struct session_writer *writer, uint64_t records, struct error *error)
{
	static int (*const kinds[10])(struct mix *, struct session_writer *, struct error *) = {
	    put_call,   put_offcpu, put_gpu_op, put_offcpu, put_call,
	    put_offcpu, put_gpu_op, put_call,   put_offcpu, put_sample,
	};
	int rc = 0;

	for (uint64_t i = 0; i < records && !rc; i++) {
		mix->now += 1000000000 / RATE;
		rc = kinds[i % 10](mix, writer, error);
		if (!rc && i % RATE == RATE - 1)
			rc = session_writer_flush(writer, error);
	}
	return rc;
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double wall_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int count_record(void *context, const struct record_header *record)
{
	struct mix *mix = context;

	mix->by_type[record->type]++;
	mix->now += record->size;
	return 0;
}

static int write_session(const char *path, uint64_t records, struct error *error)
{
	struct mix mix = {.state = 1, .now = 1000000000000};
	struct session_writer *writer;
	double cpu = cpu_seconds(), wall = wall_seconds();
	uint64_t bytes, lost;
	int rc = session_writer_open(&writer, path, error), close_rc;

	if (rc)
		return rc;
	rc = put_names(&mix, writer, error);
	if (!rc)
		rc = put_mix(&mix, writer, records, error);
	bytes = session_writer_bytes(writer);
	lost = session_writer_lost(writer);
	close_rc = session_writer_close(writer, rc ? NULL : error);
	cpu = cpu_seconds() - cpu;
	wall = wall_seconds() - wall;
	if (rc || close_rc)
		return rc ? rc : close_rc;
	printf("write  %.2f M records/s  %.0f ns CPU a record, %.1f %% of a CPU at %d k records/s\n",
	       (double)records / wall / 1e6, cpu / (double)records * 1e9, cpu / (double)records * RATE * 100,
	       RATE / 1000);
	printf("file   %.1f bytes a record, %.1f MB/s at %d k records/s, %" PRIu64 " lost\n",
	       (double)bytes / (double)records, (double)bytes / (double)records * RATE / 1e6, RATE / 1000,
	       lost);
	return 0;
}

static int read_session(const char *path, struct error *error)
{
	struct session_summary summary;
	struct mix mix = {0};
	double wall = wall_seconds();
	int rc = session_read(path, count_record, &mix, &summary, error);

	if (rc)
		return rc;
	printf("read   %.2f M records/s  %" PRIu64 " records of %.1f bytes in %" PRIu64 " chunks%s\n",
	       (double)summary.records / (wall_seconds() - wall) / 1e6, summary.records,
	       (double)mix.now / (double)summary.records, summary.chunks,
	       summary.complete ? "" : ", incomplete");
	printf("mix    %" PRIu64 " off-CPU, %" PRIu64 " samples, %" PRIu64 " calls, %" PRIu64
	       " GPU operations\n",
	       mix.by_type[RECORD_OFFCPU], mix.by_type[RECORD_SAMPLE], mix.by_type[RECORD_CALL],
	       mix.by_type[RECORD_GPU_OP]);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t records = argc > 2 ? strtoull(argv[2], NULL, 10) : 4000000;
	struct error error = {0};

	if (argc < 2 || argc > 3 || !records) {
		fprintf(stderr, "usage: %s FILE [RECORDS]\n", argv[0]);
		return 2;
	}
	if (write_session(argv[1], records, &error) || read_session(argv[1], &error)) {
		fprintf(stderr, "%s: %s\n", argv[0], error.text);
		return 1;
	}
	return 0;
}
