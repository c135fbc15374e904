// SPDX-License-Identifier: GPL-2.0-only
/* What holds for every timeline, tried on random ones. Conservation is also asserted in timeline_analyse. */
#include <criterion/criterion.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "attribute/gap_chains.h"
#include "attribute/walk.h"
#include "base/hash.h"
#include "timeline.h"

#define SEEDS         300
#define FALSE_WAKE_NS (50 * US) /* of attribute/thread_state.h */

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

#define random_of(list) (list)[random_below(sizeof(list) / sizeof((list)[0]))]

static void random_wait(struct timeline *t, uint32_t thread, uint32_t threads, uint64_t out, uint64_t wake,
                        uint64_t in)
{
	/* Mostly what leads on to a thread. */
	static const char *const waits[] = {
	    "futex_do_wait", "futex_do_wait",         "anon_pipe_read",
	    "ep_poll",       "anon_pipe_read",        "ep_poll",
	    "do_nanosleep",  "folio_wait_bit_common", "folio_wait_bit_common<exc_page_fault",
	    "do_wait",       "os_schedule",           "nothing_known"};
	static const char *const wakes[] = {"futex_wake",       "futex_wake",    "anon_pipe_write",
	                                    "anon_pipe_write",  "futex_wake",    "hrtimer_wakeup",
	                                    "anon_pipe_write",  "nothing_known", "folio_wake_bit",
	                                    "do_notify_parent", "nvidia_isr"};
	static const uint64_t operations[] = {
	    FUTEX_WAIT_BITSET, FUTEX_WAIT | FUTEX_PRIVATE_FLAG,    FUTEX_WAIT_BITSET,
	    FUTEX_WAIT_BITSET, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, FUTEX_WAIT};
	struct offcpu *wait =
	    timeline_blocked(t, thread, out, wake, in, random_of(waits),
	                     random_below(8) ? random_below(threads) : MODEL_NONE, random_of(wakes));

	wait->syscall = random_below(2) ? SYS_futex : -1;
	wait->waker_syscall = random_below(2) ? SYS_futex : SYS_write;
	wait->args[0] = random_below(4);
	wait->waker_args[0] = random_below(4);
	wait->args[1] = random_of(operations);
	wait->args[2] = 2;
	wait->object = random_below(2);
	wait->waker_object = random_below(3);
	wait->woken = random_below(10) != 0;
	if (!random_below(10))
		wait->kstack = MODEL_NONE;
}

static void random_sample(struct timeline *t, uint32_t thread, uint64_t at)
{
	static const char *const kernel[] = {
	    NULL, NULL, "handle_mm_fault", "shrink_node", "asm_sysvec_timer", "vfs_read"};

	timeline_sample(t, thread, at, random_of(kernel));
}

static void random_thread(struct timeline *t, uint32_t thread, uint32_t threads)
{
	struct thread *own = &t->model.threads.items[thread];
	uint64_t at = random_below(5 * MS);

	while (at < 100 * MS) {
		uint64_t out = at + random_below(3 * MS), wake = out + random_below(4 * MS);
		uint64_t in = wake + random_below(1 * MS);
		struct offcpu *last;

		if (!random_below(10)) /* CPython's switch interval */
			in = wake = out + 5 * MS + random_below(100 * US);
		if (!random_below(6))
			timeline_preempted(t, thread, out, in + 1, random_below(threads));
		else
			random_wait(t, thread, threads, out, wake, in);
		last = &own->offcpu.items[own->offcpu.count - 1];
		last->lost_before = !random_below(20);
		last->throttled = !random_below(10);
		last->bound = !random_below(10);
		if (random_below(2))
			last->prev_tid = t->model.threads.items[random_below(threads)].tid;
		if (!random_below(3))
			random_sample(t, thread, at);
		if (!random_below(6))
			timeline_stolen(t, thread, at, at + random_below(2 * MS));
		if (!random_below(10) && out > at + 1) {
			struct overhead *overhead = array_add(&own->overhead);

			*overhead = (struct overhead){at, at + 1 + random_below(out - at), random_below(2)};
		}
		at = in + random_below(2) * random_below(100 * US);
	}
}

static void random_gpu(struct timeline *t, uint32_t threads)
{
	static const char *const functions[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch",
	                                        "cudaMalloc", "cudaStreamSynchronize"};
	uint64_t at = random_below(10 * MS);

	while (at < 90 * MS) {
		uint32_t thread = random_below(threads);
		uint64_t enter = at > 2 * MS ? at - random_below(2 * MS) : 0;
		uint32_t correlation = random_below(10) ? t->correlation++ : 0;
		struct gpu_op *op;

		timeline_call(t, thread, random_of(functions), enter, enter + random_below(3 * MS),
		              correlation);
		op = timeline_op(t, t->model.threads.items[thread].pid, at, at + random_below(2 * MS),
		                 correlation);
		op->kind = 1 + random_below(3);
		op->source_kind = random_below(4);
		op->copy_kind = 1 + random_below(2);
		op->bytes = random_below(2) << 24;
		op->stream = random_below(3);
		at += random_below(4 * MS);
	}
}

/* Three processes, of which the first is the parent of the others, with two threads each. */
static void random_timeline(struct timeline *t, uint64_t seed)
{
	struct thread *own;
	uint32_t threads = 0;

	random_state = seed * 0x9e3779b97f4a7c15ULL;
	timeline_begin(t);
	for (uint32_t p = 0; p < 3; p++) {
		timeline_process(t, 100 * (p + 1), p ? 100 : 0, "process");
		timeline_thread(t, 100 * (p + 1), 100 * (p + 1) + 1, "thread");
		threads += 2;
	}
	for (uint32_t i = 0; i < threads; i++)
		random_thread(t, i, threads);
	random_gpu(t, threads);
	own = t->model.threads.items;
	if (seed % 3 == 0)
		timeline_lost(t, RECORD_LOSS_CUPTI, random_below(50 * MS), random_below(100 * MS));
	if (seed % 4 == 0)
		timeline_lost(t, RECORD_LOSS_BPF_RING, random_below(50 * MS), random_below(100 * MS));
	if (seed % 5 == 0)
		own[1].end_ns = random_below(90 * MS);
	if (seed % 7 == 0)
		own[2].start_ns = random_below(90 * MS);
	if (seed % 11 == 0)
		own[3].tracked_from_ns = random_below(90 * MS);
	if (seed % 13 == 0)
		own[4].tracked = false;
	if (seed % 17 == 0)
		t->model.clock_error_ns = random_below(2 * MS);
	if (seed % 19 == 0)
		t->model.has_sched = false;
	if (seed % 23 == 0)
		t->model.source = MODEL_NSYS;
}

Test(attribute_properties, random_timelines_keep_every_nanosecond)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct gap_report *gap;
		struct timeline t;

		random_timeline(&t, seed);
		timeline_analyse(&t);
		array_for_each (gap, &t.analysis.devices.items[0].top_gaps) {
			uint64_t at = gap->start_ns;
			const struct chain_link *link;

			/* The chain covers the gap in order, without holes. */
			array_for_each (link, &gap->chain) {
				cr_assert_eq(link->start_ns, at, "seed %lu", seed);
				cr_assert_gt(link->end_ns, link->start_ns);
				at = link->end_ns;
			}
			cr_assert_eq(at, gap->end_ns, "seed %lu", seed);
		}
		timeline_end(&t);
	}
}

/* A window that begins and ends anywhere: within gaps, within operations, or beyond all of them. */
Test(attribute_properties, random_windows_keep_every_nanosecond)
{
	for (uint64_t seed = 1; seed <= SEEDS / 3; seed++) {
		struct analysis_options options = {.device = -1, .has_window = true};
		const struct device_report *device;
		const struct cause *cause;
		struct error error = {0};
		uint64_t sum = 0;
		struct timeline t;

		random_timeline(&t, seed);
		options.window_start_ns = random_below(80 * MS);
		options.window_end_ns = options.window_start_ns + 1 + random_below(40 * MS);
		cr_assert_eq(model_finish(&t.model, &error), 0);
		if (seed % 2)
			cr_assert_eq(model_keep_process(&t.model, 100, &error), 0);
		cr_assert_eq(analysis_run(&t.analysis, &t.model, &options, &error), 0);
		device = &t.analysis.devices.items[0];
		array_for_each (cause, &device->causes)
			sum += cause->ns;
		cr_assert_eq(sum, device->idle_ns, "seed %lu", seed);
		cr_assert_eq(device->busy_ns + device->idle_ns,
		             options.window_end_ns - options.window_start_ns, "seed %lu", seed);
		timeline_end(&t);
	}
}

/* ---- the same result ---- */

static void mix(uint64_t *sum, uint64_t value)
{
	*sum = hash_mix(*sum ^ value);
}

/* Of all that is told of the device, in its order. */
static uint64_t fingerprint(const struct timeline *t)
{
	const struct device_report *device = &t->analysis.devices.items[0];
	const struct gap_report *gap;
	const struct cause *cause;
	uint64_t sum = device->idle_ns;

	mix(&sum, device->queued_ns);
	mix(&sum, device->late_ns);
	array_for_each (cause, &device->causes) {
		const struct cause_thread *thread;

		mix(&sum, cause->code * 64 + cause->role * 8 + cause->confidence);
		mix(&sum, cause->ns);
		mix(&sum, cause->gap_count);
		mix(&sum, cause->gain_low_ns);
		mix(&sum, cause->gain_high_ns);
		array_for_each (thread, &cause->threads) {
			mix(&sum, thread->tid);
			mix(&sum, thread->ns);
		}
	}
	array_for_each (gap, &device->top_gaps) {
		const struct chain_link *link;

		array_for_each (link, &gap->chain) {
			mix(&sum, link->start_ns);
			mix(&sum, link->tid);
			mix(&sum, link->code * 64 + link->role * 8 + link->confidence);
		}
	}
	return sum;
}

static void swap(char *a, char *b, size_t size)
{
	while (size--) {
		char kept = a[size];

		a[size] = b[size];
		b[size] = kept;
	}
}

static void shuffle(void *items, size_t count, size_t size)
{
	for (size_t i = count; i > 1; i--)
		swap((char *)items + (i - 1) * size, (char *)items + random_below(i) * size, size);
}

#define shuffle_array(array) shuffle((array)->items, (array)->count, sizeof(*(array)->items))

/* The collector merges streams of several CPUs and of a ring: records come in any order. */
static void shuffle_records(struct timeline *t)
{
	struct thread *thread;

	array_for_each (thread, &t->model.threads) {
		shuffle_array(&thread->offcpu);
		shuffle_array(&thread->samples);
		shuffle_array(&thread->calls);
		shuffle_array(&thread->overhead);
	}
	shuffle_array(&t->model.devices.items[0].ops);
	shuffle_array(&t->model.losses);
}

Test(attribute_properties, one_timeline_has_one_result_in_whatever_order_its_records_come)
{
	uint64_t last = 0;

	for (uint64_t seed = 1; seed <= SEEDS / 3; seed++) {
		uint64_t sums[3];

		for (int i = 0; i < 3; i++) {
			struct timeline t;

			random_timeline(&t, seed);
			if (i == 2)
				shuffle_records(&t);
			timeline_analyse(&t);
			sums[i] = fingerprint(&t);
			timeline_end(&t);
		}
		cr_assert_eq(sums[0], sums[1], "seed %lu", seed);
		cr_assert_eq(sums[0], sums[2], "seed %lu in another order", seed);
		cr_assert_neq(sums[0], last, "it tells timelines apart");
		last = sums[0];
	}
}

/* ---- the chains ---- */

struct check {
	const struct model *model;
	uint64_t seed, deepest;
	uint64_t ns[CAUSE_COUNT][ROLE_COUNT];
};

/* Off the CPU at a time, or between two waits of which the first ended by a false wake. */
static bool was_away(const struct thread *thread, uint64_t time_ns)
{
	size_t at = thread_offcpu_after(thread, time_ns);

	if (at == thread->offcpu.count)
		return false;
	return thread->offcpu.items[at].out_ns <= time_ns ||
	       (at && thread->offcpu.items[at].out_ns - thread->offcpu.items[at - 1].in_ns <= FALSE_WAKE_NS);
}

/* The time that a wake took goes to what the wait had ended in, whoever on the way runs by then. */
static bool may_go_on(const struct leaf *leaf)
{
	const struct leaf *last = leaf - 1;

	return last->code == leaf->code && last->thread == leaf->thread && last->depth == leaf->depth;
}

#define count_within(sum, array, start, end, gap)                                                            \
	for (size_t i_ = 0; i_ < (array)->count; i_++)                                                       \
	(sum) += (array)->items[i_].start < (gap)->end_ns && (array)->items[i_].end > (gap)->start_ns

/* How often anything that was recorded begins or ends within a gap, in any thread: nothing else cuts it. */
static size_t cuts_within(const struct model *model, const struct gap *gap)
{
	const struct thread *thread;
	size_t offcpu = 0, others = 0, samples = 0;

	array_for_each (thread, &model->threads) {
		count_within(offcpu, &thread->offcpu, out_ns, in_ns, gap);
		count_within(others, &thread->calls, enter_ns, exit_ns, gap);
		count_within(others, &thread->overhead, start_ns, end_ns, gap);
		count_within(samples, &thread->samples, time_ns, time_ns, gap);
	}
	count_within(others, &model->gpu_holes, start_ns, end_ns, gap);
	/* Life and recording of each thread; two for the launch and its floor. */
	return 3 * offcpu + 2 * others + samples + 3 * model->threads.count + 2;
}

static int check_chain(void *context, const struct gap_chain *chain)
{
	struct check *check = context;

	/* Between two cuts a stretch without samples may be halved. */
	cr_assert_leq(chain->count, 2 * cuts_within(check->model, chain->gap),
	              "seed %lu: %zu leaves of %lu ns", check->seed, chain->count,
	              chain->gap->end_ns - chain->gap->start_ns);
	for (size_t i = 0; i < chain->count; i++) {
		const struct leaf *leaf = &chain->leaves[i];

		check->ns[leaf->code][leaf->role] += leaf->end_ns - leaf->start_ns;
		check->deepest = leaf->depth > check->deepest ? leaf->depth : check->deepest;
		for (uint32_t d = 0; d + 1 < leaf->depth; d++) {
			/* Whoever is on the way waited when that began which is blamed: the walk stays within
			 * waits. */
			cr_assert(was_away(&check->model->threads.items[leaf->chain[d]], leaf->start_ns) ||
			              (d && i && may_go_on(leaf)),
			          "seed %lu: %u ran at %lu", check->seed, leaf->chain[d], leaf->start_ns);
			for (uint32_t e = d + 1; e < leaf->depth; e++)
				cr_assert_neq(leaf->chain[d], leaf->chain[e], "seed %lu", check->seed);
		}
	}
	return 0;
}

static void check_timeline(struct timeline *t, struct check *check)
{
	const struct device_report *device = timeline_analyse(t);
	const struct cause *cause;

	memset(check->ns, 0, sizeof(check->ns));
	check->model = &t->model;
	cr_assert_eq(gap_chains_visit(&t->model, device, check_chain, check), 0);
	array_for_each (cause, &device->causes) {
		cr_assert_eq(check->ns[cause->code][cause->role], cause->ns, "seed %lu", check->seed);
		check->ns[cause->code][cause->role] = 0;
	}
	for (int code = 0; code < CAUSE_COUNT; code++) {
		for (int role = 0; role < ROLE_COUNT; role++)
			cr_assert_eq(check->ns[code][role], 0, "seed %lu", check->seed);
	}
}

Test(attribute_properties, chains_stay_within_waits_and_add_up_to_the_causes)
{
	struct check check = {0};

	for (check.seed = 1; check.seed <= SEEDS; check.seed++) {
		struct timeline t;

		random_timeline(&t, check.seed);
		check_timeline(&t, &check);
		timeline_end(&t);
	}
	cr_assert_geq(check.deepest, 4, "chains were followed");
}

/* Forty threads that hardly ever run, each woken by another: knots, and chains as long as they may be. */
Test(attribute_properties, walks_through_threads_that_only_wait_for_each_other_end)
{
	struct check check = {0};

	for (check.seed = 1; check.seed <= 5; check.seed++) {
		struct timeline t;

		random_state = check.seed * 0x9e3779b97f4a7c15ULL;
		timeline_begin(&t);
		timeline_process(&t, 100, 0, "process");
		for (uint32_t i = 1; i < 40; i++)
			timeline_thread(&t, 100, 100 + i, "thread");
		for (uint32_t i = 0; i < 40; i++) {
			for (uint64_t at = random_below(1 * MS); at < 100 * MS;) {
				uint64_t wake = at + 1 * US + random_below(3 * MS);

				timeline_futex(&t, i, at, wake, wake, random_below(40), 0x1000 + 64 * i);
				at = wake + random_below(20 * US);
			}
		}
		random_gpu(&t, 40);
		check_timeline(&t, &check);
		timeline_end(&t);
	}
	cr_assert_eq(check.deepest, WALK_DEPTH);
}
