/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Test of the simulator itself: each case runs in a process of its own, since CUDA is initialised once.
 */
#ifndef WHYIDLE_SIM_SELFTEST_H
#define WHYIDLE_SIM_SELFTEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/cuda_sim.h"

struct selftest {
	const char *name;
	void (*run)(void);
	int signal; /* that is to end it, 0: it returns */
};

extern const struct selftest device_tests[], cupti_tests[]; /* end with a NULL name */

#define MS 1000000ULL

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "  %s:%d: %s\n", __FILE__, __LINE__, #condition);                    \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

/* Compares two integers and shows both. */
#define CHECK_EQUAL(actual, expected)                                                                        \
	do {                                                                                                 \
		long long check_actual = (long long)(actual), check_expected = (long long)(expected);        \
                                                                                                             \
		if (check_actual != check_expected) {                                                        \
			fprintf(stderr, "  %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual,      \
			        check_actual, check_expected);                                               \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

uint64_t now_ns(void); /* CLOCK_MONOTONIC */
uint64_t thread_cpu_ns(void);
CUfunction kernel(uint64_t duration_ns);
void launch(CUfunction function, cudaStream_t stream);
cudaStream_t new_stream(unsigned int flags);
/* The device's busy intervals so far; how many in *count. */
struct sim_interval *busy_intervals(size_t *count);
uint64_t busy_sum(void);

#endif
