// SPDX-License-Identifier: GPL-2.0-only
/* Takes what is needed of one rank out of a model. */
#include "ranks/track.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "attribute/owner.h"
#include "ranks/host.h"

static const struct {
	const char *stem; /* in the kernel's name */
	const char *name;
} kinds[COLLECTIVE_KINDS] = {
    [COLLECTIVE_ALL_REDUCE] = {"allreduce", "AllReduce"},
    [COLLECTIVE_ALL_GATHER] = {"allgather", "AllGather"},
    [COLLECTIVE_REDUCE_SCATTER] = {"reducescatter", "ReduceScatter"},
    [COLLECTIVE_ALL_TO_ALL] = {"alltoall", "AllToAll"},
    [COLLECTIVE_BROADCAST] = {"broadcast", "Broadcast"},
    [COLLECTIVE_REDUCE] = {"reduce", "Reduce"}, /* after those that contain it */
    [COLLECTIVE_SEND_RECV] = {"sendrecv", "SendRecv"},
    [COLLECTIVE_OTHER] = {NULL, "other"},
};

static bool contains(const char *text, const char *stem)
{
	size_t length = strlen(stem);

	for (; *text; text++) {
		if (!strncasecmp(text, stem, length))
			return true;
	}
	return false;
}

enum collective_kind collective_kind_of(const char *kernel)
{
	for (int kind = 0; kind < COLLECTIVE_OTHER; kind++) {
		if (contains(kernel, kinds[kind].stem))
			return kind;
	}
	return COLLECTIVE_OTHER;
}

const char *collective_kind_name(enum collective_kind kind)
{
	return kinds[kind].name;
}

/* ---- covers ---- */

/* Adds a stretch that starts no earlier than all before it. */
static int cover_add(struct cover *cover, uint64_t start_ns, uint64_t end_ns)
{
	struct covered *last = cover->count ? &cover->items[cover->count - 1] : NULL;
	uint64_t before = last ? last->before_ns + (last->end_ns - last->start_ns) : 0;

	if (last && start_ns <= last->end_ns) {
		if (end_ns > last->end_ns)
			last->end_ns = end_ns;
		return 0;
	}
	if (end_ns == start_ns)
		return 0;
	last = array_add(cover);
	if (!last)
		return -ENOMEM;
	*last = (struct covered){start_ns, end_ns, before};
	return 0;
}

/* What is covered before a time. */
static uint64_t cover_until(const struct cover *cover, uint64_t ns)
{
	size_t low = 0, high = cover->count;
	const struct covered *item;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cover->items[middle].start_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	item = &cover->items[low - 1];
	return item->before_ns + ((ns < item->end_ns ? ns : item->end_ns) - item->start_ns);
}

size_t cover_after(const struct cover *cover, uint64_t ns)
{
	size_t low = 0, high = cover->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cover->items[middle].end_ns > ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint64_t cover_measure(const struct cover *cover, uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? cover_until(cover, to_ns) - cover_until(cover, from_ns) : 0;
}

/* ---- filling ---- */

static bool is_own(const struct track_source *source, const struct gpu_op *op)
{
	return source->process == MODEL_NONE || op->process == source->process;
}

static struct channel *find_channel(const struct track *track, uint32_t stream)
{
	struct channel *channel;

	array_for_each (channel, &track->channels) {
		if (channel->stream == stream)
			return channel;
	}
	return NULL;
}

static int add_channel_event(struct track *track, uint32_t stream, uint32_t event)
{
	struct channel *channel = find_channel(track, stream);
	uint32_t *slot;

	if (!channel) {
		channel = array_add(&track->channels);
		if (!channel)
			return -ENOMEM;
		channel->stream = stream;
		channel->group = RANKS_NONE;
	}
	track->events.items[event].channel = (uint32_t)(channel - track->channels.items);
	slot = array_add(&channel->events);
	if (!slot)
		return -ENOMEM;
	*slot = event;
	return 0;
}

static int add_event(struct track *track, const struct model *model, const struct gpu_op *op)
{
	struct track_event *event = array_add(&track->events);

	if (!event)
		return -ENOMEM;
	*event = (struct track_event){
	    .start_ns = op->start_ns,
	    .end_ns = op->end_ns,
	    .launch_ns = op->launch_ns,
	    .bytes = op->bytes,
	    .kind = collective_kind_of(model_string(model, op->name)),
	    .instance = RANKS_NONE,
	};
	return add_channel_event(track, op->stream, (uint32_t)track->events.count - 1);
}

static int add_kernel_start(struct track *track, uint64_t ns)
{
	uint64_t *slot = array_add(&track->kernel_starts);

	if (!slot)
		return -ENOMEM;
	*slot = ns;
	return 0;
}

/* Covers, events and gaps, in one pass over the operations. */
static int scan_operations(struct track *track, const struct track_source *source, struct cover *collectives,
                           struct gap_list *gaps)
{
	const struct device *device = &source->model->devices.items[source->device];
	struct ranks_member *member = &track->member;
	uint32_t before = MODEL_NONE;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < device->ops.count; i++) {
		const struct gpu_op *op = &device->ops.items[i];
		bool kernel = op->kind == OP_KERNEL || op->kind == OP_GRAPH;

		if (!is_own(source, op))
			continue;
		if (before == MODEL_NONE)
			member->window_start_ns = member->window_end_ns = op->start_ns;
		else if (op->start_ns > member->window_end_ns)
			rc = gap_list_add(gaps, member->window_end_ns, op->start_ns, i, before);
		if (before == MODEL_NONE || op->end_ns >= member->window_end_ns) {
			member->window_end_ns = op->end_ns;
			before = i;
		}
		if (!rc)
			rc = cover_add(&track->all, op->start_ns, op->end_ns);
		if (!rc && op->collective) {
			rc = cover_add(collectives, op->start_ns, op->end_ns);
			if (!rc)
				rc = add_event(track, source->model, op);
			continue;
		}
		if (!rc)
			rc = cover_add(&track->device_work, op->start_ns, op->end_ns);
		if (!rc && kernel)
			rc = cover_add(&track->compute, op->start_ns, op->end_ns);
		if (!rc && kernel)
			rc = add_kernel_start(track, op->start_ns);
	}
	return rc;
}

int track_fill(struct ranks *ranks, struct track *track, const struct model *model, uint32_t device,
               uint32_t process, bool compared)
{
	struct track_source source = {.ranks = ranks, .model = model, .device = device, .process = process};
	struct ranks_member *member = &track->member;
	struct cover collectives = {0};
	struct gap_list gaps = {0};
	int rc = scan_operations(track, &source, &collectives, &gaps);

	if (!rc) {
		member->busy_ns = cover_measure(&track->all, 0, UINT64_MAX);
		member->idle_ns = member->window_end_ns - member->window_start_ns - member->busy_ns;
		member->collective_ns = cover_measure(&collectives, 0, UINT64_MAX);
		member->alone_ns = member->busy_ns - cover_measure(&track->device_work, 0, UINT64_MAX);
		member->collectives = track->events.count;
		if (compared)
			rc = track_blame(track, &source, &gaps);
	}
	if (!rc)
		rc = steps_profiler(&track->steps, model, process);
	array_free(&collectives);
	gap_list_free(&gaps);
	return rc;
}

void track_free(struct track *track)
{
	struct channel *channel;

	array_for_each (channel, &track->channels)
		array_free(&channel->events);
	array_free(&track->channels);
	array_free(&track->events);
	array_free(&track->compute);
	array_free(&track->device_work);
	array_free(&track->all);
	array_free(&track->idle);
	array_free(&track->host);
	array_free(&track->kernel_starts);
	array_free(&track->steps);
}

size_t track_kernels(const struct track *track, uint64_t from_ns, uint64_t to_ns)
{
	size_t bounds[2];
	const uint64_t times[2] = {from_ns, to_ns};

	for (int i = 0; i < 2; i++) {
		size_t low = 0, high = track->kernel_starts.count;

		while (low < high) {
			size_t middle = low + (high - low) / 2;

			if (track->kernel_starts.items[middle] < times[i])
				low = middle + 1;
			else
				high = middle;
		}
		bounds[i] = low;
	}
	return bounds[1] - bounds[0];
}

uint64_t track_common(const struct ranks *ranks, const struct track *track, uint64_t ns)
{
	const struct input_state *input = &ranks->inputs.items[track->member.input];
	const struct clock_fit fit = {
	    .offset_ns = input->clock.offset_ns,
	    .drift = input->clock.drift,
	    .reference_ns = input->reference_ns,
	};

	return clock_fit_apply(&fit, ns);
}
