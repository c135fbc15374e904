/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to tables/: figures by name. */
#ifndef WHYIDLE_TABLES_GROUP_H
#define WHYIDLE_TABLES_GROUP_H

#include "base/array.h"
#include "base/hash.h"
#include "tables/tables.h"

struct group {
	const char *name;  /* of the item that made it, or a copy that the table owns */
	const char *style; /* further word that tells groups of one name apart, NULL */
	struct {
		ARRAY(uint64_t)
	} values;
	uint64_t total;       /* of the values */
	uint64_t extra, more; /* sums that a table has beside it */
	uint64_t seen;        /* for counting what is distinct */
};

struct groups {
	ARRAY(struct group)
	struct index_map by_name;
	bool failed; /* memory ran out */
};

/* Figures of a group. */
struct group_figures {
	uint64_t count, total, least, most;
	double mean, median, deviation;
};

/*
 * The group of a name and style, made if need be; NULL if memory ran out (groups->failed). With `table` the
 * name is copied into it, otherwise it must outlive the table.
 */
struct group *group_of(struct groups *groups, const char *name, const char *style, struct table *table);
/* The same and adds a value to it. */
struct group *group_add(struct groups *groups, const char *name, const char *style, struct table *table,
                        uint64_t value);
void table_groups_free(struct groups *groups);

/* Sorts the values. */
void group_measure(struct group *group, struct group_figures *figures);

/* Largest total first, then by name. */
void groups_sort(struct groups *groups);
uint64_t groups_total(const struct groups *groups);

/* A copy of a text that the table owns; NULL if memory ran out. */
const char *table_own(struct table *table, const char *text);

/* The next cell of the table's current row; NULL if memory ran out. */
struct cell *next_cell(struct table *table);
int put_text(struct table *table, const char *text);
int put_number(struct table *table, uint64_t number);
int put_real(struct table *table, double real);
/* total, count, mean, median, least, most, deviation: seven cells, in nsys' order. */
int put_figures(struct table *table, const struct group_figures *figures);
/* The group's share of `all` and its figures: eight cells. Sorts its values. */
int put_group(struct table *table, struct group *group, uint64_t all);

/* Fill in the rows. */
int fill_kernels(struct table *table, const struct table_source *source);
int fill_copy_time(struct table *table, const struct table_source *source);
int fill_copy_size(struct table *table, const struct table_source *source);
int fill_ranges_gpu(struct table *table, const struct table_source *source);
int fill_api(struct table *table, const struct table_source *source);
int fill_ranges(struct table *table, const struct table_source *source);
int fill_os_calls(struct table *table, const struct table_source *source);
int fill_steps(struct table *table, const struct table_source *source);
int fill_off_cpu(struct table *table, const struct table_source *source);

/* Rows of share, figures and name, as most tables have them. Frees the groups. */
int fill_by_time(struct table *table, struct groups *groups, bool with_style);

/* "PushPop", "StartEnd", "Operator", "Python": what made a range. */
const char *range_style(const struct scope *scope);

static inline bool source_has(const struct table_source *source, uint64_t start_ns, uint64_t end_ns)
{
	return end_ns >= source->from_ns && start_ns <= source->to_ns;
}

#endif
