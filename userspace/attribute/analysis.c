/* SPDX-License-Identifier: GPL-2.0-only */
#include "attribute/analysis.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attribute/gaps.h"
#include "attribute/owner.h"
#include "attribute/replay.h"
#include "attribute/stack_quality.h"
#include "attribute/tally.h"
#include "attribute/workers.h"
#include "base/number.h"
#include "model/model.h"

#define TOP_GAPS_DEFAULT 10
#define VIA_MAX          256

/* One device being analysed. */
struct device_run {
	struct analysis *analysis;
	const struct model *model;
	const struct analysis_options *options;
	uint32_t device;
	struct gap_list gaps;
	struct launch_floor floor;
	struct tally *tally;
	struct step_tally *steps; /* NULL: not wanted */
	struct worker_waits waits;
	struct replay_leaves leaves;
	struct replay_threads threads;
	uint32_t op; /* that ended the current gap */
	struct walk walk;
	uint64_t covered_ns;       /* leaves of the current gap, to check conservation */
	struct gap_report *report; /* gap whose chain is being written, NULL in the first pass */
	bool failed;
};

/* For the replay: neighbours of one kind are one. */
static void keep_leaf(struct device_run *run, const struct leaf *leaf)
{
	/* Of a lock, not who had the CPU. */
	uint32_t holder = leaf->state == LEAF_BLOCKED ? leaf->holder : MODEL_NONE;
	struct replay_leaf *last = run->leaves.count ? &run->leaves.items[run->leaves.count - 1] : NULL;

	for (uint32_t i = 0; i < leaf->depth; i++)
		run->threads.seen[leaf->chain[i]] = true;
	if (holder != MODEL_NONE)
		run->threads.seen[holder] = true;
	if (last && last->end_ns == leaf->start_ns && last->op == run->op && last->thread == leaf->thread &&
	    last->holder == holder && last->lock == leaf->lock && last->code == leaf->code &&
	    last->role == leaf->role) {
		last->end_ns = leaf->end_ns;
		return;
	}
	last = array_add(&run->leaves);
	if (!last) {
		run->failed = true;
		return;
	}
	*last = (struct replay_leaf){
	    .start_ns = leaf->start_ns,
	    .end_ns = leaf->end_ns,
	    .thread = leaf->thread,
	    .holder = holder,
	    .op = run->op,
	    .lock = leaf->lock,
	    .code = (uint8_t)leaf->code,
	    .role = (uint8_t)leaf->role,
	};
}

static void count_leaf(void *context, const struct leaf *leaf)
{
	struct device_run *run = context;

	run->covered_ns += leaf->end_ns - leaf->start_ns;
	tally_leaf(run->tally, run->walk.launcher, leaf);
	if (run->steps)
		step_tally_leaf(run->steps, leaf);
	keep_leaf(run, leaf);
}

static void count_crossing(void *context, uint32_t waiter, uint32_t worker, uint64_t from_ns, uint64_t to_ns)
{
	struct device_run *run = context;

	worker_waits_add(&run->waits, waiter, worker, from_ns, to_ns);
}

static const char *chain_text(struct device_run *run, const struct leaf *leaf)
{
	char text[VIA_MAX];
	size_t used = 0;

	if (leaf->depth < 2)
		return NULL;
	text[0] = '\0';
	for (uint32_t i = 0; i < leaf->depth && used < sizeof(text); i++) {
		const struct thread *thread = &run->model->threads.items[leaf->chain[i]];

		used += snprintf(text + used, sizeof(text) - used, "%s%s", i ? " ← " : "",
		                 model_string(run->model, thread->comm));
	}
	return analysis_text(run->analysis, "%s", text);
}

static void show_leaf(void *context, const struct leaf *leaf)
{
	static const char *const states[] = {"running", "runnable", "blocked", "device"};
	struct device_run *run = context;
	struct chain_link *link = array_add(&run->report->chain);

	if (!link) {
		run->failed = true;
		return;
	}
	*link = (struct chain_link){
	    .comm = "GPU",
	    .state = states[leaf->state],
	    .code = leaf->code,
	    .role = leaf->role,
	    .confidence = leaf->confidence,
	    .start_ns = leaf->start_ns,
	    .end_ns = leaf->end_ns,
	};
	if (leaf->thread != MODEL_NONE) {
		const struct thread *thread = &run->model->threads.items[leaf->thread];

		link->pid = thread->pid;
		link->tid = thread->tid;
		link->comm = model_string(run->model, thread->comm);
		link->via = chain_text(run, leaf);
	}
	if (leaf_describe(run->analysis, run->model, leaf, &link->detail))
		run->failed = true;
}

static void blame_gap(struct device_run *run, const struct gap *gap)
{
	run->covered_ns = 0;
	run->op = gap->ended_by;
	gap_blame(&run->walk, run->model, run->device, gap, &run->floor);
}

/* First pass: every gap into the tally. */
static void count_gaps(struct device_run *run, struct device_report *report)
{
	const struct device *device = &run->model->devices.items[run->device];
	const struct gap *gap;

	run->walk = (struct walk){.leaf = count_leaf, .crossed = count_crossing, .context = run};
	array_for_each (gap, &run->gaps) {
		uint64_t length = gap->end_ns - gap->start_ns;

		tally_next_gap(run->tally);
		blame_gap(run, gap);
		/* attribution.md section 3: every nanosecond of a gap ends in exactly one leaf. */
		assert(run->covered_ns == length);
		report->idle_ns += length;
		report->gap_count++;
		switch (gap_launch_time(run->model, device, gap)) {
		case LAUNCH_QUEUED:
			report->queued_ns += length;
			break;
		case LAUNCH_LATE:
			report->late_ns += length;
			break;
		case LAUNCH_UNKNOWN:
			report->unknown_ns += length;
			break;
		}
	}
}

static int compare_length(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;
	uint64_t length_x = x->end_ns - x->start_ns, length_y = y->end_ns - y->start_ns;
	int order = (length_x < length_y) - (length_x > length_y);

	return order ? order : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Second pass: the longest gaps again, this time keeping the chain. */
static int show_gaps(struct device_run *run, struct device_report *report)
{
	const struct device *device = &run->model->devices.items[run->device];
	size_t wanted = run->options->top_gaps ? run->options->top_gaps : TOP_GAPS_DEFAULT;
	const struct gap *gap;

	array_sort(&run->gaps, compare_length);
	run->walk = (struct walk){.leaf = show_leaf, .context = run};
	array_for_each (gap, &run->gaps) {
		struct gap_report *shown;

		if (report->top_gaps.count == wanted)
			break;
		shown = array_add(&report->top_gaps);
		if (!shown)
			return -ENOMEM;
		shown->start_ns = gap->start_ns;
		shown->end_ns = gap->end_ns;
		shown->comm = "";
		if (gap->ended_by != MODEL_NONE) {
			const struct gpu_op *op = &device->ops.items[gap->ended_by];

			shown->kernel = op->kind == OP_MEMCPY   ? "memcpy"
			                : op->kind == OP_MEMSET ? "memset"
			                                        : model_string(run->model, op->name);
			if (op->launch_thread != MODEL_NONE) {
				const struct thread *thread = &run->model->threads.items[op->launch_thread];

				shown->launch =
				    model_string(run->model, thread->calls.items[op->launch_call].function);
				shown->pid = thread->pid;
				shown->tid = thread->tid;
				shown->comm = model_string(run->model, thread->comm);
			}
		}
		run->report = shown;
		blame_gap(run, gap);
	}
	return run->failed ? -ENOMEM : 0;
}

static int finish_causes(struct device_run *run, struct device_report *report)
{
	struct worker_group group;
	struct cause *cause;
	uint64_t sum = 0;
	int rc = tally_finish(run->tally, run->analysis, report);

	if (rc)
		return rc;
	array_for_each (cause, &report->causes)
		sum += cause->ns;
	assert(sum == report->idle_ns);
	rc = worker_group_measure(&group, &run->waits, run->model);
	array_for_each (cause, &report->causes) {
		if (cause->role == ROLE_WORKER)
			cause->group = group;
	}
	return rc;
}

static uint64_t last_end(const struct device *device)
{
	const struct gpu_op *op;
	uint64_t end = 0;

	array_for_each (op, &device->ops)
		end = later(op->end_ns, end);
	return end;
}

static void set_window(struct device_run *run, struct device_report *report)
{
	const struct device *device = &run->model->devices.items[run->device];
	const struct gpu_op *op;

	report->window_start_ns = device->ops.items[0].start_ns;
	report->window_end_ns = last_end(device);
	if (run->options->has_window) {
		report->window_start_ns = run->options->window_start_ns;
		report->window_end_ns = run->options->window_end_ns;
	}
	if (report->window_start_ns > run->model->start_ns)
		report->lead_in_ns = report->window_start_ns - run->model->start_ns;
	if (report->window_end_ns < run->model->end_ns)
		report->trail_out_ns = run->model->end_ns - report->window_end_ns;
	array_for_each (op, &device->ops) {
		if (op->end_ns >= report->window_start_ns && op->start_ns <= report->window_end_ns)
			report->op_count++;
	}
}

static int analyse_device(struct analysis *analysis, const struct model *model,
                          const struct analysis_options *options, uint32_t index)
{
	const struct device *device = &model->devices.items[index];
	struct device_run run = {.analysis = analysis, .model = model, .options = options, .device = index};
	struct device_report *report = array_add(&analysis->devices);
	int rc = -ENOMEM;

	if (!report)
		return rc;
	report->device = device->number;
	report->name = device->name ? model_string(model, device->name) : "unnamed";
	report->simulated = device->simulated;
	memcpy(report->uuid, device->uuid, sizeof(report->uuid));
	if (!device->ops.count)
		return 0;
	set_window(&run, report);
	report->busy_ns = busy_union(device, report->window_start_ns, report->window_end_ns, NULL);
	report->compute_busy_ns =
	    busy_union(device, report->window_start_ns, report->window_end_ns, op_is_compute);
	run.tally = tally_new(model);
	run.threads.seen = calloc(model->threads.count + 1, sizeof(*run.threads.seen));
	if (run.tally && run.threads.seen)
		rc = gap_list_make(&run.gaps, device, report->window_start_ns, report->window_end_ns);
	if (!rc && options->steps) {
		run.steps = step_tally_new(&report->steps, model, index, report->window_start_ns,
		                           report->window_end_ns);
		rc = run.steps ? 0 : -ENOMEM;
	}
	if (!rc) {
		launch_floor_measure(&run.floor, model, device, &run.gaps);
		count_gaps(&run, report);
		rc = run.failed ? -ENOMEM : finish_causes(&run, report);
	}
	if (!rc && run.steps)
		rc = step_tally_finish(run.steps);
	if (!rc)
		rc = replay_gains(report, model, index, &run.floor, &run.leaves, &run.threads);
	if (!rc)
		rc = show_gaps(&run, report);
	tally_free(run.tally);
	step_tally_free(run.steps);
	gap_list_free(&run.gaps);
	array_free(&run.waits);
	array_free(&run.leaves);
	free(run.threads.seen);
	return rc;
}

static void count_losses(struct loss_report *report, const struct model *model)
{
	const struct loss *loss;

	report->user_stacks = model->stack_cost.lost;
	array_for_each (loss, &model->losses) {
		switch (loss->cause) {
		case RECORD_LOSS_BPF_RING:
			report->bpf_ring += loss->count;
			break;
		case RECORD_LOSS_BRIDGE_RING:
			report->bridge_ring += loss->count;
			break;
		case RECORD_LOSS_CUPTI:
			report->cupti += loss->count;
			break;
		case RECORD_LOSS_STACKS:
			report->stacks += loss->count;
			break;
		case RECORD_LOSS_STORAGE:
			report->storage += loss->count;
			break;
		default:
			report->file += loss->count;
			break;
		}
	}
}

int analysis_run(struct analysis *analysis, const struct model *model, const struct analysis_options *options,
                 struct error *error)
{
	static const char *const sources[] = {
	    [MODEL_SESSION] = "session", [MODEL_KINETO] = "kineto", [MODEL_NSYS] = "nsys"};
	const uint32_t *degraded;

	*analysis = (struct analysis){
	    .command = model->command ? model_string(model, model->command) : NULL,
	    .tier = model->tier ? model_string(model, model->tier) : "T2",
	    .timeline = !model->has_timeline             ? "none"
	                : model->inferred                ? "inferred"
	                : model->source == MODEL_SESSION ? "cupti"
	                                                 : "imported",
	    .source = sources[model->source],
	    .simulated = model->simulated,
	    .incomplete = !model->summary.complete,
	    .session_start_ns = model->start_ns,
	    .session_end_ns = model->end_ns,
	};
	if (options->has_window && options->window_end_ns <= options->window_start_ns)
		return error_set(error, -EINVAL, "the window is empty: its end must be later than its start");
	count_losses(&analysis->losses, model);
	if (stack_quality(model, &analysis->stacks))
		return error_no_memory(error);
	array_for_each (degraded, &model->degraded) {
		const char **slot = array_add(&analysis->degraded);

		if (!slot)
			return error_no_memory(error);
		*slot = model_string(model, *degraded);
	}
	for (uint32_t i = 0; i < model->devices.count; i++) {
		if (options->device >= 0 && (uint32_t)options->device != model->devices.items[i].number)
			continue;
		if (analyse_device(analysis, model, options, i))
			return error_no_memory(error);
	}
	if (options->device >= 0 && !analysis->devices.count)
		return error_set(error, -EINVAL, "the session has no GPU %d: it has %zu", options->device,
		                 model->devices.count);
	return 0;
}

void analysis_free(struct analysis *analysis)
{
	struct device_report *device;
	char **text;

	array_for_each (device, &analysis->devices) {
		struct gap_report *gap;
		struct cause *cause;

		array_for_each (cause, &device->causes)
			array_free(&cause->threads);
		array_for_each (gap, &device->top_gaps)
			array_free(&gap->chain);
		step_report_free(&device->steps);
		array_free(&device->causes);
		array_free(&device->top_gaps);
	}
	array_for_each (text, &analysis->owned)
		free(*text);
	array_free(&analysis->owned);
	array_free(&analysis->devices);
	array_free(&analysis->degraded);
	*analysis = (struct analysis){0};
}
