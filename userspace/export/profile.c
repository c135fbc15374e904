// SPDX-License-Identifier: GPL-2.0-only
#include "export/profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

const char *profile_kind_name(enum profile_kind kind)
{
	static const char *const names[PROFILE_KINDS] = {
	    [PROFILE_IDLE] = "idle", [PROFILE_GPU] = "gpu", [PROFILE_OFF_CPU] = "off_cpu"};

	return names[kind];
}

static uint32_t fail(struct profile *profile)
{
	profile->failed = true;
	return MODEL_NONE;
}

/* Takes over the text, NULL if memory ran out. */
static uint32_t add_name(struct profile *profile, uint64_t key, char *text)
{
	char **slot = text ? array_add(&profile->names) : NULL;

	if (!slot) {
		free(text);
		return fail(profile);
	}
	*slot = text;
	if (index_map_put(&profile->name_by_hash, key, (uint32_t)profile->names.count - 1))
		return fail(profile);
	return (uint32_t)profile->names.count - 1;
}

uint32_t profile_text(struct profile *profile, const char *text)
{
	char *copy = utf8_is_valid(text) ? NULL : utf8_copy(text);
	uint32_t known;

	if (copy)
		text = copy;
	for (uint64_t key = hash_bytes(text, strlen(text));; key++) {
		if (!index_map_get(&profile->name_by_hash, key, &known))
			return add_name(profile, key, copy ? copy : strdup(text));
		if (!strcmp(profile->names.items[known], text))
			break;
	}
	free(copy);
	return known;
}

uint32_t profile_string(struct profile *profile, uint32_t string)
{
	uint32_t *slot;

	if (string >= profile->name_by_string.count)
		return profile_text(profile, model_string(profile->model, string));
	slot = &profile->name_by_string.items[string];
	if (!*slot)
		*slot = profile_text(profile, model_string(profile->model, string));
	return *slot;
}

uint32_t profile_format(struct profile *profile, const char *format, ...)
{
	uint32_t name;
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	name = text ? profile_text(profile, text) : fail(profile);
	free(text);
	return name;
}

static uint32_t add_node(struct profile *profile, uint32_t parent, uint32_t name, uint32_t kind)
{
	struct profile_node *node = array_add(&profile->nodes);

	if (!node)
		return fail(profile);
	*node = (struct profile_node){.parent = parent, .name = name, .kind = kind};
	return (uint32_t)profile->nodes.count - 1;
}

uint32_t profile_child(struct profile *profile, uint32_t parent, uint32_t name)
{
	uint64_t key = (uint64_t)parent << 32 | name;
	uint32_t node;

	if (parent == MODEL_NONE || name == MODEL_NONE)
		return MODEL_NONE;
	if (index_map_get(&profile->node_by_key, key, &node))
		return node;
	node = add_node(profile, parent, name, profile->nodes.items[parent].kind);
	if (node != MODEL_NONE && index_map_put(&profile->node_by_key, key, node))
		return fail(profile);
	return node;
}

void profile_add(struct profile *profile, uint32_t node, uint64_t ns)
{
	if (node != MODEL_NONE)
		profile->nodes.items[node].ns += ns;
}

static int set_up(struct profile *profile)
{
	const struct model *model = profile->model;

	profile->name_by_string.items = calloc(model->strings.count + 1, sizeof(uint32_t));
	profile->name_by_frame.items = calloc(model->frames.count + 1, sizeof(uint32_t));
	if (!profile->name_by_string.items || !profile->name_by_frame.items)
		return -ENOMEM;
	profile->name_by_string.count = model->strings.count;
	profile->name_by_frame.count = model->frames.count;
	profile_text(profile, "");
	for (uint32_t kind = 0; kind < PROFILE_KINDS; kind++)
		add_node(profile, MODEL_NONE, profile_text(profile, profile_kind_name(kind)), kind);
	return profile->failed ? -ENOMEM : 0;
}

int profile_make(struct profile *profile, const struct model *model, const struct analysis *analysis)
{
	*profile = (struct profile){.model = model};
	if (set_up(profile))
		return -ENOMEM;
	profile_collect_idle(profile, analysis);
	profile_collect_gpu(profile);
	profile_collect_off_cpu(profile);
	return profile->failed ? -ENOMEM : 0;
}

void profile_free(struct profile *profile)
{
	char **name;

	array_for_each (name, &profile->names)
		free(*name);
	array_free(&profile->names);
	array_free(&profile->nodes);
	array_free(&profile->name_by_string);
	array_free(&profile->name_by_frame);
	index_map_free(&profile->name_by_hash);
	index_map_free(&profile->node_by_key);
}
