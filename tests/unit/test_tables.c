// SPDX-License-Identifier: GPL-2.0-only
/* Tables: figures of models made by hand, and names that mean harm to whoever opens what is printed. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "report/report_tables.h"
#include "timeline.h"

static void make(struct table *table, enum table_id id, const struct timeline *timeline)
{
	const struct analysis_options options = {.device = -1};
	const struct table_source source = table_source_of(&timeline->model, &options);

	cr_assert_eq(table_make(table, id, &source), 0);
}

static uint64_t number(const struct table *table, size_t row, const char *key)
{
	return table_cell(table, row, key)->number;
}

static double real(const struct table *table, size_t row, const char *key)
{
	return table_cell(table, row, key)->real;
}

static const char *name_of(const struct table *table, size_t row)
{
	return table_cell(table, row, "name")->text;
}

static uint32_t string(struct timeline *timeline, const char *text)
{
	return model_add_string(&timeline->model, text, strlen(text));
}

static void add_op(struct timeline *timeline, const char *name, uint64_t start, uint64_t length)
{
	timeline_op(timeline, 100, start, start + length, 0)->name = string(timeline, name);
}

static void add_scope(struct timeline *timeline, uint32_t thread, const char *name, uint64_t start,
                      uint64_t end)
{
	struct scope *scope = array_add(&timeline->model.threads.items[thread].scopes);

	*scope = (struct scope){
	    .start_ns = start, .end_ns = end, .name = string(timeline, name), .kind = SCOPE_ANNOTATION};
}

Test(tables, kernels)
{
	struct timeline timeline;
	struct table table;

	timeline_begin(&timeline);
	timeline_process(&timeline, 100, 0, "main");
	add_op(&timeline, "gemm", 1 * MS, 10 * US);
	add_op(&timeline, "add", 2 * MS, 3 * US);
	add_op(&timeline, "gemm", 3 * MS, 20 * US);
	add_op(&timeline, "gemm", 4 * MS, 40 * US);
	add_op(&timeline, "gemm", 5 * MS, 30 * US);
	timeline_analyse(&timeline);
	make(&table, TABLE_KERNELS, &timeline);
	cr_assert_eq(table.rows, 2);
	cr_assert_str_eq(name_of(&table, 0), "gemm");
	cr_assert_eq(number(&table, 0, "total_ns"), 100 * US);
	cr_assert_eq(number(&table, 0, "count"), 4);
	cr_assert_eq(real(&table, 0, "mean_ns"), 25e3);
	cr_assert_eq(real(&table, 0, "median_ns"), 25e3, "between the two in the middle");
	cr_assert_eq(number(&table, 0, "min_ns"), 10 * US);
	cr_assert_eq(number(&table, 0, "max_ns"), 40 * US);
	cr_assert_float_eq(real(&table, 0, "stddev_ns"), sqrt(500.0 / 3) * 1e3, 1e-6, "of the sample");
	cr_assert_float_eq(real(&table, 0, "share"), 100.0 / 103, 1e-12);
	cr_assert_eq(real(&table, 1, "median_ns"), 3e3);
	cr_assert_eq(real(&table, 1, "stddev_ns"), 0, "of a single one");
	table_free(&table);
	timeline_end(&timeline);
}

Test(tables, only_the_window_and_the_device)
{
	struct analysis_options options = {
	    .device = 0, .has_window = true, .window_start_ns = 2 * MS, .window_end_ns = 3 * MS};
	struct table_source source;
	struct timeline timeline;
	struct table table;

	timeline_begin(&timeline);
	timeline_process(&timeline, 100, 0, "main");
	add_op(&timeline, "before", 1 * MS, 10 * US);
	add_op(&timeline, "across", 2 * MS - 5 * US, 10 * US);
	add_op(&timeline, "within", 2 * MS + 20 * US, 10 * US);
	add_op(&timeline, "behind", 4 * MS, 10 * US);
	timeline_analyse(&timeline);
	source = table_source_of(&timeline.model, &options);
	cr_assert_eq(table_make(&table, TABLE_KERNELS, &source), 0);
	cr_assert_eq(table.rows, 2);
	cr_assert_str_eq(name_of(&table, 0), "across", "whole: %s", name_of(&table, 0));
	cr_assert_eq(number(&table, 0, "total_ns"), 10 * US);
	table_free(&table);
	options.device = 3;
	cr_assert_eq(table_source_of(&timeline.model, &options).device, MODEL_NONE);
	timeline_end(&timeline);
}

Test(tables, copies_by_time_and_by_size)
{
	struct timeline timeline;
	struct table time, size;

	timeline_begin(&timeline);
	timeline_process(&timeline, 100, 0, "main");
	for (int i = 0; i < 3; i++) {
		struct gpu_op *op = timeline_op(&timeline, 100, (1 + i) * MS, (1 + i) * MS + 10 * US, 0);

		op->kind = i == 2 ? OP_MEMSET : OP_MEMCPY;
		op->name = 0;
		op->copy_kind = 1;
		op->source_kind = 2;
		op->target_kind = 3;
		op->bytes = i == 2 ? 1 : 1500000;
	}
	timeline_analyse(&timeline);
	make(&time, TABLE_COPY_TIME, &timeline);
	make(&size, TABLE_COPY_SIZE, &timeline);
	cr_assert_str_eq(name_of(&time, 0), "Memcpy HtoD (Pinned -> Device)");
	cr_assert_eq(number(&time, 0, "total_ns"), 20 * US);
	cr_assert_eq(number(&size, 0, "total_bytes"), 3000000);
	cr_assert_str_eq(name_of(&size, 1), "Memset (Device)");
	cr_assert_eq(number(&size, 1, "max_bytes"), 1);
	table_free(&time);
	table_free(&size);
	timeline_end(&timeline);
}

Test(tables, ranges_on_the_gpu)
{
	struct timeline timeline;
	uint32_t main, other;
	struct table table;

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 100, 0, "main");
	other = timeline_thread(&timeline, 100, 101, "other");
	add_scope(&timeline, main, "outer", 1 * MS, 5 * MS);
	add_scope(&timeline, main, "inner", 2 * MS, 3 * MS);
	add_scope(&timeline, main, "nothing", 6 * MS, 7 * MS);
	timeline_kernel(&timeline, main, 1 * MS + 10 * US, 8 * MS, 9 * MS);
	timeline_kernel(&timeline, main, 2 * MS + 10 * US, 10 * MS, 11 * MS);
	timeline_kernel(&timeline, other, 2 * MS + 20 * US, 20 * MS, 21 * MS);
	timeline_kernel(&timeline, main, 4 * MS, 12 * MS, 12 * MS + 500 * US);
	timeline_kernel(&timeline, main, 5 * MS + 10 * US, 13 * MS, 14 * MS);
	timeline_analyse(&timeline);
	make(&table, TABLE_RANGES_GPU, &timeline);
	cr_assert_eq(table.rows, 2, "a range without launches is not on the GPU");
	cr_assert_str_eq(name_of(&table, 0), "outer");
	cr_assert_eq(number(&table, 0, "total_ns"), 4 * MS + 500 * US, "first start to last end");
	cr_assert_eq(number(&table, 0, "range_ns"), 4 * MS);
	cr_assert_eq(number(&table, 0, "operations"), 3, "launches of another thread are not its");
	cr_assert_str_eq(name_of(&table, 1), "inner");
	cr_assert_eq(number(&table, 1, "total_ns"), 1 * MS);
	table_free(&table);
	make(&table, TABLE_RANGES, &timeline);
	cr_assert_eq(table.rows, 3);
	cr_assert_str_eq(table_cell(&table, 0, "style")->text, "PushPop");
	table_free(&table);
	timeline_end(&timeline);
}

Test(tables, off_the_cpu)
{
	struct timeline timeline;
	struct offcpu *offcpu;
	uint32_t main, other;
	struct table table;

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 100, 0, "main");
	other = timeline_thread(&timeline, 100, 101, "other");
	timeline.model.end_ns = 20 * MS;
	timeline_kernel(&timeline, main, 1 * MS, 1 * MS + 5 * US, 2 * MS);
	timeline_sleep(&timeline, main, 2 * MS, 7 * MS);
	offcpu = timeline_futex(&timeline, other, 3 * MS, 5 * MS, 5 * MS + 100 * US, main, 0x1000);
	offcpu->syscall = SYS_futex;
	timeline_preempted(&timeline, other, 6 * MS, 6 * MS + 10 * US, main);
	timeline_sleep(&timeline, other, 8 * MS, 9 * MS);
	timeline_analyse(&timeline);
	make(&table, TABLE_OFF_CPU, &timeline);
	cr_assert_str_eq(name_of(&table, 0), "blocked: sleep");
	cr_assert_eq(number(&table, 0, "count"), 2);
	cr_assert_eq(number(&table, 0, "threads"), 2);
	cr_assert_str_eq(name_of(&table, 1), "blocked: futex");
	cr_assert_eq(number(&table, 1, "total_ns"), 2 * MS);
	cr_assert_eq(number(&table, 1, "threads"), 1);
	cr_assert_str_eq(name_of(&table, 2), "runnable: woken");
	cr_assert_eq(number(&table, 2, "total_ns"), 100 * US);
	cr_assert_str_eq(name_of(&table, 3), "runnable: preempted");
	cr_assert_eq(table.rows, 4);
	table_free(&table);
	make(&table, TABLE_OS_CALLS, &timeline);
	cr_assert_str_eq(name_of(&table, table.rows - 1), "futex");
	cr_assert_eq(number(&table, table.rows - 1, "total_ns"), 2 * MS + 100 * US, "until it ran again");
	table_free(&table);
	timeline_end(&timeline);
}

Test(tables, are_found_by_either_name)
{
	cr_assert_eq(table_find("kernels"), TABLE_KERNELS);
	cr_assert_eq(table_find("cuda_gpu_kern_sum"), TABLE_KERNELS);
	cr_assert_eq(table_find("off-cpu"), TABLE_OFF_CPU);
	cr_assert_eq(table_find(""), -1);
	cr_assert_eq(table_find("kernel"), -1);
}

/* ---- what is printed ---- */

/* A kernel of that name as CSV, text or JSON; the caller frees it. */
static char *printed(const char *name, char form)
{
	const struct report_text_options options = {.width = 100};
	struct error error = {0};
	struct timeline timeline;
	struct table table;
	char *buffer = NULL;
	size_t size;
	FILE *out = open_memstream(&buffer, &size);

	timeline_begin(&timeline);
	timeline_process(&timeline, 100, 0, "main");
	add_op(&timeline, name, 1 * MS, 10 * US);
	timeline_analyse(&timeline);
	make(&table, TABLE_KERNELS, &timeline);
	if (form == 'c')
		cr_assert_eq(report_tables_csv(out, &table, 1), 0);
	else if (form == 't')
		cr_assert_eq(report_tables_text(out, &table, 1, &options), 0);
	else
		cr_assert_eq(report_tables_json(out, &table, 1, &error), 0);
	fclose(out);
	table_free(&table);
	timeline_end(&timeline);
	return buffer;
}

/* The last field of the second line. */
static void expect_field(const char *name, const char *field)
{
	static const char figures[] = "\n100.0,10000,1,10000.0,10000.0,10000,10000,0.0,";
	char *csv = printed(name, 'c'), *at = strstr(csv, figures);

	cr_assert(at, "%s", csv);
	at += strlen(figures);
	cr_assert_eq(strncmp(at, field, strlen(field)), 0, "%s is not %s", at, field);
	cr_assert_str_eq(at + strlen(field), "\n", "%s", at);
	free(csv);
}

Test(tables, csv_holds_no_formula_and_breaks_no_line)
{
	expect_field("gemm", "gemm");
	expect_field("void f<1, 2>(int)", "\"void f<1, 2>(int)\"");
	expect_field("say \"hi\"", "\"say \"\"hi\"\"\"");
	expect_field("=HYPERLINK(\"http://a\")", "\"'=HYPERLINK(\"\"http://a\"\")\"");
	expect_field("+1", "\"'+1\"");
	expect_field("-1", "\"'-1\"");
	expect_field("@SUM(A1)", "\"'@SUM(A1)\"");
	expect_field("  =1", "\"'  =1\"");
	expect_field("\uff1d1", "\"'\uff1d1\"");
	expect_field("\t=1", "\\x09=1");
	expect_field("a\nb\rc", "a\\x0ab\\x0dc");
	expect_field("\033[31m\xff", "\\x1b[31m\\xff");
	expect_field("a = b", "a = b");
}

Test(tables, a_name_of_a_megabyte_is_cut)
{
	static const char forms[] = "ctj";
	char *name = malloc(1 << 20);

	memset(name, 'x', (1 << 20) - 1);
	name[(1 << 20) - 1] = '\0';
	for (const char *form = forms; *form; form++) {
		char *text = printed(name, *form);

		cr_assert_lt(strlen(text), 8192, "%c", *form);
		free(text);
	}
	free(name);
}

Test(tables, text_and_json_show_hostile_names_as_text)
{
	static const char hostile[] = "\033]0;owned\a\xff\xfe<script>\u202e";
	char *text = printed(hostile, 't'), *json = printed(hostile, 'j');
	json_error_t error;
	json_t *value = json_loads(json, 0, &error);

	for (const char *c = text; *c; c++)
		cr_assert((unsigned char)*c >= ' ' || *c == '\n', "a control character: %s", text);
	cr_assert(!strstr(text, "\u202e"));
	cr_assert(value, "%s", error.text);
	cr_assert_null(strchr(json, '\033'));
	json_decref(value);
	free(text);
	free(json);
}
