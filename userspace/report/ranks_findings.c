// SPDX-License-Identifier: GPL-2.0-only
#include "report/ranks_findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "report/format.h"

#define MATERIAL(ns, span) ((ns)*100 >= (span))
#define OWN_SHARE          0.5  /* of what all ranks lose by a kind: then it is one rank's */
#define TWO_RANKS_SHARE    0.1  /* at least two with so much of it: it is nobody's alone */
#define CHECKPOINT_LEAST   3    /* times */
#define CHECKPOINT_MOST    0.34 /* of the steps */
#define CHECKPOINT_SHARE   0.2  /* of the waits in these steps is writing; the rest is having no CPU */
#define CHECKPOINT_REGULAR 0.8  /* of the distances are the usual one, but for one step */
#define BUCKETS_LEAST      8    /* collectives of a step */
#define BUCKET_SMALL_BYTES (1u << 20)
#define BUCKET_SMALL_NS    100000 /* where sizes are not known */
#define BUCKETS_SHARE      0.03   /* of the window is spent in them without waiting and with nothing else */
#define RANDOM_SHARE       0.02   /* of the collectives have a notable wait */
#define NAMES_MOST         8      /* ranks that are listed */

struct builder {
	const struct ranks_report *ranks;
	struct ranks_findings *findings;
	uint64_t *by_member; /* waits of one kind, by root */
	uint64_t *delays;    /* and what they cost the job */
	bool failed;
};

typedef bool (*cause_test)(const struct ranks_cause *cause);

static uint32_t rank_of(const struct builder *builder, uint32_t member)
{
	return builder->ranks->members.items[member].rank;
}

/* ---- making one ---- */

static char *make_text(struct builder *builder, const char *format, va_list arguments)
{
	char *text;

	if (vasprintf(&text, format, arguments) >= 0)
		return text;
	builder->failed = true;
	return NULL;
}

static struct ranks_finding *add(struct builder *builder, enum ranks_finding_kind kind, uint32_t member,
                                 uint64_t wait_ns, uint64_t delay_ns)
{
	struct ranks_finding *finding = array_add(builder->findings);

	if (finding)
		*finding = (struct ranks_finding){
		    .kind = kind, .member = member, .wait_ns = wait_ns, .delay_ns = delay_ns};
	else
		builder->failed = true;
	return finding;
}

static void set_title(struct builder *builder, struct ranks_finding *finding, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void set_advice(struct builder *builder, struct ranks_finding *finding, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add_evidence(struct builder *builder, struct ranks_finding *finding, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void set_title(struct builder *builder, struct ranks_finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	finding->title = make_text(builder, format, arguments);
	va_end(arguments);
}

static void set_advice(struct builder *builder, struct ranks_finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	finding->advice = make_text(builder, format, arguments);
	va_end(arguments);
}

static void add_evidence(struct builder *builder, struct ranks_finding *finding, const char *format, ...)
{
	char **slot = array_add(&finding->evidence);
	va_list arguments;

	if (!slot) {
		builder->failed = true;
		return;
	}
	va_start(arguments, format);
	*slot = make_text(builder, format, arguments);
	va_end(arguments);
	if (!*slot)
		finding->evidence.count--;
}

/* "5.2 s of waiting (34 % of all) by 3 collectives" and who, for what the causes of a kind have in common. */
static void add_cause_evidence(struct builder *builder, struct ranks_finding *finding, cause_test test)
{
	const struct ranks_cause *cause;
	char wait[FORMAT_FIGURE], share[FORMAT_FIGURE];
	unsigned shown = 0;

	add_evidence(builder, finding, "%s of waiting of the other ranks, %s of all",
	             format_duration(wait, finding->wait_ns),
	             format_share(share, finding->wait_ns, builder->ranks->wait_ns));
	array_for_each (cause, &builder->ranks->causes) {
		char chain[FORMAT_TEXT_SIZE(60)], detail[FORMAT_TEXT_SIZE(60)];
		const char *who = *cause->via ? cause->via : cause->thread;

		if (!test(cause) || (finding->member != RANKS_NONE && cause->root != finding->member) ||
		    shown++ == 4)
			continue;
		format_text(chain, sizeof(chain), who, 60);
		format_text(detail, sizeof(detail), cause->detail, 60);
		add_evidence(builder, finding, "rank %" PRIu32 ": %s in %" PRIu64 " collective%s, %s%s%s%s%s",
		             rank_of(builder, cause->root), format_duration(wait, cause->wait_ns),
		             cause->collectives, cause->collectives == 1 ? "" : "s",
		             cause->reason == LATE_COMPUTE ? "kernels" : cause_code_name(cause->code),
		             *chain ? ", " : "", chain, *detail ? ", " : "", detail);
	}
}

/* ---- causes of a kind ---- */

static bool has_code(const struct ranks_cause *cause)
{
	return cause->reason == LATE_IDLE || cause->reason == LATE_HOST;
}

static bool is_gc(const struct ranks_cause *cause)
{
	return has_code(cause) && cause->code == CAUSE_HOST_GC;
}

static bool is_cpu(const struct ranks_cause *cause)
{
	return has_code(cause) &&
	       (cause->code == CAUSE_SCHED_CPU_CONTENTION || cause->code == CAUSE_SCHED_AFFINITY ||
	        cause->code == CAUSE_SCHED_THROTTLED || cause->code == CAUSE_SCHED_STEAL);
}

/* What keeps a worker from a CPU is another kind. */
static bool is_worker(const struct ranks_cause *cause)
{
	return has_code(cause) && cause->role == ROLE_WORKER && !is_cpu(cause) && !is_gc(cause);
}

static bool is_compute(const struct ranks_cause *cause)
{
	return cause->reason == LATE_COMPUTE;
}

/* Sums up causes by the member that they are of; *top is the one with most. */
static uint64_t sum_up(struct builder *builder, cause_test test, uint64_t *delay_ns, uint32_t *top)
{
	const struct ranks_cause *cause;
	uint64_t sum = 0, most = 0;

	*delay_ns = 0;
	*top = RANKS_NONE;
	for (size_t i = 0; i < builder->ranks->members.count; i++)
		builder->by_member[i] = builder->delays[i] = 0;
	array_for_each (cause, &builder->ranks->causes) {
		if (!test(cause))
			continue;
		builder->by_member[cause->root] += cause->wait_ns;
		builder->delays[cause->root] += cause->delay_ns;
		sum += cause->wait_ns;
		*delay_ns += cause->delay_ns;
	}
	for (uint32_t i = 0; i < builder->ranks->members.count; i++) {
		if (builder->by_member[i] > most) {
			most = builder->by_member[i];
			*top = i;
		}
	}
	return sum;
}

static unsigned count_sharing(const struct builder *builder, uint64_t sum)
{
	unsigned count = 0;

	for (size_t i = 0; i < builder->ranks->members.count; i++)
		count += (double)builder->by_member[i] >= TWO_RANKS_SHARE * (double)sum;
	return count;
}

/* ---- the kinds ---- */

static void find_gc(struct builder *builder)
{
	struct ranks_finding *finding;
	uint64_t delay, sum;
	unsigned sharing;
	uint32_t top;

	sum = sum_up(builder, is_gc, &delay, &top);
	if (!sum || !MATERIAL(delay, builder->ranks->span_ns))
		return;
	sharing = count_sharing(builder, sum);
	finding = add(builder, RANKS_FINDING_GC, sharing > 1 ? RANKS_NONE : top, sum, delay);
	if (!finding)
		return;
	if (sharing > 1)
		set_title(builder, finding,
		          "Python's garbage collection ran at different times on %u ranks, and all others "
		          "waited each time.",
		          sharing);
	else
		set_title(builder, finding,
		          "Python's garbage collection on rank %" PRIu32 " made all other ranks wait.",
		          rank_of(builder, top));
	set_advice(
	    builder, finding,
	    "Collect on all ranks in the same step: gc.disable() before training, gc.collect() every so many "
	    "steps; gc.freeze() after set-up makes each collection shorter.");
	add_cause_evidence(builder, finding, is_gc);
}

/* One member has most of what is lost by a kind; RANKS_NONE if not, or if it is not worth a finding. */
static uint32_t find_own(struct builder *builder, cause_test test)
{
	uint64_t delay, sum;
	uint32_t top;

	sum = sum_up(builder, test, &delay, &top);
	if (top == RANKS_NONE || !MATERIAL(builder->delays[top], builder->ranks->span_ns) ||
	    (double)builder->by_member[top] < OWN_SHARE * (double)sum)
		return RANKS_NONE;
	return top;
}

static struct ranks_finding *add_own(struct builder *builder, enum ranks_finding_kind kind, cause_test test)
{
	uint32_t top = find_own(builder, test);

	if (top == RANKS_NONE)
		return NULL;
	return add(builder, kind, top, builder->by_member[top], builder->delays[top]);
}

static void find_workers(struct builder *builder)
{
	struct ranks_finding *finding = add_own(builder, RANKS_FINDING_WORKERS, is_worker);
	uint32_t rank;

	if (!finding)
		return;
	rank = rank_of(builder, finding->member);
	set_title(builder, finding,
	          "The data workers of rank %" PRIu32
	          " are slower than those of the others, which wait for it.",
	          rank);
	set_advice(builder, finding,
	           "Compare what rank %" PRIu32
	           "'s workers read and compute with the others' (its shard, its storage, its "
	           "number of workers); prefetching further ahead evens out what is slow only now and then.",
	           rank);
	add_cause_evidence(builder, finding, is_worker);
}

static void find_cpu(struct builder *builder)
{
	struct ranks_finding *finding = add_own(builder, RANKS_FINDING_CPU, is_cpu);
	uint32_t rank;

	if (!finding)
		return;
	rank = rank_of(builder, finding->member);
	set_title(builder, finding,
	          "Rank %" PRIu32 " was ready to run but had no CPU, while the other ranks waited for it.",
	          rank);
	set_advice(builder, finding,
	           "Give each rank CPUs of its own on the NUMA node of its GPU (numactl --cpunodebind, "
	           "taskset, cgroups), "
	           "enough for its data workers too, and look at what else runs on rank %" PRIu32 "'s.",
	           rank);
	add_cause_evidence(builder, finding, is_cpu);
}

static void find_compute(struct builder *builder)
{
	struct ranks_finding *finding = add_own(builder, RANKS_FINDING_COMPUTE, is_compute);
	uint32_t rank;

	if (!finding)
		return;
	rank = rank_of(builder, finding->member);
	set_title(builder, finding, "Rank %" PRIu32 "'s GPU computes longer than those of the others.", rank);
	set_advice(
	    builder, finding,
	    "Compare clocks, power limit and temperature of rank %" PRIu32
	    "'s GPU with the others', and the size of its batches (sequence lengths, padding, experts).",
	    rank);
	add_cause_evidence(builder, finding, is_compute);
}

/* What somebody does who writes a file: storage, a copy to the host, or code that does neither on the way. */
static bool is_writing(const struct ranks_cause *cause)
{
	if (cause->reason == LATE_COPY)
		return true;
	if (!has_code(cause) || cause->role == ROLE_WORKER)
		return false;
	switch (cause->code) {
	case CAUSE_WAIT_DISK:
	case CAUSE_WAIT_SYSCALL:
	case CAUSE_WAIT_NETWORK:
	case CAUSE_HOST_PAGEABLE_COPY:
	case CAUSE_HOST_USER_CODE:
	case CAUSE_HOST_SYNC_THEN_SERIAL:
		return true;
	default:
		return false;
	}
}

/* Something that the host of the rank itself does, its copies included; without a CPU it takes longer. */
static bool is_own_work(const struct ranks_cause *cause)
{
	return is_writing(cause) || (is_cpu(cause) && cause->role != ROLE_WORKER);
}

/* What a member's writing costs the others altogether, and the largest part of it. */
static uint64_t sum_writing(const struct ranks_report *ranks, uint32_t member,
                            const struct ranks_cause **largest)
{
	const struct ranks_cause *cause;
	uint64_t sum = 0;

	*largest = NULL;
	array_for_each (cause, &ranks->causes) {
		if (cause->root != member || !is_writing(cause))
			continue;
		*largest = *largest ? *largest : cause;
		sum += cause->wait_ns;
	}
	return sum;
}

/* The steps that a member holds up by what its host does, at most as many as there are. */
static size_t list_writing(const struct ranks_report *ranks, uint32_t member, uint64_t *steps,
                           uint64_t *wait_ns, uint64_t *delay_ns)
{
	size_t count = 0;

	*wait_ns = *delay_ns = 0;
	for (size_t i = 0; i < ranks->steps.count; i++) {
		const struct ranks_step *step = &ranks->steps.items[i];

		if (step->slowest != member || step->cause == RANKS_NONE ||
		    !is_own_work(&ranks->causes.items[step->cause]))
			continue;
		steps[count++] = i;
		*wait_ns += step->wait_ns;
		*delay_ns += step->delay_ns;
	}
	return count;
}

/* The usual distance of the numbers, 0 if they come irregularly (one more or less, and multiples, are
 * regular). They are overwritten. */
static uint64_t usual_distance(uint64_t *numbers, size_t count)
{
	uint64_t middle, slack;
	size_t regular = 0;

	for (size_t i = 0; i + 1 < count; i++)
		numbers[i] = numbers[i + 1] - numbers[i];
	qsort_items(numbers, count - 1, sizeof(*numbers), compare_unsigned);
	middle = numbers[(count - 1) / 2];
	/* Now and then one is not seen, because somebody else was later still. */
	slack = middle > 3;
	for (size_t i = 0; middle && i + 1 < count; i++)
		regular += numbers[i] % middle <= slack || middle - numbers[i] % middle <= slack;
	return middle > 1 && (double)regular >= CHECKPOINT_REGULAR * (double)(count - 1) ? middle : 0;
}

static void find_checkpoint(struct builder *builder)
{
	const struct ranks_report *ranks = builder->ranks;
	uint64_t *steps = calloc(ranks->steps.count + 1, sizeof(*steps)), wait, delay, distance;

	for (uint32_t member = 0; steps && member < ranks->members.count; member++) {
		const struct ranks_cause *cause;
		struct ranks_finding *finding;
		size_t count = list_writing(ranks, member, steps, &wait, &delay);

		if (count < CHECKPOINT_LEAST ||
		    (double)count > CHECKPOINT_MOST * (double)ranks->steps.count ||
		    !MATERIAL(delay, ranks->span_ns) ||
		    (double)sum_writing(ranks, member, &cause) < CHECKPOINT_SHARE * (double)wait)
			continue;
		distance = usual_distance(steps, count);
		finding = distance ? add(builder, RANKS_FINDING_CHECKPOINT, member, wait, delay) : NULL;
		if (!finding)
			continue;
		set_title(builder, finding,
		          "Every %" PRIu64 " steps rank %" PRIu32
		          " does something that the others wait for: a checkpoint, logging or an evaluation.",
		          distance, rank_of(builder, member));
		set_advice(builder, finding,
		           "Write in the background (torch.distributed.checkpoint.async_save, a copy to "
		           "pinned memory and "
		           "a thread that writes it), let all ranks write their part, or do it less often.");
		add_evidence(builder, finding, "%zu of %zu steps, most of them %" PRIu64 " apart", count,
		             ranks->steps.count, distance);
		add_evidence(builder, finding, "mostly %s",
		             cause->reason == LATE_COPY ? "copies" : cause_code_meaning(cause->code));
		if (*cause->detail) {
			char detail[FORMAT_TEXT_SIZE(80)];

			add_evidence(builder, finding, "in %s",
			             format_text(detail, sizeof(detail), cause->detail, 80));
		}
	}
	if (!steps)
		builder->failed = true;
	free(steps);
}

static uint64_t middle_of_steps(struct builder *builder)
{
	const struct ranks_report *ranks = builder->ranks;
	uint64_t *counts = calloc(ranks->steps.count + 1, sizeof(*counts)), middle;

	if (!counts) {
		builder->failed = true;
		return 0;
	}
	for (size_t i = 0; i < ranks->steps.count; i++)
		counts[i] = ranks->steps.items[i].collectives;
	qsort_items(counts, ranks->steps.count, sizeof(*counts), compare_unsigned);
	middle = counts[ranks->steps.count / 2];
	free(counts);
	return middle;
}

static void find_buckets(struct builder *builder)
{
	const struct ranks_report *ranks = builder->ranks;
	const struct ranks_group *group, *largest = NULL;
	const struct ranks_member *member;
	uint64_t spent = 0, window = 0, a_step;
	char time[FORMAT_FIGURE], share[FORMAT_FIGURE];
	struct ranks_finding *finding;

	array_for_each (group, &ranks->groups) {
		if (group->members > 1 && (!largest || group->matched > largest->matched))
			largest = group;
	}
	array_for_each (member, &ranks->members) {
		spent +=
		    member->alone_ns > member->idle_wait_ns ? member->alone_ns - member->idle_wait_ns : 0;
		window += member->window_end_ns - member->window_start_ns;
	}
	if (!largest || ranks->steps.count < 2 || (double)spent < BUCKETS_SHARE * (double)window ||
	    (largest->bytes ? largest->bytes >= BUCKET_SMALL_BYTES : largest->transfer_ns >= BUCKET_SMALL_NS))
		return;
	a_step = middle_of_steps(builder);
	finding = a_step >= BUCKETS_LEAST
	              ? add(builder, RANKS_FINDING_BUCKETS, RANKS_NONE, 0, spent / ranks->members.count)
	              : NULL;
	if (!finding)
		return;
	set_title(builder, finding, "Each step has %" PRIu64 " small collectives, one after the other.",
	          a_step);
	set_advice(builder, finding,
	           "Reduce gradients in fewer, larger buckets (DistributedDataParallel(bucket_cap_mb=…), "
	           "larger FSDP "
	           "units), so that their latency is paid less often and they run beside the backward pass.");
	if (largest->bytes)
		add_evidence(builder, finding, "half of them have %" PRIu64 " KiB or less",
		             (largest->bytes + 1023) / 1024);
	add_evidence(builder, finding, "%s each once all ranks have come",
	             format_duration(time, largest->transfer_ns));
	add_evidence(builder, finding,
	             "%s of a GPU's time in collectives without waiting, with nothing else running",
	             format_share(share, spent, window));
}

static void find_random(struct builder *builder)
{
	const struct ranks_report *ranks = builder->ranks;
	const struct ranks_cause *cause = ranks->causes.items;
	struct ranks_finding *finding;
	char share[FORMAT_FIGURE];

	if (ranks->pattern != PATTERN_RANDOM ||
	    (double)ranks->notable < RANDOM_SHARE * (double)ranks->matched ||
	    !MATERIAL(ranks->delay_ns, ranks->span_ns) || !ranks->causes.count)
		return;
	finding = add(builder, RANKS_FINDING_RANDOM, RANKS_NONE, ranks->charged_ns, ranks->delay_ns);
	if (!finding)
		return;
	set_title(builder, finding,
	          "Any rank comes last now and then: in %s of the collectives one held the others up.",
	          format_share(share, ranks->notable, ranks->matched));
	set_advice(builder, finding,
	           "No single rank is to blame: take out what varies. The largest part is %s; the more ranks "
	           "there are, "
	           "the more often one of them is late.",
	           cause->reason == LATE_COMPUTE    ? "compute of different length (balance the batches)"
	           : cause->reason == LATE_COPY     ? "copies"
	           : cause->reason == LATE_TRANSFER ? "earlier collectives"
	           : cause->reason == LATE_BEFORE   ? "not in the traces"
	                                            : cause_code_meaning(cause->code));
	for (uint32_t i = 0; i < ranks->members.count && i < NAMES_MOST; i++)
		add_evidence(builder, finding,
		             "rank %" PRIu32 " came last to %" PRIu64 " of %" PRIu64 " (%s)",
		             rank_of(builder, i), ranks->members.items[i].last_count, ranks->notable,
		             format_share(share, ranks->members.items[i].last_count, ranks->notable));
}

/* ---- all ---- */

static int compare_finding(const void *a, const void *b)
{
	const struct ranks_finding *x = a, *y = b;
	int order = (x->delay_ns < y->delay_ns) - (x->delay_ns > y->delay_ns);

	return order ? order : (int)x->kind - (int)y->kind;
}

static void free_one(struct ranks_finding *finding)
{
	char **text;

	free(finding->title);
	free(finding->advice);
	array_for_each (text, &finding->evidence)
		free(*text);
	array_free(&finding->evidence);
}

int ranks_findings_make(struct ranks_findings *findings, const struct ranks_report *ranks)
{
	struct builder builder = {
	    .ranks = ranks,
	    .findings = findings,
	    .by_member = calloc(ranks->members.count + 1, sizeof(uint64_t)),
	    .delays = calloc(ranks->members.count + 1, sizeof(uint64_t)),
	};

	if (!builder.by_member || !builder.delays) {
		builder.failed = true;
	} else if (ranks->members.count > 1 && ranks->matched) {
		find_gc(&builder);
		find_workers(&builder);
		find_cpu(&builder);
		find_checkpoint(&builder);
		find_compute(&builder);
		find_buckets(&builder);
		find_random(&builder);
	}
	array_sort(findings, compare_finding);
	while (findings->count > RANKS_FINDINGS_MOST)
		free_one(&findings->items[--findings->count]);
	free(builder.by_member);
	free(builder.delays);
	return builder.failed ? -ENOMEM : 0;
}

void ranks_findings_free(struct ranks_findings *findings)
{
	struct ranks_finding *finding;

	array_for_each (finding, findings)
		free_one(finding);
	array_free(findings);
}

const char *ranks_finding_name(enum ranks_finding_kind kind)
{
	static const char *const names[] = {"gc",      "workers", "cpu",   "checkpoint",
	                                    "compute", "buckets", "random"};

	return names[kind];
}
