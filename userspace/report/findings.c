// SPDX-License-Identifier: GPL-2.0-only
#include "report/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/advice.h"
#include "report/findings_parts.h"
#include "report/format.h"

static uint64_t window_ns(const struct device_report *device)
{
	return device->window_end_ns > device->window_start_ns
	           ? device->window_end_ns - device->window_start_ns
	           : 0;
}

/* part < percent % of whole, without overflow. */
static bool is_below(uint64_t part, uint64_t whole, unsigned percent)
{
	return (double)part * 100 < (double)whole * percent;
}

bool findings_device_healthy(const struct device_report *device)
{
	return is_below(device->idle_ns, window_ns(device), 3);
}

static bool is_candidate(const struct device_report *device, const struct cause *cause)
{
	uint64_t window = window_ns(device);

	if (findings_device_healthy(device) || !cause->ns || is_below(cause->ns, window, 1))
		return false;
	if (cause->code == CAUSE_DEVICE_FLOOR || cause->code == CAUSE_EXTERNAL_NO_WORK ||
	    cause_is_unknown(cause->code))
		return false;
	/* Recording adds to each of these gaps (0.8 µs an operation on an H200, docs/results.md). */
	if (cause->code == CAUSE_HOST_LAUNCH_BOUND && is_below(cause->ns, window, 3))
		return false;
	if (cause->code == CAUSE_TOOL_OVERHEAD)
		return !is_below(cause->ns, window, 5) && (double)cause->ns * 100 > (double)window * 5;
	return true;
}

/* Larger gain first, then more idle time, then the order of codes and roles, so that reports can be compared.
 */
static int candidate_compare(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->cause->gain_high_ns != b->cause->gain_high_ns)
		return a->cause->gain_high_ns < b->cause->gain_high_ns ? 1 : -1;
	if (a->cause->ns != b->cause->ns)
		return a->cause->ns < b->cause->ns ? 1 : -1;
	if (a->device->device != b->device->device)
		return a->device->device < b->device->device ? -1 : 1;
	if (a->cause->code != b->cause->code)
		return a->cause->code < b->cause->code ? -1 : 1;
	return (int)a->cause->role - (int)b->cause->role;
}

/* All candidates, best first; of one (code, role) only the best device stays in front of `kinds`. */
static int candidates_collect(struct candidates *all, const struct analysis *analysis)
{
	const struct device_report *device;
	const struct cause *cause;

	array_for_each (device, &analysis->devices) {
		array_for_each (cause, &device->causes) {
			struct candidate *candidate;

			if (!is_candidate(device, cause))
				continue;
			candidate = array_add(all);
			if (!candidate)
				return -ENOMEM;
			candidate->device = device;
			candidate->cause = cause;
		}
	}
	array_sort(all, candidate_compare);
	return 0;
}

static int advice_for(struct finding *finding, const struct cause *cause)
{
	char enough[16], ample[16], workers[16], path[FORMAT_TEXT_SIZE(32)], holder[FORMAT_TEXT_SIZE(24)];
	char function[FORMAT_TEXT_SIZE(32)], thread[FORMAT_TEXT_SIZE(NAME_COLUMNS)];
	const struct cause_detail *detail = &cause->detail;
	struct advice_facts facts = {0};

	if (cause->group.count) {
		snprintf(workers, sizeof(workers), "%" PRIu32, cause->group.count);
		facts.workers = workers;
	}
	if (cause->group.enough > cause->group.count) {
		snprintf(enough, sizeof(enough), "%" PRIu32, cause->group.enough);
		facts.enough = enough;
	} else if (cause->group.enough) {
		snprintf(ample, sizeof(ample), "%" PRIu32, cause->group.enough);
		facts.ample = ample;
	}
	if (detail->path)
		facts.path = format_text(path, sizeof(path), detail->path, 32);
	if (detail->holder)
		facts.holder = format_text(holder, sizeof(holder), detail->holder, 24);
	if (detail->function)
		facts.function = format_text(function, sizeof(function), detail->function, 32);
	if (cause->threads.count)
		facts.thread = name_text(thread, cause->threads.items[0].comm);
	return advice_make(&finding->advice, &finding->hint, cause->code, cause->role, &facts);
}

static int finding_fill(struct finding *finding, const struct candidate *candidate,
                        const struct candidates *all)
{
	const struct cause *cause = candidate->cause;
	size_t size;
	FILE *out;
	int err;

	finding->code = cause->code;
	finding->role = cause->role;
	finding->confidence = cause->confidence;
	finding->device = candidate->device->device;
	finding->window_ns = window_ns(candidate->device);
	finding->idle_ns = cause->ns;
	finding->gain_low_ns = cause->gain_low_ns;
	finding->gain_high_ns = cause->gain_high_ns;
	out = open_memstream(&finding->title, &size);
	if (!out)
		return -ENOMEM;
	title_print(out, candidate);
	if (fclose(out))
		return -ENOMEM;
	err = advice_for(finding, cause);
	return err ? err : evidence_make(finding, candidate, all);
}

/* True if a better candidate before this one is of the same kind, which then speaks for both. */
static bool is_repeated(const struct candidates *all, const struct candidate *candidate)
{
	for (const struct candidate *other = all->items; other < candidate; other++) {
		if (same_kind(other->cause, candidate->cause))
			return true;
	}
	return false;
}

int findings_make(struct findings *findings, const struct analysis *analysis)
{
	struct candidates all = {0};
	const struct candidate *candidate;
	int err = candidates_collect(&all, analysis);

	memset(findings, 0, sizeof(*findings));
	array_for_each (candidate, &all) {
		struct finding *finding;

		if (err || findings->count == FINDINGS_MOST)
			break;
		if (is_repeated(&all, candidate))
			continue;
		finding = array_add(findings);
		if (!finding) {
			err = -ENOMEM;
			break;
		}
		finding->rank = (uint32_t)findings->count;
		err = finding_fill(finding, candidate, &all);
	}
	array_free(&all);
	return err;
}

void findings_free(struct findings *findings)
{
	struct finding *finding;
	char **line;

	array_for_each (finding, findings) {
		array_for_each (line, &finding->evidence)
			free(*line);
		array_free(&finding->evidence);
		free(finding->title);
		free(finding->advice);
		free(finding->hint);
	}
	array_free(findings);
}
