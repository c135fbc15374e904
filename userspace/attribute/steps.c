// SPDX-License-Identifier: GPL-2.0-only
#include "attribute/steps.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "attribute/rhythm.h"
#include "base/median.h"
#include "base/number.h"

#define WARM_UP_FACTOR 2
#define WARM_UP_PART   4

static int compare_number(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	int order = (x->number > y->number) - (x->number < y->number);

	return order ? order : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int compare_start(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	int order = (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);

	/* The outer one first. */
	return order ? order : (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static int add_step(struct step_list *list, uint64_t start_ns, uint64_t end_ns, uint64_t number)
{
	struct step *step = array_add(list);

	if (!step)
		return -ENOMEM;
	*step = (struct step){start_ns, end_ns, number};
	return 0;
}

static bool is_profiler_step(const char *name)
{
	return !strncmp(name, STEP_PREFIX, sizeof(STEP_PREFIX) - 1);
}

int steps_profiler(struct step_list *list, const struct model *model, uint32_t process)
{
	const struct thread *thread;
	const struct scope *scope;
	size_t kept = 0;

	array_for_each (thread, &model->threads) {
		if (process != MODEL_NONE && thread->process != process)
			continue;
		array_for_each (scope, &thread->scopes) {
			const char *name = model_string(model, scope->name);

			if (scope->kind != SCOPE_ANNOTATION || !is_profiler_step(name))
				continue;
			if (add_step(list, scope->start_ns, scope->end_ns,
			             strtoull(name + sizeof(STEP_PREFIX) - 1, NULL, 10)))
				return -ENOMEM;
		}
	}
	array_sort(list, compare_number);
	for (size_t i = 0; i < list->count; i++) {
		if (!kept || list->items[kept - 1].number != list->items[i].number)
			list->items[kept++] = list->items[i];
	}
	list->count = kept;
	return 0;
}

/* ---- other annotations ---- */

/* Length of the name without a number at its end ("step 12", "iteration_3", "train_step"). */
static size_t stem_length(const char *name)
{
	size_t length = strlen(name);

	while (length && isdigit((unsigned char)name[length - 1]))
		length--;
	return length;
}

static bool is_step_name(const char *name, size_t length)
{
	static const char *const words[] = {"step", "iter", "batch"};

	for (size_t at = 0; at < length; at++) {
		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
			if (!strncasecmp(name + at, words[w], strlen(words[w])) &&
			    at + strlen(words[w]) <= length)
				return true;
		}
	}
	return false;
}

/* The annotations of one thread under one name. */
struct family {
	uint32_t thread;
	uint32_t name; /* string id of the first */
	uint64_t ns;
	size_t count;
};

struct families {
	ARRAY(struct family)
	struct index_map by_key;
};

static uint64_t family_key(uint32_t thread, const char *name, size_t length)
{
	return hash_mix(hash_bytes(name, length) + thread);
}

static bool is_candidate(const struct model *model, const struct scope *scope, size_t *length)
{
	const char *name = model_string(model, scope->name);

	if (scope->kind != SCOPE_ANNOTATION && scope->kind != SCOPE_RANGE)
		return false;
	*length = stem_length(name);
	return is_step_name(name, *length);
}

/* The family of an annotation, made if need be; NULL if memory ran out. */
static struct family *family_of(struct families *families, const struct model *model, uint32_t thread,
                                const struct scope *scope, size_t length)
{
	uint64_t key = family_key(thread, model_string(model, scope->name), length);
	struct family *family;
	uint32_t at;

	if (families->items && index_map_get(&families->by_key, key, &at))
		return &families->items[at];
	family = array_add(families);
	if (!family || index_map_put(&families->by_key, key, (uint32_t)families->count - 1))
		return NULL;
	*family = (struct family){.thread = thread, .name = scope->name};
	return family;
}

static int find_families(struct families *families, const struct model *model)
{
	size_t length;

	for (uint32_t t = 0; t < model->threads.count; t++) {
		const struct scope *scope;

		array_for_each (scope, &model->threads.items[t].scopes) {
			struct family *family;

			if (!is_candidate(model, scope, &length))
				continue;
			family = family_of(families, model, t, scope, length);
			if (!family)
				return -ENOMEM;
			family->ns += scope->end_ns - scope->start_ns;
			family->count++;
		}
	}
	return 0;
}

static int take_family(struct step_list *list, const struct model *model, const struct family *family)
{
	const char *name = model_string(model, family->name);
	size_t length = stem_length(name);
	const struct scope *scope;

	array_for_each (scope, &model->threads.items[family->thread].scopes) {
		const char *other = model_string(model, scope->name);
		size_t other_length;

		if (!is_candidate(model, scope, &other_length) || other_length != length ||
		    strncmp(name, other, length) != 0)
			continue;
		if (add_step(list, scope->start_ns, scope->end_ns, list->count + 1))
			return -ENOMEM;
	}
	return 0;
}

/* Of the names that come often enough, the one that covers the most time: the outermost. */
static int named_steps(struct steps *steps, const struct model *model)
{
	const struct family *family, *best = NULL;
	struct families families = {0};
	int rc = find_families(&families, model);

	array_for_each (family, &families) {
		if (family->count >= STEPS_LEAST && (!best || family->ns > best->ns))
			best = family;
	}
	if (!rc && best) {
		steps->name = model_string(model, best->name);
		rc = take_family(&steps->list, model, best);
	}
	index_map_free(&families.by_key);
	free(families.items);
	return rc;
}

/* In order of time, within the window, none inside another. */
static void tidy(struct step_list *list, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t covered = from_ns;
	size_t kept = 0;

	array_sort(list, compare_start);
	for (size_t i = 0; i < list->count; i++) {
		const struct step step = list->items[i];

		if (step.start_ns < covered || step.end_ns > to_ns || step.end_ns == step.start_ns)
			continue;
		list->items[kept++] = step;
		covered = step.end_ns;
	}
	list->count = kept;
}

int steps_find(struct steps *steps, const struct model *model, uint32_t device, uint64_t from_ns,
               uint64_t to_ns)
{
	int rc;

	*steps = (struct steps){.origin = STEPS_NAMED, .name = STEP_PREFIX};
	rc = steps_profiler(&steps->list, model, MODEL_NONE);
	tidy(&steps->list, from_ns, to_ns);
	if (!rc && steps->list.count < STEPS_LEAST) {
		steps->list.count = 0;
		rc = named_steps(steps, model);
		tidy(&steps->list, from_ns, to_ns);
	}
	if (!rc && steps->list.count < STEPS_LEAST) {
		steps->list.count = 0;
		steps->name = NULL;
		steps->origin = STEPS_RHYTHM;
		rc = rhythm_steps(steps, model, device, from_ns, to_ns);
	}
	if (steps->list.count < STEPS_LEAST) {
		steps->list.count = 0;
		steps->origin = STEPS_NONE;
	}
	return rc;
}

void steps_free(struct steps *steps)
{
	array_free(&steps->list);
	*steps = (struct steps){0};
}

const char *steps_origin_name(enum steps_origin origin)
{
	static const char *const names[] = {"none", "named", "rhythm"};

	return names[origin];
}

static uint64_t length_of(const struct step *step)
{
	return step->end_ns - step->start_ns;
}

size_t steps_warm_up(const struct step_list *list)
{
	uint64_t *lengths = calloc(list->count + 1, sizeof(*lengths)), median;
	size_t warm_up = 0;

	if (!lengths)
		return 0;
	for (size_t i = 0; i < list->count; i++)
		lengths[i] = length_of(&list->items[i]);
	median = list->count ? median_unsigned(lengths, list->count) : 0;
	free(lengths);
	while (warm_up < list->count / WARM_UP_PART && list->count - warm_up > STEPS_LEAST &&
	       length_of(&list->items[warm_up]) > WARM_UP_FACTOR * median)
		warm_up++;
	return warm_up;
}
