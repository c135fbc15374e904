// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "attribute/gap_chains.h"
#include "base/number.h"
#include "model/copy_name.h"
#include "report/html_parts.h"

#define ROWS_MOST  300 /* of a table; the rest is summed up in one row */
#define AROUND_OPS 60  /* operations, and calls, shown around a gap */

struct row {
	const char *name; /* borrowed, or `text` */
	char text[COPY_NAME_SIZE];
	uint64_t count, ns, least_ns, most_ns, bytes;
};

struct table {
	ARRAY(struct row)
	struct index_map by_name;
	bool failed;
};

/* The row of a name, made if need be; NULL if memory ran out. */
static struct row *table_row(struct table *table, const char *name, bool copy)
{
	uint64_t key = hash_bytes(name, strlen(name));
	struct row *row;
	uint32_t at;

	if (table->items && index_map_get(&table->by_name, key, &at))
		return &table->items[at];
	row = array_add(table);
	if (!row || index_map_put(&table->by_name, key, (uint32_t)table->count - 1))
		return NULL;
	row->least_ns = UINT64_MAX;
	row->name = copy ? NULL : name;
	if (copy)
		snprintf(row->text, sizeof(row->text), "%s", name);
	return row;
}

static void table_add(struct table *table, const char *name, bool copy, uint64_t ns, uint64_t bytes)
{
	struct row *row = table_row(table, name, copy);

	if (!row) {
		table->failed = true;
		return;
	}
	row->count++;
	row->ns += ns;
	row->bytes += bytes;
	row->least_ns = earlier(row->least_ns, ns);
	row->most_ns = later(row->most_ns, ns);
}

static int compare_row(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Rows [name, count, ns, least, most, bytes], the largest first. */
static json_t *table_finish(struct maker *maker, struct table *table)
{
	json_t *rows = json_array();
	struct row rest = {.name = "all others", .least_ns = UINT64_MAX};
	struct row *row;

	array_sort(table, compare_row);
	array_for_each (row, table) {
		if ((size_t)(row - table->items) >= ROWS_MOST) {
			rest.count += row->count;
			rest.ns += row->ns;
			rest.bytes += row->bytes;
			rest.least_ns = earlier(rest.least_ns, row->least_ns);
			rest.most_ns = later(rest.most_ns, row->most_ns);
		}
	}
	for (size_t i = 0; i <= table->count && i <= ROWS_MOST; i++) {
		row = i == ROWS_MOST ? &rest : i < table->count ? &table->items[i] : NULL;
		if (row && row->count)
			append(maker, rows,
			       json_pack("[o, I, I, I, I, I]", html_name(row->name ? row->name : row->text),
			                 (json_int_t)row->count, (json_int_t)row->ns,
			                 (json_int_t)row->least_ns, (json_int_t)row->most_ns,
			                 (json_int_t)row->bytes));
	}
	if (table->failed)
		maker->failed = true;
	free(table->items);
	index_map_free(&table->by_name);
	return rows;
}

static bool is_copy(const struct gpu_op *op)
{
	return op->kind == OP_MEMCPY || op->kind == OP_MEMSET;
}

static bool is_within(const struct device_report *report, uint64_t start_ns, uint64_t end_ns)
{
	return end_ns >= report->window_start_ns && start_ns <= report->window_end_ns;
}

static json_t *op_table(struct maker *maker, const struct model *model, const struct device_report *report,
                        bool copies)
{
	uint32_t index = gap_chains_device(model, report);
	struct table table = {0};
	char copy[COPY_NAME_SIZE];
	const struct gpu_op *op;

	if (index == MODEL_NONE)
		return json_array();
	array_for_each (op, &model->devices.items[index].ops) {
		if (is_copy(op) == copies && is_within(report, op->start_ns, op->end_ns))
			table_add(&table, copies ? copy_name(copy, op) : model_string(model, op->name),
			          copies, op->end_ns - op->start_ns, op->bytes);
	}
	return table_finish(maker, &table);
}

json_t *html_kernels(struct maker *maker, const struct model *model, const struct device_report *report)
{
	return op_table(maker, model, report, false);
}

json_t *html_copies(struct maker *maker, const struct model *model, const struct device_report *report)
{
	return op_table(maker, model, report, true);
}

json_t *html_calls(struct maker *maker, const struct model *model, const struct device_report *report)
{
	const struct thread *thread;
	struct table table = {0};
	const struct call *call;

	array_for_each (thread, &model->threads) {
		array_for_each (call, &thread->calls) {
			if (is_within(report, call->enter_ns, call->exit_ns))
				table_add(&table, model_string(model, call->function), false,
				          call->exit_ns - call->enter_ns, 0);
		}
	}
	return table_finish(maker, &table);
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
		       json_pack("[I, o, I, I]", (json_int_t)op->stream,
		                 html_name(is_copy(op) ? copy_name(copy, op) : model_string(model, op->name)),
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
