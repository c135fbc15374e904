// SPDX-License-Identifier: GPL-2.0-only
/* Exports of models made by hand, read back with other people's parsers. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "export/api_name.h"
#include "export/formats.h"
#include "export/json_out.h"
#include "export/kernel_name.h"
#include "model/thread_states.h"
#include "base/utf8.h"
#include "session_fixture.h"
#include "timeline.h"

/* Control characters, quotes, an overlong form, a lone surrogate, a cut character; then a good one. */
#define HOSTILE "a\x01\"\\\n\x7f\xc0\xaf\xed\xa0\x80\xf0\x9f\x92 \xe2\x86\x90</script>"
#define HOSTILE_READ                                                                                         \
	"a\x01\"\\\n\x7f" UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT                \
	    UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT " \xe2\x86\x90</script>"

Test(utf8, characters)
{
	static const struct {
		const char *text;
		unsigned length;
	} cases[] = {
	    {"a", 1},
	    {"\x7f", 1},
	    {"\xc3\xa4", 2},
	    {"\xe2\x86\x90", 3},
	    {"\xef\xbf\xbf", 3},
	    {"\xf0\x9f\x92\xa9", 4},
	    {"\xf4\x8f\xbf\xbf", 4},
	    {"\x80", 0},
	    {"\xc0\xaf", 0},
	    {"\xc1\xbf", 0},
	    {"\xc3", 0},
	    {"\xe0\x9f\xbf", 0},
	    {"\xed\xa0\x80", 0},
	    {"\xe2\x86", 0},
	    {"\xf0\x8f\xbf\xbf", 0},
	    {"\xf4\x90\x80\x80", 0},
	    {"\xf5\x80\x80\x80", 0},
	    {"\xff", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_assert_eq(utf8_length(cases[i].text), cases[i].length, "case %zu", i);
		cr_assert_eq(utf8_is_valid(cases[i].text), cases[i].length != 0, "case %zu", i);
	}
}

Test(export_name, kernels)
{
	static const struct {
		const char *name, *base;
	} cases[] = {
	    {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> "
	     ">(at::native::ReduceOp<float>)",
	     "reduce_kernel"},
	    {"void <unnamed>::softmax_warp_forward<float, (int)6>(T2 *, const T1 *)", "softmax_warp_forward"},
	    {"(anonymous namespace)::copy(int)", "copy"},
	    {"void at::native::(anonymous namespace)::cat<at::(anonymous namespace)::T<4u>, 1>(int)", "cat"},
	    {"void outer<int>::inner<float>(float)", "inner"},
	    {"ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"},
	    {"triton_poi_fused_add_0d1d", "triton_poi_fused_add_0d1d"},
	    {"_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_11FillFunctorIlEEEEviT0_T1_",
	     "vectorized_elementwise_kernel"},
	    {"_Z3addPfS_i", "add"},
	    {"_ZN12_GLOBAL__N_14fillILi4EEEvPf", "fill"},
	    {"_ZN99nowhere", "_ZN99nowhere"},
	    {"_Z", "_Z"},
	    {"_Z99999999999999999999999x", "_Z99999999999999999999999x"},
	    {"a<", "a"},
	    {"<", "<"},
	    {"::", "::"},
	    {"", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct name_part part = kernel_base_name(cases[i].name);

		cr_assert_eq(part.length, strlen(cases[i].base), "%s gives %.*s", cases[i].name,
		             (int)part.length, part.start);
		cr_assert_eq(memcmp(part.start, cases[i].base, part.length), 0, "%s gives %.*s",
		             cases[i].name, (int)part.length, part.start);
	}
}

Test(export_name, calls)
{
	cr_assert(api_is_driver("cuLaunchKernel"));
	cr_assert_not(api_is_driver("cudaLaunchKernel"));
	cr_assert_not(api_is_driver("hipLaunchKernel"));
}

Test(export_name, files)
{
	static const struct {
		const char *input;
		enum export_format format;
		const char *output;
	} cases[] = {
	    {"run.whyidle", EXPORT_CHROME, "run.trace.json"},
	    {"a.b/run.whyidle", EXPORT_SQLITE, "a.b/run.sqlite"},
	    {"rank0.pt.trace.json.gz", EXPORT_SQLITE, "rank0.sqlite"},
	    {"x.sqlite", EXPORT_CHROME, "x.trace.json"},
	    {"d/.whyidle", EXPORT_SQLITE, "d/.whyidle.sqlite"},
	    {"plain", EXPORT_SQLITE, "plain.sqlite"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *path = export_default_path(cases[i].input, cases[i].format);

		cr_assert_str_eq(path, cases[i].output);
		free(path);
	}
}

static json_t *load_json(const char *path)
{
	gzFile file = gzopen(path, "rb"); /* takes plain files too */
	size_t used = 0, size = 1 << 20;
	char *text = malloc(size);
	json_error_t error;
	json_t *json;
	int length;

	cr_assert(file);
	while ((length = gzread(file, text + used, (unsigned)(size - used))) > 0) {
		used += (size_t)length;
		if (size - used < 65536)
			text = realloc(text, size *= 2);
	}
	cr_assert_eq(length, 0);
	gzclose(file);
	json = json_loadb(text, used, JSON_DECODE_ANY, &error);
	cr_assert(json, "%s at %d: %.80s", error.text, error.position, text + error.position);
	free(text);
	return json;
}

Test(json_out, text_and_times)
{
	const char *path = fixture_path("text.json");
	struct byte_out out;
	char text[512] = "";
	FILE *file;

	cr_assert_eq(byte_out_open(&out, open(path, O_WRONLY | O_CREAT, 0600), false), 0);
	byte_out_literal(&out, "[");
	json_out_string(&out, HOSTILE);
	byte_out_literal(&out, ",");
	json_out_time(&out, 1712195495505582988);
	byte_out_literal(&out, ",");
	json_out_time(&out, 7);
	byte_out_literal(&out, ",");
	byte_out_number(&out, UINT64_MAX);
	byte_out_literal(&out, "]");
	cr_assert_eq(byte_out_close(&out), 0);
	file = fopen(path, "r");
	cr_assert(fgets(text, sizeof(text), file));
	fclose(file);
	cr_assert_str_eq(
	    text, "[\"a\\u0001\\\"\\\\\\n\\u007f" UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT
	              UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT
	          " \xe2\x86\x90</script>\",1712195495505582.988,0.007,18446744073709551615]");
}

Test(json_out, longer_than_its_buffer)
{
	const char *path = fixture_path("long.json");
	size_t length = 3000000;
	char *text = malloc(length + 1);
	struct byte_out out;
	json_t *json;

	for (size_t i = 0; i < length; i++)
		text[i] = i % 100 ? 'x' : '"';
	text[length] = '\0';
	for (int compressed = 0; compressed < 2; compressed++) {
		cr_assert_eq(byte_out_open(&out, open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), compressed),
		             0);
		json_out_string(&out, text);
		cr_assert_eq(byte_out_close(&out), 0);
		json = load_json(path);
		cr_assert_str_eq(json_string_value(json), text);
		json_decref(json);
	}
	free(text);
}

Test(json_out, first_failure)
{
	struct byte_out out;

	for (int compressed = 0; compressed < 2; compressed++) {
		cr_assert_eq(byte_out_open(&out, open("/dev/full", O_WRONLY), compressed), 0);
		for (int i = 0; i < 400000; i++)
			byte_out_number(&out, (uint64_t)i * 7919);
		cr_assert_eq(byte_out_close(&out), -ENOSPC);
	}
}

/* A launcher that waits for a worker, and what both formats must keep of it. */
static void make_starved(struct timeline *timeline)
{
	struct model *model = &timeline->model;
	uint32_t main, worker;
	struct scope *scope;

	timeline_begin(timeline);
	main = timeline_process(timeline, 100, 0, "python");
	worker = timeline_process(timeline, 101, 100, HOSTILE);
	timeline_kernel(timeline, main, 100 * US, 110 * US, 210 * US);
	timeline_pipe(timeline, main, 220 * US, 900 * US, 910 * US, worker);
	timeline_kernel(timeline, main, 950 * US, 960 * US, 1060 * US + 1);
	scope = array_add(&model->threads.items[main].scopes);
	*scope = (struct scope){.start_ns = 90 * US,
	                        .end_ns = 940 * US,
	                        .name = model_add_string(model, "step", 4),
	                        .kind = SCOPE_ANNOTATION};
	model->processes.items[model->threads.items[worker].process].comm = model->threads.items[worker].comm;
	model->devices.items[0].number = 3;
	model->devices.items[0].name = model_add_string(model, "Test GPU", 8);
	model->start_ns = 50 * US;
	model->end_ns = 2000 * US;
	model->threads.items[main].end_ns = model->threads.items[worker].end_ns = UINT64_MAX;
	timeline_analyse(timeline);
}

static json_t *export_to_json(struct timeline *timeline, const char *name)
{
	const char *path = fixture_path(name);
	struct error error = {0};

	cr_assert_eq(export_chrome(path, &timeline->model, &timeline->analysis, &error), 0, "%s", error.text);
	return load_json(path);
}

static sqlite3 *export_to_sqlite(struct timeline *timeline)
{
	const char *path = fixture_path("export.sqlite");
	struct error error = {0};
	sqlite3 *database;

	cr_assert_eq(export_sqlite(path, &timeline->model, &timeline->analysis, &error), 0, "%s", error.text);
	cr_assert_eq(sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	return database;
}

/* The n-th event of a category, NULL. */
static json_t *event(json_t *trace, const char *category, size_t n)
{
	json_t *item, *events = json_object_get(trace, "traceEvents");
	size_t i;

	json_array_foreach(events, i, item)
	{
		const char *text = json_string_value(json_object_get(item, "cat"));
		const char *phase = json_string_value(json_object_get(item, "ph"));

		if (text && !strcmp(text, category) && *phase != 'f' && !n--)
			return item;
	}
	return NULL;
}

static const char *text_of(json_t *event, const char *key)
{
	json_t *value = json_object_get(event, key);

	return json_string_value(value ? value : json_object_get(json_object_get(event, "args"), key));
}

static int64_t number_of(json_t *event, const char *key)
{
	json_t *value = json_object_get(event, key);

	return json_integer_value(value ? value : json_object_get(json_object_get(event, "args"), key));
}

Test(export_chrome, what_a_session_has)
{
	struct timeline timeline;
	json_t *trace, *kernel, *call, *gap, *state;

	make_starved(&timeline);
	trace = export_to_json(&timeline, "starved.json");
	cr_assert_eq(number_of(trace, "schemaVersion"), 1);
	kernel = event(trace, "kernel", 1);
	cr_assert_str_eq(text_of(kernel, "name"), "kernel");
	cr_assert_eq(number_of(kernel, "device"), 3);
	cr_assert_eq(number_of(kernel, "stream"), 7);
	cr_assert_eq(number_of(kernel, "pid"), 3);
	cr_assert_float_eq(json_real_value(json_object_get(kernel, "dur")), 100.001, 1e-9);
	call = event(trace, "cuda_runtime", 1);
	cr_assert_eq(number_of(call, "correlation"), number_of(kernel, "correlation"));
	cr_assert_eq(number_of(call, "tid"), 100);
	cr_assert_eq(number_of(event(trace, "ac2g", 1), "id"), number_of(kernel, "correlation"));
	cr_assert_str_eq(text_of(event(trace, "user_annotation", 0), "name"), "step");
	gap = event(trace, "whyidle_gap", 0);
	cr_assert_str_eq(text_of(gap, "code"), "host.user_code");
	cr_assert_str_eq(text_of(gap, "role"), "worker");
	cr_assert_eq(number_of(gap, "ns"), 750 * US);
	cr_assert_str_eq(text_of(gap, "thread"), HOSTILE_READ " (101)");
	cr_assert_not(event(trace, "whyidle_gap", 1));
	state = event(trace, "whyidle_sched", 1);
	cr_assert_str_eq(text_of(state, "name"), "blocked: pipe");
	cr_assert_str_eq(text_of(state, "waker"), HOSTILE_READ " (101)");
	cr_assert_str_eq(text_of(event(trace, "whyidle_sched", 2), "name"), "runnable");
	json_decref(trace);
	timeline_end(&timeline);
}

Test(export_chrome, gzip)
{
	struct timeline timeline;
	json_t *plain, *compressed;
	uint8_t magic[2];
	int fd;

	make_starved(&timeline);
	plain = export_to_json(&timeline, "same.json");
	compressed = export_to_json(&timeline, "same.json.gz");
	fd = open(fixture_path("same.json.gz"), O_RDONLY);
	cr_assert_eq(read(fd, magic, 2), 2);
	close(fd);
	cr_assert(magic[0] == 0x1f && magic[1] == 0x8b);
	cr_assert(
	    json_equal(json_object_get(plain, "traceEvents"), json_object_get(compressed, "traceEvents")));
	json_decref(plain);
	json_decref(compressed);
	timeline_end(&timeline);
}

/* Two processes use the same correlation ids, contexts and streams. */
Test(export_chrome, ids_are_unique_in_the_file)
{
	struct timeline timeline;
	uint32_t first, second;
	json_t *trace;

	timeline_begin(&timeline);
	first = timeline_process(&timeline, 100, 0, "first");
	second = timeline_process(&timeline, 200, 0, "second");
	timeline_call(&timeline, first, "cudaLaunchKernel", 10 * US, 12 * US, 5);
	timeline_op(&timeline, 100, 20 * US, 30 * US, 5);
	timeline_call(&timeline, second, "cudaLaunchKernel", 40 * US, 42 * US, 5);
	timeline_op(&timeline, 200, 50 * US, 60 * US, 5);
	timeline_op(&timeline, 200, 70 * US, 80 * US, 3);
	timeline_analyse(&timeline);
	trace = export_to_json(&timeline, "two.json");
	cr_assert_eq(number_of(event(trace, "kernel", 0), "correlation"), 5);
	cr_assert_eq(number_of(event(trace, "kernel", 1), "correlation"), 10);
	cr_assert_eq(number_of(event(trace, "kernel", 2), "correlation"), 8);
	cr_assert_eq(number_of(event(trace, "cuda_runtime", 0), "correlation"), 5);
	cr_assert_eq(number_of(event(trace, "cuda_runtime", 1), "correlation"), 10);
	cr_assert_eq(number_of(event(trace, "kernel", 0), "tid"), 7);
	cr_assert_neq(number_of(event(trace, "kernel", 1), "tid"), 7, "slices of two processes on one track");
	cr_assert_eq(number_of(event(trace, "kernel", 1), "stream"), 7);
	cr_assert_eq(number_of(event(trace, "kernel", 1), "tid"),
	             number_of(event(trace, "kernel", 2), "tid"));
	json_decref(trace);
	timeline_end(&timeline);
}

/* The model keeps the outer call only; a reader must find the launch where it was. */
Test(export_chrome, launch_inside_another_call)
{
	struct timeline timeline;
	json_t *trace, *call;
	uint32_t main;

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 100, 0, "python");
	timeline_call(&timeline, main, "cudaGraphLaunch", 10 * US, 50 * US, 1);
	timeline_call(&timeline, main, "cuLaunchKernel", 20 * US, 30 * US, 2);
	timeline_op(&timeline, 100, 60 * US, 70 * US, 2);
	timeline_op(&timeline, 100, 80 * US, 90 * US, 2);
	timeline_analyse(&timeline);
	trace = export_to_json(&timeline, "nested.json");
	call = event(trace, "cuda_runtime", 1);
	cr_assert_eq(number_of(call, "correlation"), 2);
	cr_assert_float_eq(json_real_value(json_object_get(call, "ts")), 20.0, 1e-9);
	cr_assert_not(event(trace, "cuda_runtime", 2), "one call, however many operations");
	json_decref(trace);
	timeline_end(&timeline);
}

Test(export_chrome, a_host_process_with_a_devices_number)
{
	struct timeline timeline;
	json_t *trace;
	uint32_t main;

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 1, 0, "init");
	timeline.model.devices.items[0].number = 1;
	timeline_kernel(&timeline, main, 10 * US, 20 * US, 30 * US);
	timeline_analyse(&timeline);
	trace = export_to_json(&timeline, "one.json");
	cr_assert_neq(number_of(event(trace, "kernel", 0), "pid"), 1);
	cr_assert_eq(number_of(event(trace, "kernel", 0), "device"), 1);
	json_decref(trace);
	timeline_end(&timeline);
}

static int64_t value_of(sqlite3 *database, const char *query)
{
	sqlite3_stmt *statement;
	int64_t value;

	cr_assert_eq(sqlite3_prepare_v2(database, query, -1, &statement, NULL), SQLITE_OK, "%s: %s", query,
	             sqlite3_errmsg(database));
	cr_assert_eq(sqlite3_step(statement), SQLITE_ROW, "%s", query);
	value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

static void expect_text(sqlite3 *database, const char *query, const char *expected)
{
	sqlite3_stmt *statement;

	cr_assert_eq(sqlite3_prepare_v2(database, query, -1, &statement, NULL), SQLITE_OK, "%s: %s", query,
	             sqlite3_errmsg(database));
	cr_assert_eq(sqlite3_step(statement), SQLITE_ROW, "%s", query);
	cr_assert_str_eq((const char *)sqlite3_column_text(statement, 0), expected);
	sqlite3_finalize(statement);
}

Test(export_sqlite, what_a_session_has)
{
	const int64_t global_pid = 281474976710656 + 100 * 16777216;
	struct timeline timeline;
	sqlite3 *database;

	make_starved(&timeline);
	database = export_to_sqlite(&timeline);
	expect_text(database, "pragma integrity_check", "ok");
	cr_assert_eq(value_of(database, "select globalPid from CUPTI_ACTIVITY_KIND_KERNEL limit 1"),
	             global_pid);
	cr_assert_eq(value_of(database, "select globalTid from CUPTI_ACTIVITY_KIND_RUNTIME limit 1"),
	             global_pid + 100);
	cr_assert_eq(value_of(database, "select sum(end - start) from CUPTI_ACTIVITY_KIND_KERNEL"),
	             200 * US + 1);
	cr_assert_eq(value_of(database, "select deviceId from CUPTI_ACTIVITY_KIND_KERNEL limit 1"), 3);
	cr_assert_eq(value_of(database, "select count(*) from CUPTI_ACTIVITY_KIND_KERNEL k "
	                                "join CUPTI_ACTIVITY_KIND_RUNTIME r "
	                                "on r.correlationId = k.correlationId and "
	                                "r.globalTid / 16777216 = k.globalPid / 16777216 "
	                                "where r.start < k.start"),
	             2);
	expect_text(database, "select value from StringIds join CUPTI_ACTIVITY_KIND_KERNEL on id = shortName",
	            "kernel");
	expect_text(database, "select text from NVTX_EVENTS where eventType = 59", "step");
	expect_text(database, "select name from TARGET_INFO_GPU where id = 3", "Test GPU");
	expect_text(database, "select name from PROCESSES where pid = 101", HOSTILE_READ);
	cr_assert_eq(value_of(database, "select count(*) from SCHED_EVENTS"), 2);
	cr_assert_eq(value_of(database, "select isSchedIn from SCHED_EVENTS where start = 910000"), 1);
	expect_text(database, "select value from OSRT_API join StringIds on id = nameId", "read");
	expect_text(database,
	            "select value from WHYIDLE_WAITS w join ThreadNames n on w.wakerGlobalTid = "
	            "n.globalTid join StringIds s on s.id = n.nameId",
	            HOSTILE_READ);
	cr_assert_eq(value_of(database, "select sum(end - start) from WHYIDLE_GAPS"), 750 * US);
	cr_assert_eq(value_of(database, "select sum(end - start) from WHYIDLE_CAUSES"), 750 * US);
	cr_assert_eq(value_of(database, "select idle from WHYIDLE_GPUS"), 750 * US);
	expect_text(database, "select code || '@' || role from WHYIDLE_GAPS", "host.user_code@worker");
	sqlite3_close(database);
	timeline_end(&timeline);
}

Test(export_sqlite, kinds_and_names)
{
	struct timeline timeline;
	struct gpu_op *op;
	sqlite3 *database;
	uint32_t main;

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 100, 0, "python");
	timeline_kernel(&timeline, main, 10 * US, 20 * US, 30 * US);
	op = timeline_op(&timeline, 100, 40 * US, 50 * US, 90);
	op->kind = OP_MEMCPY;
	op->copy_kind = 1;
	op->source_kind = 1;
	op->target_kind = 3;
	op->bytes = 4096;
	op = timeline_op(&timeline, 100, 60 * US, 70 * US, 91);
	op->kind = OP_MEMSET;
	op->target_kind = 0;
	op = timeline_op(&timeline, 100, 80 * US, 90 * US, 92);
	op->kind = OP_GRAPH;
	op->graph = 4;
	op = timeline_op(&timeline, 100, 95 * US, 96 * US, 93);
	op->name = model_add_string(&timeline.model, "void ns::k<3>(int)", 18);
	timeline_analyse(&timeline);
	database = export_to_sqlite(&timeline);
	expect_text(
	    database,
	    "select label from CUPTI_ACTIVITY_KIND_MEMCPY join ENUM_CUDA_MEMCPY_OPER on id = copyKind",
	    "Host-to-Device");
	expect_text(database,
	            "select label from CUPTI_ACTIVITY_KIND_MEMCPY join ENUM_CUDA_MEM_KIND on id = srcKind",
	            "Pageable");
	expect_text(database,
	            "select label from CUPTI_ACTIVITY_KIND_MEMCPY join ENUM_CUDA_MEM_KIND on id = dstKind",
	            "Device");
	expect_text(database,
	            "select label from CUPTI_ACTIVITY_KIND_MEMSET join ENUM_CUDA_MEM_KIND on id = memKind",
	            "Unknown");
	cr_assert_eq(value_of(database, "select graphId from CUPTI_ACTIVITY_KIND_GRAPH_TRACE"), 4);
	expect_text(database,
	            "select value from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = shortName where "
	            "correlationId = 93",
	            "k");
	sqlite3_close(database);
	timeline_end(&timeline);
}

/* Processes and threads whose numbers do not fit nsys' 24 bits, or are there twice, stay apart. */
Test(export_sqlite, odd_ids_stay_apart)
{
	struct timeline timeline;
	sqlite3 *database;
	uint32_t a, b, c;

	timeline_begin(&timeline);
	a = timeline_process(&timeline, 7, 0, "a");
	b = timeline_process(&timeline, 7, 0, "b");
	c = timeline_process(&timeline, 0x7fffffff, 0, "c");
	timeline_call(&timeline, a, "cudaLaunchKernel", 10 * US, 12 * US, 5);
	timeline_call(&timeline, b, "cudaLaunchKernel", 20 * US, 22 * US, 5);
	timeline_call(&timeline, c, "cudaLaunchKernel", 30 * US, 32 * US, 5);
	timeline_op(&timeline, 0x7fffffff, 40 * US, 50 * US, 5);
	timeline_analyse(&timeline);
	database = export_to_sqlite(&timeline);
	cr_assert_eq(value_of(database, "select count(distinct globalPid) from PROCESSES"), 3);
	cr_assert_eq(value_of(database, "select count(distinct globalTid) from ThreadNames"), 3);
	cr_assert_eq(value_of(database, "select r.start from CUPTI_ACTIVITY_KIND_KERNEL k "
	                                "join CUPTI_ACTIVITY_KIND_RUNTIME r "
	                                "on r.globalTid / 16777216 = k.globalPid / 16777216"),
	             30 * US);
	sqlite3_close(database);
	timeline_end(&timeline);
}

struct seen_states {
	struct state_span spans[16];
	size_t count;
};

static int see_state(void *context, const struct state_span *span)
{
	struct seen_states *seen = context;

	seen->spans[seen->count++] = *span;
	return 0;
}

Test(thread_states, cover_the_recording)
{
	static const enum thread_state expected[] = {STATE_RUNNING, STATE_BLOCKED,  STATE_RUNNABLE,
	                                             STATE_RUNNING, STATE_RUNNABLE, STATE_NOT_RECORDED,
	                                             STATE_BLOCKED, STATE_RUNNING};
	struct seen_states seen = {0};
	struct timeline timeline;
	struct thread *thread;
	uint32_t main, other;
	uint64_t at = 5 * US;

	timeline_begin(&timeline);
	main = timeline_process(&timeline, 100, 0, "main");
	other = timeline_process(&timeline, 200, 0, "other");
	timeline_pipe(&timeline, main, 10 * US, 20 * US, 25 * US, other);
	timeline_preempted(&timeline, main, 30 * US, 40 * US, other);
	timeline_sleep(&timeline, main, 50 * US, 60 * US)->lost_before = true;
	timeline_kernel(&timeline, main, 70 * US, 80 * US, 90 * US);
	timeline.model.start_ns = 5 * US;
	timeline.model.end_ns = 100 * US;
	thread = &timeline.model.threads.items[main];
	thread->end_ns = UINT64_MAX;
	timeline_analyse(&timeline);
	cr_assert_eq(thread_states_visit(&timeline.model, thread, see_state, &seen), 0);
	cr_assert_eq(seen.count, sizeof(expected) / sizeof(*expected));
	for (size_t i = 0; i < seen.count; i++) {
		cr_assert_eq(seen.spans[i].state, expected[i], "span %zu", i);
		cr_assert_eq(seen.spans[i].start_ns, at, "hole before span %zu", i);
		at = seen.spans[i].end_ns;
	}
	cr_assert_eq(at, 100 * US);
	timeline_end(&timeline);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	fputs(text, file);
	fclose(file);
}

/* What was there stays until the new file is whole, and nothing half-written is left. */
Test(target_file, a_failure_leaves_the_old_file)
{
	struct timeline timeline;

	make_starved(&timeline);
	for (int format = 0; format < EXPORT_FORMAT_COUNT; format++) {
		const char *path = fixture_path("old");
		char folder[4096], command[8192], text[16] = "";
		struct error error = {0};
		FILE *file;

		snprintf(folder, sizeof(folder), "%s", path);
		*strrchr(folder, '/') = '\0';
		write_text(path, "old");
		/* A database of less than a page cannot be; for both, a link into nowhere fails at the end.
		 */
		cr_assert_lt(export_formats[format].write("/nonexistent/file", &timeline.model,
		                                          &timeline.analysis, &error),
		             0);
		cr_assert(strstr(error.text, "/nonexistent/file"));
		cr_assert_lt(
		    export_formats[format].write(folder, &timeline.model, &timeline.analysis, &error), 0);
		file = fopen(path, "r");
		cr_assert(fgets(text, sizeof(text), file));
		fclose(file);
		cr_assert_str_eq(text, "old");
		cr_assert_eq(export_formats[format].write(path, &timeline.model, &timeline.analysis, &error),
		             0);
		snprintf(command, sizeof(command), "ls %s | grep -q partial", folder);
		cr_assert_neq(system(command), 0, "a partial file was left");
	}
	timeline_end(&timeline);
}

Test(target_file, a_link_stays)
{
	const char *name = fixture_path("target.json");
	char target[4096];
	struct timeline timeline;
	struct error error = {0};
	struct stat status;
	const char *link;

	make_starved(&timeline);
	snprintf(target, sizeof(target), "%s", name);
	write_text(target, "old");
	link = fixture_path("link.json");
	cr_assert_eq(symlink(target, link), 0);
	cr_assert_eq(export_chrome(link, &timeline.model, &timeline.analysis, &error), 0);
	cr_assert_eq(lstat(link, &status), 0);
	cr_assert(S_ISLNK(status.st_mode));
	cr_assert_eq(stat(target, &status), 0);
	cr_assert_gt(status.st_size, 100);
	cr_assert_eq(status.st_mode & 0777, 0600, "others may read it");
	timeline_end(&timeline);
}

Test(export, a_full_device)
{
	struct timeline timeline;
	struct error error = {0};

	make_starved(&timeline);
	cr_assert_eq(export_chrome("/dev/full", &timeline.model, &timeline.analysis, &error), -ENOSPC);
	cr_assert(strstr(error.text, "/dev/full"));
	cr_assert_eq(export_sqlite("/dev/full", &timeline.model, &timeline.analysis, &error), -EINVAL);
	timeline_end(&timeline);
}

/* No operations, no analysis: still a file that can be read. */
Test(export, an_empty_model)
{
	struct timeline timeline;
	struct error error = {0};
	sqlite3 *database;
	json_t *trace;

	timeline_begin(&timeline);
	cr_assert_eq(model_finish(&timeline.model, &error), 0);
	cr_assert_eq(export_chrome(fixture_path("empty.json"), &timeline.model, NULL, &error), 0);
	trace = load_json(fixture_path("empty.json"));
	cr_assert(json_is_array(json_object_get(trace, "traceEvents")));
	json_decref(trace);
	database = export_to_sqlite(&timeline);
	cr_assert_eq(value_of(database, "select count(*) from CUPTI_ACTIVITY_KIND_KERNEL"), 0);
	sqlite3_close(database);
	timeline_end(&timeline);
}
