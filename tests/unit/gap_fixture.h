/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One gap to be explained, for tests of single rules: the main thread of process MAIN launches a kernel that
 * is busy in [0, 10 ms], and, with end_gap(), one that starts at 20 ms. What happens in between is the
 * test's.
 */
#ifndef WHYIDLE_TESTS_GAP_FIXTURE_H
#define WHYIDLE_TESTS_GAP_FIXTURE_H

#include <criterion/criterion.h>

#include "timeline.h"

#define MAIN   100 /* process ids */
#define WORKER 200

/* What is left of the 10 ms gap when the usual launch latency is taken off. */
#define HOST_PART (10 * MS - 5 * US)

extern struct timeline line;
extern uint32_t main_thread;

/* .init and .fini of a TestSuite. gap_again() is both, for a test that looks at several timelines. */
void gap_setup(void);
void gap_teardown(void);
void gap_again(void);

/* The kernel that ends the gap, launched at 19.995 ms. */
void end_gap(void);
/* A thread of the main process, named by its tid. */
uint32_t other_thread(uint32_t tid);
/* A wait for the C library's lock at `address`, which `holder` lets go. */
struct offcpu *wait_for_lock_at(uint32_t thread, uint64_t out, uint64_t wake, uint32_t holder,
                                uint64_t address);

/* The cause that device 0 has; fails if it has not. */
const struct cause *cause_there(enum cause_code code, enum cause_role role);

#define assert_ns(code, role, expected)                                                                      \
	cr_assert_eq(timeline_ns(&line, code, role), expected, "%s@%s is %lu, not %lu",                      \
	             cause_code_name(code), cause_role_name(role), timeline_ns(&line, code, role),           \
	             (uint64_t)(expected))

#endif
