/* SPDX-License-Identifier: GPL-2.0-only */
/* What host threads did: CUDA calls, synchronisations, the profiler's own cost, NVTX ranges. */
#include <errno.h>
#include <string.h>

#include "import/nsys_loader.h"

/* Where operations do not say whose they are, the earliest call with their correlation id is the launch. */
static int remember_launch(struct nsys_loader *loader, uint32_t correlation, int64_t start_ns,
                           uint32_t process)
{
	struct nsys_launch *launch;
	uint32_t index;

	if (!loader->match_by_id || !correlation)
		return 0;
	if (index_map_get(&loader->launch_by_id, correlation, &index)) {
		launch = &loader->launches.items[index];
		if (launch->start_ns <= start_ns)
			return 0;
	} else {
		launch = array_add(&loader->launches);
		if (!launch || index_map_put(&loader->launch_by_id, correlation, loader->launches.count - 1))
			return -ENOMEM;
	}
	*launch = (struct nsys_launch){start_ns, process};
	return 0;
}

enum { CALL_START, CALL_END, CALL_THREAD, CALL_CORRELATION, CALL_NAME };

/* Returns 0, -ENOMEM, or 1 if the row is of no use. */
static int load_call(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	struct model *model = loader->model;
	uint32_t index, correlation, function;
	int64_t start, end, global_tid;
	struct thread *thread;
	struct call *call;

	(void)context;
	if (!nsys_time(table, CALL_START, &start) || !nsys_integer(table, CALL_THREAD, &global_tid))
		return 1;
	index = nsys_thread(loader, global_tid);
	if (index == MODEL_NONE)
		return nsys_full(loader) ? 1 : -ENOMEM;
	thread = &model->threads.items[index];
	function = nsys_name(loader, table, CALL_NAME);
	if (function == MODEL_NONE || nsys_correlation(loader, table, CALL_CORRELATION, &correlation) ||
	    remember_launch(loader, correlation, start, thread->process))
		return -ENOMEM;
	call = array_add(&thread->calls);
	if (!call)
		return -ENOMEM;
	*call = (struct call){
	    .enter_ns = (uint64_t)start,
	    .exit_ns = (uint64_t)start,
	    .correlation = correlation,
	    .function = function,
	    .class = cuda_classify(model_string(model, function)),
	};
	if (nsys_time(table, CALL_END, &end) && end >= start) {
		call->exit_ns = (uint64_t)end;
		call->exit_known = true;
		nsys_see_time(loader, end);
	}
	nsys_see_time(loader, start);
	return 0;
}

int nsys_load_calls(struct nsys_loader *loader)
{
	static const struct nsys_column columns[] = {
	    [CALL_START] = {"start", true},      [CALL_END] = {"end", false},
	    [CALL_THREAD] = {"globalTid", true}, [CALL_CORRELATION] = {"correlationId", true},
	    [CALL_NAME] = {"nameId", false},
	};
	struct nsys_table table;

	if (!nsys_database_has(&loader->database, "CUPTI_ACTIVITY_KIND_RUNTIME"))
		return nsys_note(loader, "the export holds no CUDA calls, so nothing is known of launches");
	return nsys_read(loader, &table, "CUPTI_ACTIVITY_KIND_RUNTIME", "launches are not known", columns, 5,
	                 load_call, NULL);
}

enum { SYNC_START, SYNC_END, SYNC_PROCESS, SYNC_TYPE, SYNC_CONTEXT, SYNC_STREAM, SYNC_CORRELATION };

static int load_sync(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	int64_t start, end, global_pid;
	uint32_t process, correlation;
	struct sync *sync;

	(void)context;
	if (!nsys_time(table, SYNC_START, &start) || !nsys_time(table, SYNC_END, &end) || end < start ||
	    !nsys_integer(table, SYNC_PROCESS, &global_pid))
		return 1;
	process = nsys_process(loader, global_pid);
	if (process == MODEL_NONE)
		return nsys_full(loader) ? 1 : -ENOMEM;
	sync = array_add(&loader->model->syncs);
	if (!sync || nsys_correlation(loader, table, SYNC_CORRELATION, &correlation))
		return -ENOMEM;
	*sync = (struct sync){
	    .start_ns = (uint64_t)start,
	    .end_ns = (uint64_t)end,
	    .process = process,
	    .type = nsys_unsigned(table, SYNC_TYPE, 0), /* numbered as CUPTI does */
	    .context = nsys_unsigned(table, SYNC_CONTEXT, 0),
	    .stream = nsys_unsigned(table, SYNC_STREAM, 0),
	    .correlation = correlation,
	};
	return 0;
}

int nsys_load_syncs(struct nsys_loader *loader)
{
	static const struct nsys_column columns[] = {
	    [SYNC_START] = {"start", true},
	    [SYNC_END] = {"end", true},
	    [SYNC_PROCESS] = {"globalPid", true},
	    [SYNC_TYPE] = {"syncType", false},
	    [SYNC_CONTEXT] = {"contextId", false},
	    [SYNC_STREAM] = {"streamId", false},
	    [SYNC_CORRELATION] = {"correlationId", false},
	};
	struct nsys_table table;

	return nsys_read(loader, &table, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
	                 "what synchronisations waited for is not known", columns, 7, load_sync, NULL);
}

/* ENUM_CUPTI_OVERHEAD_TYPE. A full command buffer is the GPU's being behind, not overhead. */
enum {
	OVERHEAD_UNDEFINED,
	OVERHEAD_UNKNOWN,
	OVERHEAD_COMPILER,
	OVERHEAD_BUFFER_FLUSH,
	OVERHEAD_INSTRUMENTATION,
	OVERHEAD_RESOURCE,
	OVERHEAD_MODULE_LOADING,
	OVERHEAD_FUNCTION_LOADING,
};

enum { OVERHEAD_START, OVERHEAD_END, OVERHEAD_THREAD, OVERHEAD_TYPE };

static int load_overhead(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	const bool *profiler = context;
	uint32_t type = nsys_unsigned(table, OVERHEAD_TYPE, OVERHEAD_UNKNOWN), index;
	bool loading =
	    type == OVERHEAD_COMPILER || type == OVERHEAD_MODULE_LOADING || type == OVERHEAD_FUNCTION_LOADING;
	int64_t start, end, global_tid;
	struct overhead *overhead;

	if (!loading && type != OVERHEAD_BUFFER_FLUSH && type != OVERHEAD_INSTRUMENTATION &&
	    type != OVERHEAD_RESOURCE && !(*profiler && type <= OVERHEAD_UNKNOWN))
		return 0;
	if (!nsys_time(table, OVERHEAD_START, &start) || !nsys_time(table, OVERHEAD_END, &end) ||
	    !nsys_integer(table, OVERHEAD_THREAD, &global_tid))
		return 1;
	/* Only threads that launch are asked what they did. */
	index = nsys_known_thread(loader, global_tid);
	if (index == MODEL_NONE || end <= start)
		return 0;
	overhead = array_add(&loader->model->threads.items[index].overhead);
	if (!overhead)
		return -ENOMEM;
	*overhead = (struct overhead){(uint64_t)start, (uint64_t)end, loading};
	return 0;
}

static int load_overhead_table(struct nsys_loader *loader, const char *name, bool profiler)
{
	static const struct nsys_column columns[] = {
	    [OVERHEAD_START] = {"start", true},
	    [OVERHEAD_END] = {"end", true},
	    [OVERHEAD_THREAD] = {"globalTid", true},
	    [OVERHEAD_TYPE] = {"overheadType", false},
	};
	struct nsys_table table;

	return nsys_read(loader, &table, name, "the profiler's own cost is not known", columns, 4,
	                 load_overhead, &profiler);
}

static int compare_overhead(const void *a, const void *b)
{
	int64_t x = (int64_t)((const struct overhead *)a)->start_ns;
	int64_t y = (int64_t)((const struct overhead *)b)->start_ns;

	return (x > y) - (x < y);
}

/* Two tables tell of the same time now and then; the model wants each moment once. */
static void part_overhead(struct thread *thread)
{
	struct overhead *overhead;
	int64_t free_from = INT64_MIN;
	size_t kept = 0;

	array_sort(&thread->overhead, compare_overhead);
	array_for_each (overhead, &thread->overhead) {
		if ((int64_t)overhead->start_ns < free_from)
			overhead->start_ns = (uint64_t)free_from;
		if ((int64_t)overhead->end_ns <= (int64_t)overhead->start_ns)
			continue;
		free_from = (int64_t)overhead->end_ns;
		thread->overhead.items[kept++] = *overhead;
	}
	thread->overhead.count = kept;
}

int nsys_load_overhead(struct nsys_loader *loader)
{
	int rc = load_overhead_table(loader, "CUPTI_ACTIVITY_KIND_OVERHEAD", false);
	struct thread *thread;

	if (!rc)
		rc = load_overhead_table(loader, "PROFILER_OVERHEAD", true);
	array_for_each (thread, &loader->model->threads)
		part_overhead(thread);
	return rc;
}

enum { SCOPE_START, SCOPE_END, SCOPE_THREAD, SCOPE_TEXT, SCOPE_TEXT_ID, SCOPE_TYPE, SCOPE_COLUMNS };

#define TYPE_STARTED 60 /* NvtxStartEndRange, begun on one thread and perhaps ended on another */

/*
 * PyTorch's emit_nvtx puts a number behind each operator ("aten::add, op_id = 17"), which would make every
 * name a new one.
 */
static uint32_t scope_name(struct nsys_loader *loader, const char *text, enum scope_kind *kind)
{
	static const char *const endings[] = {", op_id = ", ", seq = "};
	char name[256];

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		const char *end = strstr(text, endings[i]);
		size_t length = end ? (size_t)(end - text) : 0;

		if (!length || length >= sizeof(name))
			continue;
		memcpy(name, text, length);
		name[length] = '\0';
		*kind = SCOPE_OPERATOR;
		return nsys_string(loader, name);
	}
	return nsys_string(loader, text);
}

static int load_scope(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	enum scope_kind kind = SCOPE_ANNOTATION;
	int64_t start, end, global_tid, type;
	struct scope *scope;
	uint32_t index, name;
	const char *text;

	(void)context;
	/* Marks, categories and domains have no end; ranges that were still open have none either. */
	if (!nsys_time(table, SCOPE_END, &end))
		return 0;
	if (!nsys_time(table, SCOPE_START, &start) || !nsys_integer(table, SCOPE_THREAD, &global_tid))
		return 1;
	index = nsys_known_thread(loader, global_tid);
	if (index == MODEL_NONE || end <= start)
		return 0;
	text = nsys_text(table, SCOPE_TEXT);
	if (!text || !*text) {
		name = nsys_name(loader, table, SCOPE_TEXT_ID);
		if (name == MODEL_NONE)
			return -ENOMEM;
		text = model_string(loader->model, name);
	}
	if (!*text)
		return 0;
	if (nsys_integer(table, SCOPE_TYPE, &type) && type == TYPE_STARTED)
		kind = SCOPE_RANGE;
	name = scope_name(loader, text, &kind);
	scope = name == MODEL_NONE ? NULL : array_add(&loader->model->threads.items[index].scopes);
	if (!scope)
		return -ENOMEM;
	*scope =
	    (struct scope){.start_ns = (uint64_t)start, .end_ns = (uint64_t)end, .name = name, .kind = kind};
	return 0;
}

int nsys_load_scopes(struct nsys_loader *loader)
{
	static const struct nsys_column columns[] = {
	    [SCOPE_START] = {"start", true},      [SCOPE_END] = {"end", true},
	    [SCOPE_THREAD] = {"globalTid", true}, [SCOPE_TEXT] = {"text", false},
	    [SCOPE_TEXT_ID] = {"textId", false},  [SCOPE_TYPE] = {"eventType", false},
	};
	struct nsys_table table;

	return nsys_read(loader, &table, "NVTX_EVENTS", "the program's own ranges are not known", columns,
	                 SCOPE_COLUMNS, load_scope, NULL);
}
