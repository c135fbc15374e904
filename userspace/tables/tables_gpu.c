// SPDX-License-Identifier: GPL-2.0-only
/* What ran on the GPUs, and what ranges of the program mean there. */
#include <errno.h>

#include "base/number.h"
#include "model/copy_name.h"
#include "tables/group.h"

static bool is_copy(const struct gpu_op *op)
{
	return op->kind == OP_MEMCPY || op->kind == OP_MEMSET;
}

static bool has_device(const struct table_source *source, uint32_t device)
{
	return source->device == MODEL_NONE || source->device == device;
}

/* Groups the operations: of copies either the time or the size. */
static void group_ops(struct groups *groups, struct table *table, const struct table_source *source,
                      bool copies, bool sizes)
{
	const struct model *model = source->model;
	char buffer[COPY_NAME_SIZE];

	for (uint32_t d = 0; d < model->devices.count; d++) {
		const struct gpu_op *op;

		if (!has_device(source, d))
			continue;
		array_for_each (op, &model->devices.items[d].ops) {
			const char *name;

			if (is_copy(op) != copies || !source_has(source, op->start_ns, op->end_ns))
				continue;
			name = op_title(buffer, model, op);
			if (!group_add(groups, name, NULL, name == buffer ? table : NULL,
			               sizes ? op->bytes : op->end_ns - op->start_ns))
				return;
		}
	}
}

int fill_kernels(struct table *table, const struct table_source *source)
{
	struct groups groups = {0};

	group_ops(&groups, table, source, false, false);
	return fill_by_time(table, &groups, false);
}

int fill_copy_time(struct table *table, const struct table_source *source)
{
	struct groups groups = {0};

	group_ops(&groups, table, source, true, false);
	return fill_by_time(table, &groups, false);
}

int fill_copy_size(struct table *table, const struct table_source *source)
{
	struct group_figures figures;
	struct groups groups = {0};
	struct group *group;
	int rc;

	group_ops(&groups, table, source, true, true);
	rc = groups.failed ? -ENOMEM : 0;
	groups_sort(&groups);
	array_for_each (group, &groups) {
		if (rc)
			break;
		group_measure(group, &figures);
		rc = put_figures(table, &figures);
		if (!rc)
			rc = put_text(table, group->name);
	}
	table_groups_free(&groups);
	return rc;
}

/* ---- ranges ---- */

/* An operation, by who launched it and when. */
struct launch {
	uint32_t process, thread;
	uint64_t launch_ns, start_ns, end_ns;
};

struct launch_list {
	ARRAY(struct launch)
};

static int compare_launch(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;
	int order = (x->process > y->process) - (x->process < y->process);

	return order ? order : (x->launch_ns > y->launch_ns) - (x->launch_ns < y->launch_ns);
}

static int list_launches(struct launch_list *list, const struct table_source *source)
{
	const struct model *model = source->model;

	for (uint32_t d = 0; d < model->devices.count; d++) {
		const struct gpu_op *op;

		if (!has_device(source, d))
			continue;
		array_for_each (op, &model->devices.items[d].ops) {
			struct launch *launch;

			if (op->launch_thread == MODEL_NONE || !op->launch_ns)
				continue;
			launch = array_add(list);
			if (!launch)
				return -ENOMEM;
			*launch = (struct launch){model->threads.items[op->launch_thread].process,
			                          op->launch_thread, op->launch_ns, op->start_ns, op->end_ns};
		}
	}
	array_sort(list, compare_launch);
	return 0;
}

/* The first launch of a process at or after a time. */
static size_t launch_after(const struct launch_list *list, uint32_t process, uint64_t ns)
{
	const struct launch wanted = {.process = process, .launch_ns = ns};
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_launch(&list->items[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* From the first start to the last end of what was launched within the range; false: nothing was. */
static bool project(const struct launch_list *list, const struct model *model, uint32_t thread,
                    const struct scope *scope, struct span *span, uint64_t *operations)
{
	uint32_t process = model->threads.items[thread].process;

	*span = (struct span){UINT64_MAX, 0};
	*operations = 0;
	for (size_t i = launch_after(list, process, scope->start_ns); i < list->count; i++) {
		const struct launch *launch = &list->items[i];

		if (launch->process != process || launch->launch_ns > scope->end_ns)
			break;
		if (launch->thread != thread)
			continue;
		span->start_ns = earlier(span->start_ns, launch->start_ns);
		span->end_ns = later(span->end_ns, launch->end_ns);
		++*operations;
	}
	return *operations != 0;
}

static int put_projected(struct table *table, struct group *group)
{
	struct group_figures figures;
	int rc;

	group_measure(group, &figures);
	rc = put_figures(table, &figures);
	if (!rc)
		rc = put_number(table, group->extra);
	if (!rc)
		rc = put_number(table, group->more);
	if (!rc)
		rc = put_real(table, (double)group->more / (double)figures.count);
	if (!rc)
		rc = put_text(table, group->style);
	return rc ? rc : put_text(table, group->name);
}

int fill_ranges_gpu(struct table *table, const struct table_source *source)
{
	const struct model *model = source->model;
	struct launch_list launches = {0};
	struct groups groups = {0};
	struct group *group;
	int rc = list_launches(&launches, source);

	for (uint32_t t = 0; !rc && !groups.failed && t < model->threads.count; t++) {
		const struct scope *scope;

		array_for_each (scope, &model->threads.items[t].scopes) {
			uint64_t operations;
			struct span span;

			if (!source_has(source, scope->start_ns, scope->end_ns) ||
			    !project(&launches, model, t, scope, &span, &operations))
				continue;
			group = group_add(&groups, model_string(model, scope->name), range_style(scope), NULL,
			                  span.end_ns - span.start_ns);
			if (!group)
				break;
			group->extra += scope->end_ns - scope->start_ns;
			group->more += operations;
		}
	}
	if (groups.failed)
		rc = -ENOMEM;
	groups_sort(&groups);
	array_for_each (group, &groups) {
		if (!rc)
			rc = put_projected(table, group);
	}
	table_groups_free(&groups);
	array_free(&launches);
	return rc;
}
