/* SPDX-License-Identifier: GPL-2.0-only */
/* What repeats: in a sequence of intervals, and in the operations of a device. */
#ifndef WHYIDLE_ATTRIBUTE_RHYTHM_H
#define WHYIDLE_ATTRIBUTE_RHYTHM_H

#include "attribute/steps.h"

/*
 * Period of a sequence of intervals: the smallest number of them after which they repeat, 1 if all are alike.
 * *phase gets the index of the first interval that begins a period: the longest one. 0 if the sequence is too
 * short or has no rhythm.
 */
size_t rhythm_find(const uint64_t *intervals, size_t count, size_t *phase);

/* How much intervals differ that are `period` apart: mean of the differences of log2(µs + 1). period < count.
 */
double rhythm_difference(const uint64_t *intervals, size_t count, size_t period);

/* The place in the period, below it, with the longest intervals: there a step ends and the next begins. */
size_t rhythm_phase(const uint64_t *intervals, size_t count, size_t period);

/*
 * Fills steps->list and period_ops from the operations of a device that start within [from, to]; both stay
 * empty where there is no rhythm. Returns 0 or -ENOMEM.
 */
int rhythm_steps(struct steps *steps, const struct model *model, uint32_t device, uint64_t from_ns,
                 uint64_t to_ns);

#endif
