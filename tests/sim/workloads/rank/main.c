/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A data-parallel job on simulated GPUs: each rank is a process that computes, reduces its gradients with the
 * others (libnccl.so.2 of tests/sim) and waits for the result, step after step. What holds a rank up is one
 * of the plants of tests/sim/workloads/planted, or a longer kernel.
 *
 *	rank --ranks N [options]                    starts N ranks and waits for them
 *	rank --ranks N --rank R --id NAME [options] is one of them; all must be given the same NAME ("/…")
 *
 *	--steps N          (40)
 *	--gpu-us N         the computation of a step (2000)
 *	--buckets N        collectives of a step (1)
 *	--bytes N          of each (4194304)
 *	--plant KIND@PLACE:MS   before the computation
 *	--slow-us N        makes the computation that much longer instead
 *	--late R           rank that this happens on (0); `any`: one that is drawn in each step
 *	--share P          of the steps (1), drawn
 *	--every N          only in each Nth step
 *	--mesh W           ranks in rows of W: a step reduces over the row and over the column, each with a
 *	                   communicator of its own, both on one stream; in odd steps over the column first
 *	--ring N           messages of each rank to the next one in a step, in a group with those from the one
 *before
 *	--grouped 1        the collectives of a step are one group (with --mesh: the row's and the column's)
 *	--scratch FILE     for plants on storage
 *	--truth FOLDER     rank-R.json and what SIM_NCCL_TRUTH says
 *
 * rank-R.json: "rank", "pid", "stalls": [start, end, time without a CPU] of each stall as its runner logged
 * it (CLOCK_MONOTONIC), "late": the rank drawn for each step, -1 none, "contended_ns": time in which its
 * launcher wanted a CPU and had none.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/nccl_sim.h"
#include "tests/sim/workloads/planted/planted.h"

#define RANKS_MOST   64
#define WARM_UP      2 /* steps in which nothing is planted */
#define OPTIMIZER_NS 100000
#define ANY_RANK     (-1)
#define NO_RANK      (-2)

struct options {
	int ranks, rank;
	const char *id, *truth, *scratch, *plant;
	unsigned steps, buckets, every, mesh, ring, grouped;
	size_t bytes;
	uint64_t gpu_ns, slow_ns;
	int late;
	double share;
};

struct rank {
	const struct options *options;
	struct plant plant;
	struct gpu_step step; /* what kinds of plants know of the loop */
	CUfunction compute, slow, optimizer;
	cudaStream_t stream, reduction;
	cudaEvent_t computed, reduced;
	ncclComm_t comm, row, column; /* the last two: NULL without a mesh */
};

static void check_nccl(ncclResult_t result, const char *what)
{
	if (result) {
		fprintf(stderr, "rank: %s failed: %s\n", what, ncclGetErrorString(result));
		exit(1);
	}
}
#define NCCL(call) check_nccl(call, #call)

static void usage(void)
{
	fputs(
	    "usage: rank --ranks N [--rank R --id NAME] [--steps N] [--gpu-us N] [--buckets N] [--bytes N]\n"
	    "            [--plant KIND@PLACE:MS] [--slow-us N] [--late R|any] [--share P] [--every N]\n"
	    "            [--mesh W] [--ring N] [--grouped 1] [--scratch FILE] [--truth FOLDER]\n",
	    stderr);
	exit(2);
}

static void parse(struct options *options, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];

		if (i + 1 == argc)
			usage();
		if (!strcmp(name, "--ranks"))
			options->ranks = atoi(value);
		else if (!strcmp(name, "--rank"))
			options->rank = atoi(value);
		else if (!strcmp(name, "--id"))
			options->id = value;
		else if (!strcmp(name, "--steps"))
			options->steps = (unsigned)atoi(value);
		else if (!strcmp(name, "--gpu-us"))
			options->gpu_ns = strtoull(value, NULL, 10) * 1000;
		else if (!strcmp(name, "--buckets"))
			options->buckets = (unsigned)atoi(value);
		else if (!strcmp(name, "--bytes"))
			options->bytes = strtoull(value, NULL, 10);
		else if (!strcmp(name, "--plant"))
			options->plant = value;
		else if (!strcmp(name, "--slow-us"))
			options->slow_ns = strtoull(value, NULL, 10) * 1000;
		else if (!strcmp(name, "--late"))
			options->late = strcmp(value, "any") ? atoi(value) : ANY_RANK;
		else if (!strcmp(name, "--share"))
			options->share = atof(value);
		else if (!strcmp(name, "--every"))
			options->every = (unsigned)atoi(value);
		else if (!strcmp(name, "--mesh"))
			options->mesh = (unsigned)atoi(value);
		else if (!strcmp(name, "--ring"))
			options->ring = (unsigned)atoi(value);
		else if (!strcmp(name, "--grouped"))
			options->grouped = (unsigned)atoi(value);
		else if (!strcmp(name, "--scratch"))
			options->scratch = value;
		else if (!strcmp(name, "--truth"))
			options->truth = value;
		else
			usage();
	}
	if (options->ranks < 1 || options->ranks > RANKS_MOST || options->rank >= options->ranks ||
	    (options->rank >= 0 && !options->id) || options->steps <= WARM_UP || !options->every ||
	    (options->mesh && options->ranks % (int)options->mesh))
		usage();
}

/* ---- who is late ---- */

/* The same on all ranks. */
static double draw(unsigned step, unsigned what)
{
	uint64_t value = ((uint64_t)step << 8 | what) + 1;

	for (int i = 0; i < 3; i++) {
		value ^= value >> 29;
		value *= 0x9e3779b97f4a7c15ULL;
		value ^= value >> 32;
	}
	return (double)(value >> 11) / 9007199254740992.0;
}

static int late_rank(const struct options *options, unsigned step)
{
	if (step < WARM_UP || step % options->every || draw(step, 0) >= options->share ||
	    (!options->plant && !options->slow_ns))
		return NO_RANK;
	return options->late == ANY_RANK ? (int)(draw(step, 1) * options->ranks) : options->late;
}

/* ---- one rank ---- */

static void set_up(struct rank *rank)
{
	const struct options *options = rank->options;
	ncclUniqueId id = {{0}};

	if (options->plant) {
		plant_parse(&rank->plant, options->plant);
		rank->plant.scratch = options->scratch;
		plant_log_create(&rank->plant);
		if (rank->plant.kind->configure)
			rank->plant.kind->configure(&rank->plant);
	}
	rank->compute = simKernelCreate("_Z12train_kernelPfS_i", options->gpu_ns);
	rank->slow = simKernelCreate("_Z12train_kernelPfS_i", options->gpu_ns + options->slow_ns);
	rank->optimizer = simKernelCreate("_Z16optimizer_kernelPf", OPTIMIZER_NS);
	check(rank->compute && rank->slow && rank->optimizer, "simKernelCreate");
	CUDA(cudaStreamCreateWithFlags(&rank->stream, CU_STREAM_NON_BLOCKING));
	rank->step = (struct gpu_step){.kernel = rank->compute, .kernels = 1, .stream = rank->stream};
	rank->plant.step = &rank->step;
	CUDA(cudaStreamCreateWithFlags(&rank->reduction, CU_STREAM_NON_BLOCKING));
	CUDA(cudaEventCreateWithFlags(&rank->computed, CU_EVENT_DISABLE_TIMING));
	CUDA(cudaEventCreateWithFlags(&rank->reduced, CU_EVENT_DISABLE_TIMING));
	if (rank->plant.kind)
		plant_start(&rank->plant, NULL);
	snprintf(id.internal, sizeof(id.internal), "%s", options->id);
	NCCL(ncclCommInitRank(&rank->comm, options->ranks, id, options->rank));
	if (!options->mesh)
		return;
	NCCL(ncclCommSplit(rank->comm, options->rank / (int)options->mesh, options->rank, &rank->row, NULL));
	NCCL(ncclCommSplit(rank->comm, options->rank % (int)options->mesh, options->rank, &rank->column,
	                   NULL));
}

static void launch(CUfunction function, cudaStream_t stream)
{
	const dim3 grid = {128, 1, 1}, block = {256, 1, 1};

	CUDA(cudaLaunchKernel(function, grid, block, NULL, 0, stream));
}

static void reduce(const struct rank *rank, ncclComm_t comm)
{
	for (unsigned i = 0; i < rank->options->buckets; i++)
		NCCL(ncclAllReduce(NULL, NULL, rank->options->bytes / 4, ncclFloat32, ncclSum, comm,
		                   rank->reduction));
}

/* To the next rank and from the one before. */
static void exchange(const struct rank *rank)
{
	const struct options *options = rank->options;

	for (unsigned i = 0; i < options->ring; i++) {
		NCCL(ncclGroupStart());
		NCCL(ncclSend(NULL, options->bytes, ncclUint8, (options->rank + 1) % options->ranks,
		              rank->comm, rank->reduction));
		NCCL(ncclRecv(NULL, options->bytes, ncclUint8,
		              (options->rank + options->ranks - 1) % options->ranks, rank->comm,
		              rank->reduction));
		NCCL(ncclGroupEnd());
	}
}

static void communicate(const struct rank *rank, unsigned number)
{
	const struct options *options = rank->options;

	if (options->grouped)
		NCCL(ncclGroupStart());
	if (options->mesh) {
		reduce(rank, number % 2 ? rank->column : rank->row);
		reduce(rank, number % 2 ? rank->row : rank->column);
	} else {
		reduce(rank, rank->comm);
	}
	if (options->grouped)
		NCCL(ncclGroupEnd());
	exchange(rank);
}

static void step(struct rank *rank, unsigned number, bool held_up)
{
	if (held_up && rank->plant.kind)
		plant_request(&rank->plant);
	launch(held_up ? rank->slow : rank->compute, rank->stream);
	CUDA(cudaEventRecord(rank->computed, rank->stream));
	CUDA(cudaStreamWaitEvent(rank->reduction, rank->computed, 0));
	communicate(rank, number);
	CUDA(cudaEventRecord(rank->reduced, rank->reduction));
	CUDA(cudaStreamWaitEvent(rank->stream, rank->reduced, 0));
	launch(rank->optimizer, rank->stream);
	CUDA(cudaStreamSynchronize(rank->stream));
}

static void write_truth(const struct rank *rank, uint64_t contended_ns)
{
	const struct options *options = rank->options;
	const struct stall_log *log = rank->plant.log;
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/rank-%d.json", options->truth, options->rank);
	file = fopen(path, "w");
	check(file, path);
	fprintf(file, "{\"rank\": %d, \"pid\": %d, \"contended_ns\": %" PRIu64 ", \"late\": [", options->rank,
	        (int)getpid(), contended_ns);
	for (unsigned i = 0; i < options->steps; i++) {
		int late = late_rank(options, i);

		fprintf(file, "%s%d", i ? ", " : "", late == NO_RANK ? -1 : late);
	}
	fputs("], \"stalls\": [", file);
	for (uint32_t i = 0; log && i < log->count; i++)
		fprintf(file, "%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", i ? ", " : "",
		        log->records[i].start_ns, log->records[i].end_ns, log->records[i].delay_ns);
	fputs("]}\n", file);
	check(!(ferror(file) | fclose(file)), path);
}

static int run_rank(const struct options *options)
{
	struct rank rank = {.options = options};
	uint64_t contended;
	char name[16];

	/* A rank whose others are gone would wait for ever. */
	alarm(120);
	snprintf(name, sizeof(name), "rank%d", options->rank);
	prctl(PR_SET_NAME, name);
	if (options->truth)
		setenv("SIM_NCCL_TRUTH", options->truth, 1);
	set_up(&rank);
	contended = run_delay_ns();
	for (unsigned i = 0; i < options->steps; i++)
		step(&rank, i, late_rank(options, i) == options->rank);
	contended = run_delay_ns() - contended;
	if (rank.row) {
		NCCL(ncclCommDestroy(rank.row));
		NCCL(ncclCommDestroy(rank.column));
	}
	NCCL(ncclCommDestroy(rank.comm));
	if (options->truth)
		write_truth(&rank, contended);
	if (rank.plant.kind)
		plant_stop(&rank.plant);
	return 0;
}

/* ---- all ranks of this machine ---- */

static void set_number(const char *name, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	check(!setenv(name, text, 1), "setenv");
}

/* As torchrun does it: a program of its own for each rank, which is told who it is by its environment. */
static pid_t start_rank(const struct options *options, int rank, const char *id, int argc, char **argv)
{
	char **arguments = calloc((size_t)argc + 5, sizeof(*arguments)), number[16];
	pid_t parent = getpid(), child = fork();

	check(child >= 0, "fork");
	if (child) {
		free(arguments);
		return child;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!arguments || getppid() != parent)
		_exit(1);
	snprintf(number, sizeof(number), "%d", rank);
	memcpy(arguments, argv, (size_t)argc * sizeof(*argv));
	arguments[argc] = (char *)"--rank";
	arguments[argc + 1] = number;
	arguments[argc + 2] = (char *)"--id";
	arguments[argc + 3] = (char *)id;
	set_number("RANK", rank);
	set_number("LOCAL_RANK", rank);
	set_number("WORLD_SIZE", options->ranks);
	execv("/proc/self/exe", arguments);
	_exit(127);
}

static int run_all(const struct options *options, int argc, char **argv)
{
	pid_t children[RANKS_MOST];
	ncclUniqueId id;
	int status, failed = 0;

	NCCL(ncclGetUniqueId(&id));
	for (int rank = 0; rank < options->ranks; rank++)
		children[rank] = start_rank(options, rank, id.internal, argc, argv);
	for (int left = options->ranks; left; left--) {
		pid_t ended = wait(&status);

		check(ended > 0, "wait");
		for (int rank = 0; rank < options->ranks; rank++) {
			if (children[rank] == ended)
				children[rank] = 0;
			else if (children[rank] && status)
				kill(children[rank], SIGKILL); /* it would wait for the one that failed */
		}
		failed |= status != 0;
	}
	return failed;
}

int main(int argc, char **argv)
{
	struct options options = {
	    .rank = -1,
	    .steps = 40,
	    .buckets = 1,
	    .every = 1,
	    .bytes = 4 << 20,
	    .gpu_ns = 2000000,
	    .share = 1,
	};

	parse(&options, argc, argv);
	return options.rank < 0 ? run_all(&options, argc, argv) : run_rank(&options);
}
