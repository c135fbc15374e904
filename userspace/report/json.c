// SPDX-License-Identifier: GPL-2.0-only
/* The JSON report: docs/report.schema.json describes every field. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "report/findings.h"
#include "report/format.h"
#include "report/json_parts.h"
#include "report/report.h"

/* Nothing at all where the text is not known. */
static void set_text_if_known(struct maker *maker, json_t *object, const char *key, const char *text)
{
	if (text)
		set(maker, object, key, make_text(text));
}

static json_t *make_share(double share)
{
	return json_real(isfinite(share) ? share : 0);
}

static json_t *make_gain(struct maker *maker, uint64_t low_ns, uint64_t high_ns)
{
	json_t *gain = json_array();

	append(maker, gain, make_integer(low_ns));
	append(maker, gain, make_integer(high_ns));
	return gain;
}

static json_t *make_detail(struct maker *maker, const struct cause_detail *detail)
{
	json_t *object = json_object(), *stack;

	set_text_if_known(maker, object, "syscall", detail->syscall);
	set_text_if_known(maker, object, "path", detail->path);
	set_text_if_known(maker, object, "device", detail->device);
	set_text_if_known(maker, object, "lock", detail->lock);
	set_text_if_known(maker, object, "function", detail->function);
	set_text_if_known(maker, object, "python", detail->python);
	set_text_if_known(maker, object, "holder", detail->holder);
	set_text_if_known(maker, object, "waits_for", detail->waits_for);
	if (detail->stack_count) {
		stack = json_array();
		for (size_t i = 0; i < detail->stack_count; i++)
			append(maker, stack, make_text(detail->stack[i]));
		set(maker, object, "stack", stack);
	}
	return object;
}

static json_t *make_thread(struct maker *maker, const struct cause_thread *thread)
{
	json_t *object = json_object();

	set(maker, object, "pid", make_integer(thread->pid));
	set(maker, object, "tid", make_integer(thread->tid));
	set(maker, object, "comm", make_text(thread->comm));
	set_text_if_known(maker, object, "cmdline", thread->cmdline);
	set_text_if_known(maker, object, "container", thread->container);
	set_text_if_known(maker, object, "pod", thread->pod);
	if (thread->namespace_pid)
		set(maker, object, "namespace_pid", make_integer(thread->namespace_pid));
	set(maker, object, "ns", make_integer(thread->ns));
	return object;
}

static json_t *make_group(struct maker *maker, const struct worker_group *group)
{
	json_t *object = json_object();

	set(maker, object, "workers", make_integer(group->count));
	set(maker, object, "enough", group->enough ? make_integer(group->enough) : json_null());
	set(maker, object, "wait_ns", make_integer(group->wait_ns));
	set(maker, object, "running", make_share(group->running));
	set(maker, object, "runnable", make_share(group->runnable));
	set(maker, object, "blocked_sleep", make_share(group->blocked_sleep));
	set(maker, object, "blocked_disk", make_share(group->blocked_disk));
	set(maker, object, "blocked_network", make_share(group->blocked_network));
	set(maker, object, "blocked_input", make_share(group->blocked_input));
	set(maker, object, "blocked_other", make_share(group->blocked_other));
	return object;
}

/* What replaying the dependencies without the cause gave. */
static json_t *make_cause_replay(struct maker *maker, const struct cause *cause)
{
	json_t *object = json_object(), *curve = json_array(), *next = json_null();

	for (int i = 0; i < CAUSE_CURVE; i++)
		append(maker, curve, make_integer(cause->gain_curve_ns[i]));
	set(maker, object, "curve_ns", curve);
	if (cause->has_next) {
		next = json_object();
		set(maker, next, "code", make_text(cause_code_name(cause->next_code)));
		set(maker, next, "role", make_text(cause_role_name(cause->next_role)));
	}
	set(maker, object, "next", next);
	return object;
}

static json_t *make_replay(struct maker *maker, const struct replay_report *replay)
{
	json_t *object = json_object();

	set(maker, object, "accepted", json_boolean(replay->accepted));
	set(maker, object, "error_median", make_share(replay->error_median));
	set(maker, object, "error_p95", make_share(replay->error_p95));
	set(maker, object, "gap_error", make_share(replay->gap_error));
	return object;
}

static json_t *make_cause(struct maker *maker, const struct device_report *device, const struct cause *cause)
{
	json_t *object = json_object(), *threads = json_array();
	const struct cause_thread *thread;

	set(maker, object, "code", make_text(cause_code_name(cause->code)));
	set(maker, object, "role", make_text(cause_role_name(cause->role)));
	set(maker, object, "confidence", make_text(confidence_name(cause->confidence)));
	set(maker, object, "ns", make_integer(cause->ns));
	set(maker, object, "share_of_idle",
	    make_share(device->idle_ns ? (double)cause->ns / (double)device->idle_ns : 0));
	set(maker, object, "gap_count", make_integer(cause->gap_count));
	set(maker, object, "gain_ns", make_gain(maker, cause->gain_low_ns, cause->gain_high_ns));
	set(maker, object, "replay", cause->replayed ? make_cause_replay(maker, cause) : json_null());
	array_for_each (thread, &cause->threads)
		append(maker, threads, make_thread(maker, thread));
	set(maker, object, "threads", threads);
	set(maker, object, "waiter", cause->waiter ? make_thread(maker, cause->waiter) : json_null());
	set(maker, object, "group", cause->group.count ? make_group(maker, &cause->group) : json_null());
	set(maker, object, "detail", make_detail(maker, &cause->detail));
	return object;
}

static json_t *make_link(struct maker *maker, const struct chain_link *link)
{
	json_t *object = json_object();

	set(maker, object, "pid", make_integer(link->pid));
	set(maker, object, "tid", make_integer(link->tid));
	set(maker, object, "comm", make_text(link->comm));
	set(maker, object, "state", make_text(link->state));
	set(maker, object, "code", make_text(cause_code_name(link->code)));
	set(maker, object, "role", make_text(cause_role_name(link->role)));
	set(maker, object, "confidence", make_text(confidence_name(link->confidence)));
	set(maker, object, "start_ns", make_integer(link->start_ns));
	set(maker, object, "end_ns", make_integer(link->end_ns));
	set_text_if_known(maker, object, "via", link->via);
	set(maker, object, "detail", make_detail(maker, &link->detail));
	return object;
}

static json_t *make_ended_by(struct maker *maker, const struct gap_report *gap)
{
	json_t *object;

	if (!gap->kernel && !gap->tid)
		return json_null();
	object = json_object();
	set(maker, object, "kernel", make_text(gap->kernel));
	set(maker, object, "launch", make_text(gap->launch));
	set(maker, object, "pid", gap->tid ? make_integer(gap->pid) : json_null());
	set(maker, object, "tid", gap->tid ? make_integer(gap->tid) : json_null());
	set(maker, object, "comm", gap->tid ? make_text(gap->comm) : json_null());
	return object;
}

static json_t *make_gap(struct maker *maker, const struct gap_report *gap)
{
	json_t *object = json_object(), *chain = json_array();
	const struct chain_link *link;

	set(maker, object, "start_ns", make_integer(gap->start_ns));
	set(maker, object, "end_ns", make_integer(gap->end_ns));
	set(maker, object, "ended_by", make_ended_by(maker, gap));
	array_for_each (link, &gap->chain)
		append(maker, chain, make_link(maker, link));
	set(maker, object, "chain", chain);
	return object;
}

static json_t *make_uuid(const uint8_t uuid[16])
{
	static const uint8_t none[16];
	char text[4 + 36 + 1] = "GPU-";
	size_t used = 4;

	if (!memcmp(uuid, none, sizeof(none)))
		return json_null();
	for (unsigned i = 0; i < 16; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%02x",
		                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return json_string(text);
}

static json_t *make_window(struct maker *maker, uint64_t start_ns, uint64_t end_ns)
{
	json_t *object = json_object();

	set(maker, object, "start_ns", make_integer(start_ns));
	set(maker, object, "end_ns", make_integer(end_ns));
	return object;
}

static json_t *make_idle_by_launch(struct maker *maker, const struct device_report *device)
{
	json_t *object = json_object();

	set(maker, object, "queued", make_integer(device->queued_ns));
	set(maker, object, "late", make_integer(device->late_ns));
	set(maker, object, "unknown", make_integer(device->unknown_ns));
	return object;
}

static json_t *make_device(struct maker *maker, const struct device_report *device)
{
	json_t *object = json_object(), *causes = json_array(), *gaps = json_array();
	const struct gap_report *gap;
	const struct cause *cause;

	set(maker, object, "device", make_integer(device->device));
	set(maker, object, "name", make_text(device->name));
	set(maker, object, "uuid", make_uuid(device->uuid));
	set(maker, object, "simulated", json_boolean(device->simulated));
	set(maker, object, "window", make_window(maker, device->window_start_ns, device->window_end_ns));
	set(maker, object, "busy_ns", make_integer(device->busy_ns));
	set(maker, object, "idle_ns", make_integer(device->idle_ns));
	set(maker, object, "compute_busy_ns", make_integer(device->compute_busy_ns));
	set(maker, object, "lead_in_ns", make_integer(device->lead_in_ns));
	set(maker, object, "trail_out_ns", make_integer(device->trail_out_ns));
	set(maker, object, "gap_count", make_integer(device->gap_count));
	set(maker, object, "op_count", make_integer(device->op_count));
	set(maker, object, "idle_by_launch_ns", make_idle_by_launch(maker, device));
	set(maker, object, "replay", device->replay.ran ? make_replay(maker, &device->replay) : json_null());
	array_for_each (cause, &device->causes)
		append(maker, causes, make_cause(maker, device, cause));
	set(maker, object, "causes", causes);
	array_for_each (gap, &device->top_gaps)
		append(maker, gaps, make_gap(maker, gap));
	set(maker, object, "top_gaps", gaps);
	set(maker, object, "steps", make_steps(maker, &device->steps));
	return object;
}

static json_t *make_finding(struct maker *maker, const struct finding *finding)
{
	json_t *object = json_object(), *evidence = json_array();
	char **line;

	set(maker, object, "rank", make_integer(finding->rank));
	set(maker, object, "code", make_text(cause_code_name(finding->code)));
	set(maker, object, "role", make_text(cause_role_name(finding->role)));
	set(maker, object, "confidence", make_text(confidence_name(finding->confidence)));
	set(maker, object, "device", make_integer(finding->device));
	set(maker, object, "title", make_text(finding->title));
	set(maker, object, "advice", make_text(finding->advice));
	set(maker, object, "hint", make_text(*finding->hint ? finding->hint : NULL));
	set(maker, object, "idle_ns", make_integer(finding->idle_ns));
	set(maker, object, "gain_ns", make_gain(maker, finding->gain_low_ns, finding->gain_high_ns));
	array_for_each (line, &finding->evidence)
		append(maker, evidence, make_text(*line));
	set(maker, object, "evidence", evidence);
	return object;
}

/* The tier is a string of the session file, which may hold anything. */
static json_t *make_tier(const char *tier)
{
	bool known = tier && (!strcmp(tier, "T0") || !strcmp(tier, "T1") || !strcmp(tier, "T2"));

	return known ? json_string(tier) : json_null();
}

static json_t *make_source(struct maker *maker, const struct analysis *analysis)
{
	json_t *object = json_object();

	set(maker, object, "kind", make_text(analysis->source ? analysis->source : "session"));
	set(maker, object, "tier", make_tier(analysis->tier));
	set(maker, object, "gpu_timeline", make_text(analysis->timeline ? analysis->timeline : "none"));
	set(maker, object, "simulated", json_boolean(analysis->simulated));
	set(maker, object, "command", make_text(analysis->command));
	set(maker, object, "incomplete", json_boolean(analysis->incomplete));
	return object;
}

static json_t *make_losses(struct maker *maker, const struct loss_report *losses)
{
	json_t *object = json_object();

	set(maker, object, "bpf_ring", make_integer(losses->bpf_ring));
	set(maker, object, "bridge_ring", make_integer(losses->bridge_ring));
	set(maker, object, "cupti", make_integer(losses->cupti));
	set(maker, object, "stacks", make_integer(losses->stacks));
	set(maker, object, "storage", make_integer(losses->storage));
	set(maker, object, "file", make_integer(losses->file));
	set(maker, object, "user_stacks", make_integer(losses->user_stacks));
	return object;
}

static json_t *make_rate(uint64_t count, uint64_t ns)
{
	return make_share(ns ? (double)count * 1e9 / (double)ns : 0);
}

/* Null where none were taken. */
static json_t *make_stacks(struct maker *maker, const struct analysis *analysis)
{
	const struct stack_report *stacks = &analysis->stacks;
	uint64_t ns = analysis->session_end_ns - analysis->session_start_ns;
	json_t *object;

	if (!stacks->cost.copied || analysis->session_end_ns <= analysis->session_start_ns)
		return json_null();
	object = json_object();
	set(maker, object, "copied", make_integer(stacks->cost.copied));
	set(maker, object, "copied_per_s", make_rate(stacks->cost.copied, ns));
	set(maker, object, "copied_bytes_per_s", make_rate(stacks->cost.copied_bytes, ns));
	set(maker, object, "sent", make_integer(stacks->cost.sent));
	set(maker, object, "sent_per_s", make_rate(stacks->cost.sent, ns));
	set(maker, object, "sent_bytes_per_s", make_rate(stacks->cost.sent_bytes, ns));
	set(maker, object, "sampled_frames", make_integer(stacks->frames));
	set(maker, object, "sampled_frames_named", make_integer(stacks->frames_named));
	set(maker, object, "unnamed_file", make_text(stacks->unnamed_file));
	set(maker, object, "unnamed_build_id", make_text(stacks->unnamed_build_id));
	set(maker, object, "unnamed_in_file", make_integer(stacks->unnamed_in_file));
	set(maker, object, "long_waits", make_integer(stacks->long_waits));
	set(maker, object, "long_waits_complete", make_integer(stacks->long_waits_complete));
	return object;
}

/* From the first window of a device to the end of the last; the recording where there is none. */
static json_t *make_whole_window(struct maker *maker, const struct analysis *analysis)
{
	const struct device_report *device;
	uint64_t start = UINT64_MAX, end = 0;

	array_for_each (device, &analysis->devices) {
		if (device->window_start_ns >= device->window_end_ns)
			continue;
		start = device->window_start_ns < start ? device->window_start_ns : start;
		end = device->window_end_ns > end ? device->window_end_ns : end;
	}
	if (start > end)
		return make_window(maker, analysis->session_start_ns, analysis->session_end_ns);
	return make_window(maker, start, end);
}

json_t *make_tool(struct maker *maker)
{
	json_t *object = json_object();

	set(maker, object, "name", json_string("whyidle"));
	set(maker, object, "version", json_string(WHYIDLE_VERSION));
	return object;
}

static json_t *make_report(struct maker *maker, const struct analysis *analysis,
                           const struct findings *findings)
{
	json_t *report = json_object(), *gpus = json_array(), *list = json_array(), *degraded = json_array();
	const struct device_report *device;
	const struct finding *finding;
	const char **line;

	set(maker, report, "schema", json_string(REPORT_SCHEMA));
	set(maker, report, "tool", make_tool(maker));
	set(maker, report, "source", make_source(maker, analysis));
	set(maker, report, "session",
	    make_window(maker, analysis->session_start_ns, analysis->session_end_ns));
	set(maker, report, "window", make_whole_window(maker, analysis));
	set(maker, report, "losses", make_losses(maker, &analysis->losses));
	set(maker, report, "user_stacks", make_stacks(maker, analysis));
	array_for_each (line, &analysis->degraded)
		append(maker, degraded, make_text(*line));
	set(maker, report, "degraded", degraded);
	array_for_each (finding, findings)
		append(maker, list, make_finding(maker, finding));
	set(maker, report, "findings", list);
	array_for_each (device, &analysis->devices)
		append(maker, gpus, make_device(maker, device));
	set(maker, report, "gpus", gpus);
	if (maker->ranks)
		set(maker, report, "ranks", make_ranks(maker));
	return report;
}

int report_json(FILE *out, const struct analysis *analysis, struct error *error)
{
	return report_json_with_ranks(out, analysis, NULL, error);
}

int report_json_with_ranks(FILE *out, const struct analysis *analysis, const struct ranks_report *ranks,
                           struct error *error)
{
	struct findings findings;
	struct maker maker = {.ranks = ranks};
	json_t *report = NULL;
	int err = findings_make(&findings, analysis);

	if (!err) {
		report = make_report(&maker, analysis, &findings);
		if (!report || maker.failed)
			err = -ENOMEM;
	}
	findings_free(&findings);
	if (err) {
		error_no_memory(error);
	} else if (json_dumpf(report, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) ||
	           fputc('\n', out) == EOF || fflush(out)) {
		err = error_set(error, -EIO, "cannot write the JSON report: %s", strerror(errno));
	}
	json_decref(report);
	return err;
}
