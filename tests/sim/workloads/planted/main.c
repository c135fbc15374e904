/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * planted [--plant KIND@PLACE:MS]… [--null NOISE]… [--gpu-us N] [--seconds S] [--truth FILE]
 *         [--socket PATH] [--scratch FILE] [--cgroup FOLDER] [--when always|signal]
 * planted --serve PATH     the outside process of the place `process`
 * planted --ask PATH MS    the outside client of the kind `no_work`
 *
 * Each step launches --gpu-us of kernels and then goes through the next plant in turn. The loop runs ahead of
 * the device by up to AHEAD steps, so that a stall makes it late without any synchronisation; a drained kind
 * synchronises in every step instead. With --null nothing is planted and the noise goes on beside the loop.
 * With --when signal plants run only from SIGUSR1 on and until SIGUSR2, and every step synchronises, so that
 * the stall is seen without CUPTI too; not for the kind `signal`.
 *
 * The truth file has, beside the members that common_workload.h describes,
 *	plants        kind, place, ms, code, role, count (stalls) of each, what plant_settle says, and
 *	              device_ns, the time of the operations that the plant itself launched
 *	step_ns       time from launch to launch, averaged over STRIDE steps: median, p25, p75, mean, count
 *
 * and its contended_ns is the time in which the launcher or who runs a plant wanted a CPU and had none,
 * in the whole loop, but for what is planted.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

#define AHEAD     4
#define STRIDE    4 /* steps in which what a pool delivers at once and what it does not is averaged */
#define MAX_STEPS 400000

struct options {
	struct plant plants[MAX_PLANTS];
	size_t plant_count;
	const char *noises[MAX_NOISES];
	size_t noise_count;
	uint64_t gpu_ns;
	const char *socket_path, *scratch, *cgroup;
	bool by_signal; /* plants run only while they are switched on */
};

static volatile sig_atomic_t switched_on = 1;

static void on_switch(int number)
{
	switched_on = number == SIGUSR1;
}

/* All plants are off until SIGUSR1 comes. */
static void wait_for_signals(struct options *options)
{
	struct sigaction action = {.sa_handler = on_switch, .sa_flags = SA_RESTART};

	options->by_signal = true;
	switched_on = 0;
	check(!sigaction(SIGUSR1, &action, NULL) && !sigaction(SIGUSR2, &action, NULL), "sigaction");
}

static void usage(void)
{
	fputs("usage: planted [--plant KIND@PLACE:MS]... [--null NOISE]... [--gpu-us N] [--seconds S]\n"
	      "               [--truth FILE] [--socket PATH] [--scratch FILE] [--cgroup FOLDER]\n"
	      "               [--when always|signal]\n"
	      "       planted --serve PATH\n"
	      "       planted --ask PATH MS\n",
	      stderr);
	exit(2);
}

static void parse(struct options *options, struct workload *workload, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];

		if (i + 1 == argc)
			usage();
		if (!strcmp(name, "--plant") && options->plant_count < MAX_PLANTS)
			plant_parse(&options->plants[options->plant_count++], value);
		else if (!strcmp(name, "--null") && options->noise_count < MAX_NOISES)
			options->noises[options->noise_count++] = value;
		else if (!strcmp(name, "--gpu-us"))
			options->gpu_ns = strtoull(value, NULL, 10) * 1000;
		else if (!strcmp(name, "--seconds"))
			workload->seconds = atof(value);
		else if (!strcmp(name, "--truth"))
			workload->truth = value;
		else if (!strcmp(name, "--socket"))
			options->socket_path = value;
		else if (!strcmp(name, "--scratch"))
			options->scratch = value;
		else if (!strcmp(name, "--cgroup"))
			options->cgroup = value;
		else if (!strcmp(name, "--when") && !strcmp(value, "signal"))
			wait_for_signals(options);
		else if (strcmp(name, "--when") || strcmp(value, "always"))
			usage();
	}
}

struct step_log {
	uint64_t *times;
	size_t count;
};

static void log_step(struct step_log *log)
{
	if (log->count < MAX_STEPS)
		log->times[log->count++] = now_ns();
}

static void train(struct workload *workload, struct options *options, struct gpu_step *step,
                  struct step_log *log)
{
	bool drained = options->by_signal || (options->plant_count && options->plants[0].kind->drained);
	cudaEvent_t done[AHEAD];

	for (int i = 0; i < AHEAD; i++)
		CUDA(cudaEventCreateWithFlags(&done[i], CU_EVENT_BLOCKING_SYNC));
	for (workload_start(workload); workload_goes_on(workload); workload->steps++) {
		uint64_t n = workload->steps;

		log_step(log);
		gpu_step_launch(step);
		CUDA(cudaEventRecord(done[n % AHEAD], step->stream));
		if (drained)
			CUDA(cudaStreamSynchronize(step->stream));
		else if (n >= AHEAD - 1)
			CUDA(cudaEventSynchronize(done[(n + 1) % AHEAD]));
		if (options->plant_count && switched_on)
			plant_request(&options->plants[n % options->plant_count]);
	}
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * How long the CPU that a plant needs idle was not, since `begin_ns` when it had been idle for `idle_ns`:
 * what waited for a CPU then was not held up by where it may run.
 */
static uint64_t take_off_elsewhere(struct options *options, uint64_t begin_ns, uint64_t idle_ns)
{
	uint64_t loop = now_ns() - begin_ns, idle = cpu_idle_ns(cpu_allowed(false)) - idle_ns, most = 0;

	for (size_t i = 0; i < options->plant_count; i++) {
		struct plant *plant = &options->plants[i];

		if (!plant->kind->needs_idle || !plant->duration_ns)
			continue;
		plant->loop_ns = loop;
		most = plant->elsewhere_ns = loop - (idle < loop ? idle : loop);
	}
	return most;
}

/* Into workload->extra. */
static void describe(struct workload *workload, const struct options *options, struct step_log *log)
{
	size_t n = log->count ? (log->count - 1) / STRIDE : 0, used;
	uint64_t first = log->times[0], last = log->times[n * STRIDE];
	char *text = workload->extra;
	size_t size = sizeof(workload->extra);

	for (size_t i = 0; i < n; i++)
		log->times[i] = (log->times[(i + 1) * STRIDE] - log->times[i * STRIDE]) / STRIDE;
	qsort(log->times, n, sizeof(*log->times), compare_times);
	used = (size_t)snprintf(text, size,
	                        ", \"step_ns\": {\"median\": %" PRIu64 ", \"p25\": %" PRIu64
	                        ", \"p75\": %" PRIu64 ", \"mean\": %.0f, \"count\": %zu}, \"plants\": [",
	                        log->times[n / 2], log->times[n / 4], log->times[n * 3 / 4],
	                        n ? (double)(last - first) / (double)(n * STRIDE) : 0.0, n);
	for (size_t i = 0; i < options->plant_count; i++) {
		const struct plant *plant = &options->plants[i];
		struct settlement sum = plant_settle(plant, workload);

		workload->planted_ns += sum.planted_ns;
		if (plant->place != PLACE_LAUNCHER)
			workload->contended_ns += plant->log->delay_ns;
		workload->contended_ns += plant->log->helpers_delay_ns;
		if (plant->kind->measure == MEASURE_DELAYED)
			workload->contended_ns -=
			    sum.planted_ns < workload->contended_ns ? sum.planted_ns : workload->contended_ns;
		used += (size_t)snprintf(
		    text + used, size - used,
		    "%s{\"kind\": \"%s\", \"place\": \"%s\", \"ms\": %g, \"code\": \"%s\", \"role\": "
		    "\"%s\", "
		    "\"planted_ns\": %" PRIu64 ", \"contended_ns\": %" PRIu64 ", \"beside_ns\": %" PRIu64
		    ", \"device_ns\": %" PRIu64 ", \"count\": %u, \"dropped\": %u}",
		    i ? ", " : "", plant->kind->name, place_name(plant->place),
		    (double)plant->duration_ns / 1e6, plant->kind->code,
		    plant->kind->role ? plant->kind->role : place_name(plant->place), sum.planted_ns,
		    sum.contended_ns, sum.beside_ns, plant->device_ns, plant->log->count,
		    plant->log->dropped);
		check(used < size, "room for the truth");
		if (plant->place != PLACE_LAUNCHER)
			workload_add_thread(workload, plant->log->pid, plant->log->tid, "runner",
			                    place_name(plant->place));
	}
	snprintf(text + used, size - used, "]");
}

/* What has to happen before CUDA is initialised. */
static void prepare_plants(struct options *options, struct workload *workload, struct gpu_step *step)
{
	for (size_t i = 0; i < options->plant_count; i++) {
		struct plant *plant = &options->plants[i];

		plant->scratch = options->scratch;
		plant->cgroup = options->cgroup;
		plant->clients = options->socket_path;
		plant->step = step;
		plant_log_create(plant);
		if (plant->kind->configure)
			plant->kind->configure(plant);
		if (!i) {
			workload->expected_code = plant->kind->code;
			workload->expected_role =
			    plant->kind->role ? plant->kind->role : place_name(plant->place);
		}
	}
}

int main(int argc, char **argv)
{
	struct options options = {.gpu_ns = 100000};
	struct step_log log = {0};
	struct workload workload;
	struct gpu_step step;
	uint64_t delay, begin, idle, elsewhere;

	if (argc == 3 && !strcmp(argv[1], "--serve"))
		return plant_serve(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "--ask"))
		return ask_for_work(argv[2], (uint64_t)(atof(argv[3]) * 1e6));
	workload_begin(&workload, 1, argv, "none", "none");
	parse(&options, &workload, argc, argv);
	/* Whoever started this may be gone before a stall that never ends. */
	alarm((unsigned int)(3 * workload.seconds) + 30);
	workload_name_self(&workload, "launcher", "launcher");
	log.times = malloc(MAX_STEPS * sizeof(*log.times));
	check(log.times, "malloc");
	prepare_plants(&options, &workload, &step);
	gpu_step_create(&step, "_Z12train_kernelPfS_i", options.gpu_ns, 1);
	for (size_t i = 0; i < options.plant_count; i++)
		plant_start(&options.plants[i], options.socket_path);
	for (size_t i = 0; i < options.noise_count; i++)
		noise_start(options.noises[i], options.scratch);
	delay = run_delay_ns();
	begin = now_ns();
	idle = cpu_idle_ns(cpu_allowed(false));
	train(&workload, &options, &step, &log);
	delay = run_delay_ns() - delay;
	elsewhere = take_off_elsewhere(&options, begin, idle);
	workload_account(&workload);
	noise_stop_all();
	workload.contended_ns = delay;
	describe(&workload, &options, &log);
	workload.contended_ns += elsewhere;
	for (size_t i = 0; i < options.plant_count; i++)
		plant_stop(&options.plants[i]);
	free(log.times);
	return workload_end(&workload);
}
