// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "attribute/gap_chains.h"
#include "base/number.h"
#include "model/copy_name.h"
#include "report/html_parts.h"

#define ROWS_MOST  300 /* of a table; the page says how many more there are */
#define AROUND_OPS 60  /* operations, and calls, shown around a gap */

static json_t *table_list(struct maker *maker, const struct table_source *source, const enum table_id *ids,
                          size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		struct table table;

		if (table_make(&table, ids[i], source))
			maker->failed = true;
		else
			append(maker, list, make_table(maker, &table, ROWS_MOST, HTML_NAME_LIMIT));
		table_free(&table);
	}
	return list;
}

json_t *html_gpu_tables(struct maker *maker, const struct table_source *source,
                        const struct device_report *report)
{
	static const enum table_id ids[] = {TABLE_KERNELS, TABLE_COPY_TIME, TABLE_COPY_SIZE, TABLE_STEPS};
	struct table_source own = *source;

	own.device = gap_chains_device(source->model, report);
	if (own.device == MODEL_NONE)
		return json_array();
	return table_list(maker, &own, ids, sizeof(ids) / sizeof(ids[0]));
}

json_t *html_host_tables(struct maker *maker, const struct table_source *source)
{
	static const enum table_id ids[] = {TABLE_API, TABLE_RANGES, TABLE_RANGES_GPU, TABLE_OS_CALLS,
	                                    TABLE_OFF_CPU};

	return table_list(maker, source, ids, sizeof(ids) / sizeof(ids[0]));
}

json_t *html_steps(struct maker *maker, const struct device_report *report)
{
	json_t *list = json_array();

	for (size_t i = 0; i < report->steps.steps.count && i < HTML_STEPS_MOST; i++) {
		const struct step_figures *step = &report->steps.steps.items[i];

		append(maker, list,
		       json_pack("[I, I, i]", (json_int_t)(step->start_ns - report->window_start_ns),
		                 (json_int_t)(step->end_ns - step->start_ns),
		                 step->slow      ? 1
		                 : step->warm_up ? 2
		                                 : 0));
	}
	return list;
}

json_t *html_slow_steps(struct maker *maker, const struct device_report *report)
{
	json_t *list = json_array();
	const struct slow_step *slow;

	array_for_each (slow, &report->steps.slow) {
		const struct step_figures *step = &report->steps.steps.items[slow->step];

		append(maker, list,
		       json_pack("[I, I]", (json_int_t)(step->start_ns - report->window_start_ns),
		                 (json_int_t)(step->end_ns - step->start_ns)));
	}
	return list;
}

/* ---- the worst gaps ---- */

/* What a stretch of a chain is about, in words: the most telling of its details. */
static const char *link_detail(const struct cause_detail *detail)
{
	return detail->python     ? detail->python
	       : detail->path     ? detail->path
	       : detail->holder   ? detail->holder
	       : detail->function ? detail->function
	       : detail->lock     ? detail->lock
	                          : detail->syscall;
}

/* Times are from the gap's beginning: absolute ones need more digits than a page's numbers have. */
static json_int_t since(const struct gap_report *gap, uint64_t ns)
{
	return (json_int_t)(int64_t)(ns - gap->start_ns);
}

static json_t *gap_chain_list(struct maker *maker, const struct gap_report *gap)
{
	json_t *list = json_array();
	const struct chain_link *link;

	array_for_each (link, &gap->chain) {
		append(maker, list,
		       json_pack("{s:I, s:I, s:o, s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o}", "pid",
		                 (json_int_t)link->pid, "tid", (json_int_t)link->tid, "comm",
		                 html_name(link->comm), "state", link->state, "code",
		                 cause_code_name(link->code), "role", cause_role_name(link->role),
		                 "confidence", confidence_name(link->confidence), "start",
		                 since(gap, link->start_ns), "end", since(gap, link->end_ns), "via",
		                 html_name(link->via), "detail", html_name(link_detail(&link->detail))));
	}
	return list;
}

static json_t *ops_around(struct maker *maker, const struct model *model, const struct device *device,
                          const struct gap_report *gap, uint64_t from_ns, uint64_t to_ns)
{
	json_t *list = json_array();
	char copy[COPY_NAME_SIZE];
	const struct gpu_op *op;
	unsigned count = 0;

	array_for_each (op, &device->ops) {
		if (op->start_ns > to_ns || count == AROUND_OPS)
			break;
		if (op->end_ns < from_ns)
			continue;
		count++;
		append(maker, list,
		       json_pack("[I, o, I, I]", (json_int_t)op->stream, html_name(op_title(copy, model, op)),
		                 since(gap, op->start_ns), since(gap, op->end_ns)));
	}
	return list;
}

static json_t *calls_around(struct maker *maker, const struct model *model, const struct gap_report *gap,
                            uint64_t from_ns, uint64_t to_ns)
{
	uint32_t index = gap->tid ? model_thread_at(model, gap->tid, gap->end_ns) : MODEL_NONE;
	json_t *list = json_array();
	const struct call *call;
	unsigned count = 0;

	if (index == MODEL_NONE)
		return list;
	array_for_each (call, &model->threads.items[index].calls) {
		if (call->enter_ns > to_ns || count == AROUND_OPS)
			break;
		if (call->exit_ns < from_ns)
			continue;
		count++;
		append(maker, list,
		       json_pack("[o, I, I]", html_name(model_string(model, call->function)),
		                 since(gap, call->enter_ns), since(gap, call->exit_ns)));
	}
	return list;
}

json_t *html_top_gaps(struct maker *maker, const struct model *model, const struct device_report *report)
{
	uint32_t index = gap_chains_device(model, report);
	json_t *list = json_array();
	const struct gap_report *gap;

	array_for_each (gap, &report->top_gaps) {
		uint64_t margin = (gap->end_ns - gap->start_ns) / 4;
		uint64_t from =
		    later(gap->start_ns - earlier(margin, gap->start_ns), report->window_start_ns);
		uint64_t to = gap->end_ns + margin;
		json_t *object = json_object();

		set(maker, object, "start", make_integer(gap->start_ns - report->window_start_ns));
		set(maker, object, "end", make_integer(gap->end_ns - report->window_start_ns));
		set(maker, object, "kernel", html_name(gap->kernel));
		set(maker, object, "launch", html_name(gap->launch));
		set(maker, object, "pid", make_integer(gap->pid));
		set(maker, object, "tid", make_integer(gap->tid));
		set(maker, object, "comm", html_name(gap->comm));
		set(maker, object, "chain", gap_chain_list(maker, gap));
		set(maker, object, "ops",
		    ops_around(maker, model, &model->devices.items[index], gap, from, to));
		set(maker, object, "calls", calls_around(maker, model, gap, from, to));
		append(maker, list, object);
	}
	return list;
}
