/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the Nsight Systems reader share: the model that is being built and how ids of the file
 * map to it.
 *
 * Times are the file's own, in ns since its session began, and can be negative there; until the last step
 * they are kept as such in the unsigned fields of the model.
 *
 * Functions of the form nsys_load_… read one or more tables and return 0 or a negative errno. Only running
 * out of memory is an error: tables that are missing, odd or damaged become lines of model.degraded.
 */
#ifndef WHYIDLE_IMPORT_NSYS_LOADER_H
#define WHYIDLE_IMPORT_NSYS_LOADER_H

#include "base/hash.h"
#include "import/import.h"
#include "import/nsys_database.h"

/* A globalTid is 8 bits of hardware, 8 of the virtual machine, 24 of the process, 24 of the thread. */
#define NSYS_THREAD_BITS 24

struct nsys_loader {
	struct model *model;
	struct nsys_database database;
	const struct import_progress *progress;
	uint64_t rows_done, rows_total;

	struct index_map string_by_id;   /* id of StringIds → string */
	struct index_map string_by_text; /* hash of a text → string */
	sqlite3_stmt *string_lookup;     /* NULL: all of StringIds has been read */

	struct index_map processes; /* globalTid without the thread's bits → index */
	struct index_map threads;   /* globalTid → index */

	struct index_map odd_correlations; /* ids that do not fit → ids in the model */
	bool match_by_id;                  /* some operations do not say whose they are */
	struct index_map launch_by_id;     /* correlation id → index of `launches` */
	struct {
		ARRAY(struct nsys_launch {
			int64_t start_ns;
			uint32_t process;
		})
	} launches;

	bool devices_by_gpu; /* processes number their devices differently, so the machine's numbers count */
	struct index_map gpu_of;        /* hash of process id and CUDA device → number of the GPU */
	struct index_map device_of_key; /* device number, or GPU_KEY and a GPU's → index */
	uint32_t ops;
	uint64_t negative_ops; /* ended before they started */
	bool graphs;           /* operations stand for whole graphs */

	struct {
		ARRAY(struct nsys_break {
			int64_t last_ns; /* start of the latest row before the break */
		})
	} gpu_breaks; /* GPU tables that broke off */

	int64_t first_ns, last_ns; /* of operations, calls and scheduler rows */
	bool any_time;
};

/* Adds a line to model.degraded. */
int nsys_note(struct nsys_loader *loader, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes the current row. Returns 0, 1 if the row makes no sense and was left out, or -ENOMEM. */
typedef int nsys_row(struct nsys_loader *loader, const struct nsys_table *table, void *context);

/*
 * Reads a table row by row. A table that cannot be used or breaks off, and rows that make no sense, are
 * noted; `purpose` says what is not known then. What became of the table is left in `table`, which is closed.
 * Returns 0 or -ENOMEM.
 */
int nsys_read(struct nsys_loader *loader, struct nsys_table *table, const char *name, const char *purpose,
              const struct nsys_column *columns, size_t count, nsys_row *row, void *context);

/* A time that can be reckoned with; false if the column holds none. */
bool nsys_time(const struct nsys_table *table, int column, int64_t *time_ns);
void nsys_see_time(struct nsys_loader *loader, int64_t time_ns);

/* String of the model for a text, 0 for NULL and "", MODEL_NONE if memory ran out. Long ones are cut. */
uint32_t nsys_string(struct nsys_loader *loader, const char *text);
/* For a column that holds an id of StringIds, or the text itself. 0 if there is none. */
uint32_t nsys_name(struct nsys_loader *loader, const struct nsys_table *table, int column);

/*
 * Index of the process or thread with a global id, made if needed; MODEL_NONE if memory ran out, or if there
 * are more than any machine has (nsys_full).
 */
uint32_t nsys_process(struct nsys_loader *loader, int64_t global_tid);
uint32_t nsys_thread(struct nsys_loader *loader, int64_t global_tid);
bool nsys_full(const struct nsys_loader *loader);
/* The same if it is already known, else MODEL_NONE. */
uint32_t nsys_known_process(const struct nsys_loader *loader, int64_t global_tid);
uint32_t nsys_known_thread(const struct nsys_loader *loader, int64_t global_tid);

/* Correlation id of the model for one of the file, 0 for none. */
int nsys_correlation(struct nsys_loader *loader, const struct nsys_table *table, int column, uint32_t *id);

int nsys_load_strings(struct nsys_loader *loader);             /* nsys.c */
int nsys_load_calls(struct nsys_loader *loader);               /* nsys_host.c */
int nsys_load_syncs(struct nsys_loader *loader);               /* nsys_host.c */
int nsys_load_overhead(struct nsys_loader *loader);            /* nsys_host.c */
int nsys_load_scopes(struct nsys_loader *loader);              /* nsys_host.c */
int nsys_load_operations(struct nsys_loader *loader);          /* nsys_gpu.c */
bool nsys_operations_lack_process(struct nsys_loader *loader); /* a table has no column for it */
int nsys_load_device_names(struct nsys_loader *loader);        /* nsys_gpu.c */
int nsys_load_waits(struct nsys_loader *loader);               /* nsys_sched.c */
int nsys_load_names(struct nsys_loader *loader);               /* nsys_names.c */
int nsys_load_command(struct nsys_loader *loader);             /* nsys_names.c */
int nsys_load_diagnostics(struct nsys_loader *loader);         /* nsys_names.c */

/* What an OS function that was traced waits in. */
struct nsys_os_call {
	const char *name;
	int32_t syscall;
	bool lock; /* waits for a lock that another thread holds */
};

/* NULL for functions that do not wait. */
const struct nsys_os_call *nsys_os_call_find(const char *name); /* nsys_os_calls.c */

#endif
