/* SPDX-License-Identifier: GPL-2.0-only */
/* Nsight Systems exports read into a model: small databases for every odd case. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attribute/analysis.h"
#include "import/import.h"
#include "session_fixture.h"

/* Global ids of two processes and their threads. */
#define PROCESS(pid)     (1ULL << 48 | (unsigned long long)(pid) << 24)
#define THREAD(pid, tid) (PROCESS(pid) | (tid))

#define STRINGS "create table StringIds (id integer primary key, value text not null);"
#define RUNTIME                                                                                              \
	"create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, end integer, eventClass integer, "         \
	"globalTid integer, correlationId integer, nameId integer);"
#define GPU_COLUMNS                                                                                          \
	"start integer, end integer, deviceId integer, contextId integer, streamId integer, "                \
	"correlationId integer, globalPid integer"
#define KERNEL                                                                                               \
	"create table CUPTI_ACTIVITY_KIND_KERNEL (" GPU_COLUMNS ", demangledName integer, "                  \
	"graphNodeId integer);"
#define MEMCPY                                                                                               \
	"create table CUPTI_ACTIVITY_KIND_MEMCPY (" GPU_COLUMNS ", bytes integer, copyKind integer, "        \
	"srcKind integer, dstKind integer);"
#define MEMSET "create table CUPTI_ACTIVITY_KIND_MEMSET (" GPU_COLUMNS ", bytes integer, memKind integer);"
#define GRAPH  "create table CUPTI_ACTIVITY_KIND_GRAPH_TRACE (" GPU_COLUMNS ", graphId integer);"
#define SCHED                                                                                                \
	"create table SCHED_EVENTS (start integer, cpu integer, isSchedIn integer, globalTid integer, "      \
	"threadState integer);"
#define OSRT "create table OSRT_API (start integer, end integer, globalTid integer, nameId integer);"
#define NVTX                                                                                                 \
	"create table NVTX_EVENTS (start integer, end integer, eventType integer, text text, "               \
	"globalTid integer, textId integer);"

static const char *path;
static struct model model;
static struct error failure;

/* A fresh database, made by these statements. */
static void make(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void make(const char *format, ...)
{
	char *sql, *message = NULL;
	sqlite3 *database;
	va_list args;

	va_start(args, format);
	sql = sqlite3_vmprintf(format, args);
	va_end(args);
	path = fixture_path("export.sqlite");
	unlink(path);
	cr_assert_eq(sqlite3_open(path, &database), SQLITE_OK);
	sqlite3_exec(database, sql, NULL, NULL, &message);
	cr_assert_null(message, "%s", message);
	sqlite3_free(sql);
	cr_assert_eq(sqlite3_close(database), SQLITE_OK);
}

static int read_export(void)
{
	failure = (struct error){0};
	return import_nsys(&model, path, NULL, &failure);
}

static void load(void)
{
	cr_assert_eq(read_export(), 0, "%s", failure.text);
}

static bool noted(const char *part)
{
	for (size_t i = 0; i < model.degraded.count; i++) {
		if (strstr(model_string(&model, model.degraded.items[i]), part))
			return true;
	}
	return false;
}

static void finish(void)
{
	model_free(&model);
}

static const struct gpu_op *op_at(size_t device, size_t index)
{
	cr_assert_lt(device, model.devices.count);
	cr_assert_lt(index, model.devices.items[device].ops.count);
	return &model.devices.items[device].ops.items[index];
}

static const struct thread *thread_of(uint32_t pid, uint32_t tid)
{
	const struct thread *thread;

	array_for_each (thread, &model.threads) {
		if (thread->pid == pid && thread->tid == tid)
			return thread;
	}
	cr_assert_fail("no thread %u of process %u", tid, pid);
	return NULL;
}

/* An ordinary recording of one thread: two kernels, a copy and a fill, each launched by a call. */
static void make_ordinary(const char *more)
{
	make(STRINGS RUNTIME KERNEL MEMCPY MEMSET
	     "insert into StringIds values (1, 'cudaLaunchKernel_v7000'), (2, 'cudaMemcpyAsync_v3020'), "
	     "(3, 'cudaMemsetAsync_v3020'), (4, 'gemm<float>'), (5, 'ncclDevKernel_AllReduce'), "
	     "(6, 'pthread_mutex_lock'), (7, 'read'), (8, 'open'), (9, 'a range');"
	     "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (1000, 1010, 0, %llu, 1, 1), "
	     "(1100, 1110, 0, %llu, 2, 1), (1200, 1210, 0, %llu, 3, 2), (1300, 1310, 0, %llu, 4, 3);"
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL values (1020, 1050, 0, 1, 7, 1, %llu, 4, null), "
	     "(1060, 1150, 0, 1, 7, 2, %llu, 5, null);"
	     "insert into CUPTI_ACTIVITY_KIND_MEMCPY values (1250, 1260, 0, 1, 7, 3, %llu, 4096, 1, 0, 2);"
	     "insert into CUPTI_ACTIVITY_KIND_MEMSET values (1400, 1410, 0, 1, 7, 4, %llu, 64, 2); %s",
	     THREAD(7, 8), THREAD(7, 8), THREAD(7, 8), THREAD(7, 8), PROCESS(7), PROCESS(7), PROCESS(7),
	     PROCESS(7), more);
}

/* ---- what an export holds ---- */

Test(nsys, ordinary, .fini = finish)
{
	make_ordinary("create table PROCESSES (globalPid integer, pid integer, name text);"
	              "insert into PROCESSES values (281474976710656 + 7 * 16777216, 7, 'python3');");
	load();
	cr_assert_eq(model.source, MODEL_NSYS);
	cr_assert(model.has_timeline && !model.has_sched && model.summary.complete);
	cr_assert_eq(model.devices.count, 1);
	cr_assert_eq(model.devices.items[0].ops.count, 4);
	cr_assert_eq(model.start_ns, 1000);
	cr_assert_eq(model.end_ns, 1410);
	cr_assert_str_eq(model_string(&model, op_at(0, 0)->name), "gemm<float>");
	cr_assert(!op_at(0, 0)->collective && op_at(0, 1)->collective);
	cr_assert_eq(op_at(0, 2)->kind, OP_MEMCPY);
	cr_assert_eq(op_at(0, 2)->bytes, 4096);
	cr_assert_eq(op_at(0, 2)->copy_kind, 1);
	cr_assert_eq(op_at(0, 2)->source_kind, 1, "pageable memory as CUPTI counts");
	cr_assert_eq(op_at(0, 2)->target_kind, 3);
	cr_assert_eq(op_at(0, 3)->kind, OP_MEMSET);
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert_eq(op_at(0, i)->order, i);
		cr_assert_eq(op_at(0, i)->launch_ns, 1000 + i * 100);
	}
	cr_assert_eq(thread_of(7, 8)->calls.count, 4);
	cr_assert_eq(thread_of(7, 8)->calls.items[0].class, CUDA_LAUNCH);
	cr_assert(thread_of(7, 8)->calls.items[2].pageable);
	cr_assert_str_eq(model_string(&model, thread_of(7, 8)->comm), "python3");
	cr_assert(!thread_of(7, 8)->tracked);
	cr_assert(noted("no scheduler data"));
}

static void check_gaps(uint64_t busy_ns, size_t gaps, uint64_t late_ns, uint64_t unknown_ns)
{
	struct analysis_options options = {.device = -1};
	struct analysis analysis = {0};
	const struct device_report *device;

	cr_assert_eq(analysis_run(&analysis, &model, &options, &failure), 0, "%s", failure.text);
	device = &analysis.devices.items[0];
	cr_assert_eq(device->busy_ns, busy_ns);
	cr_assert_eq(device->gap_count, gaps);
	cr_assert_eq(device->late_ns, late_ns);
	cr_assert_eq(device->unknown_ns, unknown_ns);
	analysis_free(&analysis);
}

Test(nsys, figures, .fini = finish)
{
	make_ordinary("");
	load();
	/* 1050..1060 late, 1150..1250 late, 1260..1400 late. */
	check_gaps(30 + 90 + 10 + 10, 3, 10 + 100 + 140, 0);
}

Test(nsys, rows_in_file_order_despite_an_index, .fini = finish)
{
	make(STRINGS KERNEL "insert into CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId) values "
	                    "(50, 60, 0, 1), (50, 55, 0, 2), (10, 20, 0, 3);"
	                    "create index covering on CUPTI_ACTIVITY_KIND_KERNEL (end, start, deviceId, "
	                    "contextId, streamId, correlationId, globalPid, demangledName, graphNodeId);");
	load();
	cr_assert_eq(op_at(0, 0)->stream, 3);
	cr_assert_eq(op_at(0, 0)->order, 2);
	cr_assert_eq(op_at(0, 1)->stream, 1);
	cr_assert_eq(op_at(0, 2)->stream, 2);
}

Test(nsys, correlation_ids_are_of_a_process, .fini = finish)
{
	make(
	    STRINGS RUNTIME KERNEL
	    "insert into StringIds values (1, 'cudaLaunchKernel_v7000');"
	    "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (10, 20, 0, %llu, 5, 1), (30, 40, 0, %llu, 5, 1);"
	    "insert into CUPTI_ACTIVITY_KIND_KERNEL values (100, 110, 0, 1, 7, 5, %llu, 1, null), "
	    "(100, 110, 1, 1, 7, 5, %llu, 1, null), (200, 210, 1, 1, 7, 6, %llu, 1, null);",
	    THREAD(7, 7), THREAD(8, 8), PROCESS(7), PROCESS(8), PROCESS(8));
	load();
	cr_assert_eq(model.devices.count, 2);
	cr_assert_eq(op_at(0, 0)->launch_ns, 10);
	cr_assert_eq(op_at(1, 0)->launch_ns, 30);
	cr_assert_eq(op_at(1, 1)->launch_thread, MODEL_NONE);
}

/* Machines and containers that were recorded together can have the same process id. */
Test(nsys, same_pid_on_two_machines, .fini = finish)
{
	make(
	    STRINGS RUNTIME KERNEL
	    "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (10, 20, 0, %llu, 5, 1), (30, 40, 0, %llu, 5, 1);"
	    "insert into CUPTI_ACTIVITY_KIND_KERNEL values (100, 110, 0, 1, 7, 5, %llu, 1, null), "
	    "(200, 210, 0, 1, 7, 5, %llu, 1, null);",
	    THREAD(7, 7), THREAD(7, 7) + (1ULL << 48), PROCESS(7), PROCESS(7) + (1ULL << 48));
	load();
	cr_assert_eq(model.processes.count, 2);
	cr_assert_eq(op_at(0, 0)->launch_ns, 10);
	cr_assert_eq(op_at(0, 1)->launch_ns, 30);
}

Test(nsys, correlation_ids_that_do_not_fit, .fini = finish)
{
	make(STRINGS RUNTIME KERNEL
	     "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (10, 11, 0, %llu, 1, 1), "
	     "(20, 21, 0, %llu, 4294967297, 1), (30, 31, 0, %llu, -5, 1), (40, 41, 0, %llu, 4026531840, 1), "
	     "(50, 51, 0, %llu, 0, 1);"
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL values (100, 110, 0, 1, 7, 4294967297, %llu, 1, null), "
	     "(200, 210, 0, 1, 7, -5, %llu, 1, null), (300, 310, 0, 1, 7, 4026531840, %llu, 1, null), "
	     "(400, 410, 0, 1, 7, 0, %llu, 1, null), (500, 510, 0, 1, 7, 1, %llu, 1, null);",
	     THREAD(7, 7), THREAD(7, 7), THREAD(7, 7), THREAD(7, 7), THREAD(7, 7), PROCESS(7), PROCESS(7),
	     PROCESS(7), PROCESS(7), PROCESS(7));
	load();
	cr_assert_eq(op_at(0, 0)->launch_ns, 20);
	cr_assert_eq(op_at(0, 1)->launch_ns, 30);
	cr_assert_eq(op_at(0, 2)->launch_ns, 40);
	cr_assert_eq(op_at(0, 3)->launch_thread, MODEL_NONE, "0 is no id");
	cr_assert_eq(op_at(0, 4)->launch_ns, 10);
}

/* Before exports said whose operation it is: the earliest call with the id is the launch. */
Test(nsys, old_schema_without_process, .fini = finish)
{
	make(
	    "create table StringIds (id int not null, value text);" RUNTIME
	    "create table CUPTI_ACTIVITY_KIND_KERNEL (start int not null, end int not null, deviceId int, "
	    "streamId int, correlationId int, demangledName int);"
	    "insert into StringIds values (9, 'axpy');"
	    "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (60, 70, 0, %llu, 5, 1), (30, 40, 0, %llu, 5, 1);"
	    "insert into CUPTI_ACTIVITY_KIND_KERNEL values (100, 110, 0, 7, 5, 9), (200, 210, 0, 7, 6, 9);",
	    THREAD(7, 7), THREAD(8, 8));
	load();
	cr_assert_eq(op_at(0, 0)->launch_ns, 30);
	cr_assert_eq(model.processes.items[op_at(0, 0)->process].pid, 8);
	cr_assert_eq(op_at(0, 1)->launch_thread, MODEL_NONE);
	cr_assert_str_eq(model_string(&model, op_at(0, 1)->name), "axpy");
}

Test(nsys, graphs_as_a_whole, .fini = finish)
{
	make(
	    STRINGS RUNTIME KERNEL GRAPH
	    "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (10, 11, 0, %llu, 1, 1), (20, 21, 0, %llu, 2, 1);"
	    "insert into CUPTI_ACTIVITY_KIND_KERNEL values (100, 110, 0, 1, 7, 1, %llu, 1, 12884901889);"
	    "insert into CUPTI_ACTIVITY_KIND_GRAPH_TRACE values (100, 110, 0, 1, 7, 1, %llu, 3), "
	    "(200, 250, 0, 1, 7, 2, %llu, 3), (0, 0, 0, 1, 7, 3, %llu, 3), (5, 6, 2147483647, 1, 7, 4, %llu, "
	    "3);",
	    THREAD(7, 7), THREAD(7, 7), PROCESS(7), PROCESS(7), PROCESS(7), PROCESS(7), PROCESS(7));
	load();
	cr_assert_eq(model.devices.count, 1);
	cr_assert_eq(model.devices.items[0].ops.count, 2);
	cr_assert_eq(op_at(0, 0)->graph, 3, "the upper half of the node's id");
	cr_assert_eq(op_at(0, 1)->kind, OP_GRAPH);
	cr_assert_eq(op_at(0, 1)->launch_ns, 20);
	cr_assert(noted("graphs were recorded as a whole"));
}

#define GPU_TABLES                                                                                           \
	"create table TARGET_INFO_GPU (id integer, name text, uuid text);"                                   \
	"create table TARGET_INFO_CUDA_DEVICE (gpuId integer, cudaId integer, pid integer);"

Test(nsys, device_names, .fini = finish)
{
	make_ordinary(GPU_TABLES "insert into TARGET_INFO_GPU values (0, 'Other', 'GPU-x'), "
	                         "(5, 'Right', 'GPU-00112233-4455-6677-8899-aabbccddeeff');"
	                         "insert into TARGET_INFO_CUDA_DEVICE values (5, 0, 7);");
	load();
	cr_assert_eq(model.devices.items[0].number, 0);
	cr_assert_str_eq(model_string(&model, model.devices.items[0].name), "Right");
	for (uint8_t i = 0; i < 16; i++)
		cr_assert_eq(model.devices.items[0].uuid[i], i * 0x11);
}

/* CUDA_VISIBLE_DEVICES makes every process call its own GPU number 0. */
Test(nsys, processes_that_number_devices_differently, .fini = finish)
{
	make(STRINGS KERNEL GPU_TABLES
	     "insert into TARGET_INFO_GPU values (2, 'Two', null), (3, 'Three', null);"
	     "insert into TARGET_INFO_CUDA_DEVICE values (3, 0, 7), (2, 0, 8);"
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL values (100, 200, 0, 1, 7, 5, %llu, 1, null), "
	     "(150, 250, 0, 1, 7, 5, %llu, 1, null);",
	     PROCESS(7), PROCESS(8));
	load();
	cr_assert_eq(model.devices.count, 2);
	cr_assert_eq(model.devices.items[0].number, 3);
	cr_assert_str_eq(model_string(&model, model.devices.items[0].name), "Three");
	cr_assert_eq(model.devices.items[1].number, 2);
	cr_assert_str_eq(model_string(&model, model.devices.items[1].name), "Two");
	cr_assert(noted("number their devices differently"));
}

Test(nsys, ranges_of_threads_that_launch, .fini = finish)
{
	char more[2048];

	snprintf(more, sizeof(more),
	         NVTX "insert into NVTX_EVENTS values (900, 1500, 59, 'step', %llu, null), "
	              "(910, 920, 59, 'aten::add, op_id = 17', %llu, null), (930, 940, 60, null, %llu, 9), "
	              "(950, null, 34, 'mark', %llu, null), (960, 970, 59, null, %llu, null), "
	              "(960, 970, 59, 'elsewhere', %llu, null), (990, 980, 59, 'backwards', %llu, null);",
	         (unsigned long long)THREAD(7, 8), (unsigned long long)THREAD(7, 8),
	         (unsigned long long)THREAD(7, 8), (unsigned long long)THREAD(7, 8),
	         (unsigned long long)THREAD(7, 8), (unsigned long long)THREAD(7, 9),
	         (unsigned long long)THREAD(7, 8));
	make_ordinary(more);
	load();
	const struct thread *thread = thread_of(7, 8);

	cr_assert_eq(thread->scopes.count, 3);
	cr_assert_str_eq(model_string(&model, thread->scopes.items[0].name), "step");
	cr_assert_eq(thread->scopes.items[0].kind, SCOPE_ANNOTATION);
	cr_assert_str_eq(model_string(&model, thread->scopes.items[1].name), "aten::add");
	cr_assert_eq(thread->scopes.items[1].kind, SCOPE_OPERATOR);
	cr_assert_str_eq(model_string(&model, thread->scopes.items[2].name), "a range");
	cr_assert_eq(model.threads.count, 1, "threads that launch nothing are not followed");
}

Test(nsys, overhead_is_counted_once, .fini = finish)
{
	char more[2048];
	unsigned long long thread = THREAD(7, 8);

	snprintf(
	    more, sizeof(more),
	    "create table CUPTI_ACTIVITY_KIND_OVERHEAD (start, end, globalTid, overheadType);"
	    "create table PROFILER_OVERHEAD (start, end, globalTid, overheadType);"
	    "insert into CUPTI_ACTIVITY_KIND_OVERHEAD values (1000, 1010, %llu, 6), (1005, 1020, %llu, 3), "
	    "(1030, 1040, %llu, 8), (1050, 1060, %llu, 1);"
	    "insert into PROFILER_OVERHEAD values (1002, 1008, %llu, 5), (1070, 1080, %llu, 0);",
	    thread, thread, thread, thread, thread, thread);
	make_ordinary(more);
	load();
	cr_assert_eq(thread_of(7, 8)->overhead.count, 3);
	const struct overhead *overhead = thread_of(7, 8)->overhead.items;

	cr_assert(overhead[0].loading && overhead[0].start_ns == 1000 && overhead[0].end_ns == 1010);
	cr_assert(!overhead[1].loading && overhead[1].start_ns == 1010 && overhead[1].end_ns == 1020);
	cr_assert(!overhead[2].loading && overhead[2].start_ns == 1070 && overhead[2].end_ns == 1080);
}

Test(nsys, names_and_command, .fini = finish)
{
	char more[1024];

	snprintf(more, sizeof(more),
	         "create table ThreadNames (nameId integer, globalTid integer);"
	         "insert into ThreadNames values (9, %llu);"
	         "create table META_DATA_CAPTURE (name text, value text);"
	         "insert into META_DATA_CAPTURE values ('PROCESS_0:COMMAND', 'python'), "
	         "('PROCESS_0:ARGUMENT_0', 'train.py'), ('PROCESS_1:COMMAND', 'other');"
	         "create table DIAGNOSTIC_EVENT (severity integer, text text);"
	         "insert into DIAGNOSTIC_EVENT values (1, 'Nothing was lost.'), (2, 'Not all CUDA events' || "
	         "char(10) || 'were collected.'), (3, 'A warning of another kind.');",
	         (unsigned long long)THREAD(7, 8));
	make_ordinary(more);
	load();
	cr_assert_str_eq(model_string(&model, thread_of(7, 8)->comm), "a range");
	cr_assert_str_eq(model_string(&model, model.command), "python train.py");
	cr_assert(noted("Nsight Systems says: Not all CUDA events were collected."));
	cr_assert(!noted("another kind") && !noted("Nothing"));
}

/* ---- waits ---- */

static void make_switches(const char *rows, const char *os_calls)
{
	char more[4096];

	snprintf(more, sizeof(more),
	         SCHED OSRT
	         "create table rows (start, isSchedIn, threadState); %s"
	         "insert into SCHED_EVENTS select start, 3, isSchedIn, %llu, threadState from rows; "
	         "create table calls (start, end, nameId); %s"
	         "insert into OSRT_API select start, end, %llu, nameId from calls;",
	         rows, (unsigned long long)THREAD(7, 8), os_calls, (unsigned long long)THREAD(7, 8));
	make_ordinary(more);
	load();
}

Test(nsys, switches_named_by_os_calls, .fini = finish)
{
	make_switches("insert into rows values (1120, 0, 2), (1140, 1, 1), (1160, 0, 1), (1170, 1, 0), "
	              "(1220, 0, 3), (1240, 1, 0), (1320, 0, 2);",
	              "insert into calls values (1115, 1142, 6), (1215, 1300, 7), (1155, 1175, 8);");
	const struct thread *thread = thread_of(7, 8);
	const struct offcpu *offcpu = thread->offcpu.items;

	cr_assert(model.has_sched && thread->tracked);
	cr_assert_eq(thread->offcpu.count, 4);
	/* In a lock. */
	cr_assert(offcpu[0].out_ns == 1120 && offcpu[0].in_ns == 1140 && offcpu[0].wake_ns == 1140);
	cr_assert(offcpu[0].syscall == SYS_futex && offcpu[0].wait == WAIT_KIND_FUTEX && !offcpu[0].woken);
	cr_assert_eq(offcpu[0].args[2], 2);
	cr_assert_eq(offcpu[0].out_cpu, 3);
	/* Preempted: it wanted to go on. */
	cr_assert(offcpu[1].preempted && offcpu[1].wake_ns == 1160 && offcpu[1].syscall == -1);
	/* In a read, of what is not known. */
	cr_assert(offcpu[2].syscall == SYS_read && offcpu[2].wait == WAIT_KIND_UNKNOWN);
	/* Until the end. */
	cr_assert(offcpu[3].open && offcpu[3].in_ns == model.end_ns && offcpu[3].syscall == -1);
	cr_assert(noted("do not say what woke"));
}

Test(nsys, a_lock_is_named, .fini = finish)
{
	struct analysis_options options = {.device = -1};
	struct analysis analysis = {0};
	uint64_t lock_ns = 0;

	make_switches("insert into rows values (1112, 0, 2), (1190, 1, 1);",
	              "insert into calls values (1111, 1191, 6);");
	cr_assert_eq(analysis_run(&analysis, &model, &options, &failure), 0);
	for (size_t i = 0; i < analysis.devices.items[0].causes.count; i++) {
		const struct cause *cause = &analysis.devices.items[0].causes.items[i];

		if (cause->code == CAUSE_WAIT_LOCK)
			lock_ns += cause->ns;
	}
	analysis_free(&analysis);
	/* The gap 1150..1250 is the copy's, launched at 1200. */
	cr_assert_eq(lock_ns, 40);
}

Test(nsys, away_since_the_start, .fini = finish)
{
	char more[1024];

	/* The other thread's first row is that it came, and it had done nothing before. */
	snprintf(more, sizeof(more),
	         SCHED "insert into SCHED_EVENTS values (500, 0, 1, %llu, 0), (1350, 1, 1, %llu, 0), "
	               "(1390, 1, 0, %llu, 5);"
	               "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (1360, 1370, 0, %llu, 9, 1);",
	         (unsigned long long)THREAD(7, 7), (unsigned long long)THREAD(7, 9),
	         (unsigned long long)THREAD(7, 9), (unsigned long long)THREAD(7, 9));
	make_ordinary(more);
	load();
	const struct thread *thread = thread_of(7, 9);

	cr_assert_eq(thread->offcpu.count, 1);
	cr_assert_eq(thread->offcpu.items[0].out_ns, model.start_ns);
	cr_assert_eq(thread->offcpu.items[0].in_ns, 1350);
	cr_assert_eq(thread->end_ns, 1390, "it ended");
	cr_assert(!thread_of(7, 8)->tracked, "nothing was recorded of this one");
}

Test(nsys, switches_that_are_missing, .fini = finish)
{
	/* In twice: what lies between 1105 and the next switch is not known. Calls from before the first row.
	 */
	make_switches("insert into rows values (1105, 1, 0), (1120, 0, 2), (1130, 1, 0), (1130, 1, 0), "
	              "(1150, 1, 0), (1160, 0, 2), (1170, 0, 2), (1180, 1, 0), (1190, 1, 0);",
	              "");
	const struct thread *thread = thread_of(7, 8);

	cr_assert_eq(thread->offcpu.count, 2);
	cr_assert(thread->offcpu.items[0].out_ns == 1120 && thread->offcpu.items[0].lost_before);
	cr_assert(thread->offcpu.items[1].out_ns == 1170 && thread->offcpu.items[1].in_ns == 1180);
	cr_assert(thread->offcpu.items[1].lost_before);
	cr_assert(thread->lost_at_end);
}

Test(nsys, os_calls_without_switches, .fini = finish)
{
	char more[1024];
	unsigned long long thread = THREAD(7, 8);

	snprintf(more, sizeof(more),
	         OSRT "insert into StringIds values (20, 'sem_wait'), (21, 'usleep');"
	              "insert into OSRT_API values (1020, 1090, %llu, 20), (1030, 1040, %llu, 7), "
	              "(1120, 1130, %llu, 21), (1140, 1150, %llu, 8), (1160, 1150, %llu, 21);",
	         thread, thread, thread, thread, thread);
	make_ordinary(more);
	load();
	const struct offcpu *offcpu = thread_of(7, 8)->offcpu.items;

	cr_assert(!model.has_sched && !thread_of(7, 8)->tracked);
	cr_assert_eq(thread_of(7, 8)->offcpu.count, 2, "nested, unknown and backward ones are not waits");
	cr_assert(offcpu[0].wait == WAIT_KIND_FUTEX && offcpu[0].out_ns == 1020 && offcpu[0].in_ns == 1090);
	cr_assert(offcpu[1].wait == WAIT_KIND_SLEEP && !offcpu[1].woken);
	cr_assert(noted("traced OS functions only"));
	cr_assert(noted("1 of 5 rows"));
}

/* ---- values that make no sense ---- */

Test(nsys, types_that_do_not_fit, .fini = finish)
{
	make("create table StringIds (id, value); insert into StringIds values ('4', 'by text'), (5, 6);"
	     "create table CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, demangledName);"
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL values ('100', 110.0, '1', 'seven', 'named here'), "
	     "(120, 130, 1, 7, '4'), ('12o', 130, 1, 7, 4), (null, 130, 1, 7, 4), (140, null, 1, 7, 4), "
	     "(150, 160, null, 7, 4), (150, 160, -1, 7, 4), (150.5, 160, 1, 7, 4), (9e300, 160, 1, 7, 4), "
	     "(x'00', 160, 1, 7, 4), (9223372036854775807, 9223372036854775807, 1, 7, 4), "
	     "(200, 210, 1, 99999999999, 5);");
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 3);
	cr_assert_eq(model.devices.items[0].number, 1);
	cr_assert_str_eq(model_string(&model, op_at(0, 0)->name), "named here");
	cr_assert_str_eq(model_string(&model, op_at(0, 1)->name), "by text");
	cr_assert_str_eq(model_string(&model, op_at(0, 2)->name), "");
	cr_assert(noted("CUPTI_ACTIVITY_KIND_KERNEL: 9 of 12 rows make no sense"));
}

Test(nsys, operations_that_end_before_they_start, .fini = finish)
{
	make(STRINGS KERNEL
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId) values (100, 110, 0), "
	     "(150, 140, 0), (200, 210, 0);");
	load();
	cr_assert_eq(op_at(0, 1)->end_ns, 150);
	cr_assert(noted("1 GPU operations end before they start"));
	check_gaps(20, 2, 0, 90);
}

Test(nsys, times_before_the_session_began, .fini = finish)
{
	make(STRINGS RUNTIME KERNEL NVTX
	     "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (-50, -40, 0, %llu, 1, 1);"
	     "insert into NVTX_EVENTS values (-500, 10, 59, 'early', %llu, null);"
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL values (-30, -20, 0, 1, 7, 1, %llu, 1, null), "
	     "(5, 15, 0, 1, 7, 2, %llu, 1, null);",
	     THREAD(7, 7), THREAD(7, 7), PROCESS(7), PROCESS(7));
	load();
	cr_assert_eq(model.start_ns, 0);
	cr_assert_eq(op_at(0, 0)->start_ns, 20);
	cr_assert_eq(op_at(0, 0)->launch_thread, 0);
	cr_assert_eq(op_at(0, 1)->start_ns, 55);
	cr_assert_eq(op_at(0, 1)->end_ns, 65);
	cr_assert_eq(thread_of(7, 7)->scopes.items[0].start_ns, 0);
	cr_assert_eq(thread_of(7, 7)->scopes.items[0].end_ns, 60);
}

Test(nsys, huge_strings, .fini = finish)
{
	make_ordinary("update StringIds set value = printf('%.*c', 10000000, 'x') where id = 4;"
	              "update StringIds set value = printf('%.*c', 10000001, 'x') where id = 5;");
	load();
	cr_assert_eq(strlen(model_string(&model, op_at(0, 0)->name)), 16384);
	cr_assert_eq(model.devices.items[0].ops.count, 4);
}

/* ---- schemas that lack things ---- */

Test(nsys, no_strings, .fini = finish)
{
	make_ordinary("drop table StringIds;");
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 4);
	cr_assert_eq(op_at(0, 0)->launch_ns, 1000);
	cr_assert_str_eq(model_string(&model, op_at(0, 0)->name), "");
	cr_assert(noted("StringIds is missing"));
}

Test(nsys, no_calls, .fini = finish)
{
	make_ordinary("drop table CUPTI_ACTIVITY_KIND_RUNTIME;");
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 4);
	cr_assert(noted("holds no CUDA calls"));
	check_gaps(140, 3, 0, 250);
}

Test(nsys, essential_column_missing, .fini = finish)
{
	make_ordinary("alter table CUPTI_ACTIVITY_KIND_KERNEL drop column deviceId;"
	              "alter table CUPTI_ACTIVITY_KIND_RUNTIME drop column globalTid;");
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 2);
	cr_assert(
	    noted("operations are missing: table CUPTI_ACTIVITY_KIND_KERNEL has no column \"deviceId\""));
	cr_assert(
	    noted("launches are not known: table CUPTI_ACTIVITY_KIND_RUNTIME has no column \"globalTid\""));
}

Test(nsys, optional_columns_missing, .fini = finish)
{
	make("create table StringIds (id integer primary key, value text);"
	     "create table CUPTI_ACTIVITY_KIND_KERNEL (END int, Start int, deviceId int);"
	     "create table CUPTI_ACTIVITY_KIND_MEMCPY (start int, end int, deviceId int);"
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL values (110, 100, 0);"
	     "insert into CUPTI_ACTIVITY_KIND_MEMCPY values (120, 130, 0);");
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 2);
	cr_assert_eq(op_at(0, 0)->end_ns, 110);
	cr_assert_eq(op_at(0, 1)->source_kind, 0);
}

Test(nsys, no_operations, .fini = finish)
{
	make(STRINGS RUNTIME KERNEL);
	load();
	cr_assert_eq(model.devices.count, 0);
	cr_assert(!model.has_timeline);
	cr_assert(noted("no GPU operations"));
}

Test(nsys, table_without_rowid, .fini = finish)
{
	make("create table StringIds (id integer primary key, value text) without rowid;"
	     "insert into StringIds values (4, 'name');"
	     "create table CUPTI_ACTIVITY_KIND_KERNEL (start int primary key, end int, deviceId int, "
	     "demangledName int) without rowid;"
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL values (100, 110, 0, 4);");
	load();
	cr_assert_str_eq(model_string(&model, op_at(0, 0)->name), "name");
}

/* ---- hostile schemas ---- */

Test(nsys, views_are_not_read, .fini = finish)
{
	make_ordinary(
	    "alter table CUPTI_ACTIVITY_KIND_MEMSET rename to hidden;"
	    "create view CUPTI_ACTIVITY_KIND_MEMSET as select * from hidden;"
	    "create view NVTX_EVENTS as with recursive endless(n) as (select 1 union all select n + 1 "
	    "from endless) select n as start, n + 1 as end, 1 as globalTid, 'x' as text from endless;");
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 3);
}

Test(nsys, virtual_tables_are_not_read, .fini = finish)
{
	make_ordinary("drop table CUPTI_ACTIVITY_KIND_MEMSET;"
	              "create virtual table CUPTI_ACTIVITY_KIND_MEMSET using fts5(start, end, deviceId);"
	              "insert into CUPTI_ACTIVITY_KIND_MEMSET values (1400, 1410, 0);");
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 3);
}

/* A view whose row in the schema says that it is a table with pages. */
Test(nsys, views_in_disguise_are_not_read, .fini = finish)
{
	make_ordinary("alter table CUPTI_ACTIVITY_KIND_MEMSET rename to hidden; pragma writable_schema = on;"
	              "insert into sqlite_master select 'table', 'CUPTI_ACTIVITY_KIND_MEMSET', "
	              "'CUPTI_ACTIVITY_KIND_MEMSET', rootpage, 'create view CUPTI_ACTIVITY_KIND_MEMSET as "
	              "select * from hidden' from sqlite_master where name = 'hidden';");
	if (read_export())
		cr_assert_neq(failure.code, 0);
	else
		cr_assert_eq(model.devices.items[0].ops.count, 3);
}

Test(nsys, computed_columns_do_not_count, .fini = finish)
{
	make_ordinary("drop table CUPTI_ACTIVITY_KIND_MEMSET;"
	              "create table CUPTI_ACTIVITY_KIND_MEMSET (start integer, end integer, "
	              "deviceId integer as (abs(start)));"
	              "insert into CUPTI_ACTIVITY_KIND_MEMSET values (1400, 1410);");
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 3);
	cr_assert(noted("CUPTI_ACTIVITY_KIND_MEMSET has no column \"deviceId\""));
}

Test(nsys, names_with_quotes_in_the_schema, .fini = finish)
{
	make_ordinary("create table \"a\"\"; drop table x; --\" (\"b\"\"c\" int);");
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 4);
}

/* ---- files ---- */

static void expect_refused(const char *part)
{
	cr_assert_lt(read_export(), 0);
	cr_assert(strstr(failure.text, part), "\"%s\" does not say \"%s\"", failure.text, part);
	cr_assert(strstr(failure.text, path), "\"%s\" does not name the file", failure.text);
	model_free(&model);
}

static void write_file(const void *bytes, size_t size)
{
	struct image image = {0};

	path = fixture_path("export.sqlite");
	image_add(&image, bytes, size);
	image_save(&image, path);
	image_free(&image);
}

Test(nsys, not_a_database)
{
	static const char text[200] = "{\"traceEvents\": []}";

	write_file(text, sizeof(text));
	expect_refused("not an SQLite database");
	write_file("SQLite format 3", 16);
	expect_refused("not an SQLite database");
	write_file("", 0);
	expect_refused("not an SQLite database");
	path = "/nonexistent";
	expect_refused("No such file");
	path = "/dev";
	expect_refused("not a regular file");
}

Test(nsys, header_and_nothing_behind)
{
	char bytes[4096] = "SQLite format 3";

	memset(bytes + 16, 0xff, sizeof(bytes) - 16);
	write_file(bytes, sizeof(bytes));
	expect_refused("cannot be read as an SQLite database");
}

Test(nsys, database_of_something_else)
{
	make("create table bookmarks (id integer); create table CUPTI_BOOKS (start int);");
	expect_refused("not an Nsight Systems export");
}

Test(nsys, odd_file_names, .fini = finish)
{
	static char odd[4096];

	make_ordinary("");
	snprintf(odd, sizeof(odd), "%s", fixture_path("a%20b?mode=rw&c#d"));
	cr_assert_eq(rename(path, odd), 0);
	path = odd;
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 4);
	cr_assert_eq(unlink(odd), 0);
}

static size_t count_files(const char *directory)
{
	DIR *stream = opendir(directory);
	size_t count = 0;

	cr_assert_not_null(stream);
	while (readdir(stream))
		count++;
	closedir(stream);
	return count;
}

/* A database in WAL mode wants to write beside itself to be read; this one is not to be written to. */
Test(nsys, nothing_is_written, .fini = finish)
{
	char directory[4096];
	struct stat before, after;
	size_t files;

	make_ordinary("pragma journal_mode = wal; insert into StringIds values (99, 'later');");
	snprintf(directory, sizeof(directory), "%s", path);
	dirname(directory);
	files = count_files(directory);
	cr_assert_eq(stat(path, &before), 0);
	load();
	cr_assert_eq(model.devices.items[0].ops.count, 4);
	cr_assert_eq(count_files(directory), files);
	cr_assert_eq(stat(path, &after), 0);
	cr_assert_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	cr_assert(!noted("journal"));
}

Test(nsys, journal_beside_the_file, .fini = finish)
{
	char name[4096];
	FILE *journal;

	make_ordinary("");
	snprintf(name, sizeof(name), "%s-wal", path);
	journal = fopen(name, "w");
	cr_assert_not_null(journal);
	fputs("rows", journal);
	fclose(journal);
	load();
	cr_assert(noted("a journal lies beside the file"));
	cr_assert(!model.summary.complete);
	unlink(name);
}

/* Many rows, so that the tables have several levels of pages. */
static void make_large(void)
{
	make(STRINGS RUNTIME KERNEL MEMCPY
	     "insert into StringIds values (1, 'cudaLaunchKernel_v7000');"
	     "create table n (n integer);"
	     "with recursive c(n) as (select 1 union all select n + 1 from c where n < 3000) insert into n "
	     "select n from c;"
	     "insert into CUPTI_ACTIVITY_KIND_RUNTIME select n * 100, n * 100 + 5, 0, %llu, n, 1 from n;"
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL select n * 100 + 10, n * 100 + 60, 0, 1, 7, n, %llu, 1, "
	     "null from n;"
	     "insert into CUPTI_ACTIVITY_KIND_MEMCPY select n * 100 + 10, n * 100 + 60, 0, 1, 8, n, %llu, 8, "
	     "1, "
	     "1, 2 from n;"
	     "drop table n;",
	     THREAD(7, 7), PROCESS(7), PROCESS(7));
}

static uint64_t operations(void)
{
	return model.devices.count ? model.devices.items[0].ops.count : 0;
}

/* A shorter file gives no more than a longer one, says so, and never more than one line of error. */
Test(nsys, cut_off_anywhere)
{
	struct image image, whole;
	uint64_t last = 0;
	size_t readable = 0, partial = 0;

	make_large();
	whole = image_load(path);
	image = whole;
	for (size_t size = 0; size < whole.size; size += size < 300 ? 1 : 509) {
		image.size = size;
		image_save(&image, path);
		if (read_export()) {
			cr_assert(failure.text[0] && !strchr(failure.text, '\n'));
		} else {
			cr_assert(noted("cut off"), "%zu of %zu bytes", size, whole.size);
			cr_assert(!model.summary.complete);
			cr_assert_geq(operations(), last, "%zu bytes: %lu operations, %lu in fewer", size,
			              operations(), last);
			last = operations();
			partial += last > 0 && last < 6000;
			readable++;
		}
		model_free(&model);
	}
	cr_assert_gt(readable, 100);
	cr_assert_gt(partial, 50);
	image_free(&whole);
}

/* Where a page of the kernels is damaged, the time after it is not taken for idle. */
Test(nsys, damaged_page, .fini = finish)
{
	struct image image;
	sqlite3_stmt *statement;
	sqlite3 *database;
	int root = 0;

	make_large();
	cr_assert_eq(sqlite3_open(path, &database), SQLITE_OK);
	sqlite3_prepare_v2(database,
	                   "select rootpage from sqlite_master where name = 'CUPTI_ACTIVITY_KIND_KERNEL'", -1,
	                   &statement, NULL);
	if (sqlite3_step(statement) == SQLITE_ROW)
		root = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(database);
	cr_assert_gt(root, 0);
	image = image_load(path);
	/* The 20th child of the root; its number stands at the start of its cell. */
	uint8_t *page = image.bytes + (size_t)(root - 1) * 4096;
	size_t cell = (size_t)page[12 + 40] << 8 | page[12 + 41];

	memset(page + cell, 0xff, 4);
	image_save(&image, path);
	image_free(&image);
	load();
	cr_assert(!model.summary.complete);
	cr_assert(noted("table CUPTI_ACTIVITY_KIND_KERNEL breaks off after"));
	cr_assert_gt(operations(), 3000);
	cr_assert_lt(operations(), 6000);
	cr_assert_eq(model.gpu_holes.count, 1);
	cr_assert_eq(model.gpu_holes.items[0].end_ns, model.end_ns);
	cr_assert_lt(model.gpu_holes.items[0].start_ns, 300000);
	cr_assert_gt(model.gpu_holes.items[0].start_ns, 20000);
}

/* Flipped bytes anywhere: an error, or a model that can be analysed. */
Test(nsys, damaged_anywhere)
{
	struct image image;
	uint64_t state = 1;

	make_large();
	image = image_load(path);
	for (int round = 0; round < 300; round++) {
		struct analysis_options options = {.device = -1};
		struct analysis analysis = {0};
		size_t at[8];
		uint8_t old[8];

		for (size_t i = 0; i < 8; i++) {
			/* Most pages are rows; what holds the file together is at their start. */
			at[i] = fixture_random(&state) % (image.size / 4096) * 4096 +
			        fixture_random(&state) % (i % 2 ? 4096 : 16);
			old[i] = image.bytes[at[i]];
		}
		for (size_t i = 0; i < 8; i++)
			image.bytes[at[i]] = (uint8_t)fixture_random(&state);
		image_save(&image, path);
		if (read_export())
			cr_assert(failure.text[0]);
		else
			cr_assert_eq(analysis_run(&analysis, &model, &options, &failure), 0);
		analysis_free(&analysis);
		model_free(&model);
		for (size_t i = 8; i--;)
			image.bytes[at[i]] = old[i];
	}
	image_free(&image);
}

/* ---- progress ---- */

struct progress_seen {
	uint64_t calls, last, total;
};

static void see_progress(void *context, uint64_t done, uint64_t total)
{
	struct progress_seen *seen = context;

	cr_assert_leq(done, total);
	cr_assert_geq(done, seen->last);
	seen->last = done;
	seen->total = total;
	seen->calls++;
}

Test(nsys, progress, .fini = finish)
{
	struct progress_seen seen = {0};
	const struct import_progress progress = {see_progress, &seen};
	struct stat status;

	make(STRINGS KERNEL
	     "with recursive c(n) as (select 1 union all select n + 1 from c where n < 200000) "
	     "insert into CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId) select n * 10, "
	     "n * 10 + 5, 0 from c;");
	cr_assert_eq(import_nsys(&model, path, &progress, &failure), 0, "%s", failure.text);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(seen.calls, 3);
	cr_assert_eq(seen.total, (uint64_t)status.st_size);
	cr_assert_gt(seen.last, (uint64_t)status.st_size * 9 / 10);
}
