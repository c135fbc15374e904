// SPDX-License-Identifier: GPL-2.0-only
/* Folded stacks: a line for each, "frame;frame;frame nanoseconds", as FlameGraph's scripts and speedscope
 * read. */
#include <errno.h>
#include <stdlib.h>

#include "export/byte_out.h"
#include "base/utf8.h"
#include "export/export.h"
#include "export/profile.h"

/* What separates frames and lines is replaced, and what a terminal obeys or hides. `name` is valid UTF-8. */
static void put_frame(struct byte_out *out, const char *name)
{
	const char *from = name;
	uint32_t point;

	while (*name) {
		unsigned length = utf8_decode(name, &point);

		if (length && point != ';' && !utf8_is_deceptive(point)) {
			name += length;
			continue;
		}
		byte_out_put(out, from, (size_t)(name - from));
		byte_out_put(out, *name == ';' ? ":" : " ", 1);
		name += length ? length : 1;
		from = name;
	}
	byte_out_put(out, from, (size_t)(name - from));
}

static void put_stack(struct byte_out *out, const struct profile *profile, const struct profile_node *node,
                      uint32_t *path)
{
	size_t depth = 0;

	for (; node->parent != MODEL_NONE; node = &profile->nodes.items[node->parent])
		path[depth++] = node->name;
	path[depth++] = node->name;
	while (depth) {
		put_frame(out, profile->names.items[path[--depth]]);
		if (depth)
			byte_out_literal(out, ";");
	}
}

static int put_file(struct byte_out *out, void *context)
{
	const struct profile *profile = context;
	const struct profile_node *node;
	uint32_t *path = calloc(profile->nodes.count + 1, sizeof(*path));

	if (!path)
		return -ENOMEM;
	array_for_each (node, &profile->nodes) {
		if (!node->ns)
			continue;
		put_stack(out, profile, node, path);
		byte_out_literal(out, " ");
		byte_out_number(out, node->ns);
		byte_out_literal(out, "\n");
	}
	free(path);
	return 0;
}

int export_folded(const char *path, const struct model *model, const struct analysis *analysis,
                  struct error *error)
{
	struct profile profile;
	int rc = profile_make(&profile, model, analysis);

	rc = rc ? error_no_memory(error)
	        : byte_out_file(path, byte_out_is_compressed(path), put_file, &profile, error);
	profile_free(&profile);
	return rc;
}
