/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How complete the user stacks of a recording are, and how many of their functions have names.
 */
#ifndef WHYIDLE_ATTRIBUTE_STACK_QUALITY_H
#define WHYIDLE_ATTRIBUTE_STACK_QUALITY_H

#include "attribute/analysis.h"
#include "model/model.h"

/* Of all recorded processes, also those that did not use the GPU; not of threads that are no part of them.
 * Returns 0 or -ENOMEM. */
int stack_quality(const struct model *model, struct stack_report *report);

#endif
