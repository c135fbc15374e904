// SPDX-License-Identifier: GPL-2.0-only
#include "tables/group.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/number.h"

static uint64_t group_key(const char *name, const char *style)
{
	return hash_mix(hash_bytes(name, strlen(name)) + (style ? hash_bytes(style, strlen(style)) : 0));
}

const char *table_own(struct table *table, const char *text)
{
	char **slot = array_add(&table->owned);

	if (!slot)
		return NULL;
	*slot = strdup(text);
	return *slot;
}

struct group *group_of(struct groups *groups, const char *name, const char *style, struct table *table)
{
	uint64_t key = group_key(name, style);
	struct group *group;
	uint32_t at;

	if (groups->items && index_map_get(&groups->by_name, key, &at))
		return &groups->items[at];
	group = array_add(groups);
	if (group)
		group->name = table ? table_own(table, name) : name;
	if (!group || !group->name || index_map_put(&groups->by_name, key, (uint32_t)groups->count - 1)) {
		groups->failed = true;
		return NULL;
	}
	group->style = style;
	return group;
}

struct group *group_add(struct groups *groups, const char *name, const char *style, struct table *table,
                        uint64_t value)
{
	struct group *group = group_of(groups, name, style, table);
	uint64_t *slot = group ? array_add(&group->values) : NULL;

	if (!slot) {
		groups->failed = true;
		return NULL;
	}
	*slot = value;
	group->total += value;
	return group;
}

void table_groups_free(struct groups *groups)
{
	struct group *group;

	array_for_each (group, groups)
		array_free(&group->values);
	index_map_free(&groups->by_name);
	free(groups->items);
	*groups = (struct groups){0};
}

void group_measure(struct group *group, struct group_figures *figures)
{
	size_t count = group->values.count, lower, upper;
	const uint64_t *value;
	double squares = 0;

	*figures = (struct group_figures){.count = count, .total = group->total};
	if (!count)
		return;
	array_sort(&group->values, compare_unsigned);
	figures->least = group->values.items[0];
	figures->most = group->values.items[count - 1];
	figures->mean = (double)group->total / (double)count;
	lower = (count - 1) / 2;
	upper = count / 2;
	figures->median = ((double)group->values.items[lower] + (double)group->values.items[upper]) / 2;
	array_for_each (value, &group->values)
		squares += ((double)*value - figures->mean) * ((double)*value - figures->mean);
	figures->deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
}

static int compare_group(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int order = (x->total < y->total) - (x->total > y->total);

	return order ? order : strcmp(x->name, y->name);
}

void groups_sort(struct groups *groups)
{
	array_sort(groups, compare_group);
}

uint64_t groups_total(const struct groups *groups)
{
	const struct group *group;
	uint64_t total = 0;

	array_for_each (group, groups)
		total += group->total;
	return total;
}

/* ---- cells ---- */

struct cell *next_cell(struct table *table)
{
	struct cell *cell = array_add(&table->cells);

	if (cell && table->cells.count % table->spec->column_count == 0)
		table->rows++;
	return cell;
}

int put_text(struct table *table, const char *text)
{
	struct cell *cell = next_cell(table);

	if (!cell)
		return -ENOMEM;
	cell->text = text;
	return 0;
}

int put_number(struct table *table, uint64_t number)
{
	struct cell *cell = next_cell(table);

	if (!cell)
		return -ENOMEM;
	cell->number = number;
	return 0;
}

int put_real(struct table *table, double real)
{
	struct cell *cell = next_cell(table);

	if (!cell)
		return -ENOMEM;
	cell->real = real;
	return 0;
}

int put_figures(struct table *table, const struct group_figures *figures)
{
	return put_number(table, figures->total) || put_number(table, figures->count) ||
	               put_real(table, figures->mean) || put_real(table, figures->median) ||
	               put_number(table, figures->least) || put_number(table, figures->most) ||
	               put_real(table, figures->deviation)
	           ? -ENOMEM
	           : 0;
}

int put_group(struct table *table, struct group *group, uint64_t all)
{
	struct group_figures figures;

	group_measure(group, &figures);
	return put_real(table, all ? (double)figures.total / (double)all : 0) || put_figures(table, &figures)
	           ? -ENOMEM
	           : 0;
}

int fill_by_time(struct table *table, struct groups *groups, bool with_style)
{
	uint64_t all = groups_total(groups);
	int rc = groups->failed ? -ENOMEM : 0;
	struct group *group;

	groups_sort(groups);
	array_for_each (group, groups) {
		if (rc)
			break;
		rc = put_group(table, group, all);
		if (!rc && with_style)
			rc = put_text(table, group->style);
		if (!rc)
			rc = put_text(table, group->name);
	}
	table_groups_free(groups);
	return rc;
}
