/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private to ranks/: offset and drift between two clocks from the ends of the collectives that both sides
 * have. All ranks leave a collective nearly together, so of two sequences of ends the one that belongs
 * together differs by a constant, up to a few microseconds.
 */
#ifndef WHYIDLE_RANKS_CLOCK_H
#define WHYIDLE_RANKS_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock_mark {
	uint64_t start_ns, end_ns;
	uint64_t bytes; /* 0 not known */
	uint32_t kind;
};

/* Time t of b is t - offset_ns - drift x (t - reference_ns) on the clock of a. */
struct clock_fit {
	int64_t offset_ns;
	double drift;
	uint64_t reference_ns;
	uint64_t error_ns; /* what nearly all of the pairs stay within */
	size_t pairs;
};

uint64_t clock_fit_apply(const struct clock_fit *fit, uint64_t ns);

/* True if the two may be the same collective. */
static inline bool clock_mark_alike(const struct clock_mark *a, const struct clock_mark *b)
{
	return a->kind == b->kind && (!a->bytes || !b->bytes || a->bytes == b->bytes);
}

/*
 * Finds the fit that has the most in common with the smallest spread. Both sequences are in order of their
 * ends. Returns 1 if there is one, 0 if the two do not belong together, -ENOMEM.
 */
int clock_align(struct clock_fit *fit, const struct clock_mark *a, size_t a_count, const struct clock_mark *b,
                size_t b_count);

/*
 * Pairs a and b under a fit, in order: pair[j] is the index in a for b[j], SIZE_MAX for none. Returns how
 * many.
 */
size_t clock_pair(const struct clock_fit *fit, const struct clock_mark *a, size_t a_count,
                  const struct clock_mark *b, size_t b_count, uint64_t tolerance_ns, size_t *pair);

/* Measures offset, drift and error again on pairs that are known. Returns 0 or -ENOMEM. */
int clock_fit_measure(struct clock_fit *fit, const struct clock_mark *a, const struct clock_mark *b,
                      size_t b_count, const size_t *pair);

/* True if the fit is good enough for collectives of that length to be the same ones. */
bool clock_fit_is_tight(const struct clock_fit *fit, const struct clock_mark *a, size_t a_count);

#endif
