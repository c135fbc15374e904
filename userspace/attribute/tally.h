/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to attribute/: adds leaves up to the causes of one device. */
#ifndef WHYIDLE_ATTRIBUTE_TALLY_H
#define WHYIDLE_ATTRIBUTE_TALLY_H

#include "attribute/analysis.h"
#include "attribute/detail.h"
#include "attribute/walk.h"
#include "attribute/workers.h"

struct tally;

/* NULL if memory ran out. `model` must outlive it. */
struct tally *tally_new(const struct model *model);
void tally_free(struct tally *tally);

/* Begins the next gap, so that each gap counts once a cause. */
void tally_next_gap(struct tally *tally);
/* Adds a leaf; `launcher` is the thread that the walk began in. A failure is remembered for tally_finish. */
void tally_leaf(struct tally *tally, uint32_t launcher, const struct leaf *leaf);
/* Fills in the device's causes, sorted. Returns 0 or -ENOMEM. */
int tally_finish(struct tally *tally, struct analysis *analysis, struct device_report *device);

/* Formats into a string that the analysis owns; NULL if memory ran out. */
const char *analysis_text(struct analysis *analysis, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
