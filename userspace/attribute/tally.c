/* SPDX-License-Identifier: GPL-2.0-only */
#include "attribute/tally.h"

#include "attribute/detail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What tells one part of a cause from another: the thing a person would change. */
struct part {
	struct leaf leaf; /* a representative one; times and chain mean nothing */
	uint64_t ns;
	size_t common; /* bytes of its path that are the same in all leaves of the part */
	uint64_t
	    lead_ns; /* by how much its path has more time than all others: at least that much is its own */
};

struct thread_share {
	uint32_t thread;
	uint64_t ns;
};

struct thread_shares {
	ARRAY(struct thread_share)
};

struct bucket {
	uint64_t ns;
	uint64_t by_confidence[CONFIDENCE_HIGH + 1];
	uint64_t gap_count;
	uint64_t last_gap;
	struct {
		ARRAY(struct part)
	} parts;
	struct index_map part_by_key;
	struct thread_shares threads, waiters;
	struct index_map thread_by_id, waiter_by_id;
};

struct tally {
	const struct model *model;
	uint64_t gap;
	bool failed;
	struct bucket buckets[CAUSE_COUNT][ROLE_COUNT];
};

/* More parts than this are added to the last one: the largest are what is shown. */
#define PARTS_MAX 4096

struct tally *tally_new(const struct model *model)
{
	struct tally *tally = calloc(1, sizeof(*tally));

	if (tally)
		tally->model = model;
	return tally;
}

void tally_free(struct tally *tally)
{
	if (!tally)
		return;
	for (int code = 0; code < CAUSE_COUNT; code++) {
		for (int role = 0; role < ROLE_COUNT; role++) {
			struct bucket *bucket = &tally->buckets[code][role];

			array_free(&bucket->parts);
			array_free(&bucket->threads);
			array_free(&bucket->waiters);
			index_map_free(&bucket->part_by_key);
			index_map_free(&bucket->thread_by_id);
			index_map_free(&bucket->waiter_by_id);
		}
	}
	free(tally);
}

void tally_next_gap(struct tally *tally)
{
	tally->gap++;
}

static uint64_t part_key(const struct leaf *leaf)
{
	const uint64_t fields[] = {(uint64_t)leaf->syscall,
	                           leaf->function,
	                           leaf->lock,
	                           leaf->holder,
	                           leaf->python,
	                           leaf->lock_wait ? leaf->lock_wait->lock : 0};

	return hash_bytes(fields, sizeof(fields));
}

/* One line of code reads many files: what their paths have in common, up to a folder, is what it reads. */
static void join_path(const struct model *model, struct part *part, uint32_t path)
{
	const char *own = model_string(model, part->leaf.path), *other = model_string(model, path);
	size_t length = 0;

	if (path == part->leaf.path)
		return;
	for (size_t i = 0; i < part->common && own[i] == other[i] && own[i]; i++) {
		if (own[i] == '/')
			length = i + 1;
	}
	part->common = length;
}

/* The path is that of most of the time, where there is one of most of the time: a vote, each ns for its path.
 */
static void vote_for_path(struct part *part, const struct leaf *leaf, uint64_t ns)
{
	if (leaf->path == part->leaf.path) {
		part->lead_ns += ns;
	} else if (part->lead_ns >= ns) {
		part->lead_ns -= ns;
	} else {
		part->leaf.path = leaf->path;
		part->leaf.device = leaf->device;
		part->lead_ns = ns - part->lead_ns;
	}
}

static bool add_part(const struct model *model, struct bucket *bucket, const struct leaf *leaf, uint64_t ns)
{
	uint64_t key = part_key(leaf);
	struct part *part;
	uint32_t at;

	if (!index_map_get(&bucket->part_by_key, key, &at)) {
		if (bucket->parts.count >= PARTS_MAX) {
			bucket->parts.items[PARTS_MAX - 1].ns += ns;
			return true;
		}
		part = array_add(&bucket->parts);
		if (!part || index_map_put(&bucket->part_by_key, key, bucket->parts.count - 1))
			return false;
		part->leaf = *leaf;
		part->common = strlen(model_string(model, leaf->path));
		at = bucket->parts.count - 1;
	}
	bucket->parts.items[at].ns += ns;
	join_path(model, &bucket->parts.items[at], leaf->path);
	vote_for_path(&bucket->parts.items[at], leaf, ns);
	return true;
}

/* Adds to the share of a thread; `by_id` finds its place in the list. */
static bool add_share(struct thread_shares *list, struct index_map *by_id, uint32_t thread, uint64_t ns)
{
	struct thread_share *share;
	uint32_t at;

	if (index_map_get(by_id, thread, &at)) {
		list->items[at].ns += ns;
		return true;
	}
	share = array_add(list);
	if (!share || index_map_put(by_id, thread, list->count - 1))
		return false;
	*share = (struct thread_share){thread, ns};
	return true;
}

void tally_leaf(struct tally *tally, uint32_t launcher, const struct leaf *leaf)
{
	struct bucket *bucket = &tally->buckets[leaf->code][leaf->role];
	uint64_t ns = leaf->end_ns - leaf->start_ns;
	bool ok = add_part(tally->model, bucket, leaf, ns);

	bucket->ns += ns;
	bucket->by_confidence[leaf->confidence] += ns;
	if (bucket->last_gap != tally->gap) {
		bucket->last_gap = tally->gap;
		bucket->gap_count++;
	}
	if (leaf->thread != MODEL_NONE) {
		ok &= add_share(&bucket->threads, &bucket->thread_by_id, leaf->thread, ns);
		if (launcher != MODEL_NONE && launcher != leaf->thread)
			ok &= add_share(&bucket->waiters, &bucket->waiter_by_id, launcher, ns);
	}
	if (!ok)
		tally->failed = true;
}

const char *analysis_text(struct analysis *analysis, const char *format, ...)
{
	char *text, **slot;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return NULL;
	slot = array_add(&analysis->owned);
	if (!slot) {
		free(text);
		return NULL;
	}
	*slot = text;
	return text;
}

static int compare_share(const void *a, const void *b)
{
	const struct thread_share *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static int compare_cause(const void *a, const void *b)
{
	const struct cause *x = a, *y = b;
	int order = (x->ns < y->ns) - (x->ns > y->ns);

	return order ? order : (int)x->code - (int)y->code;
}

static struct cause_thread describe_thread(const struct model *model, const struct thread_share *share)
{
	const struct thread *thread = &model->threads.items[share->thread];
	const struct process *process = &model->processes.items[thread->process];

	return (struct cause_thread){
	    .pid = thread->pid,
	    .tid = thread->tid,
	    .comm = model_string(model, thread->comm),
	    .cmdline = process->cmdline ? model_string(model, process->cmdline) : NULL,
	    .container = process->container ? model_string(model, process->container) : NULL,
	    .pod = process->pod ? model_string(model, process->pod) : NULL,
	    .namespace_pid = process->namespace_pid,
	    .ns = share->ns};
}

/* The lowest level that at least a tenth of the time has (analysis.h). */
static enum confidence bucket_confidence(const struct bucket *bucket)
{
	uint64_t low = bucket->by_confidence[CONFIDENCE_LOW];

	if (low * 10 >= bucket->ns)
		return CONFIDENCE_LOW;
	if ((low + bucket->by_confidence[CONFIDENCE_MEDIUM]) * 10 >= bucket->ns)
		return CONFIDENCE_MEDIUM;
	return CONFIDENCE_HIGH;
}

/*
 * The largest part, but one with a stack if it is not far smaller: only some stretches of running code were
 * sampled, and those stand for the others.
 */
static const struct part *telling_part(const struct bucket *bucket)
{
	const struct part *part, *largest = NULL, *named = NULL;

	array_for_each (part, &bucket->parts) {
		if (!largest || part->ns > largest->ns)
			largest = part;
		if (part->leaf.stack != MODEL_NONE && (!named || part->ns > named->ns))
			named = part;
	}
	return named && named->ns >= largest->ns / 8 ? named : largest;
}

static int describe_part(struct analysis *analysis, const struct model *model, const struct part *part,
                         struct cause_detail *detail)
{
	const char *path = model_string(model, part->leaf.path);
	int err = leaf_describe(analysis, model, &part->leaf, detail);

	if (err || part->common == strlen(path) || part->lead_ns * 10 >= part->ns * 9)
		return err;
	/* Only "/" in common says nothing. */
	detail->path = NULL;
	if (part->common > 1) {
		detail->path = analysis_text(analysis, "%.*s…", (int)part->common, path);
		err = detail->path ? 0 : -ENOMEM;
	}
	return err;
}

static int finish_bucket(const struct tally *tally, struct analysis *analysis, struct bucket *bucket,
                         struct cause *cause)
{
	const struct part *largest;
	const struct thread_share *share;

	cause->ns = bucket->ns;
	cause->gain_high_ns = bucket->ns;
	cause->gap_count = bucket->gap_count;
	cause->confidence = bucket_confidence(bucket);
	array_sort(&bucket->threads, compare_share);
	array_sort(&bucket->waiters, compare_share);
	array_for_each (share, &bucket->threads) {
		struct cause_thread *slot = array_add(&cause->threads);

		if (!slot)
			return -ENOMEM;
		*slot = describe_thread(tally->model, share);
	}
	if (bucket->waiters.count) {
		/* Kept behind the threads, outside their count. */
		struct cause_thread *slot = array_add(&cause->threads);

		if (!slot)
			return -ENOMEM;
		*slot = describe_thread(tally->model, &bucket->waiters.items[0]);
		cause->threads.count--;
		cause->waiter = slot;
	}
	largest = telling_part(bucket);
	return largest ? describe_part(analysis, tally->model, largest, &cause->detail) : 0;
}

int tally_finish(struct tally *tally, struct analysis *analysis, struct device_report *device)
{
	if (tally->failed)
		return -ENOMEM;
	for (int code = 0; code < CAUSE_COUNT; code++) {
		for (int role = 0; role < ROLE_COUNT; role++) {
			struct bucket *bucket = &tally->buckets[code][role];
			struct cause *cause;

			if (!bucket->ns)
				continue;
			cause = array_add(&device->causes);
			if (!cause || finish_bucket(tally, analysis, bucket, cause))
				return -ENOMEM;
			cause->code = code;
			cause->role = role;
		}
	}
	array_sort(&device->causes, compare_cause);
	return 0;
}
