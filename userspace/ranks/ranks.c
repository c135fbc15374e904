// SPDX-License-Identifier: GPL-2.0-only
#include "ranks/ranks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "ranks/late.h"
#include "ranks/path.h"
#include "ranks/steps.h"

#define TEXT_MOST   512   /* bytes of a name that are kept */
#define LABELS_MOST 16384 /* then details are dropped: the largest causes are what is shown */
#define WORLD_MOST  65536 /* a damaged file may claim any */

static int add_fixed_labels(struct ranks *ranks)
{
	static const enum late_reason reasons[LABEL_FIXED] = {
	    [LABEL_COMPUTE_MORE] = LATE_COMPUTE,
	    [LABEL_COMPUTE_SLOW] = LATE_COMPUTE,
	    [LABEL_COPY] = LATE_COPY,
	    [LABEL_TRANSFER] = LATE_TRANSFER,
	    [LABEL_BEFORE] = LATE_BEFORE,
	};
	static const char *const details[LABEL_FIXED] = {
	    [LABEL_COMPUTE_MORE] = "more kernels",
	    [LABEL_COMPUTE_SLOW] = "as many kernels, but slower",
	};

	for (int i = 0; i < LABEL_FIXED; i++) {
		struct label *label = array_add(&ranks->labels);

		if (!label)
			return -ENOMEM;
		*label = (struct label){
		    .reason = reasons[i],
		    .code = CAUSE_DEVICE_PEER,
		    .role = ROLE_DEVICE,
		    .confidence = i == LABEL_BEFORE ? CONFIDENCE_LOW : CONFIDENCE_MEDIUM,
		    .thread = "",
		    .detail = details[i] ? details[i] : "",
		    .via = "",
		};
	}
	return 0;
}

struct ranks *ranks_new(void)
{
	struct ranks *ranks = calloc(1, sizeof(*ranks));

	if (ranks && add_fixed_labels(ranks)) {
		ranks_free(ranks);
		return NULL;
	}
	return ranks;
}

void ranks_free(struct ranks *ranks)
{
	struct track *track;
	char **text;

	if (!ranks)
		return;
	array_for_each (track, &ranks->tracks)
		track_free(track);
	array_for_each (text, &ranks->texts)
		free(*text);
	groups_free(ranks);
	array_free(&ranks->tracks);
	array_free(&ranks->inputs);
	array_free(&ranks->labels);
	array_free(&ranks->shares);
	array_free(&ranks->notes);
	array_free(&ranks->texts);
	index_map_free(&ranks->label_by_key);
	index_map_free(&ranks->text_by_hash);
	free(ranks);
}

int ranks_note(struct ranks *ranks, const char *text)
{
	const char *kept = ranks_text(ranks, text), **slot = array_add(&ranks->notes);

	if (!kept || !slot)
		return -ENOMEM;
	*slot = kept;
	return 0;
}

const char *ranks_text(struct ranks *ranks, const char *text)
{
	size_t length = strnlen(text, TEXT_MOST);
	uint64_t key = hash_bytes(text, length);
	char **slot;
	uint32_t at;

	if (!length)
		return "";
	if (index_map_get(&ranks->text_by_hash, key, &at))
		return ranks->texts.items[at];
	slot = array_add(&ranks->texts);
	if (!slot)
		return NULL;
	*slot = strndup(text, length);
	if (!*slot || index_map_put(&ranks->text_by_hash, key, (uint32_t)ranks->texts.count - 1))
		return NULL;
	return *slot;
}

uint32_t ranks_label(struct ranks *ranks, const struct label *wanted)
{
	struct label label = *wanted, *slot;
	uint64_t key;
	uint32_t at;

	if (ranks->labels.count >= LABELS_MOST)
		label.thread = label.detail = label.via = "";
	/* Texts are kept once, so their addresses stand for them; the fields are written out because of
	 * padding. */
	key = hash_bytes((const uint64_t[]){label.reason, label.code, label.role, label.confidence,
	                                    *label.thread ? (uintptr_t)label.thread : 0,
	                                    *label.detail ? (uintptr_t)label.detail : 0,
	                                    *label.via ? (uintptr_t)label.via : 0},
	                 7 * sizeof(uint64_t));
	if (index_map_get(&ranks->label_by_key, key, &at))
		return at;
	slot = array_add(&ranks->labels);
	if (!slot || index_map_put(&ranks->label_by_key, key, (uint32_t)ranks->labels.count - 1))
		return RANKS_NONE;
	*slot = label;
	return (uint32_t)ranks->labels.count - 1;
}

/* ---- taking models in ---- */

/* A rank to be: a device, and the process on it where several share it. */
struct lane {
	uint32_t device, process; /* indices; process MODEL_NONE: whatever runs there is this rank's work */
	uint32_t owner;           /* process whose rank it is, MODEL_NONE */
	uint32_t pid;
};

struct lane_list {
	ARRAY(struct lane)
};

static int add_lane(struct lane_list *lanes, const struct model *model, uint32_t device, uint32_t process)
{
	struct lane *lane = array_add(lanes);

	if (!lane)
		return -ENOMEM;
	*lane = (struct lane){
	    .device = device,
	    .process = process,
	    .owner = process,
	    .pid = process == MODEL_NONE ? 0 : model->processes.items[process].pid,
	};
	return 0;
}

/* The process that all operations of a device are of, MODEL_NONE if there are several. */
static uint32_t only_process(const struct device *device)
{
	uint32_t process = device->ops.items[0].process;
	const struct gpu_op *op;

	array_for_each (op, &device->ops) {
		if (op->process != process)
			return MODEL_NONE;
	}
	return process;
}

/* One lane for each process that runs collectives on the device, in the order of their first. */
static int find_lanes(struct lane_list *lanes, const struct model *model, uint32_t index)
{
	const struct device *device = &model->devices.items[index];
	size_t first = lanes->count;
	struct index_map seen = {0};
	const struct gpu_op *op;
	uint32_t at;
	int rc = 0;

	array_for_each (op, &device->ops) {
		if (rc || !op->collective || index_map_get(&seen, op->process, &at))
			continue;
		rc = index_map_put(&seen, op->process, 0);
		if (!rc)
			rc = add_lane(lanes, model, index, op->process);
	}
	index_map_free(&seen);
	if (!rc && lanes->count == first && device->ops.count)
		rc = add_lane(lanes, model, index, only_process(device));
	if (!rc && lanes->count == first + 1)
		lanes->items[first].process = MODEL_NONE;
	return rc;
}

/* As the process was told, which then also knows the size of the job; RANKS_NONE: not known. */
static uint32_t lane_rank(struct ranks *ranks, const struct model *model, const struct lane *lane)
{
	struct input_state *input = &ranks->inputs.items[ranks->inputs.count - 1];
	const struct process *process;

	if (lane->owner == MODEL_NONE)
		return RANKS_NONE;
	process = &model->processes.items[lane->owner];
	if (!process->world_size || process->world_size > WORLD_MOST)
		return RANKS_NONE;
	if (process->world_size > input->world_size)
		input->world_size = process->world_size;
	return process->rank;
}

static int add_track(struct ranks *ranks, const struct model *model, const struct lane *lane, bool compared)
{
	const struct device *device = &model->devices.items[lane->device];
	struct track *track = array_add(&ranks->tracks);
	const char *name = ranks_text(ranks, model_string(model, device->name));
	uint32_t input = (uint32_t)ranks->inputs.count - 1;

	if (!track || !name)
		return -ENOMEM;
	track->member = (struct ranks_member){
	    .rank = lane_rank(ranks, model, lane),
	    .input = input,
	    .device = device->number,
	    .pid = lane->pid,
	    .path = ranks->inputs.items[input].path,
	    .device_name = name,
	};
	return track_fill(ranks, track, model, lane->device, lane->process, compared);
}

int ranks_add(struct ranks *ranks, const struct model *model, const struct ranks_input *input,
              struct error *error)
{
	struct input_state *state = array_add(&ranks->inputs);
	size_t first = ranks->tracks.count;
	struct lane_list lanes = {0};
	const struct lane *lane;
	int rc = 0;

	if (!state)
		return error_no_memory(error);
	*state = (struct input_state){
	    .path = ranks_text(ranks, input->path),
	    .rank = input->rank,
	    .world_size = input->world_size > WORLD_MOST ? 0 : input->world_size,
	    .clock = {.state = CLOCK_UNALIGNED},
	};
	if (!state->path)
		return error_no_memory(error);
	for (uint32_t i = 0; !rc && i < model->devices.count; i++)
		rc = find_lanes(&lanes, model, i);
	array_for_each (lane, &lanes) {
		if (!rc)
			rc = add_track(ranks, model, lane, !input->alone || lanes.count > 1);
	}
	/* A file that says which rank it is holds one. */
	if (!rc && ranks->tracks.count == first + 1 && input->rank != RANKS_NONE)
		ranks->tracks.items[first].member.rank = input->rank;
	array_free(&lanes);
	return rc ? error_no_memory(error) : 0;
}

/* ---- the report ---- */

static char *note_text(const char *format, va_list args)
{
	char *text;

	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

static int note(struct ranks_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int note(struct ranks_report *report, const char *format, ...)
{
	char **owned = array_add(&report->owned);
	const char **slot = array_add(&report->notes);
	va_list args;

	if (!owned || !slot)
		return -ENOMEM;
	va_start(args, format);
	*owned = note_text(format, args);
	va_end(args);
	*slot = *owned ? *owned : "";
	return *owned ? 0 : -ENOMEM;
}

static int compare_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Ranks as the files say, if all do and no two are the same (*known); else the order of the inputs. */
static int number_ranks(struct ranks *ranks, struct ranks_report *report, bool *is_known)
{
	struct {
		ARRAY(uint32_t)
	} numbers = {0};
	struct track *track;
	bool known = true;
	uint32_t next = 0;
	int rc = 0;

	array_for_each (track, &ranks->tracks) {
		uint32_t *slot = array_add(&numbers);

		if (!slot)
			rc = -ENOMEM;
		else
			*slot = track->member.rank;
		known &= track->member.rank != RANKS_NONE;
	}
	array_sort(&numbers, compare_number);
	for (size_t i = 1; !rc && known && i < numbers.count; i++) {
		if (numbers.items[i] != numbers.items[i - 1])
			continue;
		known = false;
		rc = note(report,
		          "Two inputs say that they are rank %u: ranks are numbered by the order of inputs.",
		          numbers.items[i]);
	}
	array_free(&numbers);
	if (!known) {
		array_for_each (track, &ranks->tracks)
			track->member.rank = next++;
	}
	*is_known = known;
	return rc;
}

static int compare_track(const void *a, const void *b)
{
	const struct track *x = a, *y = b;

	return (x->member.rank > y->member.rank) - (x->member.rank < y->member.rank);
}

static int list_missing(struct ranks *ranks, struct ranks_report *report)
{
	bool *there = calloc((size_t)report->world_size + 1, sizeof(*there));
	const struct track *track;
	int rc = there ? 0 : -ENOMEM;

	array_for_each (track, &ranks->tracks) {
		if (there && track->member.rank < report->world_size)
			there[track->member.rank] = true;
	}
	for (uint32_t rank = 0; !rc && rank < report->world_size; rank++) {
		uint32_t *slot = there[rank] ? NULL : array_add(&report->missing);

		if (slot)
			*slot = rank;
		else if (!there[rank])
			rc = -ENOMEM;
	}
	free(there);
	return rc;
}

/* The size of the job, and who of it is not here. */
static int find_missing(struct ranks *ranks, struct ranks_report *report, bool known)
{
	const struct input_state *input;
	uint32_t least = UINT32_MAX;

	array_for_each (input, &ranks->inputs) {
		if (!input->world_size)
			continue;
		report->world_size =
		    input->world_size > report->world_size ? input->world_size : report->world_size;
		least = input->world_size < least ? input->world_size : least;
	}
	if (report->world_size && least != report->world_size)
		return note(report,
		            "The inputs are of jobs with %u to %u ranks: they may not belong together.",
		            least, report->world_size);
	if (known)
		return list_missing(ranks, report);
	if (ranks->tracks.count < report->world_size)
		return note(report,
		            "The job has %u ranks, of which %zu are given; the inputs do not say which.",
		            report->world_size, ranks->tracks.count);
	return 0;
}

static int copy_text(struct ranks_report *report, const char **text)
{
	char **slot;

	if (!**text)
		return 0;
	slot = array_add(&report->owned);
	if (!slot)
		return -ENOMEM;
	*slot = strdup(*text);
	*text = *slot ? *slot : "";
	return *slot ? 0 : -ENOMEM;
}

/* "AllGather, ReduceScatter" */
static const char *group_operations(struct ranks_report *report, const struct group *group)
{
	bool there[COLLECTIVE_KINDS] = {false};
	const struct clock_mark *mark;
	char text[128], **slot = array_add(&report->owned);
	size_t used = 0;

	if (!slot)
		return NULL;
	text[0] = '\0';
	array_for_each (mark, &group->marks)
		there[mark->kind] = true;
	for (int kind = 0; kind < COLLECTIVE_KINDS; kind++) {
		if (there[kind])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? ", " : "",
			                         collective_kind_name(kind));
	}
	*slot = strdup(text);
	return *slot;
}

static int report_groups(struct ranks *ranks, struct ranks_report *report)
{
	const struct group *group;

	array_for_each (group, &ranks->groups) {
		struct ranks_group *shown = array_add(&report->groups);
		const struct instance *instance;
		const struct group_member *member;

		if (!shown)
			return -ENOMEM;
		*shown = (struct ranks_group){
		    .members = (uint32_t)group->members.count,
		    .operations = group_operations(report, group),
		    .apart = group->apart,
		    .undecided = group->undecided,
		    .transfer_ns = group->transfer_ns,
		};
		if (!shown->operations)
			return -ENOMEM;
		if (group->members.count < 2) {
			shown->incomplete = group->instances.count;
			continue;
		}
		array_for_each (instance, &group->instances)
			*(instance->present == group->members.count ? &shown->matched : &shown->incomplete) +=
			    1;
		array_for_each (member, &group->members)
			ranks->tracks.items[member->track].member.matched += shown->matched;
	}
	return 0;
}

static int report_members(struct ranks *ranks, struct ranks_report *report)
{
	const struct track *track;
	uint64_t most = 0;

	array_for_each (track, &ranks->tracks) {
		struct ranks_member *member = array_add(&report->members);
		const struct input_state *input;

		if (!member)
			return -ENOMEM;
		*member = track->member;
		input = &ranks->inputs.items[member->input];
		member->clock = input->clock;
		/* The drift was measured from the middle; it is shown from the rank's own beginning. */
		member->clock.offset_ns +=
		    (int64_t)(input->clock.drift *
		              (double)(int64_t)(member->window_start_ns - input->reference_ns));
		if (copy_text(report, &member->path) || copy_text(report, &member->device_name))
			return -ENOMEM;
		if (member->caused_ns > most) {
			most = member->caused_ns;
			report->slowest = (uint32_t)report->members.count - 1;
		}
	}
	return 0;
}

static int report_causes(struct ranks_report *report)
{
	struct ranks_path_cause *spent;
	struct ranks_cause *cause;

	array_for_each (spent, &report->path.causes) {
		if (copy_text(report, &spent->thread) || copy_text(report, &spent->detail) ||
		    copy_text(report, &spent->via))
			return -ENOMEM;
	}
	array_for_each (cause, &report->causes) {
		if (copy_text(report, &cause->thread) || copy_text(report, &cause->detail) ||
		    copy_text(report, &cause->via))
			return -ENOMEM;
		/* A rank that is not here may have come later still. */
		if (report->missing.count && cause->confidence > CONFIDENCE_MEDIUM)
			cause->confidence = CONFIDENCE_MEDIUM;
	}
	return 0;
}

static int note_limits(struct ranks *ranks, struct ranks_report *report)
{
	const struct track *track;
	const char **text;
	int rc = 0;

	array_for_each (text, &ranks->notes) {
		if (!rc)
			rc = note(report, "%s", *text);
	}
	array_for_each (track, &ranks->tracks) {
		const struct input_state *input = &ranks->inputs.items[track->member.input];

		if (rc || ranks->tracks.count < 2)
			break;
		if (!track->events.count)
			rc = note(report, "Rank %u (%s) has no collectives: nothing to compare it by.",
			          track->member.rank, track->member.path);
		else if (!input->aligned)
			rc = note(report,
			          "Rank %u (%s) has no collectives in common with the others, or they end at "
			          "unrelated times: its clock is not aligned and nothing is charged to it.",
			          track->member.rank, track->member.path);
	}
	return rc;
}

int ranks_solve(struct ranks *ranks, struct ranks_report *report, struct error *error)
{
	bool known = false;
	int rc;

	*report = (struct ranks_report){.inputs = (uint32_t)ranks->inputs.count, .slowest = RANKS_NONE};
	rc = number_ranks(ranks, report, &known);
	array_sort(&ranks->tracks, compare_track);
	if (!rc)
		rc = find_missing(ranks, report, known);
	if (!rc)
		rc = groups_make(ranks);
	if (!rc)
		rc = late_charge(ranks, report);
	if (!rc)
		rc = path_make(ranks, report);
	if (!rc)
		rc = report_groups(ranks, report);
	if (!rc)
		rc = steps_make(ranks, report);
	if (!rc)
		rc = report_members(ranks, report);
	if (!rc)
		rc = report_causes(report);
	if (!rc)
		rc = note_limits(ranks, report);
	return rc ? error_no_memory(error) : 0;
}

void ranks_report_free(struct ranks_report *report)
{
	char **text;

	array_for_each (text, &report->owned)
		free(*text);
	array_free(&report->owned);
	array_free(&report->missing);
	array_free(&report->members);
	array_free(&report->groups);
	array_free(&report->causes);
	array_free(&report->peers);
	array_free(&report->path.causes);
	array_free(&report->steps);
	array_free(&report->notes);
	*report = (struct ranks_report){0};
}

const char *late_reason_name(enum late_reason reason)
{
	static const char *const names[] = {"idle", "host", "compute", "copy", "transfer", "before"};

	return names[reason];
}

const char *ranks_pattern_name(enum ranks_pattern pattern)
{
	static const char *const names[] = {"none", "steady", "some", "random"};

	return names[pattern];
}
