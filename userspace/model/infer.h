/* SPDX-License-Identifier: GPL-2.0-only */
/* Between the parts of the inferred timeline: what waits show (infer.c), how long work took (infer_length.c).
 */
#ifndef WHYIDLE_MODEL_INFER_H
#define WHYIDLE_MODEL_INFER_H

#include "base/array.h"
#include "model/model.h"

/* Work whose end one wait showed: operations of one process that no earlier wait had covered. */
struct waited_work {
	size_t first, count; /* range of `covered` */
	uint64_t entered_ns; /* the wait began */
	uint64_t until_ns;   /* it returned: all of the work was over. Ascending */
	bool asked;          /* it was a query, which waits for nothing */
	/* Queries about the same thing showed that it was not over, from the first to the last; the longest
	 * such stretch. 0, 0: none. */
	uint64_t unfinished_from_ns, unfinished_until_ns;
	uint64_t still_unfinished_ns; /* a query showed that last, 0: none did */
};

struct inferred_work {
	struct {
		ARRAY(struct gpu_op)
	} ops; /* in the order of their submission */
	struct {
		ARRAY(uint32_t)
	} covered; /* indices in `ops`, those of one wait in the order of their submission */
	struct {
		ARRAY(struct waited_work)
	} waits;
};

/*
 * Ends operations before the wait that showed their end returned, where the same work is known to take less
 * time: see infer_length.c. Returns 0 or -ENOMEM, and then ends are as they were or partly changed.
 */
int infer_lengths(const struct model *model, struct inferred_work *work);

#endif
