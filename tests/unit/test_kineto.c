/* SPDX-License-Identifier: GPL-2.0-only */
/* Made-up traces of the PyTorch profiler: what a model holds of them, and every oddity that real ones do not
 * have. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "import/import.h"
#include "session_fixture.h"

#define EVENT(category, name, ids, ts, dur, args)                                                            \
	"{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\"," ids ",\"ts\":" ts ",\"dur\":" dur    \
	",\"args\":{" args "}}"
#define HOST                "\"pid\":10,\"tid\":11"
#define GPU                 "\"pid\":0,\"tid\":7"
#define ON(id)              "\"device\":0,\"context\":1,\"stream\":7,\"correlation\":" id
#define KERNEL(ts, dur, id) EVENT("kernel", "k", GPU, ts, dur, ON(id))
#define LAUNCH(ts, dur, id) EVENT("cuda_runtime", "cudaLaunchKernel", HOST, ts, dur, "\"correlation\":" id)
#define TRACE(events)       "{\"traceEvents\":[" events "]}"

static struct model model;
static struct error error;

static const char *save(const void *bytes, size_t size)
{
	const char *path = fixture_path("trace");
	FILE *file = fopen(path, "w");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(bytes, 1, size, file), size);
	cr_assert_eq(fclose(file), 0);
	return path;
}

static int load_bytes(const void *bytes, size_t size)
{
	memset(&error, 0, sizeof(error));
	return import_kineto(&model, save(bytes, size), NULL, &error);
}

static void load(const char *text)
{
	cr_assert_eq(load_bytes(text, strlen(text)), 0, "%s", error.text);
}

static void unload(void)
{
	model_free(&model);
}

static const struct device *device(uint32_t number)
{
	const struct device *found;

	array_for_each (found, &model.devices) {
		if (found->number == number)
			return found;
	}
	cr_assert_fail("no device %u", number);
	return NULL;
}

static const struct gpu_op *op(size_t index)
{
	const struct device *first = &model.devices.items[0];

	cr_assert_eq(model.devices.count, 1);
	cr_assert_lt(index, first->ops.count);
	return &first->ops.items[index];
}

static const struct thread *thread(uint32_t pid, uint32_t tid)
{
	const struct thread *found;

	array_for_each (found, &model.threads) {
		if (found->pid == pid && found->tid == tid)
			return found;
	}
	cr_assert_fail("no thread %u of %u", tid, pid);
	return NULL;
}

static bool said(const char *words)
{
	const uint32_t *line;

	array_for_each (line, &model.degraded) {
		if (strstr(model_string(&model, *line), words))
			return true;
	}
	return false;
}

static const char *text(uint32_t id)
{
	return model_string(&model, id);
}

TestSuite(kineto, .fini = unload);

Test(kineto, a_trace_as_it_should_be)
{
	load("{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"First\",\"sms\":[1,2]},"
	     "{\"name\":\"Second\",\"id\":2}],\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":3,\"world_"
	     "size\":8,"
	     "\"pg_config\":[{\"ranks\":[0,1]}]},\"baseTimeNanoseconds\":1700000000000000000,\"traceEvents\":"
	     "["
	     "{\"name\":\"process_name\",\"ph\":\"M\",\"ts\":1,\"pid\":10,\"tid\":0,\"args\":{\"name\":"
	     "\"python3\"}},"
	     "{\"name\":\"thread_name\",\"ph\":\"M\",\"ts\":1,\"pid\":10,\"tid\":12,\"args\":{\"name\":"
	     "\"thread 12 (pt_autograd_0)\"}},"
	     "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler "
	     "(0)\",\"pid\":\"Spans\",\"tid\":\"x\",\"ts\":90,"
	     "\"dur\":1000}," EVENT("user_annotation", "ProfilerStep#1", HOST, "100", "500", "") "," EVENT(
	         "cpu_op", "aten::mm", HOST, "110", "50",
	         "\"External id\":5,\"Input Dims\":[[1],[]]") "," EVENT("python_function", "a.py(1): f",
	                                                                "\"pid\":10,\"tid\":12", "105", "60",
	                                                                "\"Python id\":1") "," EVENT("cuda_"
	                                                                                             "runtim"
	                                                                                             "e",
	                                                                                             "cudaLau"
	                                                                                             "nchKern"
	                                                                                             "el",
	                                                                                             HOST,
	                                                                                             "120."
	                                                                                             "500",
	                                                                                             "10.25",
	                                                                                             "\"corre"
	                                                                                             "lation"
	                                                                                             "\":77") "," EVENT("cuda_runtime",
	                                                                                                                "cudaMemcpyAsync",
	                                                                                                                HOST,
	                                                                                                                "140",
	                                                                                                                "5", "\"correlation\":78") "," EVENT("kernel",
	                                                                                                                                                     "ncclKernel",
	                                                                                                                                                     "\"pid\":2,\"tid\":7",
	                                                                                                                                                     "200",
	                                                                                                                                                     "30", "\"device\":2,\"context\":1,\"stream\":7,\"correlation\":77,\"grid\":[1,1,1]") "," EVENT("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "\"pid\":2,\"tid\":7", "230", "1.001", "\"device\":2,\"context\":1,\"stream\":9,\"correlation\":78,\"bytes\":2048") "," EVENT("gpu_user_annotation",
	                                                                                                                                                                                                                                                                                                                                                                                                                                    "x",
	                                                                                                                                                                                                                                                                                                                                                                                                                                    "\"pid\":2,\"tid\":7", "200", "30",
	                                                                                                                                                                                                                                                                                                                                                                                                                                    "\"External id\":5") ","
	                                                                                                                                                                                                                                                                                                                                                                                                                                                         "{\"ph\":\"s\",\"id\":77,\"pid\":10,\"tid\":11,\"ts\":120,\"cat\":\"ac2g\",\"name\":\"ac2g\"},"
	                                                                                                                                                                                                                                                                                                                                                                                                                                                         "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":10,\"tid\":11,\"ts\":121,\"args\":{\"Bytes\":4}}"
	                                                                                                                                                                                                                                                                                                                                                                                                                                                         "],\"traceName\":\"x.json\"}\n");
	cr_assert_eq(model.source, MODEL_KINETO);
	cr_assert(model.summary.complete && model.has_timeline && !model.has_sched);
	cr_assert_eq(model.degraded.count, 0);
	cr_assert_eq(model.rank, 3);
	cr_assert_eq(model.world_size, 8);
	cr_assert_eq(model.start_ns, 90000);
	cr_assert_eq(model.end_ns, 1090000);

	cr_assert_eq(model.devices.count, 1);
	cr_assert_str_eq(text(device(2)->name), "Second");
	cr_assert_eq(device(2)->ops.count, 2);
	cr_assert_eq(op(0)->kind, OP_KERNEL);
	cr_assert(op(0)->collective);
	cr_assert_eq(op(0)->start_ns, 200000);
	cr_assert_eq(op(0)->end_ns, 230000);
	cr_assert_eq(op(0)->launch_ns, 120500);
	cr_assert_eq(op(1)->kind, OP_MEMCPY);
	cr_assert_eq(op(1)->end_ns, 231001);
	cr_assert_eq(op(1)->stream, 9);
	cr_assert_eq(op(1)->context, 1);
	cr_assert_eq(op(1)->bytes, 2048);
	cr_assert_eq(op(1)->copy_kind, 1);
	cr_assert_eq(op(1)->source_kind, 1);
	cr_assert_eq(op(1)->target_kind, 3);

	cr_assert_eq(model.threads.count, 2);
	cr_assert_str_eq(text(thread(10, 11)->comm), "python3");
	cr_assert_str_eq(text(thread(10, 12)->comm), "pt_autograd_0");
	cr_assert_not(thread(10, 11)->tracked);
	cr_assert_eq(thread(10, 11)->calls.count, 2);
	cr_assert_eq(thread(10, 11)->calls.items[0].exit_ns, 130750);
	cr_assert_eq(thread(10, 11)->calls.items[0].class, CUDA_LAUNCH);
	cr_assert(thread(10, 11)->calls.items[1].pageable);
	cr_assert_eq(thread(10, 11)->scopes.count, 2);
	cr_assert_eq(thread(10, 11)->scopes.items[0].kind, SCOPE_ANNOTATION);
	cr_assert_eq(thread(10, 11)->scopes.items[1].kind, SCOPE_OPERATOR);
	cr_assert_str_eq(text(thread(10, 11)->scopes.items[1].name), "aten::mm");
	cr_assert_eq(thread(10, 12)->scopes.items[0].kind, SCOPE_PYTHON);
}

Test(kineto, old_names_and_text_as_ids)
{
	load(TRACE(
	    EVENT("Runtime", "cudaMemcpyAsync", "\"pid\":5,\"tid\":\"5555\"", "10", "1", "\"correlation\":\"9\",\"external id\":43") "," EVENT(
	        "Operator", "aten::copy_", "\"pid\":5,\"tid\":5555", "9", "3",
	        "") "," EVENT("Kernel", "k", "\"pid\":0,\"tid\":\"stream 7\"", "20", "1",
	                      "\"device\":0,\"correlation\":9") "," EVENT("Memset", "Memset (Device)",
	                                                                  "\"pid\":0,\"tid\":\"stream "
	                                                                  "7\"",
	                                                                  "30", "1",
	                                                                  "\"device\":\"0\",\"stream\":"
	                                                                  "7") "," EVENT("MEMCPY",
	                                                                                 "Memcpy DtoH "
	                                                                                 "(Device -> "
	                                                                                 "Pinned)",
	                                                                                 "\"pid\":0,"
	                                                                                 "\"tid\":"
	                                                                                 "\"stream 8\"",
	                                                                                 "40", "1",
	                                                                                 "\"device\":"
	                                                                                 "0")));
	cr_assert_eq(model.threads.count, 1);
	cr_assert_eq(thread(5, 5555)->calls.count, 1);
	cr_assert_eq(thread(5, 5555)->scopes.count, 1);
	cr_assert_eq(op(0)->launch_ns, 10000);
	cr_assert_eq(op(1)->kind, OP_MEMSET);
	cr_assert_eq(op(1)->stream, 7);
	cr_assert_eq(op(2)->kind, OP_MEMCPY);
	cr_assert_eq(op(2)->copy_kind, 2);
	cr_assert_eq(op(2)->target_kind, 2);
	cr_assert_neq(op(0)->stream, op(2)->stream);
}

Test(kineto, times_are_exact)
{
	load(TRACE(KERNEL("1712195495505582.988", "1.0005", "1") "," KERNEL(
	    "\"1712195495505584.0015\"", "\"2.5\"", "2") "," KERNEL("1.712195495505587e15", "0.0015", "3")));
	cr_assert_eq(op(0)->start_ns, 1712195495505582988);
	cr_assert_eq(op(0)->end_ns, 1712195495505582988 + 1000);
	cr_assert_eq(op(1)->start_ns, 1712195495505584002);
	cr_assert_eq(op(1)->end_ns, 1712195495505584002 + 2500);
	cr_assert_eq(op(2)->start_ns, 1712195495505587000);
	cr_assert_eq(op(2)->end_ns, 1712195495505587000 + 2);
}

Test(kineto, times_that_cannot_be_used)
{
	load(TRACE(KERNEL("1", "2", "1") "," KERNEL("-1", "2", "1") "," KERNEL("1e40", "2", "1") "," KERNEL(
	    "\"soon\"", "2",
	    "1") "," KERNEL("2", "\"long\"",
	                    "1") "," KERNEL("3", "9e15",
	                                    "1") ","
	                                         "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"args\":{"
	                                         "\"device\":0}}," KERNEL("null", "1",
	                                                                  "1") "," KERNEL("5", "null", "1")));
	cr_assert_eq(device(0)->ops.count, 2);
	cr_assert_eq(op(1)->start_ns, 5000);
	cr_assert_eq(op(1)->end_ns, 5000);
	cr_assert(said("7 events without a usable time"));
}

Test(kineto, negative_and_missing_durations_are_zero)
{
	load(TRACE(KERNEL(
	    "10", "-5",
	    "1") ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":20,\"args\":{\"device\":0}}"));
	cr_assert_eq(op(0)->start_ns, 10000);
	cr_assert_eq(op(0)->end_ns, 10000);
	cr_assert_eq(op(1)->end_ns, 20000);
	cr_assert(said("1 GPU operations have a negative duration"));
}

Test(kineto, order_of_the_file_among_equals)
{
	load(TRACE(EVENT("kernel", "late", GPU, "50", "1", ON("1")) "," EVENT(
	    "kernel", "b", GPU, "10", "1", ON("2")) "," EVENT("kernel", "a", GPU, "10", "5",
	                                                      ON("3")) "," EVENT("kernel", "c", GPU, "10",
	                                                                         "0", ON("4"))));
	cr_assert_str_eq(text(op(0)->name), "b");
	cr_assert_str_eq(text(op(1)->name), "a");
	cr_assert_str_eq(text(op(2)->name), "c");
	cr_assert_str_eq(text(op(3)->name), "late");
}

Test(kineto, several_devices)
{
	load(TRACE(EVENT("kernel", "k", GPU, "30", "1", "\"device\":3") "," EVENT(
	    "kernel", "k", GPU, "10", "1",
	    "\"device\":1") "," EVENT("kernel", "k", GPU, "20", "1",
	                              "\"device\":3") "," EVENT("kernel", "k", "\"pid\":2,\"tid\":7", "40",
	                                                        "1", "")));
	cr_assert_eq(model.devices.count, 3);
	cr_assert_eq(model.devices.items[0].number, 1);
	cr_assert_eq(model.devices.items[2].number, 3);
	cr_assert_eq(device(3)->ops.count, 2);
	cr_assert_eq(device(3)->ops.items[0].start_ns, 20000);
	cr_assert_eq(device(2)->ops.count, 1, "the process of a device's events is its number");
}

Test(kineto, names_of_devices)
{
#define DEVICES(list) "{\"deviceProperties\":[" list "],\"traceEvents\":[" KERNEL("1", "1", "1") "]}"
	load(DEVICES("{\"id\":4,\"name\":\"Same\"},{\"id\":5,\"name\":\"Same\"}"));
	cr_assert_str_eq(text(device(0)->name), "Same");
	unload();
	load(DEVICES("{\"id\":4,\"name\":\"One\"},{\"id\":5,\"name\":\"Other\"}"));
	cr_assert_str_eq(text(device(0)->name), "");
	unload();
	load(DEVICES(
	    "7,null,[{\"id\":0}],{\"id\":{\"id\":0},\"name\":[\"x\"]},{\"name\":\"\\u004eame\",\"id\":0}"));
	cr_assert_str_eq(text(device(0)->name), "Name");
}

Test(kineto, no_correlation_ids)
{
	load(TRACE(EVENT("cuda_runtime", "cudaLaunchKernel", HOST, "1", "1",
	                 "") "," EVENT("kernel", "k", GPU, "10", "1",
	                               "\"device\":0") "," KERNEL("20", "1", "0") "," LAUNCH("2", "1", "0")));
	cr_assert_eq(op(0)->launch_thread, MODEL_NONE);
	cr_assert_eq(op(1)->launch_thread, MODEL_NONE, "CUPTI counts from 1");
	cr_assert(said("2 of 2 GPU operations have no launch in the trace (they carry no correlation id)"));
}

#define EXTERNAL_CALL(ts, id) EVENT("cuda_runtime", "cudaLaunchKernel", HOST, ts, "1", "\"External id\":" id)
#define EXTERNAL_OP(ts, id)   EVENT("kernel", "k", GPU, ts, "1", "\"device\":0,\"External id\":" id)

Test(kineto, external_ids_where_there_are_no_others)
{
	load(TRACE(
	    EXTERNAL_CALL("1", "5") "," EXTERNAL_OP("10", "5") "," EXTERNAL_CALL("2", "6") "," EXTERNAL_CALL(
	        "3", "6") "," EXTERNAL_OP("20", "6") "," EXTERNAL_OP("30", "7") "," LAUNCH("4", "1", "7")));
	cr_assert_eq(op(0)->launch_ns, 1000);
	cr_assert_eq(op(1)->launch_thread, MODEL_NONE,
	             "two calls carry it: which of them it was is not known");
	cr_assert_eq(op(2)->launch_thread, MODEL_NONE, "a correlation id is no External id");
	cr_assert(said("2 of 3 GPU operations have no launch"));
}

Test(kineto, of_calls_with_one_id_the_earliest_is_the_launch)
{
	load(TRACE(LAUNCH("8", "1", "5") "," KERNEL("20", "1", "5") "," LAUNCH("3", "1", "5") "," LAUNCH(
	    "6", "1", "5")));
	cr_assert_eq(op(0)->launch_ns, 3000);
	unload();
	/* Also if another process made it. */
	load(TRACE(
	    EVENT("cuda_runtime", "cudaLaunchKernel", "\"pid\":20,\"tid\":20", "8", "1", "\"correlation\":5") "," LAUNCH(
	        "9", "1",
	        "6") "," LAUNCH("10", "1",
	                        "7") "," KERNEL("20", "1",
	                                        "5") "," KERNEL("30", "1",
	                                                        "6") "," LAUNCH("15", "1",
	                                                                        "5") "," KERNEL("40", "1",
	                                                                                        "99")));
	cr_assert_eq(op(0)->launch_ns, 8000);
	cr_assert_eq(model.processes.items[op(0)->process].pid, 20);
	cr_assert_eq(op(1)->launch_ns, 9000);
	cr_assert_eq(model.processes.items[op(2)->process].pid, 10,
	             "without a call it is the process with most calls");
}

Test(kineto, ids_of_any_kind)
{
	static const char *const ids[] = {"18446744073709551615",
	                                  "99999999999999999999999",
	                                  "-3",
	                                  "\"abc\"",
	                                  "7.5",
	                                  "4294967295",
	                                  "4026531840",
	                                  "4294967296"};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		char json[1024];

		/* The same id also as pid, tid, stream and device. */
		snprintf(
		    json, sizeof(json),
		    "[{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":%s,"
		    "\"tid\":%s,"
		    "\"ts\":1,\"dur\":1,\"args\":{\"correlation\":%s}},"
		    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":0,\"ts\":5,\"dur\":1,"
		    "\"args\":{\"device\":%s,\"stream\":%s,\"context\":%s,\"correlation\":%s}},"
		    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":0,\"ts\":7,\"dur\":1,"
		    "\"args\":{\"device\":%s,\"correlation\":1}}]",
		    ids[i], ids[i], ids[i], ids[i], ids[i], ids[i], ids[i], ids[i]);
		load(json);
		cr_assert_eq(op(0)->launch_ns, 1000, "%s", ids[i]);
		cr_assert_eq(op(1)->launch_thread, MODEL_NONE, "%s", ids[i]);
		cr_assert_neq(op(0)->correlation, op(1)->correlation, "%s", ids[i]);
		unload();
	}
}

Test(kineto, pids_and_tids_are_told_apart)
{
	load(TRACE(EVENT("cpu_op", "a", "\"pid\":1,\"tid\":2", "1", "1", "") "," EVENT(
	    "cpu_op", "a", "\"pid\":3,\"tid\":2", "2", "1",
	    "") "," EVENT("cpu_op", "a", "\"pid\":1,\"tid\":2", "3", "1",
	                  "") "," EVENT("cpu_op", "a", "\"pid\":3,\"tid\":2", "4", "1",
	                                "") "," EVENT("cpu_op", "a", "\"pid\":\"Spans\",\"tid\":\"x\"", "5",
	                                              "1", "") "," EVENT("cpu_op", "a",
	                                                                 "\"pid\":\"Spans\",\"tid\":\"y\"",
	                                                                 "6", "1", "")));
	cr_assert_eq(model.threads.count, 4);
	cr_assert_eq(model.processes.count, 3);
	cr_assert_eq(thread(1, 2)->scopes.count, 2);
	cr_assert_eq(thread(3, 2)->scopes.count, 2);
}

Test(kineto, members_and_fields_in_any_order)
{
	load("{\"traceEvents\":[{\"args\":{\"correlation\":4,\"stream\":7,\"device\":1,\"x\":[{}]},\"dur\":2,"
	     "\"name\":\"k\","
	     "\"ts\":5,\"cat\":\"kernel\",\"pid\":1,\"tid\":7,\"ph\":\"X\"},"
	     "{\"cat\":\"ac2g\",\"args\":{\"name\":\"n\"},\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":10,"
	     "\"tid\":11},"
	     "{\"args\":{\"correlation\":4},\"cat\":\"cuda_driver\",\"pid\":10,\"tid\":11,\"ts\":1,\"dur\":1,"
	     "\"ph\":\"X\","
	     "\"name\":\"cuLaunchKernel\"}],\"deviceProperties\":[{\"id\":1,\"name\":\"Last\"}]}");
	cr_assert_eq(op(0)->launch_ns, 1000);
	cr_assert_str_eq(text(device(1)->name), "Last");
	cr_assert_str_eq(text(thread(10, 11)->comm), "n");
}

Test(kineto, the_array_of_events_alone)
{
	load("[" KERNEL("1", "1", "1") "]");
	cr_assert(model.summary.complete);
	cr_assert_eq(device(0)->ops.count, 1);
}

Test(kineto, things_that_are_no_events)
{
	load(TRACE(
	    "1,\"x\",null,[[{\"ph\":\"X\"}]],{},{\"ph\":7},{\"ph\":\"XX\",\"cat\":\"kernel\"},"
	    "{\"ph\":{\"ph\":\"X\"},\"cat\":[\"kernel\"],\"ts\":[1],\"dur\":{},\"pid\":[],\"args\":[1,[2]]},"
	    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":[\"n\"],\"ts\":1,\"dur\":1,\"args\":null},"
	    "{\"ph\":\"X\",\"cat\":\"\",\"name\":\"n\",\"ts\":1,\"dur\":1},"
	    "{\"ph\":\"X\",\"name\":\"n\",\"ts\":1,\"dur\":1,\"args\":{\"device\":0}},"
	    "{\"ph\":\"X\",\"cat\":\"kernel2\",\"name\":\"n\",\"ts\":1,\"dur\":1}"));
	cr_assert_eq(device(0)->ops.count, 1, "only the one with the odd name is an operation");
	cr_assert_str_eq(text(op(0)->name), "");
}

Test(kineto, lenient_where_profilers_are)
{
	load(
	    TRACE(EVENT("kernel", "C:\\\\x\\q\\u00e9\ttab", GPU, "1", "1",
	                "\"est. achieved occupancy %\":NaN,\"memory bandwidth (GB/s)\":-Infinity," ON("1"))));
	cr_assert_str_eq(text(op(0)->name), "C:\\x\\q\xc3\xa9\ttab");
	cr_assert(model.summary.complete);
}

Test(kineto, code_that_was_loaded_inside_a_call)
{
	load(TRACE(LAUNCH("10", "100", "1") "," KERNEL("200", "1", "1") "," EVENT(
	    "overhead", "Lazy Function Loading", "\"pid\":-1,\"tid\":0", "20", "30",
	    "") "," EVENT("overhead", "Lazy Function Loading", "\"pid\":-1,\"tid\":0", "150", "30",
	                  "") "," EVENT("overhead", "Activity Buffer Request", "\"pid\":-1,\"tid\":0", "60",
	                                "10",
	                                "") "," EVENT("overhead", "Command Buffer Full", HOST, "60", "10",
	                                              "") "," EVENT("overhead", "Activity Buffer Flush", HOST,
	                                                            "70", "10", "")));
	cr_assert_eq(thread(10, 11)->overhead.count, 2);
	cr_assert_eq(thread(10, 11)->overhead.items[0].start_ns, 20000);
	cr_assert_eq(thread(10, 11)->overhead.items[0].end_ns, 50000);
	cr_assert(thread(10, 11)->overhead.items[0].loading);
	cr_assert_eq(thread(10, 11)->overhead.items[1].start_ns, 70000);
	cr_assert_not(thread(10, 11)->overhead.items[1].loading);
	unload();
	/* Two threads were in a call: it can have been either. */
	load(TRACE(LAUNCH("10", "100", "1") "," EVENT(
	    "cuda_runtime", "cudaFree", "\"pid\":10,\"tid\":12", "10", "100",
	    "") "," EVENT("overhead", "Lazy Function Loading", "\"pid\":-1,\"tid\":0", "20", "30", "")));
	cr_assert_eq(thread(10, 11)->overhead.count, 0);
	cr_assert_eq(thread(10, 12)->overhead.count, 0);
}

Test(kineto, synchronisations)
{
	load(TRACE(
	    LAUNCH("1", "1", "3") "," EVENT("cuda_sync", "Stream Sync", GPU, "5", "2", "\"cuda_sync_kind\":\"Stream Sync\",\"stream\":7,\"correlation\":3") "," EVENT(
	        "cuda_sync", "Event Sync", GPU, "5", "2",
	        "") "," EVENT("cuda_sync", "Context Sync", GPU, "5", "2",
	                      "\"context\":1") "," EVENT("cuda_sync", "Stream Wait Event", GPU, "5", "2",
	                                                 "")));
	cr_assert_eq(model.syncs.count, 4);
	cr_assert_eq(model.syncs.items[0].type, 3);
	cr_assert_eq(model.syncs.items[0].start_ns, 5000);
	cr_assert_eq(model.syncs.items[0].end_ns, 7000);
	cr_assert_eq(model.syncs.items[0].stream, 7);
	cr_assert_eq(model.processes.items[model.syncs.items[0].process].pid, 10);
	cr_assert_eq(model.syncs.items[1].type, 1);
	cr_assert_eq(model.syncs.items[2].type, 4);
	cr_assert_eq(model.syncs.items[3].type, 2);
}

Test(kineto, what_is_missing_is_said)
{
	load(TRACE(""));
	cr_assert(said("no GPU operations") && model.summary.complete && !model.has_timeline);
	cr_assert_eq(model.devices.count, 0);
	unload();
	load(TRACE(EVENT("cpu_op", "a", HOST, "1", "1", "")));
	cr_assert(said("no GPU operations"));
	unload();
	load(TRACE(KERNEL("1", "1", "1")));
	cr_assert(said("no CUDA calls") && said("no operators"));
	unload();
	load(TRACE(KERNEL("5", "1", "1") "," LAUNCH("1", "1", "1")));
	cr_assert(!said("no CUDA calls") && said("no operators") && !said("no launch"));
}

/* Names of events that are not kept take no memory. */
Test(kineto, only_what_is_kept_takes_memory)
{
	struct image trace = {0};
	char event[200];

	image_add(&trace, "{\"traceEvents\":[", 16);
	for (int i = 0; i < 5000; i++) {
		snprintf(event, sizeof(event),
		         "{\"ph\":\"X\",\"cat\":\"other\",\"name\":\"name %d\",\"ts\":%d,\"dur\":1,"
		         "\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%d\"}},",
		         i, i, i, i, i);
		image_add(&trace, event, strlen(event));
		snprintf(event, sizeof(event),
		         "{\"ph\":\"i\",\"name\":\"instant %d\",\"ts\":%d,\"pid\":%d,\"tid\":1},", i, i, i);
		image_add(&trace, event, strlen(event));
	}
	image_add(&trace, KERNEL("1", "1", "1") "]}", strlen(KERNEL("1", "1", "1") "]}"));
	cr_assert_eq(load_bytes(trace.bytes, trace.size), 0, "%s", error.text);
	cr_assert_lt(model.strings.count, 8);
	cr_assert_eq(model.threads.count, 0);
	cr_assert_eq(model.summary.records, 10001);
	image_free(&trace);
}

Test(kineto, strings_of_ten_megabytes)
{
	struct image trace = {0};
	size_t length = 10 << 20;
	char *big = malloc(length);

	cr_assert_not_null(big);
	memset(big, 'y', length);
	for (size_t i = 0; i + 1 < length; i += 2)
		memcpy(big + i, "\xc3\xa9", 2);
	image_add(&trace, "{\"", 2);
	image_add(&trace, big, length);
	image_add(&trace, "\":\"", 3);
	image_add(&trace, big, length);
	image_add(&trace,
	          "\",\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":1,\"name\":\"x", 66);
	image_add(&trace, big, length);
	image_add(&trace, "\",\"args\":{\"device\":0,\"long\":\"", 29);
	image_add(&trace, big, length);
	image_add(&trace, "\"},\"cat2\":\"", 11);
	image_add(&trace, big, length);
	image_add(&trace, "\"}]}", 4);
	cr_assert_eq(load_bytes(trace.bytes, trace.size), 0, "%s", error.text);
	cr_assert_eq(device(0)->ops.count, 1);
	cr_assert_eq(strlen(text(op(0)->name)), 65535, "no half a character is left");
	image_free(&trace);
	free(big);
}

Test(kineto, deep_nesting)
{
	char json[8192];
	size_t used = (size_t)snprintf(json, sizeof(json),
	                               "{\"traceEvents\":[%s,{\"ph\":\"X\",\"args\":", KERNEL("1", "1", "1"));

	memset(json + used, '[', 4000);
	json[used + 4000] = '\0';
	load(json);
	cr_assert_eq(device(0)->ops.count, 1);
	cr_assert_not(model.summary.complete);
	cr_assert(said("nested too deeply"));
}

static const char small[] =
    "\n{ \"schemaVersion\": 1, \"deviceProperties\": [{\"id\":0,\"name\":\"G\"}],\n\"traceEvents\": "
    "[\n" LAUNCH("1", "1", "1") ",\n" KERNEL("5", "1.5", "1") ",\n" LAUNCH("8", "1", "2") ",\n" EVENT(
        "cpu_op", "a\\u0041", HOST, "7", "3", "\"a\":[1]") ",\n" KERNEL("12", "1",
                                                                        "2") "\n],\n\"traceName\": \"x\"}\n";

Test(kineto, cut_off_at_every_byte)
{
	size_t whole = strlen(small) - 1, before = 0;

	for (size_t length = 0; length <= strlen(small); length++) {
		int rc = load_bytes(small, length);
		size_t ops = rc || !model.devices.count ? 0 : model.devices.items[0].ops.count;

		if (rc) {
			cr_assert(*error.text && !strchr(error.text, '\n'), "%zu", length);
			cr_assert_eq(before, 0, "%zu: an error although there was an operation before",
			             length);
		} else {
			cr_assert_eq(model.summary.complete, length >= whole, "%zu", length);
			cr_assert_eq(said("cut off after"), length < whole, "%zu", length);
		}
		cr_assert_geq(ops, before);
		before = ops;
		unload();
	}
	cr_assert_eq(before, 2);
}

/* gzip of a text, in `members` parts. */
static struct image pack_bytes(const void *json, size_t total, int members)
{
	size_t done = 0, room = total + 4096;
	unsigned char *out = malloc(room);
	struct image packed = {0};

	cr_assert_not_null(out);
	for (int i = 0; i < members; i++) {
		size_t part = i + 1 < members ? total / (size_t)members : total - done;
		z_stream stream = {0};

		cr_assert_eq(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
		stream.next_in = (unsigned char *)json + done;
		stream.avail_in = (unsigned)part;
		stream.next_out = out;
		stream.avail_out = (unsigned)room;
		cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
		image_add(&packed, out, stream.total_out);
		deflateEnd(&stream);
		done += part;
	}
	free(out);
	return packed;
}

static struct image pack(const char *json, int members)
{
	return pack_bytes(json, strlen(json), members);
}

#define LARGE_EVENT 300 /* bytes at most */

/* So many kernels, with arguments that do not pack well: it is read ahead by a thread, also packed. */
static struct image make_large(int kernels)
{
	struct image trace = {.bytes = malloc((size_t)kernels * LARGE_EVENT + 64)};
	uint64_t state = 1;
	char *end = (char *)trace.bytes;

	cr_assert_not_null(trace.bytes);
	end += sprintf(end, "{\"traceEvents\":[");
	for (int i = 0; i < kernels; i++) {
		end +=
		    sprintf(end,
		            "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":%d,\"dur\":1,\"args\":{\"device\":0,"
		            "\"a\":\"",
		            i ? "," : "", 2 * i + 1);
		for (int k = 0; k < 12; k++)
			end += sprintf(end, "%016llx", (unsigned long long)fixture_random(&state));
		end += sprintf(end, "\"}}");
	}
	end += sprintf(end, "]}");
	trace.size = (size_t)(end - (char *)trace.bytes);
	return trace;
}

Test(kineto, larger_files_are_read_ahead)
{
	struct image trace = make_large(8000), packed = pack_bytes(trace.bytes, trace.size, 3);

	cr_assert_gt(packed.size, 600u << 10);
	cr_assert_eq(load_bytes(trace.bytes, trace.size), 0, "%s", error.text);
	cr_assert(model.summary.complete && device(0)->ops.count == 8000);
	unload();
	cr_assert_eq(load_bytes(packed.bytes, packed.size), 0, "%s", error.text);
	cr_assert(model.summary.complete && device(0)->ops.count == 8000);
	cr_assert_eq(op(7999)->start_ns, 15999000);
	unload();
	cr_assert_eq(load_bytes(packed.bytes, packed.size * 2 / 3), 0, "%s", error.text);
	cr_assert(!model.summary.complete && said("gzip data is cut off"));
	cr_assert(device(0)->ops.count > 5000 && device(0)->ops.count < 6000);
	unload();
	memset(packed.bytes + packed.size / 2, 0x55, 64);
	cr_assert_eq(load_bytes(packed.bytes, packed.size), 0, "%s", error.text);
	cr_assert(!model.summary.complete && device(0)->ops.count > 3000);
	unload();
	image_free(&packed);
	/* The reader stops while the thread still has more for it. */
	memcpy(memmem(trace.bytes, trace.size, "},{", 3), "}]]", 3);
	packed = pack_bytes(trace.bytes, trace.size, 1);
	cr_assert_eq(load_bytes(packed.bytes, packed.size), 0, "%s", error.text);
	cr_assert(said("does not match") && device(0)->ops.count == 1);
	unload();
	cr_assert_eq(load_bytes(trace.bytes, trace.size), 0, "%s", error.text);
	cr_assert(said("does not match") && device(0)->ops.count == 1);
	image_free(&packed);
	image_free(&trace);
}

Test(kineto, packed_in_one_or_several_members)
{
	for (int members = 1; members < 5; members++) {
		struct image packed = pack(small, members);

		cr_assert_eq(load_bytes(packed.bytes, packed.size), 0, "%s", error.text);
		cr_assert(model.summary.complete);
		cr_assert_eq(device(0)->ops.count, 2);
		unload();
		/* What is no gzip behind it is not the trace's. */
		image_add(&packed, "\0\0\0garbage", 10);
		cr_assert_eq(load_bytes(packed.bytes, packed.size), 0, "%s", error.text);
		cr_assert(model.summary.complete);
		unload();
		image_free(&packed);
	}
}

Test(kineto, packed_and_cut_off_at_every_byte)
{
	struct image packed = pack(small, 1);

	for (size_t length = 2; length < packed.size; length++) {
		int rc = load_bytes(packed.bytes, length);

		if (rc)
			cr_assert(*error.text, "%zu", length);
		else
			cr_assert(!model.summary.complete && said("cut off"), "%zu", length);
		unload();
	}
	image_free(&packed);
}

Test(kineto, packed_and_damaged_at_every_byte)
{
	struct image packed = pack(small, 1);

	for (size_t i = 0; i < packed.size; i++) {
		int rc;

		packed.bytes[i] ^= 0x5a;
		rc = load_bytes(packed.bytes, packed.size);
		/* The header's time, flags and system are not covered by the checksum. */
		if (i >= 10)
			cr_assert(rc ? *error.text : !model.summary.complete,
			          "byte %zu: damage was not noticed", i);
		packed.bytes[i] ^= 0x5a;
		unload();
	}
	image_free(&packed);
}

static const struct {
	const char *json, *words;
} refused[] = {
    {"{}", "no traceEvents"},
    {"[]", "no traceEvents"},
    {"[1,2]", "no traceEvents"},
    {"[{\"a\":1}]", "no traceEvents"},
    {"{\"traceEvents\":{}}", "no traceEvents"},
    {"{\"traceEvents\":[{\"a\":1}]}", "no traceEvents"},
    {"{\"a\":[{\"ph\":\"X\"}]}", "no traceEvents"},
    {"17", "no traceEvents"},
    {"\"text\"", "no traceEvents"},
    {"{\"a\"", "cut off before its first event"},
    {"{\"deviceProperties\":[{\"id\":0", "cut off before its first event"},
    {"{\"traceEvents\":[", "cut off before its first event"},
    {"{\"traceEvents\":[{\"ph\":\"X\",", "cut off before its first event"},
    {"", "cut off before its first event"},
    {"{hello}", "not JSON"},
    {"{\"traceEvents\":[}", "not JSON"},
    {"{\"traceEvents\" [", "not JSON"},
};

Test(kineto, other_things_are_refused_in_a_line)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		int rc = load_bytes(refused[i].json, strlen(refused[i].json));

		cr_expect(rc < 0 && rc == error.code, "%s", refused[i].json);
		cr_expect(strstr(error.text, refused[i].words) && strstr(error.text, "trace"), "%s: %s",
		          refused[i].json, error.text);
		unload();
	}
}

Test(kineto, broken_after_some_events)
{
	load("{\"traceEvents\":[" KERNEL("1", "1", "1") ",{\"ph\":\"X\" \"cat\"");
	cr_assert_eq(device(0)->ops.count, 1);
	cr_assert_not(model.summary.complete);
	cr_assert(said("damaged (a comma was expected at byte"));
	unload();
	load(TRACE(KERNEL("1", "1", "1")) "{\"more\":1}");
	cr_assert(model.summary.complete && said("something follows"));
}

/* A last good event and the one that was cut off in the middle of a number. */
Test(kineto, half_an_event_is_left_out)
{
	load("{\"traceEvents\":[" KERNEL(
	    "1", "1", "1") ",{\"ph\":\"X\",\"cat\":\"kernel\",\"args\":{\"device\":0},\"ts\":12");
	cr_assert_eq(device(0)->ops.count, 1);
}

static void count_progress(void *context, uint64_t done, uint64_t total)
{
	uint64_t *last = context;

	cr_assert(done >= *last && done <= total);
	*last = done;
}

Test(kineto, progress_goes_up_to_the_end)
{
	uint64_t last = 0;
	struct import_progress progress = {count_progress, &last};

	cr_assert_eq(import_kineto(&model, save(small, strlen(small)), &progress, &error), 0);
	cr_assert_eq(last, strlen(small));
}

Test(kineto, files_that_cannot_be_opened)
{
	cr_assert_eq(import_kineto(&model, fixture_path("missing"), NULL, &error), -ENOENT);
	cr_assert(strstr(error.text, "missing"));
	cr_assert_eq(import_kineto(&model, "/", NULL, &error), -EISDIR);
	cr_assert_eq(import_kineto(&model, "/dev/null", NULL, &error), -EINVAL);
}
