// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/blame.h"

#include <stddef.h>

struct blame {
	const json_t *gpu, *cause, *thread;
	uint64_t ns;
};

struct blames {
	struct blame largest[BLAME_CAUSES];
	size_t count;
	uint64_t idle_ns, observed_ns;
};

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

/* Keeps the largest ones, in order. */
static void add(struct blames *blames, const struct blame *blame)
{
	size_t at = blames->count;

	blames->idle_ns += blame->ns;
	if (at < BLAME_CAUSES)
		blames->count++;
	else if (blames->largest[--at].ns >= blame->ns)
		return;
	for (; at && blames->largest[at - 1].ns < blame->ns; at--)
		blames->largest[at] = blames->largest[at - 1];
	blames->largest[at] = *blame;
}

static void add_gpu(struct blames *blames, const json_t *gpu, uint32_t pid, blame_root root, void *context)
{
	struct blame blame = {.gpu = gpu};
	size_t i, j;

	blames->observed_ns += number(gpu, "busy_ns") + number(gpu, "idle_ns");
	json_array_foreach(json_object_get(gpu, "causes"), i, blame.cause)
	{
		json_array_foreach(json_object_get(blame.cause, "threads"), j, blame.thread)
		{
			blame.ns = number(blame.thread, "ns");
			if (root(context, (uint32_t)number(blame.thread, "pid")) == pid)
				add(blames, &blame);
		}
	}
}

static json_t *make_cause(const struct blame *blame)
{
	json_t *object = json_object();

	json_object_set(object, "device", json_object_get(blame->gpu, "device"));
	json_object_set(object, "code", json_object_get(blame->cause, "code"));
	json_object_set(object, "role", json_object_get(blame->cause, "role"));
	json_object_set(object, "comm", json_object_get(blame->thread, "comm"));
	json_object_set(object, "tid", json_object_get(blame->thread, "tid"));
	json_object_set_new(object, "ns", json_integer((json_int_t)blame->ns));
	return object;
}

void blame_put(json_t *process, const json_t *report, uint32_t pid, blame_root root, void *context)
{
	struct blames blames = {0};
	json_t *causes = json_array(), *gpu;
	size_t i;

	json_array_foreach(json_object_get(report, "gpus"), i, gpu) add_gpu(&blames, gpu, pid, root, context);
	for (i = 0; i < blames.count; i++)
		json_array_append_new(causes, make_cause(&blames.largest[i]));
	json_object_set_new(process, "observed_ns", json_integer((json_int_t)blames.observed_ns));
	json_object_set_new(process, "idle",
	                    blames.observed_ns
	                        ? json_real((double)blames.idle_ns / (double)blames.observed_ns)
	                        : json_null());
	json_object_set_new(process, "causes", causes);
}
