/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Busy, idle and gaps of one device (attribution.md section 1): busy is the union of all operations over all
 * streams and processes, a gap is a maximal stretch of the rest. The part of a copy that the host feeds
 * (model/fed_copies.h) is not busy. An operation of zero length inside idle time
 * splits it into two gaps, as the reference figures of imported traces do.
 */
#ifndef WHYIDLE_ATTRIBUTE_GAPS_H
#define WHYIDLE_ATTRIBUTE_GAPS_H

#include "model/model.h"

struct gap {
	uint64_t start_ns, end_ns; /* the whole gap, end > start */
	uint32_t ended_by; /* index of the device's operation that keeps it busy from end_ns on, MODEL_NONE:
	                      none */
	uint32_t before;   /* operation whose end is start_ns, MODEL_NONE at the edge of the window */
};

/* From here on it keeps the device busy. */
static inline uint64_t op_busy_from(const struct gpu_op *op)
{
	return op->start_ns + op->fed_ns;
}

struct gap_list {
	ARRAY(struct gap)
};

/*
 * Gaps of the device within [from, to]; those at the edges are clipped. Where from or to lies outside the
 * operations there is a gap before the first or after the last one. Returns 0 or -ENOMEM.
 */
int gap_list_make(struct gap_list *gaps, const struct device *device, uint64_t from_ns, uint64_t to_ns);
/* Puts a gap behind the others. Returns 0 or -ENOMEM. */
int gap_list_add(struct gap_list *gaps, uint64_t start_ns, uint64_t end_ns, uint32_t ended_by,
                 uint32_t before);
void gap_list_free(struct gap_list *gaps);

/* Length of the union of the operations that `pick` accepts (NULL: all) within [from, to]. */
uint64_t busy_union(const struct device *device, uint64_t from_ns, uint64_t to_ns,
                    bool (*pick)(const struct gpu_op *op));

/* Kernels that are not collectives. */
bool op_is_compute(const struct gpu_op *op);

#endif
