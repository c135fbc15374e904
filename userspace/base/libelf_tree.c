/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The static libelf of elfutils 0.192 (Debian 13) uses four functions that only its shared library holds
 * (elfutils bug 32293). These stand in for them in a build with STATIC=1: the linker meets this archive once
 * more after libelf, and takes them only if they are still missing. Each ELF file is used by one thread here,
 * so the trees need no lock.
 */
#include <search.h>
#include <stddef.h>

/* libelf's tree starts with its root; what comes behind is a lock, which it does not use in static builds. */
struct search_tree {
	void *root;
};

void eu_search_tree_init(struct search_tree *tree);
void eu_search_tree_fini(struct search_tree *tree, void (*free_node)(void *));
void *eu_tsearch(const void *key, struct search_tree *tree, int (*compare)(const void *, const void *));
void *eu_tdelete(const void *key, struct search_tree *tree, int (*compare)(const void *, const void *));

void eu_search_tree_init(struct search_tree *tree)
{
	tree->root = NULL;
}

void eu_search_tree_fini(struct search_tree *tree, void (*free_node)(void *))
{
	tdestroy(tree->root, free_node);
	tree->root = NULL;
}

void *eu_tsearch(const void *key, struct search_tree *tree, int (*compare)(const void *, const void *))
{
	return tsearch(key, &tree->root, compare);
}

void *eu_tdelete(const void *key, struct search_tree *tree, int (*compare)(const void *, const void *))
{
	return tdelete(key, &tree->root, compare);
}
