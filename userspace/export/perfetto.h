/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to the Perfetto writer: what its parts share. */
#ifndef WHYIDLE_EXPORT_PERFETTO_H
#define WHYIDLE_EXPORT_PERFETTO_H

#include "attribute/analysis.h"
#include "base/array.h"
#include "base/hash.h"
#include "export/byte_out.h"
#include "export/protobuf.h"
#include "model/model.h"

/* Texts that are written once and then meant by number; each kind has numbers of its own. */
enum perfetto_table { PERFETTO_CATEGORIES, PERFETTO_NAMES, PERFETTO_KEYS, PERFETTO_VALUES, PERFETTO_TABLES };

/* A row of slices that do not overlap: of a stream, or of one of several that a stream needs. */
struct perfetto_lane {
	uint64_t track, end_ns;
	uint32_t next; /* further lane of the same stream, MODEL_NONE */
};

struct perfetto {
	struct byte_out *out;
	const struct model *model;
	const struct analysis *analysis;
	bool failed; /* memory ran out */

	struct protobuf packet, event, interned;
	uint64_t event_ns;                         /* time of the event that is being made */
	struct index_map numbers[PERFETTO_TABLES]; /* by hash of the text */
	uint32_t *name_of_string;                  /* by string id, 0: not yet */

	uint64_t next_track; /* numbers from here on are free */
	uint8_t *has_states; /* for each thread: its track of states is used */
	struct {
		ARRAY(struct perfetto_lane)
	} lanes;
	struct index_map lane_by_stream;
	struct {
		ARRAY(struct perfetto_flow {
			uint64_t call; /* thread and index */
			uint64_t flow;
		})
	} flows;             /* from calls to operations, by call */
	uint64_t wake_flows; /* numbers of flows from wakers start here */
};

/* Tracks of threads and GPUs have fixed places; others are numbered on. */
enum { TRACK_CALLS, TRACK_STATE, TRACK_SCOPES, TRACK_OVERHEAD, THREAD_TRACKS };
enum { TRACK_GPU, TRACK_GAPS, TRACK_RUNNING, TRACK_QUEUED, GPU_TRACKS };
uint64_t perfetto_process_track(const struct perfetto *perfetto, uint32_t process);
uint64_t perfetto_thread_track(const struct perfetto *perfetto, uint32_t thread, uint32_t which);
uint64_t perfetto_gpu_track(const struct perfetto *perfetto, uint32_t device, uint32_t which);

/*
 * perfetto_event.c. A slice is begun, gets its arguments, is committed, and ended by another event; an
 * instant and a counter's value are one event. Times are ns. `name` is from one of the two functions below
 * it.
 */
void perfetto_slice(struct perfetto *perfetto, uint64_t track, uint64_t start_ns, const char *category,
                    uint64_t name);
void perfetto_slice_end(struct perfetto *perfetto, uint64_t track, uint64_t end_ns);
void perfetto_instant(struct perfetto *perfetto, uint64_t track, uint64_t time_ns, const char *category,
                      uint64_t name);
void perfetto_counter(struct perfetto *perfetto, uint64_t track, uint64_t time_ns, uint64_t value);
uint64_t perfetto_name(struct perfetto *perfetto, const char *text);
uint64_t perfetto_string_name(struct perfetto *perfetto, uint32_t string);
void perfetto_number(struct perfetto *perfetto, const char *key, uint64_t value);
/* Not if NULL or "". A word is one of few values, a text of many. */
void perfetto_word(struct perfetto *perfetto, const char *key, const char *value);
void perfetto_text(struct perfetto *perfetto, const char *key, const char *value);
/* "NAME (TID)" of a thread. */
void perfetto_thread(struct perfetto *perfetto, const char *key, const char *comm, uint32_t tid);
void perfetto_flow(struct perfetto *perfetto, uint64_t flow, bool ends);
void perfetto_commit(struct perfetto *perfetto);

/* Descriptions of tracks: what is put between the two becomes part of it. */
size_t perfetto_track(struct perfetto *perfetto, uint64_t track, uint64_t parent, const char *name);
void perfetto_track_end(struct perfetto *perfetto, size_t mark);
void perfetto_track_order(struct perfetto *perfetto, uint64_t rank);
void perfetto_track_orders_children(struct perfetto *perfetto);
void perfetto_track_process(struct perfetto *perfetto, const struct process *process);
void perfetto_track_thread(struct perfetto *perfetto, const struct thread *thread);
void perfetto_track_counts(struct perfetto *perfetto);
/* What the trace begins with: the clock, and what holds for all packets. */
void perfetto_head(struct perfetto *perfetto);

/* perfetto_gpu.c: from launches to operations. Returns 0 or -ENOMEM. Before all that follows. */
int perfetto_find_flows(struct perfetto *perfetto);

/* perfetto_host.c, perfetto_gpu.c: the rows, with their names. */
void perfetto_hosts(struct perfetto *perfetto);
void perfetto_gpus(struct perfetto *perfetto);

#endif
