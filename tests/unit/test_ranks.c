// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs of several ranks with a planted truth: which rank was late to which collective and why, what its clock
 * was off by, which records are missing.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "attribute/rhythm.h"
#include "ranks/clock.h"
#include "ranks/ranks.h"
#include "ranks/track.h"
#include "timeline.h"

#define RANKS_MOST  16
#define START       (1000 * MS)
#define COMPUTE     (3 * MS)
#define TRANSFER    (400 * US)
#define PLANTED     (5 * MS)
#define LAUNCH      (5 * US)  /* end of a collective to the next launch */
#define SUBMIT      (15 * US) /* launch to start */
#define MAIN_PID(r) (1000 + 10 * (r))
#define ALL_REDUCE  "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
#define ALL_GATHER  "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)"

enum planted {
	PLANT_NOTHING,
	PLANT_SLEEP,
	PLANT_DISK,
	PLANT_CODE,
	PLANT_WORKER,
	PLANT_COMPUTE,
	PLANT_SLOW, /* the same kernel, slower */
	PLANT_COPY,
	PLANT_HOST, /* the host launches late while other work keeps the GPU busy */
};

/* What happens in a job; times are true ones. */
struct job {
	unsigned ranks, steps;
	enum planted planted;
	unsigned late_rank;         /* with `planted` in each step… */
	double late_share;          /* …or in this share of them, and… */
	bool anyone;                /* …on a rank that is drawn each time */
	int64_t offset[RANKS_MOST]; /* of each rank's clock */
	double drift[RANKS_MOST];
	unsigned drop_first[RANKS_MOST]; /* collectives that its trace lacks */
	unsigned drop_last[RANKS_MOST];
	unsigned drop_every[RANKS_MOST]; /* one in so many, 0 none */
	bool two_a_step;
	bool one_file; /* all ranks are processes of one session, each on a GPU of its own */
	/* the truth */
	unsigned late[4096]; /* rank planted in each step, RANKS_MOST none */
};

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % limit;
}

/* One rank being written. */
struct author {
	struct timeline *line;
	const struct job *job;
	unsigned rank, device, collectives;
	uint32_t stream; /* of its collectives */
	uint32_t thread, worker;
	uint64_t free_ns; /* when its GPU is done */
	uint64_t host_ns; /* the host's last call is over */
	uint32_t correlation;
};

static uint64_t local(const struct author *author, uint64_t ns)
{
	return ns + (uint64_t)(author->job->offset[author->rank] +
	                       (int64_t)(author->job->drift[author->rank] * (double)(ns - START)));
}

static struct gpu_op *add_op(struct author *author, uint64_t start, uint64_t end, uint32_t correlation,
                             const char *name, uint32_t stream)
{
	struct model *model = &author->line->model;
	struct gpu_op *op = array_add(&model->devices.items[author->device].ops);

	*op = (struct gpu_op){
	    .start_ns = local(author, start),
	    .end_ns = local(author, end),
	    .process = model->threads.items[author->thread].process,
	    .stream = stream,
	    .correlation = correlation,
	    .kind = OP_KERNEL,
	    .order = (uint32_t)model->devices.items[author->device].ops.count,
	};
	op->name = model_add_string(model, name, strlen(name));
	return op;
}

static uint32_t launch(struct author *author, uint64_t ns)
{
	uint32_t correlation = author->line->correlation++;

	timeline_call(author->line, author->thread, "cudaLaunchKernel", local(author, ns),
	              local(author, ns + 3 * US), correlation);
	return correlation;
}

/* The host is kept from launching during [from, to]; the causes of the truth. */
static void plant_host(struct author *author, enum planted planted, uint64_t from, uint64_t to)
{
	uint64_t out = local(author, from), in = local(author, to);

	switch (planted) {
	case PLANT_SLEEP:
	case PLANT_HOST:
		timeline_sleep(author->line, author->thread, out, in);
		break;
	case PLANT_DISK:
		timeline_blocked(author->line, author->thread, out, in, in, "folio_wait_bit_common",
		                 MODEL_NONE, "folio_wake_bit");
		break;
	case PLANT_WORKER:
		timeline_pipe(author->line, author->thread, out, in, in, author->worker);
		break;
	default:
		break;
	}
}

/* Everything up to the arrival at the step's first collective; returns when that is. `extra`: what is
 * planted. */
static uint64_t write_work(struct author *author, enum planted planted, uint64_t *launch_ns)
{
	uint64_t compute = COMPUTE + random_below(60 * US), begin = author->free_ns + LAUNCH, start;
	bool on_host = planted == PLANT_SLEEP || planted == PLANT_DISK || planted == PLANT_CODE ||
	               planted == PLANT_WORKER;

	if (on_host) {
		plant_host(author, planted, begin, begin + PLANTED);
		begin += PLANTED;
	}
	start = begin + SUBMIT;
	if (planted == PLANT_SLOW)
		compute += PLANTED;
	add_op(author, start, start + compute, launch(author, begin), "gemm", 7);
	if (planted == PLANT_COMPUTE) {
		for (int i = 0; i < 5; i++) {
			begin += 10 * US;
			add_op(author, start + compute, start + compute + PLANTED / 5, launch(author, begin),
			       "gemm", 7);
			compute += PLANTED / 5;
		}
	}
	if (planted == PLANT_COPY) {
		struct gpu_op *copy;

		begin += 10 * US;
		copy = add_op(author, start + compute, start + compute + PLANTED, launch(author, begin),
		              "copy", 7);
		copy->kind = OP_MEMCPY;
		compute += PLANTED;
	}
	*launch_ns = begin + 10 * US;
	if (planted == PLANT_HOST) {
		/* Other work runs on, so the GPU is never idle; the collective waits for its launch alone. */
		uint64_t late = start + compute + PLANTED;

		add_op(author, start + US, late + 300 * US, launch(author, begin + 5 * US), "other", 9);
		plant_host(author, planted, begin + 20 * US, late - 10 * US);
		*launch_ns = late - 5 * US;
		return late;
	}
	return start + compute;
}

static void write_collective(struct author *author, uint64_t start, uint64_t end, uint64_t launch_ns,
                             const char *name, unsigned total)
{
	const struct job *job = author->job;
	unsigned index = author->collectives++;
	uint32_t correlation = launch(author, launch_ns);

	author->free_ns = end;
	if (index < job->drop_first[author->rank] || index + job->drop_last[author->rank] >= total)
		return;
	if (job->drop_every[author->rank] && index % job->drop_every[author->rank] == 7)
		return;
	add_op(author, start, end, correlation, name, author->stream);
}

/* All ranks arrive, the last one lets them go; each leaves within 4 µs. */
static void write_together(struct author *authors, unsigned count, const uint64_t *arrival,
                           const uint64_t *launch_ns, const char *name, unsigned total)
{
	uint64_t last = 0;

	for (unsigned r = 0; r < count; r++)
		last = arrival[r] > last ? arrival[r] : last;
	for (unsigned r = 0; r < count; r++)
		write_collective(&authors[r], arrival[r], last + TRANSFER + random_below(4 * US),
		                 launch_ns[r], name, total);
}

static void draw_late(struct job *job)
{
	for (unsigned step = 0; step < job->steps; step++) {
		bool hit = job->planted && (double)random_below(1000000) < job->late_share * 1e6;

		job->late[step] = !hit          ? RANKS_MOST
		                  : job->anyone ? (unsigned)random_below(job->ranks)
		                                : job->late_rank;
	}
}

static void begin_author(struct author *author, struct timeline *line, const struct job *job, unsigned rank)
{
	*author =
	    (struct author){.line = line, .job = job, .rank = rank, .free_ns = START, .stream = 20 + rank};
	author->device = job->one_file ? rank : 0;
	while (line->model.devices.count <= author->device)
		cr_assert(array_add(&line->model.devices));
	line->model.devices.items[author->device].number = author->device;
	author->thread = timeline_process(line, MAIN_PID(rank), 0, "train");
	author->worker = timeline_process(line, MAIN_PID(rank) + 1, MAIN_PID(rank), "loader");
	/* The first operation, so that every rank has a window before its first collective. */
	add_op(author, START - 50 * US, START, launch(author, START - 80 * US), "gemm", 7);
}

static void write_job(struct job *job, struct timeline *lines)
{
	struct author authors[RANKS_MOST];
	unsigned total = job->steps * (job->two_a_step ? 2 : 1);

	draw_late(job);
	for (unsigned r = 0; r < job->ranks; r++) {
		if (!job->one_file || !r)
			timeline_begin(&lines[r]);
		begin_author(&authors[r], &lines[job->one_file ? 0 : r], job, r);
	}
	for (unsigned step = 0; step < job->steps; step++) {
		uint64_t arrival[RANKS_MOST], launch_ns[RANKS_MOST];

		for (unsigned r = 0; r < job->ranks; r++)
			arrival[r] = write_work(
			    &authors[r], job->late[step] == r ? job->planted : PLANT_NOTHING, &launch_ns[r]);
		write_together(authors, job->ranks, arrival, launch_ns, ALL_REDUCE, total);
		if (!job->two_a_step)
			continue;
		for (unsigned r = 0; r < job->ranks; r++) {
			uint64_t begin = authors[r].free_ns + LAUNCH;

			arrival[r] = begin + SUBMIT + 300 * US + random_below(10 * US);
			add_op(&authors[r], begin + SUBMIT, arrival[r], launch(&authors[r], begin), "gemm",
			       7);
			launch_ns[r] = begin + 10 * US;
		}
		write_together(authors, job->ranks, arrival, launch_ns, ALL_GATHER, total);
	}
}

/* Writes the job, takes all of its models in and solves. */
static void solve(struct job *job, struct ranks_report *report)
{
	static struct timeline lines[RANKS_MOST];
	struct ranks *ranks = ranks_new();
	struct error error = {0};
	unsigned files = job->one_file ? 1 : job->ranks;

	cr_assert_not_null(ranks);
	random_state = 42 + job->ranks + job->planted;
	write_job(job, lines);
	for (unsigned r = 0; r < files; r++) {
		char path[32];
		struct ranks_input input = {path, RANKS_NONE, 0, files == 1};

		snprintf(path, sizeof(path), "rank%u.json", r);
		cr_assert_eq(model_finish(&lines[r].model, &error), 0, "%s", error.text);
		cr_assert_eq(ranks_add(ranks, &lines[r].model, &input, &error), 0, "%s", error.text);
		timeline_end(&lines[r]);
	}
	cr_assert_eq(ranks_solve(ranks, report, &error), 0, "%s", error.text);
	ranks_free(ranks);
}

/* Each rank's part of the causes: sums to its wait, and over the ranks to the causes. */
static void check_peers(const struct ranks_report *report)
{
	const struct ranks_peer *peer;

	for (uint32_t m = 0; m < report->members.count; m++) {
		const struct ranks_member *member = &report->members.items[m];
		uint64_t waits = 0, idle = 0;

		array_for_each (peer, &report->peers) {
			waits += peer->member == m ? peer->wait_ns : 0;
			idle += peer->member == m ? peer->idle_ns : 0;
		}
		cr_assert_eq(waits, member->wait_ns - member->undecided_ns);
		cr_assert_leq(idle, member->idle_wait_ns);
	}
	for (uint32_t c = 0; c < report->causes.count; c++) {
		uint64_t waits = 0;

		array_for_each (peer, &report->peers)
			waits += peer->cause == c ? peer->wait_ns : 0;
		cr_assert_eq(waits, report->causes.items[c].wait_ns);
	}
}

/* The job's time is spent on one thing at a time, and steps refer to causes of their slowest rank. */
static void check_path(const struct ranks_report *report)
{
	const struct ranks_path *path = &report->path;
	uint64_t sum = path->compute_ns + path->copy_ns + path->transfer_ns;
	const struct ranks_path_cause *cause;
	const struct ranks_step *step;

	array_for_each (cause, &path->causes)
		sum += cause->ns;
	cr_assert_eq(sum, path->span_ns);
	array_for_each (step, &report->steps) {
		cr_assert_eq(step->slowest == RANKS_NONE, step->cause == RANKS_NONE);
		if (step->cause != RANKS_NONE)
			cr_assert_eq(report->causes.items[step->cause].late, step->slowest);
	}
}

/* What holds of every report. */
static void check(const struct ranks_report *report)
{
	const struct ranks_member *member;
	const struct ranks_cause *cause;
	uint64_t waits = 0, delays = 0, caused = 0, suffered = 0, last = 0;

	check_peers(report);
	check_path(report);

	array_for_each (cause, &report->causes) {
		waits += cause->wait_ns;
		delays += cause->delay_ns;
	}
	array_for_each (member, &report->members) {
		caused += member->caused_ns;
		suffered += member->wait_ns;
		last += member->last_count;
		cr_assert_leq(member->idle_wait_ns, member->wait_ns);
		cr_assert_leq(member->wait_ns, member->collective_ns);
		cr_assert_leq(member->alone_ns, member->collective_ns);
		cr_assert_leq(member->collective_ns, member->busy_ns);
	}
	cr_assert_eq(waits, report->charged_ns);
	cr_assert_eq(caused, report->charged_ns);
	cr_assert_eq(delays, report->delay_ns);
	cr_assert_eq(suffered, report->charged_ns + report->undecided_ns);
	cr_assert_eq(report->wait_ns, report->charged_ns + report->undecided_ns + report->uncharged_ns);
	cr_assert_eq(last, report->notable);
}

struct expected_cause {
	enum planted planted;
	enum late_reason reason;
	enum cause_code code;
	enum cause_role role;
};

static const struct expected_cause expected[] = {
    {PLANT_SLEEP, LATE_IDLE, CAUSE_WAIT_SLEEP, ROLE_LAUNCHER},
    {PLANT_DISK, LATE_IDLE, CAUSE_WAIT_DISK, ROLE_LAUNCHER},
    {PLANT_CODE, LATE_IDLE, CAUSE_HOST_USER_CODE, ROLE_LAUNCHER},
    {PLANT_WORKER, LATE_IDLE, CAUSE_HOST_USER_CODE, ROLE_WORKER},
    {PLANT_COMPUTE, LATE_COMPUTE, CAUSE_DEVICE_PEER, ROLE_DEVICE},
    {PLANT_SLOW, LATE_COMPUTE, CAUSE_DEVICE_PEER, ROLE_DEVICE},
    {PLANT_COPY, LATE_COPY, CAUSE_DEVICE_PEER, ROLE_DEVICE},
    {PLANT_HOST, LATE_HOST, CAUSE_WAIT_SLEEP, ROLE_LAUNCHER},
};
#define EXPECTED_COUNT (sizeof(expected) / sizeof(expected[0]))

/* The job's time goes to what the slow rank did, and to nothing that the others did. */
static void check_job_time(const struct ranks_report *report, const struct expected_cause *truth,
                           unsigned steps)
{
	const struct ranks_path *path = &report->path;
	double planted = (double)(steps - 1) * PLANTED;

	cr_assert_geq((double)path->span_ns, planted);
	if (truth->reason == LATE_COMPUTE) {
		cr_assert_geq((double)path->compute_ns, 0.98 * planted);
	} else if (truth->reason == LATE_COPY) {
		cr_assert_float_eq((double)path->copy_ns, planted, 0.05 * planted);
	} else {
		const struct ranks_path_cause *top = &path->causes.items[0];

		cr_assert(top->root == report->slowest && top->reason == truth->reason &&
		          top->code == truth->code && top->role == truth->role);
		/* A host that is late while the GPU is busy was late all along the kernels before. */
		if (truth->reason == LATE_HOST)
			cr_assert_geq((double)top->ns, 0.95 * planted);
		else
			cr_assert_float_eq((double)top->ns, planted, 0.05 * planted);
	}
	if (truth->planted == PLANT_WORKER)
		cr_assert_str_eq(report->causes.items[0].via, "train ← loader");
}

/* One slow rank with a known cause: nearly all of the wait is its, with that cause. */
static void check_planted(unsigned ranks, const struct expected_cause *truth)
{
	struct job job = {
	    .ranks = ranks, .steps = 60, .planted = truth->planted, .late_rank = ranks - 1, .late_share = 1};
	struct ranks_report report;
	const struct ranks_cause *top;

	for (unsigned r = 0; r < ranks; r++)
		job.offset[r] = (int64_t)r * 7 * (int64_t)MS - 20 * (int64_t)MS;
	solve(&job, &report);
	check(&report);
	cr_assert_eq(report.matched, job.steps);
	cr_assert_eq(report.members.count, ranks);
	cr_assert_eq(report.groups.count, 1);
	cr_assert_float_eq((double)report.groups.items[0].transfer_ns, TRANSFER, 10 * US);
	cr_assert_eq(report.slowest, ranks - 1, "%u ranks, cause %d: slowest is %u", ranks, truth->planted,
	             report.slowest);
	cr_assert_eq(report.pattern, PATTERN_STEADY);
	cr_assert_geq(report.members.items[ranks - 1].last_count * 100, job.steps * 98);
	top = &report.causes.items[0];
	cr_assert(top->late == ranks - 1 && top->root == ranks - 1 && top->reason == truth->reason &&
	              top->code == truth->code && top->role == truth->role,
	          "%u ranks, planted %d: rank %u, reason %s, %s@%s", ranks, truth->planted, top->late,
	          late_reason_name(top->reason), cause_code_name(top->code), cause_role_name(top->role));
	/* The first collective has nothing before it to measure from. */
	cr_assert_geq(top->wait_ns * 100, report.charged_ns * 95, "%lu of %lu", top->wait_ns,
	              report.charged_ns);
	check_job_time(&report, truth, job.steps);
	if (truth->planted == PLANT_SLOW)
		cr_assert_str_eq(top->detail, "as many kernels, but slower");
	if (truth->planted == PLANT_COMPUTE)
		cr_assert_str_eq(top->detail, "more kernels");
	/* Within 5 % of what was planted, jitter of the compute included. */
	cr_assert_float_eq((double)report.members.items[0].wait_ns, (double)job.steps * PLANTED,
	                   0.05 * (double)job.steps * PLANTED);
	ranks_report_free(&report);
}

Test(ranks, planted_cause_on_two_ranks)
{
	for (size_t i = 0; i < EXPECTED_COUNT; i++)
		check_planted(2, &expected[i]);
}

Test(ranks, planted_cause_on_four_ranks)
{
	for (size_t i = 0; i < EXPECTED_COUNT; i++)
		check_planted(4, &expected[i]);
}

Test(ranks, planted_cause_on_sixteen_ranks)
{
	for (size_t i = 0; i < EXPECTED_COUNT; i++)
		check_planted(16, &expected[i]);
}

Test(ranks, ranks_of_one_session_share_a_clock)
{
	struct job job = {.ranks = 4,
	                  .steps = 40,
	                  .planted = PLANT_DISK,
	                  .late_rank = 2,
	                  .late_share = 1,
	                  .one_file = true};
	struct ranks_report report;
	const struct ranks_member *member;

	solve(&job, &report);
	check(&report);
	cr_assert_eq(report.members.count, 4);
	cr_assert_eq(report.slowest, 2);
	array_for_each (member, &report.members) {
		cr_assert_eq(member->clock.state, CLOCK_SAME);
		cr_assert_eq(member->clock.error_ns, 0);
	}
	ranks_report_free(&report);
}

/* In each step with a planted rank that rank is the slowest; in the others no wait is notable. */
Test(ranks, random_stragglers_and_their_rates)
{
	struct job job = {.ranks = 4,
	                  .steps = 400,
	                  .planted = PLANT_CODE,
	                  .late_share = 0.3,
	                  .anyone = true,
	                  .two_a_step = true};
	struct ranks_report report;
	unsigned planted[RANKS_MOST] = {0}, right = 0, all = 0;

	for (unsigned r = 0; r < 4; r++)
		job.offset[r] = 3 * (int64_t)MS * (r & 1 ? 1 : -1) * (int64_t)r;
	solve(&job, &report);
	check(&report);
	cr_assert_eq(report.pattern, PATTERN_RANDOM);
	cr_assert_eq(report.matched, 800);
	cr_assert_leq(report.steps.count, job.steps + 1);
	cr_assert_geq(report.steps.count, job.steps - 1);
	for (unsigned step = 0; step < job.steps; step++) {
		const struct ranks_step *found = NULL;

		if (job.late[step] == RANKS_MOST)
			continue;
		all++;
		planted[job.late[step]]++;
		/* Steps are found by their rhythm: the first may begin in the middle. */
		for (size_t i = 0; i < report.steps.count && !found; i++) {
			if (report.steps.count == job.steps ? i == step : i == step + 1)
				found = &report.steps.items[i];
		}
		right += found && found->slowest == job.late[step];
	}
	cr_assert_geq(right * 100, all * 98, "%u of %u", right, all);
	for (unsigned r = 0; r < 4; r++) {
		uint64_t last = report.members.items[r].last_count;

		cr_assert(last * 100 >= planted[r] * 98 && last * 100 <= planted[r] * 102,
		          "rank %u is last %lu times, planted %u", r, last, planted[r]);
	}
	ranks_report_free(&report);
}

Test(ranks, no_straggler_no_blame)
{
	struct job job = {.ranks = 4, .steps = 100};
	struct ranks_report report;

	solve(&job, &report);
	check(&report);
	cr_assert_neq(report.pattern, PATTERN_STEADY);
	/* Only the jitter of the compute, at most 60 µs a step for each of three ranks. */
	cr_assert_leq(report.charged_ns, 100 * 3 * 60 * US);
	ranks_report_free(&report);
}

static void check_clocks(const struct job *job, const struct ranks_report *report)
{
	for (unsigned r = 1; r < job->ranks; r++) {
		const struct ranks_member *member = &report->members.items[r];
		/* Both ends of the trace, where drift shows most. */
		const uint64_t times[] = {member->window_start_ns, member->window_end_ns};

		for (int i = 0; i < 2; i++) {
			double real = ((double)(int64_t)(times[i] - START) - (double)job->offset[r]) /
			                  (1 + job->drift[r]) +
			              START;
			double found = (double)times[i] - (double)member->clock.offset_ns -
			               member->clock.drift * (double)(times[i] - member->window_start_ns);

			cr_assert_float_eq(found, real, (double)member->clock.error_ns,
			                   "rank %u is off by %.0f, error %lu", r, found - real,
			                   member->clock.error_ns);
		}
		cr_assert_leq(member->clock.error_ns, 20 * US);
	}
}

Test(ranks, clocks_with_offset_and_drift)
{
	struct job job = {.ranks = 4,
	                  .steps = 300,
	                  .planted = PLANT_SLEEP,
	                  .late_rank = 1,
	                  .late_share = 0.5,
	                  .offset = {0, 500 * (int64_t)MS, -30 * (int64_t)MS, 2 * (int64_t)MS},
	                  .drift = {0, 40e-6, -100e-6, 0}};
	struct ranks_report report;

	solve(&job, &report);
	check(&report);
	check_clocks(&job, &report);
	cr_assert_eq(report.members.items[1].clock.state, CLOCK_SHIFTED);
	cr_assert_float_eq(report.members.items[1].clock.drift, 40e-6, 2e-6);
	cr_assert_float_eq(report.members.items[2].clock.drift, -100e-6, 2e-6);
	cr_assert_eq(report.members.items[3].clock.drift, 0);
	cr_assert_eq(report.slowest, 1);
	cr_assert_eq(report.matched, job.steps);
	ranks_report_free(&report);
}

Test(ranks, clocks_that_agree_are_left_alone)
{
	struct job job = {.ranks = 2, .steps = 50, .planted = PLANT_SLEEP, .late_rank = 0, .late_share = 1};
	struct ranks_report report;

	solve(&job, &report);
	cr_assert_eq(report.members.items[1].clock.state, CLOCK_SAME);
	cr_assert_eq(report.members.items[1].clock.offset_ns, 0);
	cr_assert_gt(report.members.items[1].clock.error_ns, 0);
	ranks_report_free(&report);
}

Test(ranks, traces_that_begin_and_end_at_different_collectives)
{
	struct job job = {.ranks = 4,
	                  .steps = 120,
	                  .planted = PLANT_WORKER,
	                  .late_rank = 3,
	                  .late_share = 0.9,
	                  .offset = {0, 90 * (int64_t)MS, -90 * (int64_t)MS, 3600 * 1000 * (int64_t)MS},
	                  .drop_first = {0, 3, 11, 1},
	                  .drop_last = {6, 0, 2, 5}};
	struct ranks_report report;

	solve(&job, &report);
	check(&report);
	check_clocks(&job, &report);
	cr_assert_eq(report.matched, 120 - 11 - 6);
	cr_assert_eq(report.groups.items[0].incomplete, 11 + 6);
	cr_assert_eq(report.slowest, 3);
	cr_assert_geq(report.members.items[3].last_count, 85);
	cr_assert_eq(report.causes.items[0].role, ROLE_WORKER);
	ranks_report_free(&report);
}

Test(ranks, collectives_missing_in_the_middle)
{
	struct job job = {.ranks = 2,
	                  .steps = 200,
	                  .planted = PLANT_DISK,
	                  .late_rank = 0,
	                  .late_share = 1,
	                  .offset = {0, 40 * (int64_t)MS},
	                  .drop_every = {0, 50}};
	struct ranks_report report;

	solve(&job, &report);
	check(&report);
	check_clocks(&job, &report);
	cr_assert_eq(report.matched, 196);
	cr_assert_eq(report.groups.items[0].incomplete, 4);
	cr_assert_eq(report.members.items[0].last_count, 196);
	cr_assert_eq(report.causes.items[0].code, CAUSE_WAIT_DISK);
	ranks_report_free(&report);
}

/* Takes in a session that holds all ranks, and solves. */
static void solve_session(struct timeline *line, struct ranks_report *report)
{
	struct ranks_input input = {"s.whyidle", RANKS_NONE, 0, true};
	struct ranks *ranks = ranks_new();
	struct error error = {0};

	cr_assert_eq(model_finish(&line->model, &error), 0);
	cr_assert_eq(ranks_add(ranks, &line->model, &input, &error), 0);
	cr_assert_eq(ranks_solve(ranks, report, &error), 0);
	ranks_free(ranks);
	timeline_end(line);
	check(report);
}

/* Two processes on one GPU: one spins in its collective while the other has not come yet. */
Test(ranks, two_processes_on_one_gpu)
{
	struct timeline line;
	struct job job = {.ranks = 2};
	struct author authors[2];
	struct ranks_report report;

	timeline_begin(&line);
	for (unsigned r = 0; r < 2; r++)
		begin_author(&authors[r], &line, &job, r);
	authors[1].device = 0;
	for (unsigned step = 0; step < 20; step++) {
		uint64_t arrival[2], launch_ns[2];

		for (unsigned r = 0; r < 2; r++)
			arrival[r] = write_work(&authors[r], r ? PLANT_DISK : PLANT_NOTHING, &launch_ns[r]);
		write_together(authors, 2, arrival, launch_ns, ALL_REDUCE, 20);
	}
	solve_session(&line, &report);
	cr_assert_eq(report.members.count, 2);
	cr_assert_eq(report.members.items[1].pid, MAIN_PID(1));
	cr_assert_eq(report.slowest, 1);
	cr_assert_eq(report.causes.items[0].code, CAUSE_WAIT_DISK);
	ranks_report_free(&report);
}

/* Takes in the models of the authors' timelines, one input each, and solves. */
static void solve_lines(struct timeline *lines, unsigned count, struct ranks_report *report)
{
	struct ranks *ranks = ranks_new();
	struct error error = {0};

	for (unsigned r = 0; r < count; r++) {
		struct ranks_input input = {"rank.json", r, count, count == 1};

		cr_assert_eq(model_finish(&lines[r].model, &error), 0);
		cr_assert_eq(ranks_add(ranks, &lines[r].model, &input, &error), 0);
		timeline_end(&lines[r]);
	}
	cr_assert_eq(ranks_solve(ranks, report, &error), 0);
	ranks_free(ranks);
	check(report);
}

/* Two ranks are late by the same: nobody can say which was the last, so neither is charged. */
Test(ranks, two_that_come_last_together)
{
	static struct timeline lines[3];
	struct job job = {.ranks = 3};
	struct author authors[3];
	struct ranks_report report;

	random_state = 9;
	for (unsigned r = 0; r < 3; r++) {
		timeline_begin(&lines[r]);
		begin_author(&authors[r], &lines[r], &job, r);
	}
	for (unsigned step = 0; step < 40; step++) {
		uint64_t arrival[3], launch_ns[3];

		for (unsigned r = 0; r < 3; r++)
			arrival[r] = write_work(&authors[r], r ? PLANT_SLEEP : PLANT_NOTHING, &launch_ns[r]);
		/* They differ by less than what the ends of the collectives do. */
		arrival[1] = arrival[2] = arrival[1] > arrival[2] ? arrival[1] : arrival[2];
		arrival[1 + step % 2] += US;
		write_together(authors, 3, arrival, launch_ns, ALL_REDUCE, 40);
	}
	solve_lines(lines, 3, &report);
	cr_assert_eq(report.matched, 40);
	cr_assert_eq(report.charged_ns, 0);
	cr_assert_eq(report.notable, 0);
	cr_assert_eq(report.slowest, RANKS_NONE);
	cr_assert_geq(report.undecided_ns, 40 * (PLANTED - 100 * US));
	cr_assert_eq(report.groups.items[0].undecided, 40);
	ranks_report_free(&report);
}

/* One rank waits for the disk, another sleeps for longer: the job would gain by the second alone, and only up
 * to the first. */
Test(ranks, only_the_slowest_rank_counts_for_the_job)
{
	enum { STEPS = 40 };
	static struct timeline lines[3];
	struct job job = {.ranks = 3};
	struct author authors[3];
	const struct ranks_cause *cause;
	const struct ranks_path_cause *spent;
	struct ranks_report report;
	uint64_t other = 0;

	random_state = 11;
	for (unsigned r = 0; r < 3; r++) {
		timeline_begin(&lines[r]);
		begin_author(&authors[r], &lines[r], &job, r);
	}
	for (unsigned step = 0; step < STEPS; step++) {
		uint64_t arrival[3], launch_ns[3];

		/* Kept from beginning for twice as long. */
		plant_host(&authors[2], PLANT_SLEEP, authors[2].free_ns, authors[2].free_ns + PLANTED);
		authors[2].free_ns += PLANTED;
		arrival[0] = write_work(&authors[0], PLANT_NOTHING, &launch_ns[0]);
		arrival[1] = write_work(&authors[1], PLANT_DISK, &launch_ns[1]);
		arrival[2] = write_work(&authors[2], PLANT_SLEEP, &launch_ns[2]);
		write_together(authors, 3, arrival, launch_ns, ALL_REDUCE, STEPS);
	}
	solve_lines(lines, 3, &report);
	cr_assert_eq(report.slowest, 2);
	/* What the others wait: twice what is planted, and once. */
	cr_assert_float_eq((double)report.charged_ns, 3.0 * STEPS * PLANTED, 0.05 * STEPS * PLANTED);
	cr_assert_float_eq((double)report.delay_ns, 1.0 * STEPS * PLANTED, 0.05 * STEPS * PLANTED);
	array_for_each (cause, &report.causes)
		cr_assert(cause->root == 2 || cause->wait_ns < PLANTED, "%s of rank %u",
		          cause_code_name(cause->code), cause->root);
	array_for_each (spent, &report.path.causes)
		other += spent->root == 2 ? 0 : spent->ns;
	cr_assert_eq(other, 0);
	cr_assert_eq(report.path.causes.items[0].code, CAUSE_WAIT_SLEEP);
	ranks_report_free(&report);
}

/* Other load on the machine: times say nothing, but a step has as many kernels as the one before. */
Test(ranks, steps_whose_times_are_noise)
{
	enum { STEPS = 60 };
	static struct timeline lines[2];
	struct job job = {.ranks = 2};
	struct author authors[2];
	struct ranks_report report;

	random_state = 13;
	for (unsigned r = 0; r < 2; r++) {
		timeline_begin(&lines[r]);
		begin_author(&authors[r], &lines[r], &job, r);
	}
	for (unsigned step = 0; step < STEPS; step++) {
		uint64_t arrival[2], launch_ns[2], stall = (10 * US) << random_below(12);

		for (unsigned r = 0; r < 2; r++) {
			authors[r].free_ns += stall;
			arrival[r] = write_work(&authors[r], PLANT_NOTHING, &launch_ns[r]);
		}
		write_together(authors, 2, arrival, launch_ns, ALL_REDUCE, STEPS);
	}
	solve_lines(lines, 2, &report);
	cr_assert_eq(report.steps.count, STEPS);
	for (size_t i = 0; i < STEPS; i++)
		cr_assert_eq(report.steps.items[i].collectives, 1);
	ranks_report_free(&report);
}

/* Two ranks whose collectives were not recorded: which of them the GPU's work is of cannot be told, so
 * neither is said to be missing. */
Test(ranks, two_processes_without_collectives)
{
	struct timeline line;
	struct job job = {.ranks = 2};
	struct author authors[2];
	struct ranks_report report;

	timeline_begin(&line);
	for (unsigned r = 0; r < 2; r++) {
		uint64_t launch_ns;
		struct process *process;

		begin_author(&authors[r], &line, &job, r);
		authors[r].device = 0;
		write_work(&authors[r], PLANT_NOTHING, &launch_ns);
		process = &line.model.processes.items[line.model.threads.items[authors[r].thread].process];
		process->rank = r;
		process->world_size = 2;
	}
	solve_session(&line, &report);
	cr_assert_eq(report.missing.count, 0);
	cr_assert_eq(report.world_size, 0);
	ranks_report_free(&report);
}

/* The collective begins right after its launch, other work runs on, but it was its own kernel that it waited
 * for. */
Test(ranks, a_late_launch_that_is_not_to_blame)
{
	static struct timeline lines[2];
	struct job job = {.ranks = 2};
	struct author authors[2];
	struct ranks_report report;
	const struct ranks_cause *top;

	random_state = 13;
	for (unsigned r = 0; r < 2; r++) {
		timeline_begin(&lines[r]);
		begin_author(&authors[r], &lines[r], &job, r);
	}
	for (unsigned step = 0; step < 40; step++) {
		uint64_t arrival[2], launch_ns[2];

		for (unsigned r = 0; r < 2; r++) {
			uint64_t begin = authors[r].free_ns + LAUNCH;

			arrival[r] = write_work(&authors[r], r ? PLANT_SLOW : PLANT_NOTHING, &launch_ns[r]);
			add_op(&authors[r], begin + 20 * US, arrival[r] + 300 * US,
			       launch(&authors[r], begin + 15 * US), "other", 9);
			launch_ns[r] = arrival[r] - 6 * US;
		}
		write_together(authors, 2, arrival, launch_ns, ALL_REDUCE, 40);
	}
	solve_lines(lines, 2, &report);
	cr_assert_eq(report.slowest, 1);
	top = &report.causes.items[0];
	cr_assert_eq(top->reason, LATE_COMPUTE, "%s %s", late_reason_name(top->reason),
	             cause_code_name(top->code));
	cr_assert_geq(top->wait_ns * 100, report.charged_ns * 95);
	ranks_report_free(&report);
}

/* Two jobs on one machine that happen to go in step: one has left its collective before the other comes to
 * its. */
Test(ranks, collectives_of_two_jobs_are_not_paired)
{
	static struct timeline line;
	struct job job = {.ranks = 2, .one_file = true};
	struct author authors[2];
	struct ranks_report report;

	timeline_begin(&line);
	for (unsigned r = 0; r < 2; r++)
		begin_author(&authors[r], &line, &job, r);
	for (unsigned step = 0; step < 40; step++) {
		for (unsigned r = 0; r < 2; r++) {
			uint64_t start = START + (step + 1) * 5 * MS + r * 100 * US;

			write_collective(&authors[r], start, start + 50 * US, start - 10 * US, ALL_REDUCE,
			                 40);
		}
	}
	solve_lines(&line, 1, &report);
	cr_assert_eq(report.members.count, 2);
	cr_assert_eq(report.groups.count, 2);
	cr_assert_eq(report.matched, 0);
	cr_assert_eq(report.charged_ns, 0);
	ranks_report_free(&report);
}

/*
 * Ranks 0 and 1 share a communicator, and so do 1 and 2. Rank 0 is late; so rank 2 waits for rank 1, which is
 * late only because it waited for rank 0. Rank 2 has no collective with rank 0: its clock goes by rank 1.
 */
Test(ranks, a_wait_that_is_passed_on)
{
	static struct timeline lines[3];
	struct job job = {.ranks = 3, .offset = {0, 6 * (int64_t)MS, -11 * (int64_t)MS}};
	struct author authors[3];
	struct ranks_report report;
	uint64_t passed_on = 0, by_rank[3] = {0};
	const struct ranks_cause *cause;

	random_state = 5;
	for (unsigned r = 0; r < 3; r++) {
		timeline_begin(&lines[r]);
		begin_author(&authors[r], &lines[r], &job, r);
	}
	for (unsigned step = 0; step < 50; step++) {
		uint64_t arrival[3], launch_ns[3];

		for (unsigned r = 0; r < 3; r++)
			arrival[r] = write_work(&authors[r], r ? PLANT_NOTHING : PLANT_SLEEP, &launch_ns[r]);
		authors[0].stream = authors[1].stream = 20;
		write_together(authors, 2, arrival, launch_ns, ALL_REDUCE, 100);
		/* Right after it rank 1 goes into the other one, where rank 2 has been waiting. */
		arrival[1] = authors[1].free_ns + LAUNCH + SUBMIT + random_below(40 * US);
		launch_ns[1] = authors[1].free_ns + LAUNCH;
		authors[1].stream = authors[2].stream = 30;
		write_together(authors + 1, 2, arrival + 1, launch_ns + 1, ALL_GATHER, 100);
		authors[0].free_ns = authors[1].free_ns;
	}
	solve_lines(lines, 3, &report);
	cr_assert_eq(report.groups.count, 2);
	cr_assert_eq(report.groups.items[0].members, 2);
	cr_assert_eq(report.groups.items[1].members, 2);
	cr_assert_eq(report.matched, 100);
	for (unsigned r = 1; r < 3; r++)
		cr_assert_float_eq((double)report.members.items[r].clock.offset_ns, (double)job.offset[r],
		                   (double)report.members.items[r].clock.error_ns);
	array_for_each (cause, &report.causes) {
		by_rank[cause->late] += cause->wait_ns;
		if (cause->late == 1 && cause->root == 0 && cause->code == CAUSE_WAIT_SLEEP)
			passed_on += cause->wait_ns;
	}
	cr_assert_geq(by_rank[1], 49 * PLANTED);
	/* The rest: the transfer, and that rank 0 does nothing while the others are in theirs. */
	cr_assert_geq(passed_on * 100, by_rank[1] * 80, "%lu of %lu", passed_on, by_rank[1]);
	ranks_report_free(&report);
}

/* The rank that is given waits for one that is not: nothing is charged, and the missing one is named. */
Test(ranks, a_single_rank_of_two)
{
	struct job job = {.ranks = 2, .steps = 20, .planted = PLANT_SLEEP, .late_rank = 1, .late_share = 1};
	static struct timeline lines[2];
	struct ranks *ranks = ranks_new();
	struct ranks_input input = {"rank1.json", 1, 2, true};
	struct ranks_report report;
	struct error error = {0};

	write_job(&job, lines);
	cr_assert_eq(model_finish(&lines[0].model, &error), 0);
	cr_assert_eq(ranks_add(ranks, &lines[0].model, &input, &error), 0);
	cr_assert_eq(ranks_solve(ranks, &report, &error), 0);
	check(&report);
	cr_assert_eq(report.members.count, 1);
	cr_assert_eq(report.members.items[0].rank, 1);
	cr_assert_eq(report.world_size, 2);
	cr_assert_eq(report.missing.count, 1);
	cr_assert_eq(report.missing.items[0], 0);
	cr_assert_eq(report.matched, 0);
	cr_assert_eq(report.causes.count, 0);
	cr_assert_eq(report.members.items[0].collectives, 20);
	cr_assert_gt(report.members.items[0].alone_ns, 20 * PLANTED);
	ranks_report_free(&report);
	ranks_free(ranks);
	timeline_end(&lines[0]);
	timeline_end(&lines[1]);
}

/* ---- the parts ---- */

Test(ranks, kinds_of_collectives)
{
	cr_assert_eq(collective_kind_of(ALL_REDUCE), COLLECTIVE_ALL_REDUCE);
	cr_assert_eq(collective_kind_of(ALL_GATHER), COLLECTIVE_ALL_GATHER);
	cr_assert_eq(collective_kind_of("ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclWorkElem)"),
	             COLLECTIVE_REDUCE_SCATTER);
	cr_assert_eq(collective_kind_of("ncclDevKernel_Reduce_Sum_f32_RING_LL"), COLLECTIVE_REDUCE);
	cr_assert_eq(collective_kind_of("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)"),
	             COLLECTIVE_SEND_RECV);
	cr_assert_eq(collective_kind_of("_Z37ncclKernel_AllReduce_RING_LL_Sum_float12ncclWorkElem"),
	             COLLECTIVE_ALL_REDUCE);
	cr_assert_eq(collective_kind_of("ncclDevKernel_Generic_1(ncclDevKernelArgs)"), COLLECTIVE_OTHER);
}

Test(ranks, rhythm)
{
	uint64_t intervals[300];
	size_t phase = 0;

	/* Four buckets a step; a long time after the third of these intervals. */
	for (size_t i = 0; i < 300; i++)
		intervals[i] = i % 4 == 2 ? 50 * MS + i * 10 * US : 200 * US + i * US;
	cr_assert_eq(rhythm_find(intervals, 300, &phase), 4);
	cr_assert_eq(phase, 2);
	for (size_t i = 0; i < 300; i++)
		intervals[i] = 5 * MS + (i * 7919 % 100) * US;
	cr_assert_eq(rhythm_find(intervals, 300, &phase), 1);
	cr_assert_eq(rhythm_find(intervals, 3, &phase), 0);
}

/* Back to back collectives of one length: only the steps tell which belongs to which. */
Test(ranks, alignment_of_bursts)
{
	enum { STEPS = 20, BURST = 30 };
	struct clock_mark a[STEPS * BURST], b[STEPS * BURST];
	const int64_t offsets[] = {0, 100 * (int64_t)US, -3 * (int64_t)MS, 777 * (int64_t)MS};

	for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++) {
		uint64_t time = START;
		struct clock_fit fit;

		random_state = 7;
		for (size_t i = 0; i < STEPS * BURST; i++) {
			time += i % BURST ? 100 * US : 20 * MS + random_below(MS);
			a[i] = (struct clock_mark){time - 30 * US, time + random_below(2 * US), 0, 0};
			b[i] = (struct clock_mark){time - 20 * US + (uint64_t)offsets[k],
			                           time + random_below(2 * US) + (uint64_t)offsets[k], 0, 0};
		}
		cr_assert_eq(clock_align(&fit, a, STEPS * BURST, b, STEPS * BURST), 1);
		cr_assert(llabs(fit.offset_ns - offsets[k]) <= (int64_t)fit.error_ns, "%ld, not %ld",
		          (long)fit.offset_ns, (long)offsets[k]);
	}
}

/* No shift holds for even a third of this: each missing record moves the rest by one. */
Test(ranks, alignment_with_holes_in_bursts)
{
	enum { COUNT = 1200, BURST = 40 };
	static struct clock_mark a[COUNT], b[COUNT];
	const int64_t offset = -6234567 * (int64_t)US;
	uint64_t time = START;
	struct clock_fit fit;
	size_t kept = 0;

	random_state = 11;
	for (size_t i = 0; i < COUNT; i++) {
		bool missing = i < 37 || i == 300 || i == 301 || i == 530 || i == 531 || i == 900;

		time += i % BURST ? 100 * US + random_below(200 * US) : 20 * MS + random_below(MS);
		a[i] = (struct clock_mark){time - 30 * US, time + random_below(3 * US), 0, 0};
		if (!missing)
			b[kept++] = (struct clock_mark){time - 20 * US + (uint64_t)offset,
			                                time + random_below(3 * US) + (uint64_t)offset, 0, 0};
	}
	cr_assert_eq(clock_align(&fit, a, COUNT, b, kept), 1);
	cr_assert(llabs(fit.offset_ns - offset) <= (int64_t)fit.error_ns, "%ld", (long)fit.offset_ns);
	cr_assert_geq(fit.pairs * 100, kept * 99);
	/* The other way round as well. */
	cr_assert_eq(clock_align(&fit, b, kept, a, COUNT), 1);
	cr_assert(llabs(fit.offset_ns + offset) <= (int64_t)fit.error_ns, "%ld", (long)fit.offset_ns);
}

Test(ranks, unrelated_sequences_are_not_aligned)
{
	struct clock_mark a[200], b[200];
	uint64_t time_a = START, time_b = START;
	struct clock_fit fit;

	random_state = 3;
	for (size_t i = 0; i < 200; i++) {
		time_a += 4 * MS + random_below(4 * MS);
		time_b += 4 * MS + random_below(4 * MS);
		a[i] = (struct clock_mark){time_a - 100 * US, time_a, 0, 0};
		b[i] = (struct clock_mark){time_b - 100 * US, time_b, 0, 0};
	}
	cr_assert_eq(clock_align(&fit, a, 200, b, 200), 0);
}
