/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/sim/workloads/common_workload.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/clock.h"

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void check(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "workload: %s failed: %m\n", what);
		exit(1);
	}
}

void check_cuda(cudaError_t error, const char *what)
{
	if (error) {
		fprintf(stderr, "workload: %s failed: %s\n", what, cudaGetErrorString(error));
		exit(1);
	}
}

void workload_begin(struct workload *workload, int argc, char **argv, const char *expected_code,
                    const char *expected_role)
{
	const char *slash = strrchr(argv[0], '/');

	*workload = (struct workload){
	    .name = slash ? slash + 1 : argv[0],
	    .expected_code = expected_code,
	    .expected_role = expected_role,
	    .seconds = 3,
	};
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && !strcmp(argv[i], "--seconds")) {
			workload->seconds = atof(argv[i + 1]);
		} else if (i + 1 < argc && !strcmp(argv[i], "--truth")) {
			workload->truth = argv[i + 1];
		} else {
			fprintf(stderr, "usage: %s [--seconds N] [--truth FILE]\n", workload->name);
			exit(2);
		}
	}
}

void workload_start(struct workload *workload)
{
	workload->deadline_ns = now_ns() + (uint64_t)(workload->seconds * 1e9);
}

bool workload_goes_on(const struct workload *workload)
{
	return now_ns() < workload->deadline_ns;
}

void workload_add_thread(struct workload *workload, pid_t pid, pid_t tid, const char *name, const char *role)
{
	size_t i = workload->thread_count;

	if (i == sizeof(workload->threads) / sizeof(workload->threads[0]))
		return;
	workload->threads[i].pid = pid;
	workload->threads[i].tid = tid;
	snprintf(workload->threads[i].name, sizeof(workload->threads[i].name), "%s", name);
	snprintf(workload->threads[i].role, sizeof(workload->threads[i].role), "%s", role);
	workload->thread_count++;
}

void workload_name_self(struct workload *workload, const char *name, const char *role)
{
	prctl(PR_SET_NAME, name);
	workload_add_thread(workload, getpid(), (pid_t)syscall(SYS_gettid), name, role);
}

void workload_account(struct workload *workload)
{
	CUDA(cudaDeviceSynchronize());
	workload->busy_count = simDeviceBusy(0, 0, NULL, 0);
	check(workload->busy_count > 0, "the device's account (no operation ran)");
	workload->busy = calloc(workload->busy_count, sizeof(*workload->busy));
	check(workload->busy, "calloc");
	simDeviceBusy(0, 0, workload->busy, workload->busy_count);
}

void each_idle(const struct workload *workload, uint64_t start_ns, uint64_t end_ns,
               void (*visit)(void *context, uint64_t start_ns, uint64_t end_ns), void *context)
{
	size_t low = 0, high = workload->busy_count;

	/* First busy interval that ends after the start: the gap before it is the first to look at. */
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (workload->busy[middle].end_ns <= start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < workload->busy_count; low++) {
		uint64_t from = low ? workload->busy[low - 1].end_ns : UINT64_MAX;
		uint64_t to = workload->busy[low].start_ns;

		if (low && from >= end_ns)
			break;
		from = from > start_ns ? from : start_ns;
		to = to < end_ns ? to : end_ns;
		if (low && from < to)
			visit(context, from, to);
	}
}

static void add_length(void *context, uint64_t start_ns, uint64_t end_ns)
{
	*(uint64_t *)context += end_ns - start_ns;
}

uint64_t idle_within(const struct workload *workload, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t sum = 0;

	each_idle(workload, start_ns, end_ns, add_length, &sum);
	return sum;
}

struct stall stall_begin(void)
{
	struct stall stall = {.delay_ns = run_delay_ns()};

	stall.start_ns = now_ns();
	return stall;
}

void stall_end(struct stall_list *list, struct stall stall)
{
	stall.end_ns = now_ns();
	stall.delay_ns = run_delay_ns() - stall.delay_ns;
	if (list->count == list->capacity) {
		list->capacity = list->capacity ? 2 * list->capacity : 1024;
		list->items = realloc(list->items, list->capacity * sizeof(*list->items));
		check(list->items, "realloc");
	}
	list->items[list->count++] = stall;
}

uint64_t stalls_planted(const struct workload *workload, const struct stall_list *list, uint64_t *delay_ns)
{
	uint64_t planted = 0, delayed = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct stall *stall = &list->items[i];
		uint64_t idle = idle_within(workload, stall->start_ns, stall->end_ns);
		uint64_t delay = stall->delay_ns < idle ? stall->delay_ns : idle;

		planted += idle - delay;
		delayed += delay;
	}
	if (delay_ns)
		*delay_ns = delayed;
	return planted;
}

static void write_threads(FILE *file, const struct workload *workload)
{
	fputs(", \"pids\": [", file);
	for (size_t i = 0; i < workload->thread_count; i++) {
		bool seen = false;

		for (size_t k = 0; k < i; k++)
			seen = seen || workload->threads[k].pid == workload->threads[i].pid;
		if (!seen)
			fprintf(file, "%s%d", i ? ", " : "", (int)workload->threads[i].pid);
	}
	fputs("], \"threads\": [", file);
	for (size_t i = 0; i < workload->thread_count; i++)
		fprintf(file, "%s{\"pid\": %d, \"tid\": %d, \"name\": \"%s\", \"role\": \"%s\"}",
		        i ? ", " : "", (int)workload->threads[i].pid, (int)workload->threads[i].tid,
		        workload->threads[i].name, workload->threads[i].role);
	fputs("]", file);
}

static void write_busy(FILE *file, const struct workload *workload)
{
	fputs(", \"busy\": [", file);
	for (size_t i = 0; i < workload->busy_count; i++)
		fprintf(file, "%s[%" PRIu64 ", %" PRIu64 "]", i ? ", " : "", workload->busy[i].start_ns,
		        workload->busy[i].end_ns);
	fputs("]", file);
}

static void write_truth(FILE *file, const struct workload *workload)
{
	uint64_t start = workload->busy[0].start_ns, end = workload->busy[workload->busy_count - 1].end_ns;
	uint64_t busy = 0;

	for (size_t i = 0; i < workload->busy_count; i++)
		busy += workload->busy[i].end_ns - workload->busy[i].start_ns;
	fprintf(file,
	        "{\"workload\": \"%s\", \"expected_code\": \"%s\", \"expected_role\": \"%s\", \"simulated\": "
	        "true, "
	        "\"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 ", \"busy_ns\": %" PRIu64
	        ", \"idle_ns\": %" PRIu64 ", \"planted_ns\": %" PRIu64 ", \"contended_ns\": %" PRIu64
	        ", \"steps\": %" PRIu64 "%s",
	        workload->name, workload->expected_code, workload->expected_role, start, end, busy,
	        end - start - busy, workload->planted_ns, workload->contended_ns, workload->steps,
	        workload->extra);
	write_threads(file, workload);
	if (workload->tells_busy)
		write_busy(file, workload);
	fputs("}\n", file);
}

int workload_end(struct workload *workload)
{
	uint64_t window = workload->busy[workload->busy_count - 1].end_ns - workload->busy[0].start_ns;
	FILE *file;

	printf("%s: %" PRIu64 " steps in %.2f s\n", workload->name, workload->steps, (double)window / 1e9);
	if (!workload->truth)
		return 0;
	file = fopen(workload->truth, "w");
	check(file, workload->truth);
	write_truth(file, workload);
	check(!(ferror(file) | fclose(file)), workload->truth);
	return 0;
}

/* A mixing function over a small table: in the first-level cache, so its speed does not depend on others. */
uint64_t compute_for(uint64_t duration_cpu_ns)
{
	static __thread uint64_t table[512];
	uint64_t end = cpu_ns() + duration_cpu_ns, value = 0x9e3779b97f4a7c15ULL;

	do {
		for (int i = 0; i < 4096; i++) {
			value ^= value >> 27;
			value *= 0x2545f4914f6cdd1dULL;
			table[value & 511] += value;
			value += table[i & 511];
		}
	} while (cpu_ns() < end);
	return value;
}

uint64_t run_delay_ns(void)
{
	static __thread int file = -1;
	static __thread pid_t owner; /* a child has its parent's file, which tells of the parent */
	uint64_t running, delay = 0;
	char text[128];
	ssize_t size;

	if (file < 0 || owner != getpid()) {
		if (file >= 0)
			close(file);
		owner = getpid();
		file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		check(file >= 0, "/proc/thread-self/schedstat");
	}
	size = pread(file, text, sizeof(text) - 1, 0);
	check(size > 0, "/proc/thread-self/schedstat");
	text[size] = '\0';
	check(sscanf(text, "%" SCNu64 " %" SCNu64, &running, &delay) == 2, "/proc/thread-self/schedstat");
	return delay;
}

void gpu_step_create(struct gpu_step *step, const char *kernel, uint64_t kernel_ns, int kernels)
{
	step->kernel = simKernelCreate(kernel, kernel_ns);
	check(step->kernel, "simKernelCreate");
	step->kernels = kernels;
	CUDA(cudaStreamCreateWithFlags(&step->stream, CU_STREAM_NON_BLOCKING));
}

void gpu_step_launch(const struct gpu_step *step)
{
	const dim3 grid = {128, 1, 1}, block = {256, 1, 1};

	for (int i = 0; i < step->kernels; i++)
		CUDA(cudaLaunchKernel(step->kernel, grid, block, NULL, 0, step->stream));
}
