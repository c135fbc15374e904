// SPDX-License-Identifier: GPL-2.0-only
#include "tables/tables.h"

#include <assert.h>
#include <string.h>

#include "tables/group.h"

/* Headings are those of nsys' CSV, so that scripts made for it find their columns. */
#define SHARE_COLUMN                                                                                         \
	{                                                                                                    \
		"share", "Time (%)", "time", CELL_SHARE                                                      \
	}
#define FIGURES_NS(count)                                                                                    \
	{"total_ns", "Total Time (ns)", "total", CELL_NS}, {"count", count, "count", CELL_COUNT},            \
	    {"mean_ns", "Avg (ns)", "mean", CELL_MEAN_NS},                                                   \
	    {"median_ns", "Med (ns)", "median", CELL_MEAN_NS}, {"min_ns", "Min (ns)", "min", CELL_NS},       \
	    {"max_ns", "Max (ns)", "max", CELL_NS},                                                          \
	{                                                                                                    \
		"stddev_ns", "StdDev (ns)", "stddev", CELL_MEAN_NS                                           \
	}

static const struct table_column kernel_columns[] = {
    SHARE_COLUMN, FIGURES_NS("Instances"), {"name", "Name", "kernel", CELL_TEXT}};
static const struct table_column call_columns[] = {
    SHARE_COLUMN, FIGURES_NS("Num Calls"), {"name", "Name", "call", CELL_TEXT}};
static const struct table_column copy_columns[] = {
    SHARE_COLUMN, FIGURES_NS("Count"), {"name", "Operation", "operation", CELL_TEXT}};
static const struct table_column copy_size_columns[] = {
    {"total_bytes", "Total (MB)", "total", CELL_BYTES},
    {"count", "Count", "count", CELL_COUNT},
    {"mean_bytes", "Avg (MB)", "mean", CELL_MEAN_BYTES},
    {"median_bytes", "Med (MB)", "median", CELL_MEAN_BYTES},
    {"min_bytes", "Min (MB)", "min", CELL_BYTES},
    {"max_bytes", "Max (MB)", "max", CELL_BYTES},
    {"stddev_bytes", "StdDev (MB)", "stddev", CELL_MEAN_BYTES},
    {"name", "Operation", "operation", CELL_TEXT},
};
static const struct table_column range_columns[] = {SHARE_COLUMN,
                                                    FIGURES_NS("Instances"),
                                                    {"style", "Style", "style", CELL_TEXT},
                                                    {"name", "Range", "range", CELL_TEXT}};
static const struct table_column range_gpu_columns[] = {
    {"total_ns", "Total Proj Time (ns)", "on GPU", CELL_NS},
    {"count", "Range Instances", "count", CELL_COUNT},
    {"mean_ns", "Proj Avg (ns)", "mean", CELL_MEAN_NS},
    {"median_ns", "Proj Med (ns)", "median", CELL_MEAN_NS},
    {"min_ns", "Proj Min (ns)", "min", CELL_NS},
    {"max_ns", "Proj Max (ns)", "max", CELL_NS},
    {"stddev_ns", "Proj StdDev (ns)", "stddev", CELL_MEAN_NS},
    {"range_ns", "Total Range Time (ns)", "on host", CELL_NS},
    {"operations", "Total GPU Ops", "GPU ops", CELL_COUNT},
    {"mean_operations", "Avg GPU Ops", "a range", CELL_MEAN},
    {"style", "Style", "style", CELL_TEXT},
    {"name", "Range", "range", CELL_TEXT},
};
static const struct table_column off_cpu_columns[] = {SHARE_COLUMN,
                                                      FIGURES_NS("Count"),
                                                      {"threads", "Threads", "threads", CELL_COUNT},
                                                      {"name", "Reason", "reason", CELL_TEXT}};

static const struct table_column step_columns[] = {
    {"gpu", "GPU", "GPU", CELL_COUNT},
    {"step", "Step", "step", CELL_COUNT},
    {"start_ns", "Start (ns)", "begins", CELL_NS},
    {"duration_ns", "Duration (ns)", "took", CELL_NS},
    {"busy_ns", "Busy (ns)", "busy", CELL_NS},
    {"idle_ns", "Idle (ns)", "idle", CELL_NS},
    {"operations", "GPU Ops", "GPU ops", CELL_COUNT},
    {"kind", "Kind", "", CELL_TEXT},
    {"cause_ns", "Largest Cause (ns)", "of it", CELL_NS},
    {"name", "Largest Cause", "largest cause", CELL_TEXT},
};

#define COLUMNS(list) list, sizeof(list) / sizeof(*(list))

const struct table_spec table_specs[TABLE_IDS] = {
    [TABLE_KERNELS] = {"kernels", "cuda_gpu_kern_sum", "Kernels on the GPU", COLUMNS(kernel_columns)},
    [TABLE_API] = {"api", "cuda_api_sum", "CUDA calls of host threads", COLUMNS(call_columns)},
    [TABLE_COPY_TIME] = {"copies-time", "cuda_gpu_mem_time_sum", "Copies by time", COLUMNS(copy_columns)},
    [TABLE_COPY_SIZE] = {"copies-size", "cuda_gpu_mem_size_sum", "Copies by size",
                         COLUMNS(copy_size_columns)},
    [TABLE_RANGES] = {"ranges", "nvtx_sum", "Ranges that the program names (NVTX, annotations)",
                      COLUMNS(range_columns)},
    [TABLE_RANGES_GPU] = {"ranges-gpu", "nvtx_gpu_proj_sum", "The same, projected onto GPU time",
                          COLUMNS(range_gpu_columns)},
    [TABLE_OS_CALLS] = {"os-calls", "osrt_sum", "System calls in which threads waited",
                        COLUMNS(call_columns)},
    [TABLE_OFF_CPU] = {"off-cpu", NULL, "Off the CPU, by reason", COLUMNS(off_cpu_columns)},
    [TABLE_STEPS] = {"steps", NULL, "Steps", COLUMNS(step_columns)},
};

static int (*const fill[TABLE_IDS])(struct table *table, const struct table_source *source) = {
    [TABLE_KERNELS] = fill_kernels,     [TABLE_API] = fill_api,         [TABLE_COPY_TIME] = fill_copy_time,
    [TABLE_COPY_SIZE] = fill_copy_size, [TABLE_RANGES] = fill_ranges,   [TABLE_RANGES_GPU] = fill_ranges_gpu,
    [TABLE_OS_CALLS] = fill_os_calls,   [TABLE_OFF_CPU] = fill_off_cpu, [TABLE_STEPS] = fill_steps,
};

int table_find(const char *name)
{
	for (int i = 0; i < TABLE_IDS; i++) {
		if (!strcmp(name, table_specs[i].name) ||
		    (table_specs[i].nsys_name && !strcmp(name, table_specs[i].nsys_name)))
			return i;
	}
	return -1;
}

struct table_source table_source_of(const struct model *model, const struct analysis_options *options)
{
	struct table_source source = {
	    .model = model, .from_ns = 0, .to_ns = UINT64_MAX, .device = MODEL_NONE};

	if (options->has_window) {
		source.from_ns = options->window_start_ns;
		source.to_ns = options->window_end_ns;
	}
	for (uint32_t i = 0; options->device >= 0 && i < model->devices.count; i++) {
		if (model->devices.items[i].number == (uint32_t)options->device)
			source.device = i;
	}
	return source;
}

int table_make(struct table *table, enum table_id id, const struct table_source *source)
{
	*table = (struct table){.spec = &table_specs[id]};
	return fill[id](table, source);
}

void table_free(struct table *table)
{
	char **text;

	array_for_each (text, &table->owned)
		free(*text);
	array_free(&table->owned);
	array_free(&table->cells);
	table->rows = 0;
}

const struct cell *table_cell(const struct table *table, size_t row, const char *key)
{
	const struct table_spec *spec = table->spec;
	size_t column = 0;

	while (column < spec->column_count && strcmp(spec->columns[column].key, key) != 0)
		column++;
	assert(column < spec->column_count && row < table->rows);
	return &table->cells.items[row * spec->column_count + column];
}
