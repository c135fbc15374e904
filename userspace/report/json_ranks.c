// SPDX-License-Identifier: GPL-2.0-only
/* The ranks of a job as JSON: "ranks" in docs/report.schema.json. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "report/format.h"
#include "report/json_parts.h"
#include "report/ranks_findings.h"
#include "report/report.h"

/* A member by its rank. */
static json_t *make_rank(const struct maker *maker, uint32_t member)
{
	return member == RANKS_NONE ? json_null() : make_integer(maker->ranks->members.items[member].rank);
}

static json_t *make_clock(struct maker *maker, const struct ranks_clock *clock)
{
	static const char *const states[] = {
	    [CLOCK_SAME] = "same", [CLOCK_SHIFTED] = "shifted", [CLOCK_UNALIGNED] = "unaligned"};
	json_t *object = json_object();

	set(maker, object, "state", json_string(states[clock->state]));
	set(maker, object, "offset_ns", json_integer(clock->offset_ns));
	set(maker, object, "drift_ppm", json_real(isfinite(clock->drift) ? clock->drift * 1e6 : 0));
	set(maker, object, "error_ns", make_integer(clock->error_ns));
	set(maker, object, "collectives", make_integer(clock->collectives));
	return object;
}

/* What a member waited for: its part of each cause. */
static json_t *make_peers(struct maker *maker, uint32_t member)
{
	json_t *list = json_array(), *object;
	const struct ranks_peer *peer;

	array_for_each (peer, &maker->ranks->peers) {
		if (peer->member != member)
			continue;
		object = json_object();
		set(maker, object, "cause", make_integer(peer->cause));
		set(maker, object, "wait_ns", make_integer(peer->wait_ns));
		set(maker, object, "device_peer_ns", make_integer(peer->idle_ns));
		set(maker, object, "collectives", make_integer(peer->collectives));
		append(maker, list, object);
	}
	return list;
}

static json_t *make_member(struct maker *maker, uint32_t index)
{
	const struct ranks_member *member = &maker->ranks->members.items[index];
	json_t *object = json_object();

	set(maker, object, "rank", make_integer(member->rank));
	set(maker, object, "input", make_integer(member->input));
	set(maker, object, "path", make_text(member->path));
	set(maker, object, "device", make_integer(member->device));
	set(maker, object, "device_name", make_text(member->device_name));
	set(maker, object, "pid", make_integer(member->pid));
	set(maker, object, "window_start_ns", make_integer(member->window_start_ns));
	set(maker, object, "window_ns", make_integer(member->window_end_ns - member->window_start_ns));
	set(maker, object, "busy_ns", make_integer(member->busy_ns));
	set(maker, object, "idle_ns", make_integer(member->idle_ns));
	set(maker, object, "collective_ns", make_integer(member->collective_ns));
	set(maker, object, "collective_alone_ns", make_integer(member->alone_ns));
	set(maker, object, "wait_ns", make_integer(member->wait_ns));
	set(maker, object, "undecided_ns", make_integer(member->undecided_ns));
	set(maker, object, "device_peer_ns", make_integer(member->idle_wait_ns));
	set(maker, object, "caused_ns", make_integer(member->caused_ns));
	set(maker, object, "caused_delay_ns", make_integer(member->caused_delay_ns));
	set(maker, object, "collectives", make_integer(member->collectives));
	set(maker, object, "matched", make_integer(member->matched));
	set(maker, object, "last_count", make_integer(member->last_count));
	set(maker, object, "slowest_steps", make_integer(member->slowest_steps));
	set(maker, object, "waited_for", make_peers(maker, index));
	set(maker, object, "clock", make_clock(maker, &member->clock));
	return object;
}

static json_t *make_group(struct maker *maker, const struct ranks_group *group)
{
	json_t *object = json_object();

	set(maker, object, "members", make_integer(group->members));
	set(maker, object, "operations", make_text(group->operations));
	set(maker, object, "matched", make_integer(group->matched));
	set(maker, object, "incomplete", make_integer(group->incomplete));
	set(maker, object, "apart", make_integer(group->apart));
	set(maker, object, "undecided", make_integer(group->undecided));
	set(maker, object, "transfer_ns", make_integer(group->transfer_ns));
	set(maker, object, "bytes", group->bytes ? make_integer(group->bytes) : json_null());
	return object;
}

/* What a part of the waiting, or of the job's time, is about. */
static void set_subject(struct maker *maker, json_t *object, enum late_reason reason, enum cause_code code,
                        enum cause_role role)
{
	bool has_code = reason == LATE_IDLE || reason == LATE_HOST;

	set(maker, object, "reason", json_string(late_reason_name(reason)));
	set(maker, object, "code", has_code ? json_string(cause_code_name(code)) : json_null());
	set(maker, object, "role", has_code ? json_string(cause_role_name(role)) : json_null());
}

static void set_names(struct maker *maker, json_t *object, const char *thread, const char *detail,
                      const char *via)
{
	set(maker, object, "thread", *thread ? make_text(thread) : json_null());
	set(maker, object, "detail", *detail ? make_text(detail) : json_null());
	set(maker, object, "via", *via ? make_text(via) : json_null());
}

static json_t *make_cause(struct maker *maker, const struct ranks_cause *cause)
{
	json_t *object = json_object();

	set(maker, object, "rank", make_rank(maker, cause->late));
	set(maker, object, "root_rank", make_rank(maker, cause->root));
	set_subject(maker, object, cause->reason, cause->code, cause->role);
	set(maker, object, "confidence", json_string(confidence_name(cause->confidence)));
	set_names(maker, object, cause->thread, cause->detail, cause->via);
	set(maker, object, "wait_ns", make_integer(cause->wait_ns));
	set(maker, object, "delay_ns", make_integer(cause->delay_ns));
	set(maker, object, "collectives", make_integer(cause->collectives));
	return object;
}

static json_t *make_path(struct maker *maker)
{
	const struct ranks_path *path = &maker->ranks->path;
	json_t *object = json_object(), *causes = json_array(), *item;
	const struct ranks_path_cause *cause;

	array_for_each (cause, &path->causes) {
		item = json_object();
		set(maker, item, "root_rank", make_rank(maker, cause->root));
		set_subject(maker, item, cause->reason, cause->code, cause->role);
		set(maker, item, "confidence", json_string(confidence_name(cause->confidence)));
		set_names(maker, item, cause->thread, cause->detail, cause->via);
		set(maker, item, "ns", make_integer(cause->ns));
		append(maker, causes, item);
	}
	set(maker, object, "span_ns", make_integer(path->span_ns));
	set(maker, object, "compute_ns", make_integer(path->compute_ns));
	set(maker, object, "copy_ns", make_integer(path->copy_ns));
	set(maker, object, "transfer_ns", make_integer(path->transfer_ns));
	set(maker, object, "causes", causes);
	return object;
}

static json_t *make_finding(struct maker *maker, const struct ranks_finding *finding)
{
	json_t *object = json_object(), *evidence = json_array();
	char *const *text;

	array_for_each (text, &finding->evidence)
		append(maker, evidence, make_text(*text));
	set(maker, object, "kind", json_string(ranks_finding_name(finding->kind)));
	set(maker, object, "rank", make_rank(maker, finding->member));
	set(maker, object, "title", make_text(finding->title));
	set(maker, object, "advice", make_text(finding->advice));
	set(maker, object, "wait_ns", make_integer(finding->wait_ns));
	set(maker, object, "delay_ns", make_integer(finding->delay_ns));
	set(maker, object, "evidence", evidence);
	return object;
}

static json_t *make_findings(struct maker *maker)
{
	struct ranks_findings findings = {0};
	const struct ranks_finding *finding;
	json_t *list = json_array();

	if (ranks_findings_make(&findings, maker->ranks))
		maker->failed = true;
	array_for_each (finding, &findings) {
		if (!maker->failed)
			append(maker, list, make_finding(maker, finding));
	}
	ranks_findings_free(&findings);
	return list;
}

static json_t *make_step(struct maker *maker, const struct ranks_step *step)
{
	json_t *object = json_object();

	set(maker, object, "name", make_text(step->name));
	set(maker, object, "start_ns", make_integer(step->start_ns));
	set(maker, object, "end_ns", make_integer(step->end_ns));
	set(maker, object, "slowest", make_rank(maker, step->slowest));
	set(maker, object, "cause", step->cause == RANKS_NONE ? json_null() : make_integer(step->cause));
	set(maker, object, "collectives", make_integer(step->collectives));
	set(maker, object, "skew_ns", make_integer(step->skew_ns));
	set(maker, object, "wait_ns", make_integer(step->wait_ns));
	set(maker, object, "delay_ns", make_integer(step->delay_ns));
	return object;
}

json_t *make_ranks(struct maker *maker)
{
	const struct ranks_report *ranks = maker->ranks;
	json_t *object = json_object(), *missing = json_array(), *members = json_array();
	json_t *groups = json_array(), *causes = json_array(), *steps = json_array(), *notes = json_array();
	const struct ranks_group *group;
	const struct ranks_cause *cause;
	const struct ranks_step *step;
	const uint32_t *rank;
	const char **note;

	array_for_each (rank, &ranks->missing)
		append(maker, missing, make_integer(*rank));
	for (uint32_t i = 0; i < ranks->members.count; i++)
		append(maker, members, make_member(maker, i));
	array_for_each (group, &ranks->groups)
		append(maker, groups, make_group(maker, group));
	array_for_each (cause, &ranks->causes)
		append(maker, causes, make_cause(maker, cause));
	array_for_each (step, &ranks->steps)
		append(maker, steps, make_step(maker, step));
	array_for_each (note, &ranks->notes)
		append(maker, notes, make_text(*note));
	set(maker, object, "inputs", make_integer(ranks->inputs));
	set(maker, object, "world_size", ranks->world_size ? make_integer(ranks->world_size) : json_null());
	set(maker, object, "missing", missing);
	set(maker, object, "matched", make_integer(ranks->matched));
	set(maker, object, "notable", make_integer(ranks->notable));
	set(maker, object, "span_ns", make_integer(ranks->span_ns));
	set(maker, object, "wait_ns", make_integer(ranks->wait_ns));
	set(maker, object, "charged_ns", make_integer(ranks->charged_ns));
	set(maker, object, "undecided_ns", make_integer(ranks->undecided_ns));
	set(maker, object, "uncharged_ns", make_integer(ranks->uncharged_ns));
	set(maker, object, "delay_ns", make_integer(ranks->delay_ns));
	set(maker, object, "pattern", json_string(ranks_pattern_name(ranks->pattern)));
	set(maker, object, "slowest", make_rank(maker, ranks->slowest));
	set(maker, object, "members", members);
	set(maker, object, "groups", groups);
	set(maker, object, "causes", causes);
	set(maker, object, "path", make_path(maker));
	set(maker, object, "findings", make_findings(maker));
	set(maker, object, "steps", steps);
	set(maker, object, "notes", notes);
	return object;
}

static json_t *make_document(struct maker *maker, const char *const *reports, size_t count)
{
	json_t *object = NULL, *tool, *list;

	if (count == 1) {
		object = json_loads(reports[0], 0, NULL);
		set(maker, object, "ranks", make_ranks(maker));
		return object;
	}
	object = json_object();
	tool = json_object();
	list = json_array();
	set(maker, tool, "name", json_string("whyidle"));
	set(maker, tool, "version", json_string(WHYIDLE_VERSION));
	for (size_t i = 0; i < count; i++)
		append(maker, list, json_loads(reports[i], 0, NULL));
	set(maker, object, "schema", json_string(REPORT_RANKS_SCHEMA));
	set(maker, object, "tool", tool);
	set(maker, object, "ranks", make_ranks(maker));
	set(maker, object, "reports", list);
	return object;
}

int report_ranks_json(FILE *out, const struct ranks_report *ranks, const char *const *reports, size_t count,
                      struct error *error)
{
	struct maker maker = {.ranks = ranks};
	json_t *document = make_document(&maker, reports, count);
	int err = 0;

	if (!document || maker.failed)
		err = error_no_memory(error);
	else if (json_dumpf(document, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) ||
	         fputc('\n', out) == EOF || fflush(out))
		err = error_set(error, -EIO, "cannot write the JSON report: %s", strerror(errno));
	json_decref(document);
	return err;
}
