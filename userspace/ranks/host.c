// SPDX-License-Identifier: GPL-2.0-only
#include "ranks/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attribute/owner.h"
#include "model/model.h"

#define PROMPT_NS                                                                                            \
	20000 /* a collective that starts this soon after its launch (and two floors) had not waited */
#define OPS_LOOK_BACK 256
#define DETAIL_MAX    200

struct blame {
	struct track *track;
	const struct track_source *source;
	struct walk walk;
	struct launch_floor floor;
	struct leaf_list *list; /* where leaves go */
	bool host;
	bool failed;
};

/* The one thing that says most about a leaf. */
static const char *leaf_detail(struct ranks *ranks, const struct model *model, const struct leaf *leaf)
{
	char text[DETAIL_MAX];

	if (leaf->path)
		return ranks_text(ranks, model_string(model, leaf->path));
	if (leaf->function) {
		const char *name = model_string(model, leaf->function);

		/* That it was in some step says nothing. */
		return strncmp(name, STEP_PREFIX, sizeof(STEP_PREFIX) - 1) ? ranks_text(ranks, name) : "";
	}
	if (leaf->holder == MODEL_NONE)
		return "";
	snprintf(text, sizeof(text), "%s", model_string(model, model->threads.items[leaf->holder].comm));
	return ranks_text(ranks, text);
}

/* "main ← pt_data_pin ← loader"; NULL if memory ran out. */
static const char *leaf_via(struct ranks *ranks, const struct model *model, const struct leaf *leaf)
{
	char text[DETAIL_MAX] = "";
	size_t used = 0;

	for (uint32_t i = 0; leaf->depth > 1 && i < leaf->depth && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " ← " : "",
		                         model_string(model, model->threads.items[leaf->chain[i]].comm));
	return ranks_text(ranks, text);
}

static uint32_t leaf_label(struct blame *blame, const struct leaf *leaf)
{
	const struct model *model = blame->source->model;
	struct label label = {
	    .reason = blame->host ? LATE_HOST : LATE_IDLE,
	    .code = leaf->code,
	    .role = leaf->role,
	    .confidence = leaf->confidence,
	    .thread = "",
	    .via = "",
	};

	if (leaf->thread != MODEL_NONE) {
		const struct thread *thread = &model->threads.items[leaf->thread];

		/* The host waits for the GPU, which has work: it is that work which takes long. */
		if (blame->host) {
			const struct call *call = thread_call_at(thread, leaf->start_ns);

			if (call && call->class == CUDA_SYNC)
				return LABEL_COMPUTE_MORE;
		}
		label.thread = ranks_text(blame->source->ranks, model_string(model, thread->comm));
	}
	label.detail = leaf_detail(blame->source->ranks, model, leaf);
	label.via = leaf_via(blame->source->ranks, model, leaf);
	if (!label.thread || !label.detail || !label.via)
		return RANKS_NONE;
	return ranks_label(blame->source->ranks, &label);
}

static void keep_leaf(void *context, const struct leaf *leaf)
{
	struct blame *blame = context;
	uint32_t label = leaf_label(blame, leaf);
	struct track_leaf *last = blame->list->count ? &blame->list->items[blame->list->count - 1] : NULL;

	if (label == RANKS_NONE) {
		blame->failed = true;
		return;
	}
	if (!blame->host && last && last->label == label && last->end_ns == leaf->start_ns) {
		last->end_ns = leaf->end_ns;
		return;
	}
	last = array_add(blame->list);
	if (!last) {
		blame->failed = true;
		return;
	}
	*last = (struct track_leaf){leaf->start_ns, leaf->end_ns, label};
}

/*
 * True if the collective at `index` began because the host launched it just then, while other work of the
 * rank kept the GPU busy: none of that work ended in between, so none of it was what the collective waited
 * for.
 */
static bool is_launched_late(const struct blame *blame, uint32_t index)
{
	const struct device *device = &blame->source->model->devices.items[blame->source->device];
	const struct gpu_op *op = &device->ops.items[index];
	uint32_t oldest = index > OPS_LOOK_BACK ? index - OPS_LOOK_BACK : 0;
	bool busy = false;

	if (!op->launch_ns || op->launch_thread == MODEL_NONE || op->launch_ns >= op->start_ns ||
	    op->start_ns - op->launch_ns > PROMPT_NS + 2 * blame->floor.submit_ns)
		return false;
	for (uint32_t i = index; i-- > oldest;) {
		const struct gpu_op *other = &device->ops.items[i];

		if (blame->source->process != MODEL_NONE && other->process != blame->source->process)
			continue;
		if (other->end_ns >= op->launch_ns && other->end_ns <= op->start_ns)
			return false;
		if (!other->collective && other->start_ns < op->launch_ns && other->end_ns > op->start_ns)
			busy = true;
	}
	return busy;
}

/* What the launching thread did in [from, launch] while the GPU was busy. */
static void blame_launch(struct blame *blame, struct track_event *event, uint32_t thread, uint64_t from_ns)
{
	const struct cover *work = &blame->track->device_work;

	event->host_first = (uint32_t)blame->track->host.count;
	for (size_t i = cover_after(work, from_ns);
	     i < work->count && work->items[i].start_ns < event->launch_ns; i++) {
		uint64_t start = work->items[i].start_ns > from_ns ? work->items[i].start_ns : from_ns;
		uint64_t end =
		    work->items[i].end_ns < event->launch_ns ? work->items[i].end_ns : event->launch_ns;

		if (end <= start)
			continue;
		walk_begin(&blame->walk, blame->source->model, thread, false);
		walk_blame(&blame->walk, start, end);
	}
	event->host_count = (uint32_t)blame->track->host.count - event->host_first;
}

/* End of the collective before it on its stream, else the beginning. */
static uint64_t previous_end(const struct track *track, const struct track_event *event)
{
	const struct channel *channel = &track->channels.items[event->channel];
	uint64_t end = track->member.window_start_ns;

	for (size_t low = 0, high = channel->events.count; low < high;) {
		size_t middle = low + (high - low) / 2;
		const struct track_event *other = &track->events.items[channel->events.items[middle]];

		if (other < event) {
			end = other->end_ns;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return end;
}

static void blame_launches(struct blame *blame)
{
	const struct track_source *source = blame->source;
	const struct device *device = &source->model->devices.items[source->device];
	size_t next = 0;

	blame->list = &blame->track->host;
	blame->host = true;
	for (uint32_t i = 0; i < device->ops.count; i++) {
		const struct gpu_op *op = &device->ops.items[i];
		struct track_event *event;
		uint64_t from;

		if (!op->collective || (source->process != MODEL_NONE && op->process != source->process))
			continue;
		event = &blame->track->events.items[next++];
		from = previous_end(blame->track, event);
		if (event->launch_ns > from && is_launched_late(blame, i))
			blame_launch(blame, event, op->launch_thread, from);
	}
}

int track_blame(struct track *track, const struct track_source *source, const struct gap_list *gaps)
{
	const struct device *device = &source->model->devices.items[source->device];
	struct blame blame = {.track = track, .source = source, .list = &track->idle};
	const struct gap *gap;

	blame.walk = (struct walk){.leaf = keep_leaf, .context = &blame};
	launch_floor_measure(&blame.floor, source->model, device, gaps);
	array_for_each (gap, gaps)
		gap_blame(&blame.walk, source->model, source->device, gap, &blame.floor);
	blame_launches(&blame);
	return blame.failed ? -ENOMEM : 0;
}
