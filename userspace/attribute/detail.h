/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to attribute/: what a leaf is about, in names. */
#ifndef WHYIDLE_ATTRIBUTE_DETAIL_H
#define WHYIDLE_ATTRIBUTE_DETAIL_H

#include "attribute/analysis.h"
#include "attribute/walk.h"

/* Names a leaf by the user stack that its thread had; `stack` is an index of model.stacks or MODEL_NONE. */
void leaf_take_stack(struct leaf *leaf, const struct model *model, uint32_t stack);

/* Fills in what a leaf is about, in words; strings go to analysis->owned. Returns 0 or -ENOMEM. */
int leaf_describe(struct analysis *analysis, const struct model *model, const struct leaf *leaf,
                  struct cause_detail *detail);

#endif
