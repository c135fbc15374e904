/* SPDX-License-Identifier: GPL-2.0-only */
/* Nsight Systems' SQLite exports: the frame of the reader, and what its parts share. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "import/nsys_loader.h"

#define STRING_MAX    16384 /* bytes of a name that are kept */
#define THREADS_MAX   65536
#define PROGRESS_ROWS 65536

/* Correlation ids of CUPTI fit 32 bits; others, and those in the last sixteenth, get a number there. */
#define ODD_CORRELATION 0xf0000000u

/* Far from where sums of two times overflow: 73 years. */
#define TIME_LIMIT (INT64_C(1) << 61)

/* Tables that are read, for the progress. */
static const char *const read_tables[] = {
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUPTI_ACTIVITY_KIND_OVERHEAD",
    "PROFILER_OVERHEAD",
    "NVTX_EVENTS",
    "SCHED_EVENTS",
    "OSRT_API",
};

int nsys_note(struct nsys_loader *loader, const char *format, ...)
{
	struct error line = {0};
	uint32_t *slot, id;
	va_list args;

	va_start(args, format);
	vsnprintf(line.text, sizeof(line.text), format, args);
	va_end(args);
	for (char *c = line.text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	}
	id = nsys_string(loader, line.text);
	slot = id == MODEL_NONE ? NULL : array_add(&loader->model->degraded);
	if (!slot)
		return -ENOMEM;
	*slot = id;
	return 0;
}

static void show_progress(struct nsys_loader *loader)
{
	const struct import_progress *progress = loader->progress;
	uint64_t size = loader->database.size, total = loader->rows_total;
	uint64_t done = loader->rows_done < total ? loader->rows_done : total;

	if (!progress || !progress->report)
		return;
	if (total)
		progress->report(progress->context, (uint64_t)((double)done / (double)total * (double)size),
		                 size);
	else
		progress->report(progress->context, 0, 0);
}

/* Notes what became of the table. */
static int note_table(struct nsys_loader *loader, const struct nsys_table *table, const char *purpose,
                      uint64_t unusable)
{
	int rc = 0;

	if (table->missing)
		rc = nsys_note(loader, "%s: table %s has no column \"%s\"", purpose, table->name,
		               table->missing);
	if (table->failure[0]) {
		loader->model->summary.complete = false;
		rc = nsys_note(loader, "table %s breaks off after %llu rows (%s)", table->name,
		               (unsigned long long)table->rows, table->failure);
	}
	if (!rc && unusable)
		rc = nsys_note(loader, "table %s: %llu of %llu rows make no sense and were left out",
		               table->name, (unsigned long long)unusable, (unsigned long long)table->rows);
	return rc;
}

int nsys_read(struct nsys_loader *loader, struct nsys_table *table, const char *name, const char *purpose,
              const struct nsys_column *columns, size_t count, nsys_row *row, void *context)
{
	int rc = nsys_table_open(&loader->database, table, name, columns, count);
	uint64_t unusable = 0;

	while (rc == 1) {
		rc = nsys_table_next(table);
		if (rc != 1)
			break;
		rc = row(loader, table, context);
		if (rc < 0)
			break;
		unusable += (uint64_t)rc;
		rc = 1;
		if (++loader->rows_done % PROGRESS_ROWS == 0)
			show_progress(loader);
	}
	nsys_table_close(table);
	loader->model->summary.records += table->rows;
	return rc ? rc : note_table(loader, table, purpose, unusable);
}

bool nsys_time(const struct nsys_table *table, int column, int64_t *time_ns)
{
	return nsys_integer(table, column, time_ns) && *time_ns > -TIME_LIMIT && *time_ns < TIME_LIMIT;
}

void nsys_see_time(struct nsys_loader *loader, int64_t time_ns)
{
	if (!loader->any_time || time_ns < loader->first_ns)
		loader->first_ns = time_ns;
	if (!loader->any_time || time_ns > loader->last_ns)
		loader->last_ns = time_ns;
	loader->any_time = true;
}

uint32_t nsys_string(struct nsys_loader *loader, const char *text)
{
	size_t length = text ? strnlen(text, STRING_MAX) : 0;
	uint64_t key;
	uint32_t id;

	if (!length)
		return 0;
	/* Another text with the same hash is kept under the next key. */
	for (key = hash_bytes(text, length); index_map_get(&loader->string_by_text, key, &id); key++) {
		const char *known = model_string(loader->model, id);

		if (!strncmp(known, text, length) && !known[length])
			return id;
	}
	id = model_add_string(loader->model, text, length);
	if (id == MODEL_NONE || index_map_put(&loader->string_by_text, key, id))
		return MODEL_NONE;
	return id;
}

/* Text of StringIds by its id. */
static uint32_t string_of_id(struct nsys_loader *loader, int64_t id)
{
	sqlite3_stmt *lookup = loader->string_lookup;
	uint32_t string = 0;

	if (index_map_get(&loader->string_by_id, (uint64_t)id, &string) || !lookup)
		return string;
	sqlite3_bind_int64(lookup, 1, id);
	if (sqlite3_step(lookup) == SQLITE_ROW && sqlite3_column_type(lookup, 0) == SQLITE_TEXT)
		string = nsys_string(loader, (const char *)sqlite3_column_text(lookup, 0));
	sqlite3_reset(lookup);
	if (string == MODEL_NONE || index_map_put(&loader->string_by_id, (uint64_t)id, string))
		return MODEL_NONE;
	return string;
}

uint32_t nsys_name(struct nsys_loader *loader, const struct nsys_table *table, int column)
{
	const char *text = nsys_text(table, column);
	int64_t id;

	/* Ids that a damaged column type turned into text are ids still. */
	if (nsys_integer(table, column, &id))
		return string_of_id(loader, id);
	return nsys_string(loader, text);
}

/* True if `id` is the table's key, so that looking one up is quick. */
static bool strings_have_key(struct nsys_loader *loader)
{
	sqlite3_stmt *statement;
	bool found = false;

	if (sqlite3_prepare_v2(loader->database.handle, "pragma table_info(\"StringIds\")", -1, &statement,
	                       NULL) != SQLITE_OK)
		return false;
	while (sqlite3_step(statement) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 1);
		const char *type = (const char *)sqlite3_column_text(statement, 2);

		if (name && type && !strcasecmp(name, "id"))
			found = !strcasecmp(type, "integer") && sqlite3_column_int(statement, 5) == 1;
	}
	sqlite3_finalize(statement);
	return found;
}

static int load_string(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	uint32_t string;
	int64_t id;

	(void)context;
	if (!nsys_integer(table, 0, &id))
		return 1;
	string = nsys_string(loader, nsys_text(table, 1));
	if (string == MODEL_NONE)
		return -ENOMEM;
	return index_map_put(&loader->string_by_id, (uint64_t)id, string);
}

/* A 1 GB export has far more strings than its GPU rows use, so they are looked up one by one if that is
 * quick.
 */
int nsys_load_strings(struct nsys_loader *loader)
{
	static const struct nsys_column columns[] = {{"id", true}, {"value", true}};
	static const char lookup[] = "select \"value\" from \"StringIds\" where \"id\" = ?1";
	struct nsys_table table;

	if (!nsys_database_has(&loader->database, "StringIds"))
		return nsys_note(loader, "table StringIds is missing: kernels and calls have no names");
	if (strings_have_key(loader) && sqlite3_prepare_v2(loader->database.handle, lookup, sizeof(lookup),
	                                                   &loader->string_lookup, NULL) == SQLITE_OK)
		return 0;
	return nsys_read(loader, &table, "StringIds", "kernels and calls have no names", columns, 2,
	                 load_string, NULL);
}

static uint64_t process_key(int64_t global_tid)
{
	return (uint64_t)global_tid >> NSYS_THREAD_BITS;
}

uint32_t nsys_known_process(const struct nsys_loader *loader, int64_t global_tid)
{
	uint32_t index;

	return index_map_get(&loader->processes, process_key(global_tid), &index) ? index : MODEL_NONE;
}

uint32_t nsys_known_thread(const struct nsys_loader *loader, int64_t global_tid)
{
	uint32_t index;

	return index_map_get(&loader->threads, (uint64_t)global_tid, &index) ? index : MODEL_NONE;
}

bool nsys_full(const struct nsys_loader *loader)
{
	return loader->model->processes.count >= THREADS_MAX || loader->model->threads.count >= THREADS_MAX;
}

/* Two machines or containers can have processes with the same number: they are different ones here. */
uint32_t nsys_process(struct nsys_loader *loader, int64_t global_tid)
{
	uint32_t index = nsys_known_process(loader, global_tid);

	if (index != MODEL_NONE || loader->model->processes.count >= THREADS_MAX)
		return index;
	index = model_new_process(loader->model, process_key(global_tid) & 0xffffff, MODEL_NONE);
	if (index == MODEL_NONE || index_map_put(&loader->processes, process_key(global_tid), index))
		return MODEL_NONE;
	return index;
}

uint32_t nsys_thread(struct nsys_loader *loader, int64_t global_tid)
{
	uint32_t index = nsys_known_thread(loader, global_tid);
	uint32_t process;

	if (index != MODEL_NONE || loader->model->threads.count >= THREADS_MAX)
		return index;
	process = nsys_process(loader, global_tid);
	if (process == MODEL_NONE)
		return MODEL_NONE;
	index = model_new_thread(loader->model, process_key(global_tid) & 0xffffff, global_tid & 0xffffff, 0);
	if (index == MODEL_NONE || index_map_put(&loader->threads, (uint64_t)global_tid, index))
		return MODEL_NONE;
	loader->model->threads.items[index].process = process;
	return index;
}

int nsys_correlation(struct nsys_loader *loader, const struct nsys_table *table, int column, uint32_t *id)
{
	int64_t value;

	*id = 0;
	if (!nsys_integer(table, column, &value) || !value)
		return 0;
	if (value > 0 && value < ODD_CORRELATION) {
		*id = (uint32_t)value;
		return 0;
	}
	if (index_map_get(&loader->odd_correlations, (uint64_t)value, id))
		return 0;
	if (loader->odd_correlations.count >= UINT32_MAX - ODD_CORRELATION)
		return 0;
	*id = ODD_CORRELATION + (uint32_t)loader->odd_correlations.count;
	return index_map_put(&loader->odd_correlations, (uint64_t)value, *id);
}

/* Rows after a break are missing: from the last one on, that kind of work is not known. */
static int add_losses(struct nsys_loader *loader)
{
	const struct nsys_break *broken;

	array_for_each (broken, &loader->gpu_breaks) {
		int64_t from = broken->last_ns > loader->first_ns ? broken->last_ns : loader->first_ns;
		struct loss *loss = array_add(&loader->model->losses);

		if (!loss)
			return -ENOMEM;
		*loss = (struct loss){
		    .start_ns = (uint64_t)from,
		    .end_ns = (uint64_t)(loader->last_ns > from ? loader->last_ns : from),
		    .cause = RECORD_LOSS_FILE,
		};
	}
	return 0;
}

/* What began long before all that is shown is cut at zero. */
static void shift_time(uint64_t *time_ns, uint64_t shift)
{
	int64_t shifted = (int64_t)(*time_ns + shift);

	*time_ns = shifted < 0 ? 0 : (uint64_t)shifted;
}

static void shift_thread(struct thread *thread, uint64_t shift)
{
	struct offcpu *offcpu;
	struct call *call;
	struct overhead *overhead;
	struct scope *scope;

	array_for_each (offcpu, &thread->offcpu) {
		shift_time(&offcpu->out_ns, shift);
		shift_time(&offcpu->wake_ns, shift);
		shift_time(&offcpu->in_ns, shift);
	}
	array_for_each (call, &thread->calls) {
		shift_time(&call->enter_ns, shift);
		shift_time(&call->exit_ns, shift);
	}
	array_for_each (overhead, &thread->overhead) {
		shift_time(&overhead->start_ns, shift);
		shift_time(&overhead->end_ns, shift);
	}
	array_for_each (scope, &thread->scopes) {
		shift_time(&scope->start_ns, shift);
		shift_time(&scope->end_ns, shift);
	}
	if (thread->end_ns != UINT64_MAX)
		shift_time(&thread->end_ns, shift);
}

/* Makes every time positive. */
static void shift_times(struct nsys_loader *loader)
{
	uint64_t shift = loader->first_ns < 0 ? -(uint64_t)loader->first_ns : 0;
	struct model *model = loader->model;
	struct thread *thread;
	struct device *device;
	struct sync *sync;
	struct loss *loss;

	model->start_ns = (uint64_t)loader->first_ns + shift;
	model->end_ns = (uint64_t)loader->last_ns + shift;
	array_for_each (thread, &model->threads)
		shift_thread(thread, shift);
	array_for_each (device, &model->devices) {
		struct gpu_op *op;

		array_for_each (op, &device->ops) {
			shift_time(&op->start_ns, shift);
			shift_time(&op->end_ns, shift);
		}
	}
	array_for_each (sync, &model->syncs) {
		shift_time(&sync->start_ns, shift);
		shift_time(&sync->end_ns, shift);
	}
	array_for_each (loss, &model->losses) {
		shift_time(&loss->start_ns, shift);
		shift_time(&loss->end_ns, shift);
	}
}

/* True if anything says that Nsight Systems wrote this. */
static bool is_export(struct nsys_loader *loader)
{
	static const char *const signs[] = {"StringIds", "META_DATA_EXPORT", "ANALYSIS_DETAILS",
	                                    "TARGET_INFO_SESSION_START_TIME"};

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (nsys_database_has(&loader->database, signs[i]))
			return true;
	}
	for (size_t i = 0; i < sizeof(read_tables) / sizeof(*read_tables); i++) {
		if (nsys_database_has(&loader->database, read_tables[i]))
			return true;
	}
	return false;
}

static int note_file(struct nsys_loader *loader)
{
	int rc = 0;

	if (loader->database.truncated) {
		loader->model->summary.complete = false;
		rc = nsys_note(loader, "the file was cut off: it is shorter than its header says");
	}
	if (!rc && loader->database.journal) {
		loader->model->summary.complete = false;
		rc = nsys_note(loader, "a journal lies beside the file: what it holds was not read");
	}
	return rc;
}

static int note_operations(struct nsys_loader *loader)
{
	int rc = 0;

	if (!loader->ops)
		return nsys_note(
		    loader, loader->model->summary.complete
		                ? "the export holds no GPU operations: record with nsys profile --trace=cuda"
		                : "no GPU operations could be read");
	if (loader->negative_ops)
		rc = nsys_note(loader, "%llu GPU operations end before they start and were taken as instants",
		               (unsigned long long)loader->negative_ops);
	if (!rc && loader->graphs)
		rc = nsys_note(loader,
		               "CUDA graphs were recorded as a whole, so idle time inside them is not seen: "
		               "record with nsys profile --cuda-graph-trace=node");
	return rc;
}

static int load(struct nsys_loader *loader)
{
	static int (*const steps[])(struct nsys_loader *) = {
	    note_file,
	    nsys_load_strings,
	    nsys_load_calls,
	    nsys_load_operations,
	    note_operations,
	    nsys_load_syncs,
	    nsys_load_overhead,
	    nsys_load_scopes,
	    nsys_load_waits,
	    nsys_load_device_names,
	    nsys_load_names,
	    nsys_load_command,
	    nsys_load_diagnostics,
	    add_losses,
	};

	for (size_t i = 0; i < sizeof(read_tables) / sizeof(*read_tables); i++)
		loader->rows_total += nsys_database_rows(&loader->database, read_tables[i]);
	loader->match_by_id = nsys_operations_lack_process(loader);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		int rc = steps[i](loader);

		if (rc < 0)
			return rc;
	}
	shift_times(loader);
	return 0;
}

static void free_loader(struct nsys_loader *loader)
{
	sqlite3_finalize(loader->string_lookup);
	nsys_database_close(&loader->database);
	index_map_free(&loader->string_by_id);
	index_map_free(&loader->string_by_text);
	index_map_free(&loader->processes);
	index_map_free(&loader->threads);
	index_map_free(&loader->odd_correlations);
	index_map_free(&loader->launch_by_id);
	index_map_free(&loader->gpu_of);
	index_map_free(&loader->device_of_key);
	array_free(&loader->launches);
	array_free(&loader->gpu_breaks);
}

int import_nsys(struct model *model, const char *path, const struct import_progress *progress,
                struct error *error)
{
	struct nsys_loader loader = {.model = model, .progress = progress};
	int rc;

	*model = (struct model){.source = MODEL_NSYS, .summary = {.complete = true}};
	rc = nsys_database_open(&loader.database, path, error);
	if (!rc && !is_export(&loader))
		rc = error_set(error, -EINVAL, "%s: an SQLite database, but not an Nsight Systems export",
		               path);
	if (!rc) {
		rc = load(&loader);
		if (rc)
			error_no_memory(error);
	}
	free_loader(&loader);
	return rc ? rc : model_finish(model, error);
}
