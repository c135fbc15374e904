// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attribute/gap_chains.h"
#include "attribute/detail.h"
#include "base/number.h"
#include "report/html_parts.h"

#define FLAME_NODES_MOST 20000
#define NODE_NONE        UINT32_MAX
#define BINS             64

struct node {
	uint32_t parent;
	json_t *name;
	uint64_t ns;
};

struct drawing {
	struct html_gaps *gaps;
	struct html_lists *lists;
	const struct model *model;
	const struct device_report *report;
	struct analysis texts; /* owns what leaf_describe makes */
	struct {
		ARRAY(struct node)
	} nodes;
	struct index_map node_by_key, node_by_leaf;
	uint64_t bin_count[BINS], bin_ns[BINS];
	uint64_t threshold_ns; /* shorter gaps are not drawn */
	uint64_t drawn, left_out, left_out_ns;
	uint64_t last_end_ns;
};

/* ---- bytes ---- */

static int put_number(struct html_gaps *gaps, uint64_t value)
{
	do {
		uint8_t *byte = array_add(&gaps->bytes);

		if (!byte)
			return -ENOMEM;
		*byte = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
		value >>= 7;
	} while (value);
	return 0;
}

/* Index of an entry in a shared list; `make` is called for a new one. */
static int list_index(struct index_map *map, json_t *list, uint64_t key, json_t *entry, uint32_t *at)
{
	if (index_map_get(map, key, at)) {
		json_decref(entry);
		return 0;
	}
	*at = (uint32_t)json_array_size(list);
	return json_array_append_new(list, entry) || index_map_put(map, key, *at) ? -ENOMEM : 0;
}

static int kind_index(struct html_lists *lists, const struct leaf *leaf, uint32_t *at)
{
	uint64_t key = (uint64_t)leaf->code << 16 | leaf->role << 8 | leaf->state;

	if (index_map_get(&lists->kind_by_key, key, at))
		return 0;
	return list_index(&lists->kind_by_key, lists->kinds, key,
	                  json_pack("[s, s, s]", cause_code_name(leaf->code), cause_role_name(leaf->role),
	                            leaf_state_name(leaf->state)),
	                  at);
}

static int thread_index(struct html_lists *lists, const struct model *model, uint32_t thread, uint32_t *at)
{
	const struct thread *known;

	if (index_map_get(&lists->thread_by_index, thread, at))
		return 0;
	if (thread == MODEL_NONE)
		return list_index(&lists->thread_by_index, lists->threads, thread,
		                  json_pack("[i, i, s]", 0, 0, "GPU"), at);
	known = &model->threads.items[thread];
	return list_index(&lists->thread_by_index, lists->threads, thread,
	                  json_pack("[I, I, o]", (json_int_t)known->pid, (json_int_t)known->tid,
	                            html_name(model_string(model, known->comm))),
	                  at);
}

static int draw_gap(struct drawing *drawing, const struct gap_chain *chain)
{
	struct html_gaps *gaps = drawing->gaps;
	int rc = put_number(gaps, chain->gap->start_ns - drawing->last_end_ns);

	drawing->last_end_ns = chain->gap->end_ns;
	if (!rc)
		rc = put_number(gaps, chain->count);
	for (size_t i = 0; !rc && i < chain->count; i++) {
		const struct leaf *leaf = &chain->leaves[i];
		uint32_t kind, thread;

		rc = kind_index(drawing->lists, leaf, &kind);
		if (!rc)
			rc = thread_index(drawing->lists, drawing->model, leaf->thread, &thread);
		if (!rc)
			rc = put_number(gaps, leaf->end_ns - leaf->start_ns);
		if (!rc)
			rc = put_number(gaps, kind);
		if (!rc)
			rc = put_number(gaps, thread);
	}
	return rc;
}

/* ---- flame graph ---- */

/* The child of that name, made if need be; the parent itself where there are too many. */
static uint32_t child_of(struct drawing *drawing, uint32_t parent, const char *name)
{
	uint64_t key = hash_mix(hash_bytes(name, strnlen(name, HTML_NAME_LIMIT)) + parent);
	struct node *node;
	uint32_t at;

	if (index_map_get(&drawing->node_by_key, key, &at))
		return at;
	if (drawing->nodes.count >= FLAME_NODES_MOST && parent != NODE_NONE)
		return parent;
	node = array_add(&drawing->nodes);
	at = (uint32_t)drawing->nodes.count - 1;
	if (!node || index_map_put(&drawing->node_by_key, key, at))
		return NODE_NONE;
	*node = (struct node){.parent = parent, .name = html_name(name)};
	return node->name ? at : NODE_NONE;
}

static uint32_t detail_nodes(struct drawing *drawing, uint32_t node, const struct cause_detail *detail)
{
	const char *const parts[] = {detail->python, detail->function, detail->syscall,
	                             detail->path,   detail->lock,     detail->holder};

	/* Outermost first: a stack is kept the other way round. */
	for (size_t i = detail->stack_count; i-- > 0 && node != NODE_NONE;)
		node = child_of(drawing, node, detail->stack[i]);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && node != NODE_NONE; i++) {
		if (parts[i])
			node = child_of(drawing, node, parts[i]);
	}
	return node;
}

/* The node of a leaf: cause, process, thread, then what it was doing. */
static uint32_t leaf_node(struct drawing *drawing, const struct leaf *leaf)
{
	const struct model *model = drawing->model;
	struct cause_detail detail;
	char text[512];
	uint32_t node;

	snprintf(text, sizeof(text), "%s@%s", cause_code_name(leaf->code), cause_role_name(leaf->role));
	node = child_of(drawing, NODE_NONE, text);
	if (node != NODE_NONE && leaf->thread != MODEL_NONE) {
		const struct thread *thread = &model->threads.items[leaf->thread];
		const struct process *process = &model->processes.items[thread->process];

		snprintf(text, sizeof(text), "%.300s (process %u)", model_string(model, process->comm),
		         thread->pid);
		node = child_of(drawing, node, text);
		snprintf(text, sizeof(text), "%.300s (thread %u)", model_string(model, thread->comm),
		         thread->tid);
		node = node == NODE_NONE ? node : child_of(drawing, node, text);
	}
	if (node == NODE_NONE || leaf_describe(&drawing->texts, model, leaf, &detail))
		return NODE_NONE;
	return detail_nodes(drawing, node, &detail);
}

static int add_flame(struct drawing *drawing, const struct leaf *leaf)
{
	const uint64_t fields[] = {leaf->code,   leaf->role,     leaf->thread, (uint64_t)leaf->syscall,
	                           leaf->path,   leaf->function, leaf->python, leaf->lock,
	                           leaf->holder, leaf->stack};
	uint64_t key = hash_bytes(fields, sizeof(fields));
	uint32_t at;

	if (!index_map_get(&drawing->node_by_leaf, key, &at)) {
		at = leaf_node(drawing, leaf);
		if (at == NODE_NONE || index_map_put(&drawing->node_by_leaf, key, at))
			return -ENOMEM;
	}
	drawing->nodes.items[at].ns += leaf->end_ns - leaf->start_ns;
	return 0;
}

/* ---- one gap ---- */

static int visit(void *context, const struct gap_chain *chain)
{
	struct drawing *drawing = context;
	uint64_t length = chain->gap->end_ns - chain->gap->start_ns;
	unsigned bin = length ? 63 - (unsigned)__builtin_clzll(length) : 0;
	int rc = 0;

	drawing->bin_count[bin]++;
	drawing->bin_ns[bin] += length;
	for (size_t i = 0; !rc && i < chain->count; i++)
		rc = add_flame(drawing, &chain->leaves[i]);
	if (rc)
		return rc;
	if (length < drawing->threshold_ns || drawing->drawn == HTML_GAPS_MOST) {
		drawing->left_out++;
		drawing->left_out_ns += length;
		return 0;
	}
	drawing->drawn++;
	return draw_gap(drawing, chain);
}

/* Which gaps to leave out where there are too many. */
static int find_threshold(struct drawing *drawing, const struct device *device)
{
	const struct device_report *report = drawing->report;
	struct gap_list gaps = {0};
	uint64_t *lengths;
	int rc;

	if (report->gap_count <= HTML_GAPS_MOST)
		return 0;
	rc = gap_list_make(&gaps, device, report->window_start_ns, report->window_end_ns);
	lengths = rc ? NULL : calloc(gaps.count, sizeof(*lengths));
	if (lengths) {
		for (size_t i = 0; i < gaps.count; i++)
			lengths[i] = gaps.items[i].end_ns - gaps.items[i].start_ns;
		qsort_items(lengths, gaps.count, sizeof(*lengths), compare_unsigned);
		drawing->threshold_ns = lengths[gaps.count - HTML_GAPS_MOST];
	}
	free(lengths);
	gap_list_free(&gaps);
	return lengths ? 0 : -ENOMEM;
}

/* ---- the description ---- */

static int describe(struct drawing *drawing)
{
	struct maker maker = {0};
	json_t *object = json_object(), *flame = json_array(), *bins = json_array();
	struct node *node;

	array_for_each (node, &drawing->nodes) {
		append(&maker, flame,
		       json_pack("[I, O, I]",
		                 node->parent == NODE_NONE ? (json_int_t)-1 : (json_int_t)node->parent,
		                 node->name, (json_int_t)node->ns));
	}
	for (int bin = 0; bin < BINS; bin++) {
		if (drawing->bin_count[bin])
			append(&maker, bins,
			       json_pack("[i, I, I]", bin, (json_int_t)drawing->bin_count[bin],
			                 (json_int_t)drawing->bin_ns[bin]));
	}
	set(&maker, object, "flame", flame);
	set(&maker, object, "histogram", bins);
	set(&maker, object, "drawn", make_integer(drawing->drawn));
	set(&maker, object, "left_out", make_integer(drawing->left_out));
	set(&maker, object, "left_out_ns", make_integer(drawing->left_out_ns));
	set(&maker, object, "threshold_ns", make_integer(drawing->threshold_ns));
	drawing->gaps->description = object;
	return maker.failed || !object ? -ENOMEM : 0;
}

int html_gaps_make(struct html_gaps *gaps, struct html_lists *lists, const struct model *model,
                   const struct device_report *report)
{
	struct drawing drawing = {.gaps = gaps,
	                          .lists = lists,
	                          .model = model,
	                          .report = report,
	                          .last_end_ns = report->window_start_ns};
	uint32_t index = gap_chains_device(model, report);
	struct node *node;
	int rc = 0;

	*gaps = (struct html_gaps){0};
	if (index != MODEL_NONE && model->devices.items[index].ops.count) {
		rc = find_threshold(&drawing, &model->devices.items[index]);
		if (!rc)
			rc = gap_chains_visit(model, report, visit, &drawing);
	}
	if (!rc)
		rc = describe(&drawing);
	array_for_each (node, &drawing.nodes)
		json_decref(node->name);
	array_free(&drawing.nodes);
	index_map_free(&drawing.node_by_key);
	index_map_free(&drawing.node_by_leaf);
	analysis_free(&drawing.texts);
	return rc;
}

void html_gaps_free(struct html_gaps *gaps)
{
	array_free(&gaps->bytes);
	json_decref(gaps->description);
	gaps->description = NULL;
}
