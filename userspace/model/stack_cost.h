/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_MODEL_STACK_COST_H
#define WHYIDLE_MODEL_STACK_COST_H

#include <stdint.h>

/* What the user stacks of a recording cost. */
struct stack_cost {
	uint64_t copied, copied_bytes; /* in the programs that recorded */
	uint64_t sent, sent_bytes;     /* of these, to the collector */
	uint64_t lost;                 /* could not be kept */
};

#endif
