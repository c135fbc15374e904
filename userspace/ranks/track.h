/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private to ranks/: what is kept of one rank when its model is gone. Times are on the rank's own clock.
 */
#ifndef WHYIDLE_RANKS_TRACK_H
#define WHYIDLE_RANKS_TRACK_H

#include "attribute/steps.h"
#include "base/hash.h"
#include "ranks/clock.h"
#include "ranks/ranks.h"

enum collective_kind {
	COLLECTIVE_ALL_REDUCE,
	COLLECTIVE_ALL_GATHER,
	COLLECTIVE_REDUCE_SCATTER,
	COLLECTIVE_ALL_TO_ALL,
	COLLECTIVE_BROADCAST,
	COLLECTIVE_REDUCE,
	COLLECTIVE_SEND_RECV,
	COLLECTIVE_OTHER,
	COLLECTIVE_KINDS
};

/* From a kernel's name, mangled or not, whatever its algorithm, protocol and types. */
enum collective_kind collective_kind_of(const char *kernel);
const char *collective_kind_name(enum collective_kind kind);

/* Disjoint stretches by start, each with the time that those before it cover. */
struct covered {
	uint64_t start_ns, end_ns, before_ns;
};

struct cover {
	ARRAY(struct covered)
};

/* How much of [from, to] is covered. */
uint64_t cover_measure(const struct cover *cover, uint64_t from_ns, uint64_t to_ns);

/* Index of the first stretch that ends after a time. */
size_t cover_after(const struct cover *cover, uint64_t ns);

/* What time is blamed on; kept once. */
struct label {
	enum late_reason reason;
	enum cause_code code;
	enum cause_role role;
	enum confidence confidence;
	const char *thread, *detail, *via;
};

struct track_leaf {
	uint64_t start_ns, end_ns;
	uint32_t label;
};

struct leaf_list {
	ARRAY(struct track_leaf)
};

struct track_event {
	uint64_t start_ns, end_ns;
	uint64_t launch_ns; /* 0 not known */
	uint64_t bytes;     /* 0 not known */
	uint32_t kind;      /* enum collective_kind */
	uint32_t channel;   /* index of track.channels */
	uint32_t instance;  /* of its channel's group, RANKS_NONE */
	uint32_t host_first,
	    host_count; /* range of track.host, 0: not launched late while the GPU was busy */
};

/* The collectives of one stream. */
struct channel {
	uint32_t stream;
	uint32_t group; /* index of ranks.groups, RANKS_NONE */
	struct {
		ARRAY(uint32_t)
	} events; /* by start */
};

/* Labels of every track that are no single leaf. */
enum fixed_label {
	LABEL_COMPUTE_MORE, /* more kernels than the rank that waited */
	LABEL_COMPUTE_SLOW, /* as many, but slower */
	LABEL_COPY,
	LABEL_TRANSFER,
	LABEL_BEFORE,
	LABEL_FIXED
};

struct track {
	struct ranks_member member;
	struct {
		ARRAY(struct track_event)
	} events; /* collectives by start */
	struct {
		ARRAY(struct channel)
	} channels;
	struct cover compute, device_work, all; /* kernels; with copies and memsets; with collectives */
	struct leaf_list idle;                  /* idle time, in time order, without holes or overlaps */
	struct leaf_list host; /* what the host did while the GPU was busy, for events launched late */
	struct {
		ARRAY(uint64_t)
	} kernel_starts;
	struct step_list steps; /* that the trace itself names, by number */
};

/* A collective of a group with its part on each member. */
struct instance {
	uint32_t present;                  /* members that have it */
	uint32_t last;                     /* member that came last, decided or not, if last_ns is set */
	uint32_t late;                     /* index of ranks.tracks, RANKS_NONE: none or not decided */
	uint64_t first_ns, last_ns;        /* arrivals, common clock */
	uint64_t most_ns;                  /* longest wait that is charged to `late` */
	uint64_t wait_ns, delay_ns;        /* all waits that are charged to it; the job's part */
	uint32_t share_first, share_count; /* range of ranks.shares */
	bool notable;
};

struct group_member {
	uint32_t track, channel;
};

struct group {
	struct {
		ARRAY(struct group_member)
	} members;
	struct {
		ARRAY(struct clock_mark)
	} marks; /* of all that any member has, in order; common clock: last start and first end that was seen
	          */
	struct {
		ARRAY(struct instance)
	} instances;       /* one for each mark */
	uint32_t *slots;   /* event of each member in each instance, RANKS_NONE */
	uint64_t error_ns; /* of the clock of the member that the marks came from */
	uint64_t apart, undecided, transfer_ns;
};

/* Part of the waits for a late rank. */
struct share {
	uint32_t root, label;
	uint32_t cause; /* of the report; only once they are kept */
	uint64_t ns;
};

struct input_state {
	const char *path;
	uint32_t rank, world_size;
	struct ranks_clock clock;
	uint64_t reference_ns; /* where the drift begins to count */
	bool aligned;
};

struct ranks {
	struct {
		ARRAY(struct input_state)
	} inputs;
	struct {
		ARRAY(struct track)
	} tracks;
	struct {
		ARRAY(struct group)
	} groups;
	struct {
		ARRAY(struct label)
	} labels; /* begin with the fixed ones */
	struct index_map label_by_key;
	struct {
		ARRAY(struct share)
	} shares;
	struct {
		ARRAY(const char *)
	} notes;
	struct {
		ARRAY(char *)
	} texts;
	struct index_map text_by_hash;
};

/* Kept once; NULL if memory ran out. */
const char *ranks_text(struct ranks *ranks, const char *text);
/* Index of the label, RANKS_NONE if memory ran out. */
uint32_t ranks_label(struct ranks *ranks, const struct label *label);

/*
 * Fills a track from the operations of one process (MODEL_NONE: all) on one device; what it was late for only
 * if it will be compared. Returns 0 or -ENOMEM.
 */
int track_fill(struct ranks *ranks, struct track *track, const struct model *model, uint32_t device,
               uint32_t process, bool compared);
void track_free(struct track *track);

/* Kernels, collectives not counted, that started in [from, to). */
size_t track_kernels(const struct track *track, uint64_t from_ns, uint64_t to_ns);

/* Moves a time of the track's input to the common clock. */
uint64_t track_common(const struct ranks *ranks, const struct track *track, uint64_t ns);

#endif
