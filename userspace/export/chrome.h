/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to the Chrome JSON writer: what its parts share. */
#ifndef WHYIDLE_EXPORT_CHROME_H
#define WHYIDLE_EXPORT_CHROME_H

#include "attribute/analysis.h"
#include "base/array.h"
#include "base/hash.h"
#include "export/json_out.h"
#include "export/launches.h"
#include "model/model.h"

/*
 * Numbers of tracks that nobody has: above every pid and tid that Linux gives out (4194304). Slices on one
 * track must nest, so what would cross the slices of a thread or a stream gets a track of its own.
 */
#define CHROME_GPU_PID   0x800000  /* + device: where a host process has the device's number as its pid */
#define CHROME_STATE_TID 0x800000  /* + tid: states of a thread */
#define CHROME_GAP_TID   0x1000000 /* gaps of a GPU */
#define CHROME_TRACK_TID 0x2000000 /* + n: a stream whose number another process or context uses too */

/* A row of operations of a device. */
struct chrome_track {
	uint32_t device, process, context, stream;
	bool waits; /* synchronisations, not operations */
	uint64_t tid;
};

struct chrome {
	struct byte_out *out;
	const struct model *model;
	const struct analysis *analysis; /* NULL: without gaps */
	struct launches launches;
	uint64_t *correlation_base; /* for each process, and behind them for operations without one */
	struct index_map track_by_key;
	struct {
		ARRAY(struct chrome_track)
	} tracks;
	uint64_t asyncs; /* stretches that may cross, so far */
	bool has_event, has_argument;
};

/* chrome_event.c. An event is begun, gets its arguments and is ended. Times are ns. */
void chrome_slice(struct chrome *chrome, const char *category, const char *name, uint64_t pid, uint64_t tid,
                  uint64_t start_ns, uint64_t end_ns);
/* A stretch that may cross others: whole, it gets no arguments. `id` is its own within the file. */
void chrome_async(struct chrome *chrome, const char *category, const char *name, uint64_t id, uint64_t pid,
                  uint64_t tid, uint64_t start_ns, uint64_t end_ns);
void chrome_end(struct chrome *chrome);
void chrome_number(struct chrome *chrome, const char *key, uint64_t value);
void chrome_string(struct chrome *chrome, const char *key, const char *value); /* not if NULL or "" */
/* "NAME (TID)" of a thread. */
void chrome_thread(struct chrome *chrome, const char *key, const char *comm, uint32_t tid);
/* An arrow from a launch (`begin`) to its operation. */
void chrome_flow(struct chrome *chrome, bool begin, uint64_t id, uint64_t pid, uint64_t tid,
                 uint64_t time_ns);
/* What a track is called and where it goes. `label`: "CPU", "GPU 0", NULL for threads. */
void chrome_process_name(struct chrome *chrome, uint64_t pid, const char *name, const char *label,
                         uint64_t order);
void chrome_thread_name(struct chrome *chrome, uint64_t pid, uint64_t tid, const char *name, uint64_t order);

/* chrome_track.c: ids as the file has them. Return 0 or -ENOMEM. */
int chrome_ids_make(struct chrome *chrome);
void chrome_ids_free(struct chrome *chrome);
/* Unique in the file; 0: none. */
uint64_t chrome_correlation(const struct chrome *chrome, uint32_t process, uint32_t correlation);
uint64_t chrome_gpu_pid(const struct chrome *chrome, uint32_t device);
int chrome_track_find(struct chrome *chrome, const struct chrome_track *wanted, uint64_t *tid);

/* chrome_host.c, chrome_gpu.c: events of one kind. Return 0 or -ENOMEM. */
int chrome_threads(struct chrome *chrome);
int chrome_operations(struct chrome *chrome);
int chrome_synchronisations(struct chrome *chrome);
int chrome_gaps(struct chrome *chrome);
int chrome_gpu_names(struct chrome *chrome);

#endif
